"""Answers end within the memory of the spec, and the points found do not depend on it."""

from __future__ import annotations

import copy
import math

import pytest

import planner
from benchmarks.methods import random_spec
from planner.candidates.cache import OutOfMemory
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.report.page import one_page
from planner.report.report import render
from planner.resolve.resolver import resolve_document
from planner.solving import trials
from planner.verify.plan import verify_plan
from solvers import memory

MB = 1_000_000


@pytest.fixture(scope="module")
def spec(tiny) -> dict:
    """A large architecture on two systems at three sites, for origins at several distances: separate pools of many kinds."""
    document = tiny()
    document["workloads"][0] |= {
        "architecture": "DeepSeek-V3", "precision": ["fp8"], "disaggregation": "allowed", "demand": {"requests_per_s": 2000},
        "origins": [{"region": region, "share": 1 / 3} for region in ("us-virginia", "us-texas", "us-california")],
        "slo": {"ttft": {"p95": "3 s"}, "tpot": {"p95": "80 ms"}},
    }  # fmt: skip
    document["sites"] = [{"region": region} for region in ("us-virginia", "us-texas", "us-oregon")]
    document["offers"] = [{"system": name, "how": "buy"} for name in ("DGX H200", "DGX B200")]
    return document


def test_the_points_do_not_depend_on_the_memory(spec):
    def found(size: str):
        document = copy.deepcopy(spec)
        document["solver"]["memory"] = size
        candidates = find_candidates(resolve_document(document))
        points = [
            (pool.site, pool.origins, p.capacity, p.mfu, dict(p.latency), [(use.role, dict(use.layout), use.batch, use.extra_it_w) for use in p.uses])
            for pool in candidates.pools for p in pool.points
        ]  # fmt: skip
        return points, candidates.evaluated, candidates.dropped

    (little, *counts), (much, *others) = found("200 MB"), found("8 GB")
    assert any(len(uses) == 2 for *_, uses in much)
    assert little == much and counts == others


def test_a_diagnosis_ends_when_its_memory_is_used_up(tiny, monkeypatch):
    document = tiny(limits={"budget": "1 USD"})
    full = planner.solve(copy.deepcopy(document))
    assert full.status == "infeasible" and full["diagnosis"]["conflict"]
    held = memory.resident_bytes()
    monkeypatch.setattr(trials, "resident_bytes", lambda: 1e12)
    ended = planner.solve(copy.deepcopy(document))
    assert ended.status == "infeasible" and ended["diagnosis"]["repair"] == []
    assert memory.most_for_a_step(1e3) == pytest.approx(held, rel=0.5)


def test_the_memory_is_an_amount_of_bytes(tiny):
    for wrong in ("1 kB", "2 s", 2):
        with pytest.raises(SpecError) as error:
            resolve_document(tiny(solver={"memory": wrong}))
        assert [problem.path for problem in error.value.problems] == ["solver.memory"]


@pytest.fixture
def used_up(monkeypatch):
    """All memory is used up at the second look."""

    def is_full(watch) -> bool:
        watch.was_full, watch.most_bytes = watch.most_bytes < 0, -1.0
        return watch.was_full

    monkeypatch.setattr(memory.MemoryWatch, "is_full", is_full)


def test_a_plan_says_that_the_memory_ended_its_search(used_up):
    document = random_spec(13) | {"solver": {"gap": 1e-9, "time_limit": "60 s", "method": "branch"}}
    plan = planner.solve(document)
    assert (
        plan.status == "limit" and plan["solver"].get("ended_by") == "memory" and plan["solver"]["repeatable"] is False
    )
    assert verify_plan(plan) == []
    for style in ("table", "md"):
        assert "memory" in render(plan, style)
    assert not plan.has_answer or "--memory" in one_page(plan)


def test_a_program_that_cannot_fit_is_not_built(tiny, monkeypatch):
    monkeypatch.setattr("solvers.model.size.COLUMN_BYTES", 1e9)
    monkeypatch.setattr("solvers.search.joint.solve", lambda *given: pytest.fail("the program was solved"))
    said = []
    plan = planner.solve(tiny(), progress=said.append)
    assert plan.status == "limit" and not plan.has_answer and verify_plan(plan) == []
    assert [row["path"] for row in plan["reasons"]][:1] == ["solver.memory"]
    assert any("no plan was found within 2 GB: the program of" in line for line in said), said


def test_points_that_take_too_much_give_no_plan(tiny, monkeypatch):
    monkeypatch.setattr("planner.candidates.cache.LOOK_EVERY", 1)
    monkeypatch.setattr(memory.MemoryWatch, "is_full", lambda watch: watch.most_bytes < math.inf)
    problem, said = resolve_document(tiny()), []
    with pytest.raises(OutOfMemory):
        find_candidates(problem, until=1e18)
    assert find_candidates(problem).pools  # a study has no end to its search
    plan = planner.solve(tiny(), progress=said.append)
    assert plan.status == "limit" and not plan.has_answer
    assert said == [row["text"] for row in plan["reasons"]]
    assert said[0].startswith("no plan was found within 2 GB") and "the change that helps most" in said[1]
