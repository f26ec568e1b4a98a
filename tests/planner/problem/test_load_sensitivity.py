"""The interval of latencies with waits follows the load: the tier's own at none, wider under load, without an upper bound where it overloads."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from catalog.lookup import Catalog
from models.serving import examples
from models.serving.continuous_batching import aggregated
from models.serving.workload import Lengths
from planner.estimate.answer import _span, estimate
from planner.evaluate.power_caps import slowed
from planner.evaluate.rate_sensitivity import at_other_rates
from planner.problem.intervals import Run, row_of, serving_bounds
from planner.resolve.constants import calibration
from planner.resolve.ledger import Ledger
from planner.verify.points import intervals as checked

CHIPS = [("H100 SXM5 80GB", "bf16")]
RUN = Run("dense", {})
NAMES = ("ttft.mean", "ttft.p95", "e2e.p99", "tpot.p95")
CASE = {
    "workload": {"kind": "serving", "architecture": "llama-3.1-8b", "lengths": {"input": 1000, "output": 200}, "precision": ["bf16"]},
    "system": "DGX H100", "chips": 1, "layout": {"tp": 1},
}  # fmt: skip


@pytest.fixture(scope="module")
def known():
    return calibration(Ledger(Catalog.load()), "serving")


def point_at(batch):
    return aggregated(
        examples.DENSE, examples.CHIP, examples.ONE, batch, lengths=Lengths(1000, 200), precisions=examples.BF16, constants=examples.SERVING
    )  # fmt: skip


def bounds_at(known, point, module=None):
    serve = serving_bounds if module is None else module.serving_bounds
    return serve(known, CHIPS, dict.fromkeys(NAMES, 1.0), 1.0, RUN, at_other_rates(point))


def test_intervals_are_the_tiers_at_no_load_and_widen_with_it(known):
    plain = serving_bounds(known, CHIPS, dict.fromkeys(NAMES, 1.0), 1.0, RUN)
    idle = bounds_at(known, point_at(0.05))
    for name in NAMES:
        assert idle[name] == pytest.approx(plain[name], rel=1e-3)
    before = plain
    for batch in (4.0, 16.0, 48.0, 100.0):
        here = bounds_at(known, point_at(batch))
        assert here["capacity"] == plain["capacity"] and here["tpot.p95"] == pytest.approx(plain["tpot.p95"])
        for name in ("ttft.mean", "ttft.p95", "e2e.p99"):
            assert here[name][0] <= before[name][0] * (1 + 1e-9) and here[name][1] >= before[name][1] * (1 - 1e-9)
        before = here
    assert before["ttft.mean"][1] > 1.05 * plain["ttft.mean"][1]


def test_a_bound_by_hand(known):
    """Half of the server's time is taken, and half of the mean TTFT of 1 s is the wait for it: at 1/f of the rate it is (1/f) 0.5/(1 - 0.5/f)."""
    point = point_at(4.0)
    point = replace(
        point, arrivals=replace(point.arrivals, load=0.5), unloaded_ttft_s=0.5, prefill_wait_s=0.5, prefill_wait_probability=0.5, slot_wait_s=0.0
    )  # fmt: skip
    band, served = (known.interval(*CHIPS[0], label, run=RUN) for label in ("ttft", "throughput"))
    assert served.low > 0.5
    for f, own, found in zip(
        (served.high, served.low), (band.low, band.high), bounds_at(known, point)["ttft.mean"], strict=True
    ):
        moved = 0.5 + 0.5 / f * 0.5 / (1.0 - 0.5 / f)
        spread = math.sqrt(math.log(own) ** 2 + math.log(moved) ** 2)
        assert math.log(found) == pytest.approx(math.copysign(spread, math.log(own)))


def test_an_overload_in_one_run_of_ten_has_no_upper_bound_and_says_so(known):
    point = point_at(4.0)
    point = replace(point, arrivals=replace(point.arrivals, load=0.9))
    found = bounds_at(known, point)
    row = row_of(found)
    for name in ("ttft.mean", "ttft.p95", "e2e.p99"):
        assert math.isinf(found[name][1]) and row[name][1] is None and 0.0 < row[name][0] < 1.0
    assert None not in row["tpot.p95"] + row["capacity"]
    assert "without an upper bound" in _span(row["ttft.mean"]) and "without" not in _span(row["tpot.p95"])


def test_a_power_cap_leaves_the_factors_as_they_are(known):
    point = point_at(48.0)
    assert bounds_at(known, slowed(point, 0.7))["ttft.p95"] == pytest.approx(
        bounds_at(known, point)["ttft.p95"], rel=1e-6
    )


def test_verify_finds_the_same_by_its_own_code(known):
    for batch in (1.0, 16.0, 64.0, 150.0):
        ours, theirs = (bounds_at(known, point_at(batch), module) for module in (None, checked))
        assert ours.keys() == theirs.keys()
        for name, pair in ours.items():
            assert theirs[name] == pytest.approx(pair, rel=1e-9)
            assert (row_of(ours)[name][1] is None) == (checked.stated_bounds(theirs)[name][1] is None)


def test_estimates_widen_under_open_arrivals_and_not_in_a_closed_loop():
    few, many, closed = (
        estimate({**CASE, "load": load}).answer
        for load in ({"requests_per_s": 0.5}, {"requests_per_s": 12.0}, {"concurrency": 64})
    )
    low = [
        answer["interval_80"]["ttft"]["mean"][0] / answer["latency_s"]["ttft"]["mean"] for answer in (few, many, closed)
    ]
    assert low[1] < low[0] <= low[2] * (1 + 1e-9)
    high = many["interval_80"]["ttft"]["mean"][1]
    assert (
        high is None
        or high / many["latency_s"]["ttft"]["mean"]
        > few["interval_80"]["ttft"]["mean"][1] / few["latency_s"]["ttft"]["mean"]
    )
    assert closed["interval_80"]["ttft"]["mean"][1] is not None
