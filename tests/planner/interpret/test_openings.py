"""A site is paid for where something stands there, whatever the objective, the phases and the method of solving."""

from __future__ import annotations

import copy

import pytest

import planner
import planner.verify.plan
from planner.candidates.search import find_candidates
from planner.errors import BrokenPlanError
from planner.formulate.formulation import formulate
from planner.interpret.solution import read_solution
from planner.resolve.resolver import resolve_document
from planner.verify.findings import Finding
from planner.verify.plan import verify_plan
from solvers.interface import Options
from solvers.search.direct import solve_direct

PHASES = {"horizon": {"years": 2}, "phases": [{"name": "first", "start": "0 d"}, {"name": "second", "start": "365 d"}]}
OBJECTIVES = [{"minimise": "cost"}, {"minimise": "carbon"}, {"maximise": "throughput"}]


def two_sites(tiny, objective, phases, method="auto"):
    """The clean site and the dirty one both have a fixed cost."""
    spec = tiny(objective=objective, limits={"budget": "5M USD"}, **(copy.deepcopy(PHASES) if phases else {}))
    spec["workloads"][0]["demand"] = {"requests_per_s": 300}
    spec["sites"] = [
        {"region": "us-virginia", "systems": ["DGX H100"], "fixed_cost": "3k USD/year", "power": "100 kW"},
        {"region": "us-oregon", "systems": ["DGX H100"], "fixed_cost": "30k USD/year"},
    ]
    spec["solver"] |= {"method": method}
    return spec


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: next(iter(o.values())))
@pytest.mark.parametrize("phases", [False, True])
@pytest.mark.parametrize("method", ["auto", "direct", "branch", "decomposed"])
def test_only_sites_in_use_are_paid_for(tiny, objective, phases, method):
    plan = planner.solve(two_sites(tiny, objective, phases, method))
    assert verify_plan(plan) == []
    paid = {row["site"] for row in plan["cost_lines"] if row["component"] == "site"}
    assert paid == {row["site"] for row in plan["fleet"]}


@pytest.mark.parametrize("phases", [False, True])
def test_a_site_that_a_solution_opens_in_vain_is_closed(tiny, phases):
    """An objective to which the opening is worth nothing leaves it to chance; here every site is open."""
    problem = resolve_document(two_sites(tiny, {"minimise": "carbon"}, phases))
    candidates = find_candidates(problem)
    form = formulate(problem, candidates)
    solution = solve_direct(form.data, Options(gap=1e-6))
    solution.values["open"][:] = 1.0
    decided = read_solution(problem, candidates, form, solution)
    held = {option.site.region for _, _, option, _ in decided.held()}
    assert 0 < len(held) < len(problem.sites)
    assert decided.opened.tolist() == [site.region in held for site in problem.sites]


def test_the_library_does_not_return_a_plan_that_fails_its_own_check(tiny, monkeypatch):
    monkeypatch.setattr(planner.verify.plan, "verify_plan", lambda *_, **__: [Finding("totals.cost", "is wrong")])
    with pytest.raises(BrokenPlanError, match=r"totals\.cost: is wrong") as raised:
        planner.solve(tiny())
    assert raised.value.findings == ["totals.cost: is wrong"]


def test_activity_below_0_is_rounding_and_counts_nowhere(tiny):
    """A point of the same pool as the one at work, with activity that a solver left a little below 0: the plan has none of it."""
    problem = resolve_document(tiny())
    candidates = find_candidates(problem)
    form = formulate(problem, candidates)
    solution = solve_direct(form.data, Options(gap=1e-6))
    before = read_solution(problem, candidates, form, solution)
    (used,) = before.used
    pool = form.data.point_pool
    other = next(p for p in range(len(form.points)) if p != used and pool[p] == pool[used])
    solution.values["x"][other] -= 1e-7
    after = read_solution(problem, candidates, form, solution)
    assert after.active.min() >= 0.0 and after.active == pytest.approx(before.active, rel=1e-12, abs=0.0)
