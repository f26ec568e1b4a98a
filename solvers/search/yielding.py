"""Let jobs of later classes make room before jobs of earlier ones, where plans cost nearly the same.

The fleet, the placement of jobs and all other integers stay. Among the dispatches whose value is near enough, widths of the first class
return least often; among these the widths of the second class, and so on; and of these the dispatch is the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools
from solvers.interface import Options
from solvers.mip import solve_with_fixed_integers
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.solution import Solution

TIE_TOL = 1e-9  # relative, by which the returns of a class may grow again for those behind it


def yielding_in_order(
    data: PlanData, solution: Solution, classes: Sequence[Bools], room: float, options: Options
) -> Solution:
    """Solve one linear program for each class [J] of jobs, the first to return least first, and one for the objective.

    `room`: by how much the value may get worse. The solution as it is where nothing is lost when a job returns, or a program fails.
    """
    if data.point_restart_s is None or data.order is None or solution.value is None or not solution.values:
        return solution
    sense, sign = ("max", -1.0) if data.objective.maximises else ("min", 1.0)
    program = build(data)
    value, x = objective_vector(program, data), program.vector(solution.values)
    touched = np.flatnonzero(value)
    most = sign * solution.value + room + TIE_TOL * abs(solution.value)
    program.add_rows(
        "good enough", -np.inf, most, np.zeros(len(touched), dtype=np.int64), touched, sign * value[touched], count=1
    )
    rise, job = program.columns["rise"], np.maximum(data.point_job, 0)
    times = np.broadcast_to(data.slot_hours_s / data.order.step_s, rise.shape)
    for members in classes:
        mine = (rise >= 0) & (members[job] & (data.point_job >= 0))[:, None]
        if not mine.any():
            continue
        cost = np.zeros(program.column_count)
        cost[rise[mine]] = times[mine]
        found, _ = solve_with_fixed_integers(program, cost, "min", x, options)
        if found is None:
            return solution
        x, columns = found, rise[mine]
        returns = float(cost @ x)
        program.add_rows(
            "returns", -np.inf, returns * (1 + TIE_TOL) + TIE_TOL, np.zeros(len(columns), dtype=np.int64), columns, times[mine], count=1
        )  # fmt: skip
    found, _ = solve_with_fixed_integers(program, value, sense, x, options)
    x = x if found is None else found
    return replace(
        solution,
        value=float(value @ x),
        values=program.values(x),
        functionals={name: float(program.functional(name) @ x) for name in program.functionals},
    )
