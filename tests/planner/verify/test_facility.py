"""A good plan with a hall holds; one that breaks the hall's limits, its table or a demand on the place does not."""

from __future__ import annotations

import copy
import itertools
import re

import pytest

import planner
from planner.plan import Plan
from planner.spec.document import edited
from planner.verify.plan import verify_plan


@pytest.fixture(scope="module")
def plan(tiny):
    """Two kinds of system bought at one site, for a workload with an audit class, with racks to spare."""
    document = tiny(offers=[{"system": "DGX H100", "how": "buy"}, {"system": "DGX B200", "how": "buy", "supply": 2}])
    document["workloads"][0] |= {
        "architecture": "Llama 3.1 70B", "precision": ["fp8"], "kv_precision": ["fp8"], "demand": {"requests_per_s": 400}, "lengths": {"input": 1000, "output": 300},
        "audit": ["SOC 2"], "sole_tenant": True,
    }  # fmt: skip
    document["sites"][0].pop("systems")
    document["sites"][0] |= {
        "rack_positions": 9, "rack_power": "25 kW", "cooling": ["air"], "audit": ["SOC 2"], "sole_tenant": True,
    }  # fmt: skip
    found = planner.solve(document)
    assert verify_plan(found) == [] and len(found["facility"]) == 2
    return found


def findings(plan, spec=(), change=None):
    """Findings on the plan with its spec edited, and its document changed in place."""
    document = copy.deepcopy(dict(plan.document))
    document["spec"] = edited(document["spec"], tuple(spec))
    if change is not None:
        change(document)
    return [f"{finding.path}: {finding.message}" for finding in verify_plan(Plan(document))]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("sites[0].rack_positions", 2, "rack positions in us-virginia: .* exceeds 2"),
        ("sites[0].rack_power", "10 kW", "power of a rack of DGX H100"),
        ("sites[0].cooling", ["liquid"], "DGX H100 needs air cooling, which us-virginia lacks"),
        ("sites[0].audit", ["C5"], "chat demands SOC 2"),
        ("sites[0].sole_tenant", False, "chat must be the sole tenant"),
    ],
)
def test_a_plan_that_another_hall_would_bar_is_found(plan, path, value, says):
    found = findings(plan, [(path, value)])
    assert any(re.search(says, line) for line in found), found


@pytest.mark.parametrize("key", ["systems", "racks_per_system", "racks", "rack_power_w", "cooling", "site"])
@pytest.mark.parametrize("row", [0, 1])
def test_each_figure_of_the_table_is_computed_again(plan, row, key):
    def bend(document):
        value = document["facility"][row][key]
        document["facility"][row][key] = value * 1.01 if isinstance(value, (int, float)) else "elsewhere"

    assert any("facility" in line for line in findings(plan, change=bend))


def test_the_table_belongs_to_a_plan_with_a_hall_and_to_no_other(plan):
    assert any("facility" in line for line in findings(plan, change=lambda document: document.pop("facility")))
    assert any(
        "facility" in line
        for line in findings(plan, change=lambda document: document["facility"].append(document["facility"][0]))
    )
    without = [("sites[0].rack_positions", None), ("sites[0].rack_power", None), ("sites[0].cooling", None)]
    assert any("facility" in line for line in findings(plan, without))


def test_racks_are_counted_for_all_systems_of_a_site(plan):
    """Checked against a sum over the fleet: two of these nodes fit a rack of 25 kW, one of a B200."""
    by = {
        name: sum(row["count"] for row in rows)
        for name, rows in itertools.groupby(
            sorted(plan["fleet"], key=lambda row: row["system"]), lambda row: row["system"]
        )
    }
    value = next(row["value"] for row in plan["limits"] if row["path"] == "sites[0].rack_positions")
    assert value == by["DGX H100"] / 2 + by["DGX B200"]


@pytest.mark.parametrize("method", ["direct", "branch", "decomposed"])
def test_every_way_to_solve_keeps_the_positions(plan, method):
    rented = {"system": "DGX H100", "how": "on_demand", "sole_tenant": True, "audit": ["SOC 2"]}
    spec = edited(
        plan["spec"],
        (("offers", [*plan["spec"]["offers"], rented]), ("solver.gap", 1e-3), ("sites[0].rack_positions", 5)),
    )
    least = planner.solve(edited(spec, (("solver.gap", 1e-6),))).objective["value"]
    again = planner.solve(edited(spec, (("solver.method", method),)))
    assert verify_plan(again) == []
    row = next(row for row in again["limits"] if row["path"] == "sites[0].rack_positions")
    assert row["value"] == 5 and least * (1 - 1e-6) <= again.objective["value"] <= least * (1 + 2e-3)
