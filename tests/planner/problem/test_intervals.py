"""The 80 % interval of predicted times in layouts and plans, and own measurements of a chip carried into both."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import planner
from catalog.lookup import Catalog
from models.statistics.intervals import TIERS
from planner.estimate.case import best_layouts
from planner.problem.intervals import DENSE, EXPERTS
from planner.resolve.constants import calibration
from planner.resolve.ledger import Ledger
from planner.verify.plan import verify_plan

CASE = json.loads((Path(__file__).parents[3] / "examples/cases/gpt3_a100.json").read_text())
NATIONAL = json.loads((Path(__file__).parents[3] / "examples/national_pretraining.json").read_text())


def overlay(folder: Path, chip: str, precision: str, factor: float) -> Path:
    """A catalog overlay such as `flopwatt calibrate` writes, with one offset."""
    cited = {"value": factor, "unit": "1", "source": ["OWN"], "confidence": "B", "kind": "calibrated"}
    document = {
        "sources": {"OWN": {"title": "own runs", "date": None, "confidence": "B"}},
        "constants": [{"name": "training_anchor", "figures": {f"mark|{chip}|{precision}": cited}}],
    }
    folder.mkdir(exist_ok=True)
    (folder / "training.json").write_text(json.dumps(document))
    return folder


@pytest.fixture(scope="module")
def shipped():
    return calibration(Ledger(Catalog.load()), "training")


def test_the_interval_widens_for_unseen_sources_and_chips(shipped):
    for label in (DENSE, EXPERTS):
        known, source, kind, chip, generation = (
            shipped.interval("no such chip", "bf16", label, tier) for tier in TIERS
        )
        assert kind.low <= source.low and kind.high >= source.high
        assert generation.low <= chip.low <= source.low <= known.low < 1.0
        assert generation.high >= chip.high >= source.high >= known.high > 1.0


def test_a_plan_is_a_new_source_and_an_unmeasured_chip_a_new_chip(shipped):
    assert shipped.interval("H100 SXM5 80GB", "bf16", DENSE).tier == "new_source"
    assert shipped.interval("MI325X", "bf16", DENSE).tier == "new_chip"  # the generation of MI300X, which was measured
    assert shipped.interval("Gaudi2", "bf16", DENSE).tier == "new_generation"
    assert shipped.interval("a chip of one's own", "bf16", DENSE).tier == "new_generation"


def test_layouts_carry_the_interval_of_their_time():
    found, _ = best_layouts(CASE, (), 3)
    for row in found:
        low, high = row["interval_80"]["step_s"]
        assert low < row["step_s"] < high and row["tier"] == "new_source"


def test_own_runs_correct_the_time_and_tighten_it(tmp_path):
    (before, *_), _ = best_layouts(CASE, (), 1)
    chip = Catalog.load().get("systems", CASE["system"]).text["chip"]
    (after, *_), _ = best_layouts(CASE, [overlay(tmp_path / "own", chip, before["precision"], 1.2)], 1)
    assert after["tier"] == "known" and after["step_s"] == pytest.approx(1.2 * before["step_s"])
    assert sum(after["breakdown_s"].values()) == pytest.approx(after["step_s"])
    width = lambda row: row["interval_80"]["step_s"][1] / row["interval_80"]["step_s"][0]
    assert width(after) < width(before)


def test_a_plan_says_how_long_a_job_takes_with_its_interval(solved):
    plan = copy.deepcopy(solved)
    job = plan["workloads"][0]
    (point,) = job["points"]
    assert point["time_s"]["run"] == pytest.approx(job["tokens"] / point["capacity"])
    for name, value in (*point["time_s"].items(), ("capacity", point["capacity"])):
        low, high = point["interval_80"][name]
        assert low < value < high
    point["interval_80"]["run"][0] *= 1.001
    assert any("interval_80.run" in str(finding) for finding in verify_plan(plan))


@pytest.fixture(scope="module")
def solved():
    return planner.solve(NATIONAL)


def test_a_wrong_tier_is_found(solved):
    plan = copy.deepcopy(solved)
    plan["workloads"][0]["points"][0]["tier"] = "known"
    assert any(".tier" in str(finding) for finding in verify_plan(plan))


def test_serving_points_carry_intervals_of_their_latencies_and_capacity(small_plan):
    for workload in small_plan["workloads"]:
        for point in workload["points"]:
            times = {**point["latency_s"], **point["time_s"], "capacity": point["capacity"]}
            assert set(times) == set(point["interval_80"])
            for name, (low, high) in point["interval_80"].items():
                assert low < times[name]
                assert times[name] < high if high else name.startswith(("ttft.", "e2e."))
