"""Utilisation is the time that systems are at work over the time for which they are held, not over their busiest hour."""

from __future__ import annotations

import pytest

import planner
from catalog.units import YEAR_S
from planner.verify.plan import verify_plan

SLEEPY = [0.2] * 12 + [1.8] * 12


@pytest.fixture(scope="module")
def spec(tiny):
    def make(requests_per_s, **changes):
        document = tiny(**changes)
        document["workloads"][0]["demand"] = {"requests_per_s": requests_per_s, "profile": SLEEPY}
        return document

    return make


def busy_over_held(plan, workloads):
    """Chip seconds at work for these workloads over those held, from the schedule and the fleet; all fleets are held throughout."""
    of = {
        point["id"]: {pool["system"]: pool["systems_per_replica"] for pool in point["pools"]}
        for row in plan["workloads"]
        if row["name"] in workloads
        for point in row["points"]
    }
    busy = sum(
        replicas * sum(of.get(point, {}).values()) * row["seconds"]
        for row in plan["schedule"]
        for point, replicas in row["active"].items()
    )
    return busy / (sum(row["count"] for row in plan["fleet"]) * YEAR_S)


def utilisation(plan):
    assert verify_plan(plan) == []
    return [row["utilisation"] for row in plan["workloads"]]


def test_a_node_that_is_hardly_used_is_not_full(spec):
    plan = planner.solve(spec(5))
    (found,) = utilisation(plan)
    assert sum(row["count"] for row in plan["fleet"]) == 1
    assert found == pytest.approx(busy_over_held(plan, {"chat"})) and found < 0.1


def test_a_full_fleet_is_nearly_full(spec):
    document = spec(4000)
    document["workloads"][0]["demand"].pop("profile")
    plan = planner.solve(document)
    (found,) = utilisation(plan)
    count = sum(row["count"] for row in plan["fleet"])
    assert count > 2 and 1.0 - 1.0 / count < found <= 1.0  # one system less could not serve it


def test_workloads_that_share_systems_have_the_utilisation_of_these(spec):
    document = spec(900)
    document["workloads"].append(
        {**document["workloads"][0], "name": "night", "demand": {"requests_per_s": 300, "profile": SLEEPY[::-1]}}
    )
    shared = planner.solve(document)
    first, second = utilisation(shared)
    assert first == second == pytest.approx(busy_over_held(shared, {"chat", "night"}))
    separate = planner.solve({**document, "sharing": "none"})
    for found, name in zip(utilisation(separate), ("chat", "night"), strict=True):
        mine = sum(row["count"] for row in separate["fleet"] if row["tenant"] == name)
        every = sum(row["count"] for row in separate["fleet"])
        assert found == pytest.approx(busy_over_held(separate, {name}) * every / mine)


def test_bought_tokens_have_none(spec):
    api = {"name": "gateway", "region": "us-virginia", "output": "0.01 USD/1M tokens", "latency": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "20 ms"}}}  # fmt: skip
    plan = planner.solve(spec(5, apis=[api]))
    assert utilisation(plan) == [None] and {row["how"] for row in plan["fleet"]} == {"api"}


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_another_figure_is_found(spec, factor):
    plan = planner.solve(spec(5))
    plan["workloads"][0]["utilisation"] *= factor
    assert any("utilisation" in finding.path for finding in verify_plan(plan))
