"""Choice between whole and divisible replicas where the spec leaves it to the planner."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from planner.formulate.formulation import Formulation
from planner.problem.facts import ResolvedSpec
from planner.solving.deadline import LEAST_S
from planner.spec.model import PlanSpec
from solvers.interface import Options
from solvers.model.data import PlanData
from solvers.search.hourly import divided
from solvers.search.joint import solve
from solvers.solution import Solution


def asking_for(problem: ResolvedSpec, replicas: Literal["auto", "whole", "divisible"]) -> ResolvedSpec:
    """Return the problem as asking for replicas of one kind, or leaving them to the planner."""
    options = problem.spec.solver.model_copy(update={"replicas": replicas})
    return replace(problem, spec=problem.spec.model_copy(update={"solver": options}))


def solver_of(spec: PlanSpec) -> Callable[[PlanData, Options], Solution]:
    """Return the solver of a plan's program: with divisible replicas if whole ones are not found in time, and for few parts, as the spec allows."""
    asked = spec.simplicity
    return partial(solve, otherwise_divisible=spec.solver.replicas == "auto", within=asked.within, rate=asked.rate)


def either_of(spec: PlanSpec) -> Callable[[PlanData, Options], Solution]:
    """Return a solver as `solver_of` does, which takes divisible replicas too where there is proof that none are whole, and the spec allows it."""
    whole_first = solver_of(spec)

    def solve_either(data: PlanData, options: Options) -> Solution:
        begin = time.perf_counter()
        found = whole_first(data, options)
        if found.status != "infeasible" or found.relaxed or spec.solver.replicas != "auto" or data.point_whole is None:
            return found
        left = replace(options, time_limit_s=max(options.left_s(begin), LEAST_S))
        return replace(
            solve(divided(data), left, within=spec.simplicity.within, rate=spec.simplicity.rate),
            relaxed=True,
        )

    return solve_either


def as_found(problem: ResolvedSpec, form: Formulation, solution: Solution) -> tuple[ResolvedSpec, Formulation]:
    """Return problem and program as the solution answers them: with divisible replicas where it holds no residents."""
    if not solution.relaxed:
        return problem, form
    return asking_for(problem, "divisible"), replace(form, data=divided(form.data))
