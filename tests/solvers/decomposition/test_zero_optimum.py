"""An optimum of exactly 0: its bound is a little below 0 by rounding, which no relative gap closes."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.plan import Plan
from planner.verify.plan import verify_plan
from solvers.interface import ABSOLUTE_GAP
from solvers.mip import relative_gap

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def free(tiny):
    """A site whose systems and electricity cost nothing, large enough for all, beside two that cost something."""
    spec = tiny(
        sites=[
            {"region": "us-virginia", "systems": ["DGX H100"], "electricity_price": "0 USD/kWh", "power": "300 kW"},
            {"region": "us-texas", "systems": ["DGX H100"], "power": "3 MW", "fixed_cost": "10k USD/year"},
            {"region": "us-oregon", "systems": ["DGX H100"], "power": "3 MW"},
        ],
        offers=[
            {"system": "DGX H100", "how": "on_demand", "price": "0 USD/h", "regions": ["us-virginia"]},
            {"system": "DGX H100", "how": "buy", "price": "310000 USD", "regions": ["us-texas", "us-oregon"]},
        ],
    )
    spec["workloads"][0] |= {"demand": {"requests_per_s": 3000}, "weight_updates_per_year": 0}
    spec["workloads"].append(copy.deepcopy(spec["workloads"][0]) | {"name": "more", "demand": {"requests_per_s": 500}})
    spec["solver"] = {"gap": 1e-3, "time_limit": f"{LIMIT_S} s"}
    return spec


@pytest.mark.parametrize("method", ["auto", "direct", "branch", "decomposed"])
def test_the_search_ends_with_the_optimum(free, method):
    plan = planner.solve({**free, "solver": free["solver"] | {"method": method}})
    assert plan["solver"]["ended_by"] != "time"
    assert (plan.status, plan.gap) == ("optimal", 0.0)
    assert abs(plan.objective["value"]) <= ABSOLUTE_GAP and -ABSOLUTE_GAP <= plan["bound"] <= plan.objective["value"]


def test_a_bound_that_is_not_nearly_zero_leaves_a_gap(free):
    document = json.loads(planner.solve(free).to_json())
    document["bound"] = -1.0
    assert any(finding.path == "gap" for finding in verify_plan(Plan(document)))
    assert relative_gap(0.0, -0.1 * ABSOLUTE_GAP) == 0.0
    assert relative_gap(0.0, -2.0 * ABSOLUTE_GAP) > 1.0
    assert relative_gap(100.0, 99.0) == pytest.approx(0.01)
