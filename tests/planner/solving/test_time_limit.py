"""The time limit is that of the whole answer by the wall clock: each step gets what the steps before it have left, and ends in order.

The clock of these tests is their own, so that a busy machine changes nothing.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from types import SimpleNamespace

import pytest

import planner
import solvers.search.joint
from planner.candidates import search
from planner.candidates.cache import OutOfTime
from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.interpret.framing import ending
from planner.report.report import render
from planner.resolve.resolver import resolve_document
from planner.solving import deadline, repair_search
from planner.solving.deadline import LEAST_S, PROGRAM_SHARE, Deadline
from planner.solving.infeasibility import diagnose
from planner.spec.document import read_document
from planner.verify.plan import verify_plan
from solvers.interface import Options
from solvers.memory import TimeWatch
from solvers.search.direct import solve_direct


@pytest.fixture
def clock(monkeypatch):
    """A clock of `Deadline` that stands still unless it is moved."""

    class Clock:
        now = 100.0

        def perf_counter(self):
            return self.now

    it = Clock()
    monkeypatch.setattr(deadline, "time", it)
    return it


def test_steps_share_what_is_left(clock):
    until = Deadline.after(60.0)
    asked = Options(time_limit_s=60.0)
    assert until.options(asked, PROGRAM_SHARE).time_limit_s == pytest.approx(60.0 * PROGRAM_SHARE)
    clock.now += 50.0
    assert until.left_s == pytest.approx(10.0) == until.options(asked).time_limit_s
    clock.now += 50.0
    assert until.left_s < 0 and until.options(asked).time_limit_s == LEAST_S


def test_each_step_gets_the_time_that_those_before_it_left(tiny, clock, monkeypatch):
    """Each step takes 7 s of 60; the limits that they are given are those of the clock."""
    given = {}

    def spy(name, target):
        real = __import__(target.rpartition(".")[0], fromlist=["_"]).__dict__[target.rpartition(".")[2]]

        def call(*args, **rest):
            given[name] = next(a.time_limit_s for a in (*args, *rest.values()) if isinstance(a, Options))
            clock.now += 7.0
            return real(*args, **rest)

        monkeypatch.setattr(target, call)

    spy("program", "planner.solving.replicas.solve")
    spy("settled", "planner.solving.quality.settle")
    spy("marginal values", "planner.solving.marginal_values.compute_marginal_values")
    monkeypatch.setattr("planner.pipeline.time", clock)
    monkeypatch.setattr("planner.candidates.cache.time", clock)
    assert planner.solve(tiny()).has_answer
    assert given == {
        "program": pytest.approx(60 * PROGRAM_SHARE), "settled": pytest.approx(53.0), "marginal values": pytest.approx(46.0),
    }  # fmt: skip


def test_a_diagnosis_ends_with_the_time_that_is_left(tiny, clock, monkeypatch):
    """Half of it, for whole replicas; what a repair for divisible ones may take is left."""
    monkeypatch.setattr("planner.pipeline.time", clock)
    monkeypatch.setattr("planner.candidates.cache.time", clock)
    given = []
    monkeypatch.setattr(
        "planner.solving.infeasibility.diagnose",
        lambda *args: given.append(args[-1].time_limit_s) or diagnose(*args[:-1], Options(time_limit_s=60.0)),
    )
    document = tiny(limits={"budget": "1000 USD"})
    document["solver"]["time_limit"] = "20 s"
    assert planner.solve(document).status == "infeasible"
    assert given == [pytest.approx(10.0)]


def test_a_diagnosis_without_time_says_so(tiny):
    """What is not known to be in conflict is not told."""
    document = tiny(limits={"budget": "1000 USD"})
    problem = resolve_document(document)
    found = diagnose(problem, find_candidates(problem), document, (), Options(time_limit_s=0.0))
    assert found == {"conflict_of": "limits", "conflict": [], "repair": [], "repair_checked": False}


@pytest.mark.parametrize("steps", [1, 5, 40, 200])
def test_a_diagnosis_that_is_cut_short_tells_nothing_that_is_not_so(tiny, monkeypatch, steps):
    """Ended after so many looks at the clock, it names the conflict that it names with all the time it needs, or none."""
    document = tiny(limits={"budget": "1000 USD"})
    document["workloads"][0]["slo"]["ttft"]["p95"] = "5 ms"
    problem = resolve_document(document)
    candidates = find_candidates(problem)
    whole = diagnose(problem, candidates, document, (), Options(time_limit_s=60.0))
    ticks = itertools.count()
    monkeypatch.setattr(
        "planner.solving.trials.time", type("Ticking", (), {"perf_counter": staticmethod(lambda: float(next(ticks)))})
    )
    monkeypatch.setattr("planner.candidates.cache.time", type("Still", (), {"perf_counter": staticmethod(lambda: 0.0)}))
    cut = diagnose(problem, candidates, document, (), Options(time_limit_s=float(steps)))
    assert {row["path"] for row in cut["conflict"]} <= {row["path"] for row in whole["conflict"]}
    assert cut["repair"] == whole["repair"] or not cut["repair_checked"]


def test_a_repair_that_was_found_is_kept_when_time_ends_the_search_for_a_smaller_one(tiny, monkeypatch):
    """Other limits may take less of a change, and their points more time than there is."""
    whole = planner.solve(tiny(limits={"budget": "1000 USD"}))["diagnosis"]
    exact = repair_search.least_change

    def amounts_alone(tests, limits, most):
        if not all(limit.is_row for limit in limits):
            raise OutOfTime
        return exact(tests, limits, most)

    monkeypatch.setattr(repair_search, "least_change", amounts_alone)
    monkeypatch.setattr(repair_search.RepairSearch, "_takes_too_long", lambda self: True)  # as with many points
    cut = planner.solve(tiny(limits={"budget": "1000 USD"}))["diagnosis"]
    assert cut["repair"] == whole["repair"] and cut["repair"][0]["path"] == "limits.budget"
    assert cut["repair_checked"]


def test_points_that_are_not_all_found_in_time_give_no_plan(tiny):
    document = tiny()
    with pytest.raises(OutOfTime):
        find_candidates(resolve_document(document), until=time.perf_counter() - 1.0)
    document["solver"]["time_limit"] = "1 us"
    plan = planner.solve(document)
    assert plan.status == "limit" and not plan.has_answer
    assert verify_plan(plan) == [] and "no plan was found" in render(plan, "table")


def test_a_dispatch_that_does_not_end_in_time_is_left_out_and_the_plan_holds(tiny, monkeypatch):
    document = tiny()
    document["workloads"][0]["demand"] = {"requests_per_s": 30, "months": [1, 2] * 6}
    whole = planner.solve(document)
    assert whole["dispatch"] is not None and verify_plan(whole) == []
    monkeypatch.setattr("planner.solving.full_year_dispatch.dispatch", lambda *given: None)
    plan = planner.solve(document)
    assert plan["dispatch"] is None and verify_plan(plan) == []
    assert "in all 8,760 hours" not in render(plan, "table")


# -- what ended the search ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "seconds", "nodes", "slotwise", "step", "says"),
    [
        ("optimal", 10.0, None, False, False, ("gap", True)),
        ("within_gap", 59.0, None, False, False, ("gap", True)),
        # programs within the decomposition have time limits of their own
        ("within_gap", 10.0, None, True, False, ("gap", False)),
        ("within_gap", 10.0, None, False, True, ("gap", False)),  # a step before gave up: elsewhere it may not
        ("infeasible", 1.0, None, False, False, ("gap", True)),
        ("limit", 54.0, None, False, False, ("time", False)),
        ("limit", 60.0, 100, False, False, ("time", False)),
        ("limit", 20.0, 100, False, False, ("nodes", True)),
        ("limit", 20.0, 100, False, True, ("time", False)),
        ("limit", 20.0, None, False, True, ("time", False)),
        ("limit", 20.0, None, True, False, ("search", False)),
    ],
)
def test_what_ended_the_search_is_told_by_its_status_and_its_clock(status, seconds, nodes, slotwise, step, says):
    solution = SimpleNamespace(status=status, seconds=seconds, relaxed_bound=1.0 if slotwise else None)
    found = ending(solution, Options(time_limit_s=60.0, node_limit=nodes, clock=TimeWatch(was_up=step)))
    assert (found["ended_by"], found["repeatable"]) == says


@pytest.mark.parametrize("method", ["direct", "branch", "decomposed", "general"])
def test_every_method_tells_the_clock_that_its_time_was_up(tiny, method):
    problem = resolve_document(tiny())
    data = formulate(problem, find_candidates(problem)).data.divisible()
    short, long = (Options(gap=1e-9, method=method, clock=TimeWatch(), time_limit_s=limit_s) for limit_s in (0.0, 60.0))
    solve_direct(data, short)
    solve_direct(data, long)
    assert short.clock.was_up and not long.clock.was_up


def test_a_step_that_gives_up_by_its_share_of_the_time_is_told_though_the_search_ends_early(tiny, monkeypatch):
    document = tiny()
    document["solver"] |= {"replicas": "whole"}
    real = solvers.search.joint.round_replicas

    def given_up(data, start, options):
        options.noted(0.0)  # as a step does whose share of the time is up
        return real(data, start, options)

    whole = planner.solve(document)
    monkeypatch.setattr("solvers.search.joint.round_replicas", given_up)
    cut = planner.solve(document)
    assert [plan["solver"]["repeatable"] for plan in (whole, cut)] == [True, False]
    assert verify_plan(cut) == []


def test_a_plan_that_a_node_limit_ends_is_the_same_each_time(root):
    document = read_document((root / "examples" / "ways.json").read_bytes())
    document["solver"] = {
        "gap": 1e-7,
        "method": "direct",
        "node_limit": 1,
        "replicas": "whole",
        "time_limit": "300 s",
    }
    first, second = planner.solve(document), planner.solve(document)
    assert first.status == "limit" and first["solver"]["ended_by"] == "nodes" and first["solver"]["repeatable"]
    assert first.document == second.document
    assert "another run" not in render(first, "table")


def test_a_plan_that_time_ends_says_that_another_run_may_differ(tiny, monkeypatch):
    document = tiny()
    real = solvers.search.joint.solve

    def cut(data, options, **asked):
        found = real(data, options, **asked)
        return dataclasses.replace(found, status="limit", bound=0.9 * found.value, seconds=options.time_limit_s)

    monkeypatch.setattr("planner.solving.replicas.solve", cut)
    plan = planner.solve(document)
    assert plan["solver"]["ended_by"] == "time" and not plan["solver"]["repeatable"]
    for form in ("table", "md"):
        assert "another run or machine may end with another plan" in " ".join(render(plan, form).split())
    assert verify_plan(plan) == []


@pytest.mark.parametrize(
    ("step", "disaggregation"),
    [("_groups", "always"), ("_place", "always"), ("_place", "never"), ("training_point", "never")],
)
def test_the_search_for_points_ends_between_offers_whose_evaluations_are_kept(tiny, monkeypatch, step, disaggregation):
    """A thousand offers share few evaluations: once those are made, the loops over offers and over pairs of them look at the clock."""
    systems, made = ("DGX H100", "DGX A100"), []
    job = {"kind": "training", "architecture": "Llama-3.2-1B", "tokens": "1B", "deadline": "90 d"}
    document = tiny()
    document["sites"][0]["systems"] = list(systems)
    document["workloads"].append({"name": "tune", **job})
    document["workloads"][0]["disaggregation"] = disaggregation
    prices = [f"{200_000 + 1_000 * i} USD" for i in range(6)]
    document["offers"] = [{"system": name, "how": "buy", "price": price} for price in prices for name in systems]
    problem, grids = resolve_document(document), {}
    owner = search if step == "training_point" else search._ServingSearch
    real = getattr(owner, step)
    monkeypatch.setattr(owner, step, lambda *given: made.append(given) or real(*given))
    find_candidates(problem, grids)
    every = len(made)
    made.clear()
    clock = type("Clock", (), {"perf_counter": staticmethod(lambda: float(len(made) >= 5))})
    monkeypatch.setattr("planner.candidates.cache.time", clock)
    with pytest.raises(OutOfTime):
        find_candidates(problem, grids, until=0.5)
    assert len(made) <= 12 < every
