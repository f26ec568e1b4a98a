"""Bound the share of the demand that a spec without a plan can serve; tell when the most throughput is none at all.

max lambda  such that the limits hold, with lambda times the demand of all serving workloads, or of one beside all of the others'.
Solved over divisible replicas and systems, the binaries included: lambda is an upper bound, proven in a fraction of the time that the
limits in conflict take, because the operating points stay as they are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.formulate.formulation import Formulation
from planner.problem.facts import ResolvedSpec
from planner.spec.document import Edits, edited
from planner.spec.workloads import DEMANDS
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import THROUGHPUT, Objective, PlanData
from solvers.model.size import least_program_bytes
from solvers.solution import Solution

EVERY = -1  # workloads of a throughput objective
MOST_BYTES = 2e8  # memory of a program: larger ones take more time than the answer is worth
SHARE = 0.1  # share of the time left
ROUNDING = 1e-6
SOME = 1e-3  # share of the stated demand whose conflict explains why nothing is served
LEAST_REQUESTS_PER_S = 1e-6  # that a spec may state
NONE = 1e-9  # x demand: what is below is nothing


def demand_within_reach(problem: ResolvedSpec, form: Formulation, options: Options) -> list[dict[str, Any]]:
    """List the workloads (None: all of them) with the most of their demand that any plan serves, where that is less than all.

    A workload is listed where all of the others can be served beside it. Empty where nothing is known: the program is large, time is
    up, jobs have no plan either, or the amounts of divisible systems suffice.
    """
    end = time.perf_counter() + SHARE * options.time_limit_s
    data = form.data.divisible()
    if not problem.serving or data.objective.maximises or least_program_bytes(data) > MOST_BYTES:
        return []
    together = _most(data, EVERY, options, end)
    if together is None or together >= 1.0 - ROUNDING:
        return []
    rows: list[dict[str, Any]] = [{"workload": None, "at_most": together}]
    asked = [workload.asked for workload in problem.serving]
    names = list(dict.fromkeys(asked))
    for name in names if len(names) > 1 else ():
        alone = _most(data, asked.index(name), options, end)
        if alone is not None and alone < 1.0 - ROUNDING:
            rows.append({"workload": name, "at_most": alone})
    return rows


def _most(data: PlanData, workload: int, options: Options, end: float) -> float | None:
    """Maximise lambda in the linear relaxation; None where it has no optimum, or time is up."""
    left = end - time.perf_counter()
    if left <= 0:
        return None
    data = replace(data, objective=Objective(THROUGHPUT, workload))
    program = build(data)
    arrays = program.arrays()
    lp = WarmStartedLp(arrays, -objective_vector(program, data), replace(options, time_limit_s=left, progress=None))
    found = lp.solve(arrays.lower, arrays.upper, value_only=True)
    return None if found.status != "optimal" or found.value is None else max(0.0, -found.value)


def is_none(problem: ResolvedSpec, solution: Solution) -> bool:
    """Tell whether a solution that maximises throughput serves no share of the demand."""
    return problem.spec.objective.maximise is not None and solution.value is not None and solution.value <= NONE


def asking_for_some(document: Mapping[str, Any], problem: ResolvedSpec) -> dict[str, Any]:
    """Copy the spec with a small share of the demand to be served at least cost, instead of as much of it as possible."""
    asked = problem.spec.objective.workload
    edits: Edits = (("objective", {"minimise": "cost"}),)
    for workload in problem.demands():
        if asked in (None, workload.asked):
            requests = SOME * workload.spec.mean_requests_per_s
            edits += (
                *((f"{workload.path}.demand.{key}", None) for key in DEMANDS),
                (f"{workload.path}.demand.requests_per_s", max(requests, LEAST_REQUESTS_PER_S)),
            )
    return edited(document, edits)
