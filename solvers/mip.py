"""Solve a program with HiGHS, our branch and bound, or CBC, and polish the solution.

Status, bound and gap are what the solver proved, never what was asked for. Solvers are imported when used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from solvers.arrays import Floats
from solvers.backends.cbc import run_pulp
from solvers.backends.highs_run import MIP_FEASIBILITY_TOL, OPTIMAL_GAP, TIGHT_FEASIBILITY_TOL, run_highs
from solvers.branch_and_bound.run import run_branch_and_bound, uses_branch_and_bound
from solvers.branch_and_bound.warm_start import WarmStartedMip
from solvers.interface import ABSOLUTE_GAP, Options, Outcome, ProgressReporter, RawSolution, SolverError
from solvers.program import Arrays, Program, Scaled

ROW_TOL = 1e-9  # violation of a row by a polished solution, relative to the row's largest coefficient
LP_ROUNDING = 1e-7  # rounding of a sum of terms of both signs, relative to the sum of their absolute values
BOUND_TOL = 1e-5  # a bound this much better than the value, relative, is rounding; beyond it the solver is wrong
PROGRESS_EVERY_S = 1.0  # least time between lines of progress
LEAST_TIME_LIMIT_S = 1.0  # limit of a second attempt when the time is nearly up


@dataclass(frozen=True, slots=True)
class MipStart:
    """A solution from another method for our branch and bound.

    `find` returns its columns or None, and a proven bound; it is called where the search proves hard, or before it where `first`.
    """

    find: Callable[[], tuple[Floats | None, float]]
    first: bool = False


class ProgramArrays(Protocol):
    """What `solve` reads of a program."""

    @property
    def presolve(self) -> bool:
        """Whether HiGHS may presolve it."""
        ...

    def arrays(self) -> Arrays:
        """Its rows and columns."""
        ...


def relative_gap(objective: float, bound: float) -> float:
    """|objective - bound| / max(|objective|, 1e-9); 0 where both are within `ABSOLUTE_GAP` of 0."""
    if max(abs(objective), abs(bound)) <= ABSOLUTE_GAP:
        return 0.0
    return abs(objective - bound) / max(abs(objective), 1e-9)


def solve(
    program: ProgramArrays,
    objective: Floats,
    sense: str,
    options: Options,
    *,
    polished: bool = True,
    start: Floats | None = None,
    mip_start: MipStart | None = None,
    warm: WarmStartedMip | None = None,
) -> RawSolution:
    """Solve the mixed-integer program, then fix its integers and re-solve the linear rest to a tight tolerance.

    `start`: columns of a known solution. `mip_start`: one that another method finds if need be. `warm`: a loaded program of the same
    structure, which is changed to this one.
    """
    begin = time.perf_counter()
    sign, options = -1.0 if sense == "max" else 1.0, replace(options, presolve=options.presolve and program.presolve)
    arrays = program.arrays()
    cost = sign * np.asarray(objective, dtype=float)
    scaled = arrays.scaled(cost) if warm is None else warm.change(arrays, cost)
    progress = None
    if options.progress is not None:
        progress = ProgressReporter(options.progress, sign / scaled.objective, PROGRESS_EVERY_S)
    run = _Run(scaled, sign, options, mip_start, warm, progress)
    outcome = run(options, MIP_FEASIBILITY_TOL, None if start is None else start / scaled.column)
    if start is not None and _ends_short(scaled, outcome, options):
        left = max(LEAST_TIME_LIMIT_S, options.time_limit_s - (time.perf_counter() - begin))
        outcome = _better(scaled, outcome, run(replace(options, time_limit_s=left), MIP_FEASIBILITY_TOL, None))
    x = None if outcome.x is None else outcome.x * scaled.column
    answer = (
        polish(arrays, _fixed_integers(arrays, x), sign * objective, options) if x is not None and polished else None
    )
    if x is not None and polished and answer is None and arrays.integer.any() and options.solver == "highs":
        # rounded integers violate a row by no more than the solver's tolerance: solve again to the tight tolerance
        left = max(LEAST_TIME_LIMIT_S, options.time_limit_s - (time.perf_counter() - begin))
        again = run(replace(options, time_limit_s=left), TIGHT_FEASIBILITY_TOL, None, cold=True)
        if again.x is not None:
            outcome, x = again, again.x * scaled.column
            answer = polish(arrays, _fixed_integers(arrays, x), sign * objective, options)
    duals = None
    if answer is not None:
        x, duals = answer
    seconds = time.perf_counter() - begin
    return _Report(scaled, sign, np.asarray(objective, dtype=float), options.gap)(outcome, x, duals, seconds)


def _ends_short(scaled: Scaled, outcome: Outcome, options: Options) -> bool:
    """Tell whether HiGHS calls a solution optimal that its own bound does not confirm, as happens where it was given a start."""
    if outcome.x is None or outcome.bound is None:
        return False
    if (
        outcome.status != "optimal"
    ):  # it may also count such a start as one that reaches the target, before it has any bound
        return outcome.status == "limit" and options.target is not None and not math.isfinite(outcome.bound)
    return relative_gap(float(scaled.cost @ outcome.x), outcome.bound) > max(options.gap, OPTIMAL_GAP)


def _better(scaled: Scaled, first: Outcome, second: Outcome) -> Outcome:
    """Return the second outcome with the better solution of both."""
    if first.x is None or (second.x is not None and scaled.cost @ second.x <= scaled.cost @ first.x):
        return second
    if second.bound is None:
        return replace(first, status="limit")
    return replace(second, x=first.x, duals=None, status="limit")


@dataclass(frozen=True, slots=True)
class _Run:
    """The solver that `options` choose, applied to a scaled program."""

    scaled: Scaled
    sign: float
    options: Options
    mip_start: MipStart | None
    warm: WarmStartedMip | None
    progress: ProgressReporter | None

    def __call__(self, options: Options, tolerance: float, start: Floats | None, *, cold: bool = False) -> Outcome:
        """`cold`: without the MIP start."""
        if self.warm is not None:
            return self.warm.run(self.scaled, options, tolerance, start=start)
        if options.solver == "pulp":
            return run_pulp(self.scaled, options, tolerance, start=start)
        if not uses_branch_and_bound(self.scaled.arrays, self.options):
            target = None if options.target is None else self.sign * options.target * self.scaled.objective
            return run_highs(self.scaled, options, tolerance, start=start, target=target, progress=self.progress)
        known = None if cold else self.mip_start
        return run_branch_and_bound(
            self.scaled,
            options,
            tolerance,
            start=start,
            mip_start=None if known is None else lambda: self._scaled_start(known),
            mip_start_first=known is not None and known.first,
            progress=self.progress,
        )

    def _scaled_start(self, mip_start: MipStart) -> tuple[float, Floats | None, float]:
        """Value and columns of the MIP start in the numbers of the solver, (inf, None) where it violates a row; and its bound."""
        x, bound = mip_start.find()
        scaled = self.scaled
        bound *= self.sign * scaled.objective
        if x is None or scaled.arrays.violation(columns := x / scaled.column) > MIP_FEASIBILITY_TOL:
            return math.inf, None, bound
        return float(scaled.cost @ columns), columns, bound


def polish(
    arrays: Arrays, bounds: tuple[Floats, Floats], cost: Floats, options: Options
) -> tuple[Floats, Floats] | None:
    """Solve the linear program between these bounds to a tight tolerance; return (x, row duals), None where it has no solution."""
    lower, upper = bounds
    scaled = arrays.scaled(cost)  # by the original bounds: the scale of the objective depends on their width
    column = scaled.column
    linear = replace(scaled.arrays, lower=lower / column, upper=upper / column, integer=np.zeros_like(arrays.integer))
    # fast with the integers fixed, and a solution in hand is worth finishing: no time limit
    unlimited = replace(options, solver="highs", node_limit=None, time_limit_s=math.inf)
    outcome = run_highs(replace(scaled, arrays=linear), unlimited, TIGHT_FEASIBILITY_TOL)
    if outcome.status != "optimal" or outcome.x is None or outcome.duals is None:
        return None
    x = np.clip(outcome.x * scaled.column, lower, upper) + 0.0  # no -0.0
    if arrays.violation(x) > ROW_TOL:
        return None
    return x, outcome.duals * scaled.row / scaled.objective


def solve_with_fixed_integers(
    program: Program, objective: Floats, sense: str, x: Floats, options: Options
) -> tuple[Floats, Floats] | tuple[None, None]:
    """Solve the linear program with the integers of x fixed; return (x, row duals), (None, None) where it has no solution."""
    sign = -1.0 if sense == "max" else 1.0
    arrays = program.arrays()
    answer = polish(arrays, _fixed_integers(arrays, x), sign * objective, options)
    return (None, None) if answer is None else (answer[0], sign * answer[1])


def _fixed_integers(arrays: Arrays, x: Floats) -> tuple[Floats, Floats]:
    integers = np.round(x)
    return np.where(arrays.integer, integers, arrays.lower), np.where(arrays.integer, integers, arrays.upper)


@dataclass(frozen=True, slots=True)
class _Report:
    """Turns the outcome of the scaled minimisation into a solution in SI units, with the status that its gap proves."""

    scaled: Scaled
    sign: float
    objective: Floats
    gap: float

    def __call__(self, outcome: Outcome, x: Floats | None, duals: Floats | None, seconds: float) -> RawSolution:
        """`duals`: of the polished solution x, None where it is not polished."""
        bound = None
        if outcome.bound is not None and math.isfinite(outcome.bound):
            bound = self.sign * outcome.bound / self.scaled.objective
        if x is None:
            status = "limit" if outcome.status == "optimal" else outcome.status
            return RawSolution(status, bound=bound if status == "limit" else None, seconds=seconds)
        value = float(self.objective @ x)
        gap = None
        if bound is not None:
            bound = self._checked_bound(bound, value, x)
            gap = relative_gap(value, bound)
        status = self._status(gap)
        row_duals = None if duals is None else self.sign * duals
        return RawSolution(status, value, bound, gap, x, seconds, row_duals, duals is not None)

    def _checked_bound(self, bound: float, value: float, x: Floats) -> float:
        """Return the bound, or the value where the bound is better by rounding only."""
        beyond = self.sign * (bound - value)
        terms = float(
            np.abs(self.objective) @ np.abs(x)
        )  # with terms of both signs, rounding exceeds that of the value
        if beyond > max(BOUND_TOL * abs(value), BOUND_TOL / self.scaled.objective, LP_ROUNDING * terms):
            raise SolverError(f"the bound {bound} is better than the value {value} of a solution")
        return value if beyond > 0 else bound

    def _status(self, gap: float | None) -> str:
        if gap is None:
            return "limit"
        if gap <= OPTIMAL_GAP:
            return "optimal"
        # a bound exactly at the gap may round beyond it
        return "within_gap" if gap <= self.gap * (1 + OPTIMAL_GAP) else "limit"
