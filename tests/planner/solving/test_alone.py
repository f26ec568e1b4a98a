"""A workload that nothing on offer can carry is named at once, with the figure that it misses."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest

import planner
from planner.candidates.least import least_latencies
from planner.candidates.search import find_candidates
from planner.report.report import render
from planner.resolve.resolver import resolve_document
from planner.solving.alone import impossible_alone


def asked(document):
    problem = resolve_document(document)
    return problem, impossible_alone(problem, find_candidates(problem))


def slo(document, **limits):
    document = copy.deepcopy(document)
    document["workloads"][0]["slo"] = {metric: {"p95": limit} for metric, limit in limits.items()}
    return document


def training(**changes):
    job = {
        "name": "run",
        "kind": "training",
        "architecture": "Llama-3.1-8B",
        "tokens": "1T",
        "deadline": "30 d",
        **changes,
    }
    offers = [{"system": "DGX H100", "how": "buy", "supply": 8}]
    return {"name": "job", "workloads": [job], "sites": [{"region": "us-texas"}], "offers": offers}


def grpo(rate):
    job = {
        "name": "grpo", "kind": "reinforcement", "architecture": "Llama-3.2-1B", "prompts": 64, "samples": 8, "iterations_per_hour": rate,
        "lengths": {"prompt": 200, "response": 1000, "limit": 4096, "cv": 1.0},
    }  # fmt: skip
    offers = [{"system": "DGX H100", "how": "buy", "supply": 4}]
    return {"name": "rl", "workloads": [job], "sites": [{"region": "us-texas"}], "offers": offers}


@pytest.mark.parametrize("pools", ["never", "allowed", "always"])
@pytest.mark.parametrize("metric", ["ttft", "tpot"])
def test_the_least_latency_is_where_plans_begin(tiny, metric, pools):
    """A limit just below the least is impossible; the least itself, which one layout reaches, is not."""
    document = tiny()
    document["workloads"][0]["disaggregation"] = pools
    problem = resolve_document(slo(document, **{metric: "0.2 ms"}))
    (least,) = least_latencies(problem, problem.serving[0], "us-virginia", 0.0)
    _, facts = asked(slo(document, **{metric: f"{least.least_s * 0.99e3:.6f} ms"}))
    assert [fact.message.code for fact in facts] == ["alone.latency"]
    assert facts[0].message.arguments["best"] == pytest.approx(least.least_s * 1e3, rel=1e-9)
    assert facts[0].path == f"workloads[0].slo.{metric}.p95"
    if pools == "never":
        assert not asked(slo(document, **{metric: f"{least.least_s * 1.01e3:.6f} ms"}))[1]


def test_limits_that_only_exclude_each_other_are_named_beside_each_other(tiny):
    document = tiny()
    problem = resolve_document(slo(document, ttft="10 s", tpot="10 s"))
    least = {each.key: each.least_s for each in least_latencies(problem, problem.serving[0], "us-virginia", 0.0)}
    tight = slo(document, ttft=f"{least['ttft.p95'] * 1.0001e3:.6f} ms", tpot=f"{least['tpot.p95'] * 1.0001e3:.6f} ms")
    _, facts = asked(tight)
    assert {fact.message.code for fact in facts} <= {"alone.latency_beside"}
    for fact in facts:
        assert fact.message.arguments["best"] > fact.message.arguments["asked"]


def test_a_possible_workload_is_not_named(tiny, small_spec):
    for document in (tiny(), small_spec, training(), grpo(1)):
        _, facts = asked(document)
        assert not facts


def test_a_network_that_fits_nowhere_is_named(tiny):
    document = tiny()
    document["overrides"] = {"chips/H100 SXM5 80GB/hbm_bytes": {"value": "1 GB", "note": "a chip too small"}}
    _, facts = asked(document)
    assert [fact.message.code for fact in facts] == ["alone.fits_nowhere"]


@pytest.mark.parametrize(("days", "known"), [(0.5, "peak"), (15, "width")])
def test_the_shortest_run_is_named_with_its_days(days, known):
    _, (fact,) = asked(training(deadline=f"{days} d"))
    best = fact.message.arguments["best"]
    assert fact.message.code == "alone.run" and best > days == fact.message.arguments["asked"]
    if known == "width":
        assert not asked(training(deadline=f"{best * 1.001} d"))[1]


def test_the_most_iterations_are_named():
    _, (fact,) = asked(grpo(100_000))
    best = fact.message.arguments["best"]
    assert fact.message.code == "alone.iterations" and fact.path == "workloads[0].iterations_per_hour"
    assert not asked(grpo(best * 0.999))[1]
    assert asked(grpo(best * 1.001))[1][0].message.arguments["best"] == pytest.approx(best)


def test_a_system_that_comes_too_late_is_named_with_the_days(tiny):
    document = tiny()
    document["offers"][0]["available_from"] = "2027-07-01"
    document["horizon"] = {"start": "2027-01-01", "years": 1}
    _, facts = asked(document)
    assert [fact.message.code for fact in facts] == ["alone.late"]
    assert facts[0].message.arguments["ready"] == "2027-07-01" and facts[0].message.arguments["begins"] == "2027-01-01"


def test_the_plan_and_its_page_say_so(tiny):
    plan = planner.solve(slo(tiny(), tpot="0.01 ms"))
    (row,) = plan.document["reasons"]
    assert plan.status == "infeasible" and row["code"] == "alone.latency"
    assert not planner.verify_plan(plan)
    for form in ("table", "md"):
        assert "tpot p95 is at least" in re.sub(r"\s+", " ", render(plan, form))


def test_origins_are_asked_one_by_one(tiny):
    """The farther origin has no operating point, the nearer one has."""
    document = slo(tiny(), ttft="130 ms")
    document["workloads"][0]["origins"] = [
        {"region": "us-virginia", "share": 0.5},
        {"region": "jp-tokyo", "share": 0.5},
    ]
    problem, facts = asked(document)
    (least,) = least_latencies(problem, problem.serving[0], "jp-tokyo", 0.0)
    near = least_latencies(problem, problem.serving[0], "us-virginia", 0.0)[0]
    route = next(iter(problem.routes("chat", "jp-tokyo", "us-virginia").values()))
    assert least.least_s - near.least_s == pytest.approx(
        route.rtt_s - next(iter(problem.routes("chat", "us-virginia", "us-virginia").values())).rtt_s
    )
    assert np.isfinite(least.least_s) and [fact.message.code for fact in facts] == ["alone.latency"]
