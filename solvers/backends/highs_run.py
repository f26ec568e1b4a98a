"""Run HiGHS on a program and read its answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs import highs_lp, new_highs, set_threads
from solvers.interface import ENUMERATION_PRESOLVE_RULE, Options, Outcome, ProgressReporter, SolverError
from solvers.program import Scaled

OPTIMAL_GAP = 1e-6  # below this a gap is the solver's rounding


LP_TOLERANCE = 1e-10  # the tightest that HiGHS takes


MIP_TOLERANCE = 1e-6


# --- HiGHS -----------------------------------------------------------------------------------------------------


def configured_highs(options: Options, tolerance: float, scaled: Scaled):
    import highspy

    set_threads(options.threads)
    highs = new_highs()
    settings = {
        "random_seed": options.seed,
        "time_limit": float(options.time_limit_s),
        "mip_rel_gap": options.gap,
        "primal_feasibility_tolerance": min(1e-7, tolerance),
        "dual_feasibility_tolerance": 1e-7,
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
    """`progress`: is told how a search for whole numbers goes."""
    import highspy

    if (scaled.arrays.lower > scaled.arrays.upper).any():
        return Outcome("infeasible")
    if not len(scaled.cost):  # nothing to decide: either 0 is in every row or there is no answer
        holds = scaled.arrays.violation(scaled.cost) <= tolerance
        return Outcome("optimal", np.zeros(0), 0.0, np.zeros(len(scaled.row))) if holds else Outcome("infeasible")
    highs = configured_highs(options, tolerance, scaled)
    if target is not None:
        highs.setOptionValue("objective_target", target)
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = list(start)
        highs.setSolution(known)
    if progress is not None and scaled.arrays.integer.any():
        highs.cbMipInterrupt.subscribe(
            lambda now: progress.report(now.data_out.mip_primal_bound, now.data_out.mip_dual_bound)
        )
    highs.run()
    status, kinds = highs.getModelStatus(), highspy.HighsModelStatus
    if status in (kinds.kUnboundedOrInfeasible, kinds.kUnbounded):
        if not scaled.cost.any():
            return Outcome("infeasible")
        # without an objective it cannot be unbounded, so the answer tells the two apart; an unbounded relaxation does
        # not mean that there is a whole answer
        feasible = run_highs(replace(scaled, cost=np.zeros_like(scaled.cost)), options, tolerance)
        return Outcome({"optimal": "unbounded"}.get(feasible.status, feasible.status))
    if status == kinds.kInfeasible:
        return Outcome("infeasible")
    info = highs.getInfo()
    whole = bool(scaled.arrays.integer.any())
    solution = highs.getSolution()
    has_x = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    x = np.array(solution.col_value) if has_x else None
    if status == kinds.kOptimal:
        bound = info.mip_dual_bound if whole else float(scaled.cost @ x)
        duals = np.array(solution.row_dual) if not whole and solution.dual_valid else None
        return Outcome("optimal", x, bound, duals)
    if status in (
        kinds.kTimeLimit,
        kinds.kIterationLimit,
        kinds.kSolutionLimit,
        kinds.kInterrupt,
        kinds.kMemoryLimit,
        kinds.kObjectiveTarget,
    ):
        return Outcome("limit", x, info.mip_dual_bound if whole else None)
    if status == kinds.kUnknown:
        return Outcome("limit", x)
    raise SolverError(f"HiGHS ended with {highs.modelStatusToString(status)}")
