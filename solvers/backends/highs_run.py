"""Run HiGHS on a scaled program and read its status, solution, bound and duals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs import highs_lp, new_highs, set_threads
from solvers.interface import ENUMERATION_PRESOLVE_RULE, Options, Outcome, ProgressReporter, SolverError
from solvers.memory import MemoryWatch
from solvers.program import Scaled

OPTIMAL_GAP = 1e-6  # relative gap below which the difference of value and bound is rounding
LP_FEASIBILITY_TOL = 1e-7  # largest violation of a scaled row by an LP
TIGHT_FEASIBILITY_TOL = 1e-10  # the tightest that HiGHS accepts, for polishing
MIP_FEASIBILITY_TOL = 1e-6  # largest violation of a scaled row, or of integrality, by a MIP
LOOK_EVERY_S = 0.05  # least time between two looks at the memory
LEAST_LOOKS = 4  # looks of a search with a limit of work; the first ones are at the root


def configured_highs(options: Options, tolerance: float, scaled: Scaled) -> Any:
    """Create a HiGHS with these options and tolerances, and load the program."""
    import highspy

    set_threads(options.threads)
    highs = new_highs()
    settings = {
        "random_seed": options.seed,
        "time_limit": float(options.until_found().time_limit_s),
        "mip_rel_gap": options.gap,
        "primal_feasibility_tolerance": min(LP_FEASIBILITY_TOL, tolerance),
        "dual_feasibility_tolerance": LP_FEASIBILITY_TOL,
        "mip_feasibility_tolerance": tolerance,
        "presolve_rule_off": ENUMERATION_PRESOLVE_RULE,
        "presolve": "off" if not options.presolve and scaled.arrays.integer.any() else "choose",
    }
    if options.node_limit is not None:
        settings["mip_max_nodes"] = int(options.node_limit)
    for name, value in settings.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS refused the option {name} = {value}")
    arrays = scaled.arrays
    lp = highs_lp(
        scaled.cost, arrays.matrix, (arrays.row_lower, arrays.row_upper), (arrays.lower, arrays.upper), arrays.integer
    )
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refused the program")
    return highs


def run_highs(
    scaled: Scaled,
    options: Options,
    tolerance: float,
    start: Floats | None = None,
    target: float | None = None,
    progress: ProgressReporter | None = None,
) -> Outcome:
    """Solve a scaled program.

    `start`: a MIP start. `target`: stop at this value. `progress`: receives incumbent value and bound of a mixed-integer search.
    """
    import highspy

    if (scaled.arrays.lower > scaled.arrays.upper).any():
        return Outcome("infeasible")
    if not len(scaled.cost):  # no column: the program is feasible where every row contains 0
        feasible = scaled.arrays.violation(scaled.cost) <= tolerance
        return Outcome("optimal", np.zeros(0), 0.0, np.zeros(len(scaled.row))) if feasible else Outcome("infeasible")
    highs = configured_highs(options, tolerance, scaled)
    if target is not None:
        highs.setOptionValue("objective_target", target)
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = list(start)
        highs.setSolution(known)
    if progress is not None and scaled.arrays.integer.any():
        report = progress.report
        highs.cbMipInterrupt.subscribe(lambda now: report(now.data_out.mip_primal_bound, now.data_out.mip_dual_bound))
    if options.memory is not None and scaled.arrays.integer.any():
        highs.cbMipInterrupt.subscribe(_ended_by(options.memory))
    if options.longest_s is not None and scaled.arrays.integer.any():
        highs.cbMipInterrupt.subscribe(_ended_with_a_plan_after(options))
    if options.work_limit is not None and scaled.arrays.integer.any():
        highs.cbMipInterrupt.subscribe(_ended_after(max(options.work_limit / len(scaled.cost), LEAST_LOOKS)))
    highs.run()
    status, statuses = highs.getModelStatus(), highspy.HighsModelStatus
    if status == statuses.kTimeLimit:
        options.note_time_up()
    if status in (statuses.kUnboundedOrInfeasible, statuses.kUnbounded):
        return _infeasible_or_unbounded(scaled, options, tolerance)
    if status == statuses.kInfeasible:
        return Outcome("infeasible")
    return _read_outcome(highs, scaled)


def _ended_by(memory: MemoryWatch) -> Callable[[Any], None]:
    """Return a callback that ends a mixed-integer search when the process holds as much memory as it may."""
    looked_s = -math.inf

    def look(now: Any) -> None:
        nonlocal looked_s
        if time.perf_counter() - looked_s > LOOK_EVERY_S:
            looked_s = time.perf_counter()
            if memory.is_full():
                now.interrupt()

    return look


def _ended_after(looks: float) -> Callable[[Any], None]:
    """Return a callback that ends a mixed-integer search at a number of calls, which HiGHS makes at the same places of a search each time."""
    made = 0

    def look(now: Any) -> None:
        nonlocal made
        made += 1
        if made >= looks:
            now.interrupt()

    return look


def _ended_with_a_plan_after(options: Options) -> Callable[[Any], None]:
    """Return a callback that ends a mixed-integer search at its time limit from now on, if it has a solution by then, or as soon as it has."""
    end = time.perf_counter() + options.time_limit_s

    def look(now: Any) -> None:
        if time.perf_counter() > end and abs(now.data_out.mip_primal_bound) < math.inf:
            options.note_time_up()
            now.interrupt()

    return look


def _infeasible_or_unbounded(scaled: Scaled, options: Options, tolerance: float) -> Outcome:
    """Tell the two apart by solving without an objective.

    HiGHS may call either by the other's name, and an unbounded relaxation does not mean that an integer solution exists.
    """
    if not scaled.cost.any():
        return Outcome("infeasible")
    feasible = run_highs(replace(scaled, cost=np.zeros_like(scaled.cost)), options, tolerance)
    return Outcome({"optimal": "unbounded"}.get(feasible.status, feasible.status))


def _read_outcome(highs: Any, scaled: Scaled) -> Outcome:
    import highspy

    info, solution, integer = highs.getInfo(), highs.getSolution(), bool(scaled.arrays.integer.any())
    status, statuses = highs.getModelStatus(), highspy.HighsModelStatus
    has_x = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    x = np.array(solution.col_value) if has_x else None
    iterations = max(int(info.simplex_iteration_count), 0)
    if status == statuses.kOptimal and x is not None:
        bound = info.mip_dual_bound if integer else float(scaled.cost @ x)
        duals = np.array(solution.row_dual) if not integer and solution.dual_valid else None
        return Outcome("optimal", x, bound, duals, iterations)
    if status in (
        statuses.kTimeLimit,
        statuses.kIterationLimit,
        statuses.kSolutionLimit,
        statuses.kInterrupt,
        statuses.kMemoryLimit,
        statuses.kObjectiveTarget,
    ):
        return Outcome("limit", x, info.mip_dual_bound if integer else None, iterations=iterations)
    if status == statuses.kUnknown:
        return Outcome("limit", x)
    raise SolverError(f"HiGHS ended with {highs.modelStatusToString(status)}")
