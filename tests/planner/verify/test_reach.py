"""Check that points outside what their family was fitted on have wider intervals, say so, and that plan, page, estimate and verify agree."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import planner
from catalog.lookup import Catalog
from planner.estimate.answer import estimate
from planner.plan import Plan
from planner.problem import intervals
from planner.problem.intervals import EVERY, Calibration, Reach, Run
from planner.report.notes import sentences
from planner.resolve.constants import calibration
from planner.resolve.ledger import Ledger
from planner.verify.plan import verify_plan
from planner.verify.points import intervals as checked

FAMILIES = {"H100 SXM5 80GB": "hopper", "MI300X": "cdna3", "Gaudi2": "gaudi", "TPU v5e": "TPU v5e"}
SLOPE = 0.5
CASE = {
    "workload": {"kind": "serving", "architecture": "llama-3.1-8b", "lengths": {"input": 1000, "output": 200}, "precision": ["bf16"]},
    "system": "DGX H100", "chips": 8, "load": "max",
}  # fmt: skip


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """Write an overlay in which serving on Hopper was fitted on batches of 1 to 4, and intervals grow outside."""
    own = lambda value: {"value": value, "unit": "1", "note": "own"}
    records = [
        {"name": "serving_range", "figures": {"hopper|batch": own([1.0, 4.0])}},
        {"name": "serving_reach", "figures": {label: own(1.0 + SLOPE) for label in ("tpot", "ttft", "throughput")}},
        {"name": "training_range", "figures": {"hopper|chips": own([1.0, 2.0])}},
        {"name": "training_reach", "figures": {label: own(1.0 + SLOPE) for label in ("dense", "moe")}},
    ]
    path = tmp_path_factory.mktemp("narrow") / "own.json"
    path.write_text(json.dumps({"constants": records}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plans(tiny, narrow):
    document = tiny()
    document["workloads"] += [
        {"name": "tune", "kind": "training", "architecture": "llama-3.1-8b", "tokens": "200B", "deadline": "60 d"}
    ]
    return planner.solve(document, overlays=[narrow.parent]), document


def distance(rows):
    """Compute how far a run lies outside from the figures of its sentences."""
    each = [row["arguments"] for row in rows if "most" in row["arguments"]]
    return np.sqrt(sum(max(np.log(a["value"] / a["most"]), np.log(a["least"] / a["value"])) ** 2 for a in each))


def points(plan):
    return [point for workload in plan["workloads"] for point in workload["points"]]


def test_points_outside_are_wider_and_say_so(plans, narrow):
    plan, _ = plans
    known = Catalog.load().get("constants", "serving_interval")
    for point in points(plan):
        codes = [row["code"] for row in point["outside"]]
        assert codes[-1] == ("reach.wider_throughput" if point["capacity_unit"] == "request/s" else "reach.wider_step")
        if point["capacity_unit"] == "request/s":
            batch = max(pool["batch"] for pool in point["pools"])
            assert (
                "reach.batch" in codes
                and f"{batch:,} lies outside 1 to 4, on which hopper was fitted"
                in point["outside"][codes.index("reach.batch")]["text"]
            )
            low, high = (known.value(f"new_source_throughput_{side}") for side in ("low", "high"))
            power = 1.0 + SLOPE * distance(point["outside"])
            found = [bound / point["capacity"] for bound in point["interval_80"]["capacity"]]
            assert found == pytest.approx([low**power, high**power])
        else:
            assert "reach.chips" in codes


def test_the_page_prints_what_lies_outside_with_the_place_of_its_point(plans):
    text = "\n".join(sentences(plans[0]))
    assert "workloads[0].points[0]: a batch of" in text and "widened from" in text


def test_verify_finds_a_narrowed_interval_and_a_missing_sentence(plans, narrow):
    plan, _ = plans
    for change in (
        lambda point: point["interval_80"].update(capacity=[0.9 * point["capacity"], 1.1 * point["capacity"]]),
        lambda point: point.pop("outside"),
        lambda point: point["outside"][0]["arguments"].update(most=10**6),
    ):
        for w in range(2):
            document = copy.deepcopy(plan.document)
            change(document["workloads"][w]["points"][0])
            assert any(
                f"workloads[{w}].points[0]" in str(finding) for finding in verify_plan(Plan(document), [narrow.parent])
            )


def test_an_estimate_widens_and_notes_the_same(narrow):
    wide, usual = (estimate(CASE, overlays).answer for overlays in ([narrow.parent], ()))
    assert "reach.batch" in {row["code"] for row in wide["notes"]}
    power = 1.0 + SLOPE * distance(wide["notes"])
    far, near = (np.log(answer["interval_80"]["tokens_per_s"]) for answer in (wide, usual))
    assert np.diff(far) == pytest.approx(power * np.diff(near))


def test_verify_bounds_drawn_runs_by_its_own_code_as_plans_do():
    known = calibration(Ledger(Catalog.load()), "serving")
    ranges = {
        "hopper": {"batch": (1.0, 512.0), "context": (60.0, 30000.0)},
        EVERY: {"batch": (1.0, 4096.0), "layers": (16.0, 126.0)},
    }
    fields = {name: getattr(known, name) for name in Calibration.__dataclass_fields__}
    known = Calibration(**{**fields, "reach": Reach(ranges, {"tpot": 0.3, "ttft": 0.0, "throughput": 0.7})})
    rng = np.random.default_rng(5)
    for _ in range(100):
        features = dict(
            zip(("batch", "context", "layers", "experts"), np.exp(rng.uniform(0.0, 12.0, 4)).tolist(), strict=True)
        )
        run = Run(str(rng.choice(["dense", "experts", "network of tomorrow"])), features)
        chips = [(str(chip), "bf16") for chip in rng.choice(list(FAMILIES), 2)]
        latency = {"ttft.p95": 0.5, "tpot.mean": 0.02, "e2e.p50": 3.0}
        ours, theirs = (module.serving_bounds(known, chips, latency, 7.0, run) for module in (intervals, checked))
        assert ours.keys() == theirs.keys() and all(
            ours[name] == pytest.approx(theirs[name], rel=1e-12) for name in ours
        )
        assert intervals.serving_tier(known, chips, run.kind) == checked.serving_tier(known, chips, run.kind)


def test_verify_finds_an_upper_bound_where_there_is_none_and_none_where_there_is_one(small_plan):
    plan = copy.deepcopy(small_plan)
    point = plan["workloads"][0]["points"][0]
    for name, (low, high) in list(point["interval_80"].items()):
        point["interval_80"][name] = [low, None if high else 10.0 * point["latency_s"][name]]
        assert any(f"interval_80.{name}" in str(finding) for finding in verify_plan(plan))
        point["interval_80"][name] = [low, high]


def test_a_network_of_another_kind_is_of_a_tier_of_its_own_on_a_known_chip():
    known = calibration(Ledger(Catalog.load()), "serving")
    for module in (intervals, checked):
        assert module.serving_tier(known, [("H100 SXM5 80GB", "bf16")], "network of tomorrow") == "new_kind"
        assert module.serving_tier(known, [("a chip of one's own", "bf16")], "network of tomorrow") == "new_generation"
