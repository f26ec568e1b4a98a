"""The share of the demand within reach of a spec without a plan, against the most throughput under the same limits."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.report.report import render
from planner.verify.plan import verify_plan

SUPPLY = 2


@pytest.fixture(scope="module")
def two(tiny):
    """Two services that may have two systems between them, at so many requests/s."""

    def make(chat, search, **changes):
        spec = tiny(**changes)
        spec["solver"]["replicas"] = "divisible"
        spec["offers"][0]["supply"] = SUPPLY
        other = copy.deepcopy(spec["workloads"][0]) | {"name": "search", "demand": {"requests_per_s": search}}
        spec["workloads"][0]["demand"] = {"requests_per_s": chat}
        spec["workloads"].append(other)
        return spec

    return make


def most(spec, **objective):
    """The largest factor on the demand, or on that of one workload."""
    plan = planner.solve({**spec, "objective": {"maximise": "throughput", **objective}})
    return plan.objective["value"] if plan.has_answer else None


def test_reach_is_the_most_throughput_under_the_same_limits(two):
    spec = two(4000, 300)
    plan = planner.solve(spec)
    assert plan.status == "infeasible" and verify_plan(plan) == []
    found = {row["workload"]: row["at_most"] for row in plan["diagnosis"]["reach"]}
    assert found[None] == pytest.approx(most(spec), rel=1e-6) and found[None] < 1
    for name in ("chat", "search"):
        alone = most(spec, workload=name)
        assert (name in found) == (alone is not None)
        assert alone is None or found[name] == pytest.approx(alone, rel=1e-6)
    assert "search" not in found and "chat" in found


def test_it_is_told(two):
    plan = planner.solve(two(4000, 300))
    text = render(plan, "table")
    together, chat = (row["at_most"] for row in plan["diagnosis"]["reach"])
    assert f"at most {together:.1%} of all demand" in text
    assert f"or all of the other demand and at most {chat:.1%} of chat" in text


def test_a_share_that_is_none_is_found(two):
    plan = copy.deepcopy(dict(planner.solve(two(4000, 300)).document))
    plan["diagnosis"]["reach"][1]["workload"] = "nobody"
    plan["diagnosis"]["reach"][0]["at_most"] = 1.5
    places = [finding.path for finding in verify_plan(planner.plan.Plan(plan))]
    assert sorted(places) == ["diagnosis.reach[0].at_most", "diagnosis.reach[1].workload"]
