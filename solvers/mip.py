"""Runs a solver on a program: HiGHS through highspy here, PuLP with CBC as an independent second opinion in cbc.py.

Status, bound and gap are what the solver proved, never what was asked for. Both solvers are imported when used."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats
from solvers.backends.cbc import run_pulp
from solvers.backends.highs_run import LP_TOLERANCE, MIP_TOLERANCE, OPTIMAL_GAP, run_highs
from solvers.branch_and_bound.run import run_branch_and_bound, uses_branch_and_bound
from solvers.interface import Options, Outcome, ProgressReporter, RawSolution, SolverError
from solvers.program import Arrays, Program, Scaled

if TYPE_CHECKING:
    from solvers.branch_and_bound.warm_start import WarmStartedMip
ROW_TOLERANCE = 1e-9  # of the polished answer, relative to the largest coefficient of the row
LP_ROUNDING = 1e-7  # of a sum of terms with both signs
EVERY_S = 1.0  # between lines of progress


def relative_gap(objective: float, bound: float) -> float:
    return abs(objective - bound) / max(abs(objective), 1e-9)


def solve(
    program: Program,
    objective: Floats,
    sense: str,
    options: Options,
    *,
    polished: bool = True,
    start: Floats | None = None,
    mip_start: Callable[[], tuple[Floats | None, float]] | None = None,
    mip_start_first: bool = False,
    warm: WarmStartedMip | None = None,
) -> RawSolution:
    """Solve, then fix the integers at their whole values and re-solve the linear rest exactly. `mip_start`: finds a solution in another way,
    where the search over the binaries is hard, or `mip_start_first`, and what no solution is better than; `warm`: one of a program alike, which is changed to this one and tells what it can."""
    begin = time.perf_counter()
    sign, options = -1.0 if sense == "max" else 1.0, replace(options, presolve=options.presolve and program.presolve)
    arrays = program.arrays()
    cost = sign * np.asarray(objective, dtype=float)
    scaled = arrays.scaled(cost) if warm is None else warm.change(arrays, cost)
    run, known = {"pulp": run_pulp, "highs": run_highs}[options.solver] if warm is None else warm.run, {}
    if warm is None and options.solver == "highs" and uses_branch_and_bound(arrays, options):
        run, known = (
            run_branch_and_bound,
            {
                "mip_start": None if mip_start is None else lambda: _scaled_to(scaled, sign, *mip_start()),
                "mip_start_first": mip_start_first,
            },
        )
    if options.progress is not None and options.solver == "highs" and warm is None:
        run = partial(run, progress=ProgressReporter(options.progress, sign / scaled.objective, EVERY_S))
    outcome = partial(run, **known)(
        scaled, options, MIP_TOLERANCE, start=None if start is None else start / scaled.column
    )
    x = None if outcome.x is None else outcome.x * scaled.column
    duals, exact = None, False
    if x is not None and polished:
        fixed = _fixed_integers(arrays, x)
        answer = polish(arrays, fixed, sign * objective, options)
        if answer is None and arrays.integer.any() and options.solver == "highs":
            # whole values missed a row that the solver's tolerance forgave: solve again to the tight tolerance
            left = replace(options, time_limit_s=max(1.0, options.time_limit_s - (time.perf_counter() - begin)))
            again = run(scaled, left, LP_TOLERANCE)
            if again.x is not None:
                outcome, x = again, again.x * scaled.column
                answer = polish(arrays, _fixed_integers(arrays, x), sign * objective, options)
        if answer is not None:
            (x, duals), exact = answer, True
    return _report(outcome, scaled, x, sign, objective, duals, exact, options, time.perf_counter() - begin)


def _scaled_to(scaled: Scaled, sign: float, x: Floats | None, bound: float) -> tuple[float, Floats | None, float]:
    """The value and the columns of a solution in the numbers of the solver, inf and none where there is none or it does not hold; and the bound."""
    if x is None or scaled.arrays.violation(inner := x / scaled.column) > MIP_TOLERANCE:
        return math.inf, None, sign * bound * scaled.objective
    return float(scaled.cost @ inner), inner, sign * bound * scaled.objective


def polish(
    arrays: Arrays, fixed: tuple[Floats, Floats], cost: Floats, options: Options
) -> tuple[Floats, Floats] | None:
    """(x, row duals) of the linear program with the given bounds, None where it has no solution."""
    lower, upper = fixed
    scaled = arrays.scaled(cost)  # before the bounds are fixed: the size of the objective is judged by their width
    column = scaled.column
    scaled = replace(
        scaled,
        arrays=replace(
            scaled.arrays, lower=lower / column, upper=upper / column, integer=np.zeros_like(arrays.integer)
        ),
    )
    # quick with the integers fixed, and an answer in hand is worth finishing: no limit of time
    unlimited = replace(options, solver="highs", node_limit=None, time_limit_s=math.inf)
    outcome = run_highs(scaled, unlimited, LP_TOLERANCE)
    if outcome.status != "optimal" or outcome.x is None:
        return None
    x = np.clip(outcome.x * scaled.column, lower, upper) + 0.0  # no -0.0
    if arrays.violation(x) > ROW_TOLERANCE:
        return None
    return x, outcome.duals * scaled.row / scaled.objective


def solve_with_fixed_integers(
    program: Program, objective: Floats, sense: str, x: Floats, options: Options
) -> tuple[Floats, Floats] | tuple[None, None]:
    """(best x, row duals) of the linear program with the integers of x fixed; (None, None) where it has no solution."""
    sign = -1.0 if sense == "max" else 1.0
    arrays = program.arrays()
    answer = polish(arrays, _fixed_integers(arrays, x), sign * objective, options)
    return (None, None) if answer is None else (answer[0], sign * answer[1])


def _fixed_integers(arrays: Arrays, x: Floats) -> tuple[Floats, Floats]:
    whole = np.round(x)
    return np.where(arrays.integer, whole, arrays.lower), np.where(arrays.integer, whole, arrays.upper)


def _report(
    outcome: Outcome,
    scaled: Scaled,
    x: Floats | None,
    sign: float,
    objective: Floats,
    duals: Floats | None,
    exact: bool,
    options: Options,
    seconds: float,
) -> RawSolution:
    bound = None
    if outcome.bound is not None and math.isfinite(outcome.bound):
        bound = sign * outcome.bound / scaled.objective
    if x is None:
        status = "limit" if outcome.status == "optimal" else outcome.status
        return RawSolution(status, bound=bound if status == "limit" else None, seconds=seconds)
    value = float(objective @ x)
    gap = None
    if bound is not None:
        beyond = sign * (bound - value)
        terms = float(np.abs(objective) @ np.abs(x))  # where some are below 0, their rounding is not that of the value
        if beyond > max(1e-5 * abs(value), 1e-5 / scaled.objective, LP_ROUNDING * terms):
            raise SolverError(f"the bound {bound} lies beyond the value {value} of a solution")
        bound = value if beyond > 0 else bound  # by less than the solver's tolerance
        gap = relative_gap(value, bound)
    if gap is not None and gap <= OPTIMAL_GAP:
        status = "optimal"
    elif gap is not None and gap <= options.gap * (1 + OPTIMAL_GAP):  # a bound at the very gap may round beyond it
        status = "within_gap"
    else:
        status = "limit"
    return RawSolution(status, value, bound, gap, x, seconds, None if duals is None else sign * duals, exact)
