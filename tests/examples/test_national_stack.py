"""The example of a national stack: it solves to its gap, and each lever helps."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import planner
from planner.plan import Plan
from planner.spec.document import edited
from tests.conftest import long_run

HOP = "overrides.fabrics/RoCE v2 400G (Tomahawk 4 / SN5400)/hop_latency_s.value"
AMPLE = ("solver.time_limit", "600 s")
LEVERS = {
    "compiler": (("workloads[0].compiler", None),),
    "tiers": (("kv_tiers[0].tiers[0].sizes", ["0 GB"]), ("kv_tiers[0].tiers[1].sizes", ["0 GB"])),
    "network": (("sites[0].network_share", 0.625), (HOP, "700 ns")),
    "racks": (("sites[0].rack_power", "12 kW"),),
}


@pytest.fixture(scope="module")
def spec(root) -> dict[str, Any]:
    return json.loads((root / "examples/national_stack.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small(spec) -> dict[str, Any]:
    """The assistant alone, on the hall and two kinds of systems."""
    found = edited(copy.deepcopy(spec), (AMPLE, ("workloads[0].demand.output_tokens", "2B tokens/day")))
    found["workloads"] = found["workloads"][:1]
    found["sites"] = [{**found["sites"][0], "topologies": ["rail-only"]}]
    found["offers"] = [offer for offer in found["offers"] if offer["system"] != "BR100 8-card node"]
    found["overrides"] = {path: figure for path, figure in found["overrides"].items() if "Biren" not in path}
    found["catalog"]["systems"] = [s for s in found["catalog"]["systems"] if not s["name"].startswith("BR100")]
    return found


def cost(found: Plan) -> tuple[float, float]:
    """Return (bound, cost)."""
    assert found.status in ("optimal", "within_gap")
    return found["bound"], found.objective["value"]


def test_the_compiler_of_the_small_stack_pays_and_its_tiers_earn(small):
    plan = planner.solve(small)
    assert plan.gap is not None and plan.gap <= 0.005
    assert planner.verify_plan(plan) == []
    assert {"engines/fusion compiler/memory", "kv_tiers[0].tiers[0].price"} <= {a["path"] for a in plan["assumptions"]}
    assert all(row["earns"] > 0 for row in plan["kv_tiers"])
    assert cost(planner.solve(edited(small, LEVERS["compiler"])))[0] > cost(plan)[1]


@long_run
def test_the_whole_stack_solves_to_its_gap_and_each_lever_helps(spec):
    plan = planner.solve(edited(copy.deepcopy(spec), (AMPLE,)))
    assert plan.gap is not None and plan.gap <= 0.005
    assert {row["system"].partition(" + ")[0] for row in plan["fleet"]} == {offer["system"] for offer in spec["offers"]}
    tight = edited(copy.deepcopy(spec), (AMPLE, ("solver.gap", 0.002)))
    most = cost(planner.solve(tight))[0]
    for name, edits in LEVERS.items():
        assert cost(planner.solve(edited(tight, edits)))[1] > most, name
