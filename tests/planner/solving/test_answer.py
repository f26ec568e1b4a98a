"""HiGHS and CBC agree on a reduced form of the main example, and on a small one to the last digits."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from planner.solving.deadline import options_of
from planner.verify.plan import verify_plan
from solvers.search.direct import solve_direct

GAP = 1e-3
UNHURRIED = "600 s"
"""Limit of time that a busy machine keeps too: these questions take seconds, and their gap is tested, not their time."""
SYSTEMS = ("DGX B200", "DGX H200")  # one bought and scarce, one rented; with more, CBC may need a minute


@pytest.fixture(scope="module")
def reduced(root) -> dict:
    """All sites and workloads of the main example, two of its systems, one pool per replica, one point per system."""
    spec = json.loads((root / "examples/mixed_fleet.json").read_text(encoding="utf-8"))
    spec["offers"] = [offer for offer in spec["offers"] if offer["system"] in SYSTEMS]
    for workload in spec["workloads"]:
        if workload["kind"] == "serving":
            workload["disaggregation"] = "never"
    spec["solver"] = {"gap": GAP, "time_limit": UNHURRIED, "points_per_system": 1}
    return spec


def solved_divisible(spec: dict, backend: str):
    """Solve the program with divisible replicas: with whole ones CBC does not end in time."""
    problem = resolve_document({**spec, "solver": {**spec["solver"], "backend": backend}})
    solution = solve_direct(formulate(problem, find_candidates(problem)).data.divisible(), options_of(problem.spec))
    assert solution.status in ("optimal", "within_gap")
    return solution


def solved(spec: dict, backend: str):
    spec = copy.deepcopy(spec)
    spec["solver"]["backend"] = backend
    plan = planner.solve(spec)
    assert plan.status in ("optimal", "within_gap") and plan["solver"]["backend"] == backend
    assert verify_plan(plan) == []
    return plan


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp")
def test_highs_and_cbc_agree_on_the_reduced_main_example(reduced):
    highs, cbc = solved_divisible(reduced, "highs"), solved_divisible(reduced, "pulp")
    ours, theirs = highs.value, cbc.value
    assert abs(ours - theirs) <= GAP * max(ours, theirs)
    # what one has proven, the other's plan cannot beat
    assert highs.bound <= theirs * (1 + 1e-6) and cbc.bound <= ours * (1 + 1e-6)
    assert highs.gap <= GAP and cbc.gap <= GAP


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp")
@pytest.mark.parametrize("objective", [{"minimise": "cost"}, {"minimise": "carbon"}, {"maximise": "throughput"}])
def test_highs_and_cbc_agree_on_a_small_question(small_spec, objective):
    spec = {**small_spec, "objective": objective, "solver": {"gap": 1e-5, "time_limit": UNHURRIED}}
    highs, cbc = solved(spec, "highs"), solved(spec, "pulp")
    assert highs.objective["value"] == pytest.approx(cbc.objective["value"], rel=2e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp")
def test_highs_and_cbc_agree_that_nothing_fits(tiny):
    for backend in ("highs", "pulp"):
        plan = planner.solve(tiny(limits={"budget": "60k USD"}, solver={"backend": backend}))
        assert plan.status == "infeasible" and not plan.has_answer
