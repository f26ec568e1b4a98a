"""Check the arithmetic of the accuracy report: regret, weighted medians, and chapters written one at a time."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def scores():
    return importlib.import_module("accuracy_scores")


def test_regret_is_what_the_pick_costs_over_the_best(scores):
    groups = {
        "right": {"a": (1.0, 5.0), "b": (2.0, 6.0)},  # picks a, the best
        "wrong": {"a": (1.0, 6.0), "b": (1.5, 5.0)},  # picks b, which takes half as long again
        "alone": {"a": (1.0, 1.0)},
    }
    assert scores.regrets(groups, 2) == pytest.approx([0.0, 0.5])
    assert scores.regrets(groups, 3) == []


def test_weighted_median(scores):
    assert scores.weighted_median([(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]) == 2.0
    assert scores.weighted_median([(3.0, 5.0), (1.0, 1.0), (2.0, 1.0)]) == 3.0


def test_errors_are_signed_for_the_bias_only(scores):
    found = scores.errors([-0.3, -0.1, 0.1])
    assert (found["n"], found["median"], found["bias"], found["within 20 %"]) == (3, "10.0 %", "-10.0 %", "66.7 %")


def test_a_plot_has_a_dot_for_each_point_and_a_name_for_each_chip(scores):
    plot = scores.scatter([("A", 1.0, 1.1), ("B", 20.0, 18.0), ("A", 0.5, 0.4)], "TTFT [s]")
    assert plot.count('r="2.5"') == 3 and plot.count('r="4"') == 2 and "measured TTFT [s]" in plot


def test_a_chapter_written_apart_leaves_the_other_as_it_was():
    accuracy = importlib.import_module("accuracy")
    chapters = {"training": "## Training\n\n| a |\n\n### Training: worst\n\nx\n", "serving": "## Serving\n\ny\n"}
    text = "\n".join([accuracy.HEAD, *chapters.values()])
    assert accuracy.written_chapters(text) == chapters


def test_throughput_of_a_closed_loop_follows_from_its_times():
    serving = importlib.import_module("accuracy_serving")
    from planner.calibration.measurements import Row

    row = Row(2, {"engine": "vllm"}, {"concurrency": 8.0, "osl": 101.0})
    # A client waits 1 s and then 100 steps of 20 ms: 101 tokens in 3 s, eight clients at once; predicted twice as slow.
    found = {"ttft": (1.0, 2.0), "tpot": (0.02, 0.04)}
    assert serving.seconds_per_token(row, found) == pytest.approx((3.0 / (8 * 101), 6.0 / (8 * 101)))
    assert serving.seconds_per_token(row, {**found, "throughput": (50.0, 40.0)}) == pytest.approx((0.02, 0.025))
    assert serving.seconds_per_token(row, {"ttft": (1.0, 2.0)}) is None


@pytest.mark.parametrize(("changes", "needed"), [
    ({}, True), ({"isl": None}, False), ({"concurrency": None}, False), ({"concurrency": None, "is_max_throughput": 1.0}, True), ({"ttft_ms": None}, False),
    ({"isl": None, "other_metric": "mlperf scenario=Offline"}, True), ({"osl": None, "mode": "prefill_only"}, True), ({"n_chips": None}, False),
])  # fmt: skip
def test_fields_that_a_serving_row_needs(changes, needed):
    serving = importlib.import_module("accuracy_serving")
    from planner.calibration.measurements import Row

    cells = {
        "chip": "H100",
        "model": "x",
        "mode": "aggregated",
        "other_metric": "",
        "n_chips": 1.0,
        "isl": 1.0,
        "osl": 2.0,
        "concurrency": 1.0,
        "ttft_ms": 3.0,
        **changes,
    }
    row = Row(
        2,
        {name: v for name, v in cells.items() if isinstance(v, str)},
        {name: v for name, v in cells.items() if isinstance(v, float)},
    )
    assert serving.has_needed_fields(row) is needed


def test_repeated_runs_of_one_configuration_give_the_noise_floor():
    """Three runs of one configuration that differ in date, one of another; the median is of the same runs, hence sqrt(3 / 2)."""
    import numpy as np

    from models.serving.examples import CHIP, DENSE
    from models.training.many_runs import Case
    from models.training.step import Recipe
    from planner.calibration.target import Observation

    class Measured:
        def __init__(self, kind, year, dp=8):
            self.row, self.architecture, self.chip, self.chips = type("Row", (), {"kind": kind}), "A", "H100", 8.0
            self.case = Case(DENSE, CHIP, {"dp": dp}, 8.0, 4096, "bf16", "hopper", Recipe(release_year=year))

    cases = [
        Measured("a", 2025.0),
        Measured("a", 2026.0),
        Measured("a", 2026.5),
        Measured("b", 2026.0),
        Measured("a", 2026.0, 4),
    ]
    seen = [Observation(i, "step_time", value, True, "dense") for i, value in enumerate((1.0, 1.1, 1.2, 1.1, 9.0))]
    noise = importlib.import_module("noise")
    found = noise.repeated(cases, seen, np.ones(5, bool))["dense"]
    assert (found.configurations, found.runs) == (1, 3)
    assert sorted(found.errors) == pytest.approx(sorted(np.array([0.1, 0.0, 0.1]) / 1.1 * np.sqrt(1.5)))
    assert noise.repeated(cases, seen, np.ones(5, bool), across_sources=True)["dense"].runs == 4


REPORT = """# Accuracy

## Training

| check | goal | result |
| --- | --- | --- |
| leave-group-out, dense: median | ≤ 5.5 % | {dense} % |
| leave-group-out, dense: within 20 % | ≥ 92 % | 50.0 % |

## Serving

| check | goal | result |
| --- | --- | --- |
| leave-one-source-out, pooled, TPOT: median | ≤ 18 % | {tpot} % |
"""


@pytest.mark.parametrize(("dense", "lost"), [(6.9, False), (7.2, True), (3.0, False)])
def test_a_tier_may_lose_a_point_and_no_more(dense, lost):
    against = importlib.import_module("accuracy_against")
    found = against.changes(REPORT.format(dense=6.0, tpot=16.0), REPORT.format(dense=dense, tpot=16.0))
    assert {each.check: each.lost for each in found} == {
        "training: leave-group-out, dense: median": lost,
        "serving: leave-one-source-out, pooled, TPOT: median": False,
    }
    assert "TPOT" not in against.change_table(found)  # which did not change


def test_a_report_without_medians_is_not_compared():
    against = importlib.import_module("accuracy_against")
    with pytest.raises(ValueError, match="no median"):
        against.changes("# Accuracy\n", REPORT.format(dense=6.0, tpot=16.0))


def test_a_large_group_has_one_vote(scores):
    found = scores.errors([0.5] * 9 + [0.1, 0.2], ["a"] * 9 + ["b", "c"])
    assert (found["median"], found["median of groups"], found["groups"]) == ("50.0 %", "20.0 %", 3)


def test_the_band_holds_nine_of_ten_draws(scores):
    import numpy as np

    low, high = scores.binomial_band(40)
    drawn = np.random.default_rng(0).binomial(40, 0.8, 20_000) / 40
    assert 0.9 <= np.mean((drawn >= low) & (drawn <= high)) <= 0.96


def test_ranges_of_slices_are_named():
    slices = importlib.import_module("accuracy_slices")
    assert [slices.ranged(value, (1, 16, 256)) for value in (1, 2, 16, 17, 257, None)] == [
        "1", "2-16", "2-16", "17-256", "above 256", "not stated"
    ]  # fmt: skip
