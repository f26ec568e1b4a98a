"""Solve one LP, or one small mixed-integer program, with HiGHS from arrays, with its duals or its bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats
from solvers.backends.highs import highs_lp, new_highs

LEAST_TIME_S = 0.1
INTERIOR = (("solver", "ipm"), ("run_crossover", "off"))
ROUGH_GAP = 1e-4  # relative, at which a rough interior point ends, in half to two thirds of the iterations
ROUGH_INTERIOR = (*INTERIOR, ("ipm_optimality_tolerance", ROUGH_GAP))


class LpResult(NamedTuple):
    """`bound`: lower bound on the optimum, inf where the program is infeasible and -inf where nothing is proven.

    With `ROUGH_INTERIOR` nothing is: x keeps the rows, and the duals are near the best ones.
    """

    bound: float
    x: Floats | None
    duals: Floats | None  # duals of rows; None of a mixed-integer program


def solve_lp(
    cost: Floats,
    matrix: sparse.csc_array,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    integer: Bools | None = None,
    *,
    seconds: float,
    settings: tuple[tuple[str, Any], ...] = (),
) -> LpResult:
    """Solve the program of `highs_lp`; `settings`: options of HiGHS, such as `INTERIOR` for the interior point without crossover."""
    import highspy

    highs, whole = new_highs(), integer is not None and bool(integer.any())
    for name, value in (*settings, ("time_limit", max(seconds, LEAST_TIME_S))):
        highs.setOptionValue(name, value)
    highs.passModel(highs_lp(cost, matrix, rows, columns, integer))
    highs.run()
    status, statuses = highs.getModelStatus(), highspy.HighsModelStatus
    if status == statuses.kInfeasible:
        return LpResult(np.inf, None, None)
    info, solution = highs.getInfo(), highs.getSolution()
    x = np.asarray(solution.col_value) if solution.value_valid else None
    if whole:
        ended = status in (statuses.kOptimal, statuses.kTimeLimit)
        return LpResult(float(info.mip_dual_bound) if ended else -np.inf, x, None)
    duals = np.asarray(solution.row_dual) if solution.dual_valid else None
    if status == statuses.kOptimal:
        return LpResult(float(info.objective_function_value), x, duals)
    if status == statuses.kUnknown and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        return LpResult(-np.inf, x, duals)
    return LpResult(-np.inf, None, None)
