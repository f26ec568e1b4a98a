"""How often a run is interrupted, and what an interruption costs it."""

import math

import pytest

from planner.estimate.case import resolve_case
from planner.evaluate.interruptions import RunTerms, goodput_of, interruptions

CASE = {
    "workload": {
        "name": "job", "kind": "training", "architecture": "Llama-3.1-70B", "tokens": "1T", "deadline": "90 d",
        "batch_tokens": 4194304,
    },
    "system": "DGX H100", "chips": 1024,
}  # fmt: skip


@pytest.mark.parametrize("gb_per_s", [1.0, 40.0, 400.0, 4000.0])
def test_checkpoints_are_written_at_the_bandwidth_that_the_site_states(gb_per_s):
    """Slower or faster than the usual rate of the catalog, which holds only where the site states none."""
    facts = resolve_case(CASE)
    known = facts.constants.reliability
    found = interruptions(facts.job, known, RunTerms(storage_bytes_per_s=gb_per_s * 1e9))
    assert found.write_s == pytest.approx(found.checkpoint_bytes / (gb_per_s * 1e9), rel=1e-12)
    usual = interruptions(facts.job, known, RunTerms())
    assert usual.write_s == pytest.approx(found.checkpoint_bytes / known.storage_bytes_per_s, rel=1e-12)


def test_faster_storage_never_costs_progress():
    facts = resolve_case(CASE)
    share = [
        goodput_of(facts.job, 1024, facts.constants.reliability, RunTerms(storage_bytes_per_s=rate * 1e9))
        for rate in (1, 10, 100, 1000, 10_000)
    ]
    assert share == sorted(share) and share[0] < share[-1] < 1.0
    assert math.isfinite(share[0])
