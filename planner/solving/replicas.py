"""Choice between whole and divisible replicas where the spec leaves it to the planner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from planner.formulate.formulation import Formulation
from planner.problem.facts import Problem
from planner.spec.model import PlanSpec
from solvers.interface import Options
from solvers.joint import solve
from solvers.model.data import PlanData
from solvers.solution import Solution


def asking_for(problem: Problem, replicas: Literal["whole", "divisible"]) -> Problem:
    """Return the problem with the replicas that it asks for, where its spec leaves them to the planner."""
    options = problem.spec.solver.model_copy(update={"replicas": replicas})
    return replace(problem, spec=problem.spec.model_copy(update={"solver": options}))


def solver_of(spec: PlanSpec) -> Callable[[PlanData, Options], Solution]:
    """Return the solver of a plan's program: with divisible replicas if whole ones are not found in time, and for few parts, as the spec allows."""
    return partial(solve, otherwise_divisible=spec.solver.replicas == "auto", within=spec.simplicity.within)


def as_found(problem: Problem, form: Formulation, solution: Solution) -> tuple[Problem, Formulation]:
    """Return problem and program as the solution answers them: with divisible replicas where it holds no residents."""
    if not solution.relaxed:
        return problem, form
    return asking_for(problem, "divisible"), replace(form, data=form.data.divisible())
