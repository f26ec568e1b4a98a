"""Bound the share of the demand that a spec without a plan can serve.

max lambda  such that the limits hold, with lambda times the demand of all serving workloads, or of one beside all of the others'.
Solved over divisible replicas and systems, the binaries included: lambda is an upper bound, proven in a fraction of the time that the
limits in conflict take, because the operating points stay as they are.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from planner.formulate.formulation import Formulation
from planner.problem.facts import ResolvedSpec
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import THROUGHPUT, Objective, PlanData
from solvers.model.size import least_program_bytes

EVERY = -1  # workloads of a throughput objective
MOST_BYTES = 2e8  # memory of a program: larger ones take more time than the answer is worth
SHARE = 0.1  # share of the time left
ROUNDING = 1e-6


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
