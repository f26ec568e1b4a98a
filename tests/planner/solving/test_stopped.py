"""A search that a limit ends without a plan says so, what took it, and the change that helps most."""

from __future__ import annotations

import re

import pytest

import planner
from planner.candidates.cache import OutOfMemory, OutOfTime
from planner.report.report import render
from planner.resolve.resolver import resolve_document
from planner.solving.stopped import without_points


def codes(plan):
    return [row["code"] for row in plan.document["reasons"]]


def test_time_that_is_up_before_the_points(tiny):
    plan = planner.solve(tiny(solver={"time_limit": "1 ms"}))
    assert plan.status == "limit" and not plan.has_answer
    assert codes(plan)[0] == "limit.points_time" and len(codes(plan)) == 2
    assert not planner.verify_plan(plan)
    page = re.sub(r"\s+", " ", render(plan, "table"))
    assert (
        "no plan was found within 0.001 s" in page and "the change that helps most" in page
    ) or "raise the limit" in page


def change_of(document):
    problem = resolve_document(document)
    return [fact.message for fact in without_points(problem, OutOfTime(5))][1]


def test_the_change_that_leaves_least_is_named(tiny):
    document = tiny()
    document["offers"] = [{"system": "DGX H100", "how": how} for how in ("buy", "reserved")]
    document["workloads"][0]["disaggregation"] = "allowed"
    assert change_of(document).code in ("limit.change_pools", "limit.change_networks")
    document["workloads"][0]["disaggregation"] = "never"
    document["sites"][0]["topologies"] = ["rail-only"]
    assert change_of(document).code == "limit.change_none"
    document["sites"].append({"region": "us-texas", "topologies": ["rail-only"]})
    del document["sites"][0]["systems"]
    assert change_of(document).code == "limit.change_sites"
    document["offers"] += [{"system": name, "how": "buy"} for name in ("DGX H200", "DGX B200", "GB200 NVL72")]
    assert change_of(document).code in ("limit.change_sites", "limit.change_systems")
    assert change_of(document).arguments["share"] < 60


def test_memory_is_told_apart_from_time(tiny):
    problem = resolve_document(tiny())
    assert next(fact.message.code for fact in without_points(problem, OutOfMemory(7))) == "limit.points_memory"


@pytest.mark.parametrize("step", ["program", "solution"])
def test_later_steps_say_what_they_lacked(tiny, monkeypatch, step):
    import planner.solving.answer as module

    if step == "program":
        monkeypatch.setattr("solvers.model.size.least_program_bytes", lambda data, free: 10 * free)
    else:
        from dataclasses import replace

        from solvers.search.joint import solve

        monkeypatch.setattr("planner.pipeline.answer", lambda *args, **kw: module.answer(
            *args, **kw | {"solve_program": lambda data, options: replace(solve(data, options), status="limit", values={})}))  # fmt: skip
    plan = planner.solve(tiny())
    assert plan.status == "limit" and not plan.has_answer
    assert codes(plan)[0] == ("limit.program_memory" if step == "program" else "limit.solution_time")
    assert codes(plan)[1] in ("limit.change_replicas", "limit.change_none", "limit.change_networks")
    assert not planner.verify_plan(plan)


def test_an_infeasible_plan_without_a_conflict_says_that_time_or_memory_ended_the_search(tiny, monkeypatch):
    from planner.candidates.cache import OutOfTime
    from planner.solving.repair_search import RepairSearch

    def late(*_):
        raise OutOfTime

    monkeypatch.setattr(RepairSearch, "smallest_repair", late)
    plan = planner.solve(tiny(limits={"budget": "60k USD"}))
    assert plan.status == "infeasible" and plan["diagnosis"]["conflict"] == []
    assert codes(plan) == ["limit.conflict_not_found"] and not planner.verify_plan(plan)
    assert "ended the search for the limits in conflict" in re.sub(r"\s+", " ", render(plan, "table"))
