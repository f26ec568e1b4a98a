"""How often a run is interrupted, and what an interruption costs it."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.training.reliability import best_goodput
from planner.estimate.case import resolve_case
from planner.evaluate.interruptions import RunTerms, goodput_losses_of, goodput_of, interruptions
from planner.spec.requirements.checkpoints import Checkpoints

CASE = {
    "workload": {
        "name": "job", "kind": "training", "architecture": "Llama-3.1-70B", "tokens": "1T", "deadline": "90 d",
        "batch_tokens": 4194304,
    },
    "system": "DGX H100", "chips": 1024,
}  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    return resolve_case(CASE)


@pytest.mark.parametrize("gb_per_s", [1.0, 40.0, 400.0, 4000.0])
@pytest.mark.parametrize("stated", [None, 2e9])
def test_checkpoints_are_written_at_the_rate_of_all_chips_and_at_most_that_of_the_site(gb_per_s, stated):
    """1,024 chips at 0.135 GB/s each, or as stated: 138 or 2,048 GB/s, where the site lets them."""
    checkpoints = {} if stated is None else {"checkpoints": {"bandwidth_per_chip": f"{stated / 1e9} GB/s"}}
    facts = resolve_case({**CASE, "workload": CASE["workload"] | checkpoints})
    known = facts.constants.reliability
    each = known.chip_checkpoint_bytes_per_s if stated is None else stated
    found = interruptions(facts.job, 1024, known, RunTerms(storage_bytes_per_s=gb_per_s * 1e9))
    assert found.write_s == pytest.approx(found.checkpoint_bytes / min(gb_per_s * 1e9, 1024 * each), rel=1e-12)
    assert found.stall_s == found.write_s and found.restart_s == pytest.approx(known.recovery_s + found.read_s)
    usual = interruptions(facts.job, 1024, known)
    assert usual.write_s == pytest.approx(found.checkpoint_bytes / (1024 * each), rel=1e-12)
    assert interruptions(facts.job, 2048, known).write_s == pytest.approx(usual.write_s / 2)


def test_a_run_of_16384_chips_loses_what_was_published():
    """Llama 3 405B: an interruption every 3.1 h of 16,384 chips, and above 90 % of the time effective (arXiv:2407.21783, section 3.3.4).

    5.7 TB at 2.2 TB/s are written in 2.6 s, every 240 s at the best: 1.1 % for writing, 1.1 % for work done twice; 603 s of 11,135 s to start again.
    """
    facts = resolve_case({
        "workload": {
            "name": "job", "kind": "training", "architecture": "Llama-3.1-405B", "tokens": "15.6T", "deadline": "120 d",
            "sequence_tokens": 8192, "batch_tokens": 16777216,
        },
        "system": "DGX H100", "chips": 16384,
    })  # fmt: skip
    assert goodput_of(facts.job, 16384, facts.constants.reliability) == pytest.approx(0.927, abs=0.003)


def test_a_copy_beside_the_computation_stalls_for_what_is_stated():
    """A stall of 2 s in place of 9.9 s of writing; an interruption falls back by what was not yet written."""
    plain, beside = (
        resolve_case({**CASE, "workload": CASE["workload"] | {"checkpoints": checkpoints}})
        for checkpoints in ({}, {"stall": "2 s", "recovery": "5 min"})
    )
    known = plain.constants.reliability
    found = interruptions(beside.job, 1024, known)
    assert found.stall_s == 2.0 < found.write_s and found.restart_s == pytest.approx(300.0 + found.read_s)
    assert goodput_of(beside.job, 1024, known) > goodput_of(plain.job, 1024, known)
    assert goodput_of(beside.job, 1024, known) == pytest.approx(
        best_goodput(1024, known.chip_interruption_s, 2.0, found.restart_s + found.write_s - 2.0), rel=1e-9
    )


def test_faster_storage_never_costs_progress():
    facts = resolve_case(CASE)
    share = [
        goodput_of(facts.job, 1024, facts.constants.reliability, RunTerms(storage_bytes_per_s=rate * 1e9))
        for rate in (1, 10, 100, 1000, 10_000)
    ]
    assert share == sorted(share) and share[0] < share[-1] < 1.0
    assert math.isfinite(share[0])


@given(chips=st.integers(8, 100_000), stall=st.floats(0.001, 600.0), recovery=st.floats(0.001, 7200.0))
def test_what_a_run_loses_adds_up_to_what_its_goodput_lacks(whole, chips, stall, recovery):
    stated = whole.job.spec.model_copy(
        update={"checkpoints": Checkpoints(stall=f"{stall} s", recovery=f"{recovery} s")}
    )
    job, known = replace(whole.job, spec=stated), whole.constants.reliability
    losses = goodput_losses_of(job, chips, known)
    assert all(loss >= -1e-9 for loss in losses.values())
    assert sum(losses.values()) == pytest.approx(1.0 - goodput_of(job, chips, known), abs=1e-9)
