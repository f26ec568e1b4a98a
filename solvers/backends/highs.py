"""HiGHS as this project uses it: silent, with one number of threads per Python thread, loaded from arrays."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats
from solvers.interface import ENUMERATION_PRESOLVE_RULE, SolverError

SMALL_MIP_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("mip_heuristic_run_rins", False),
    ("mip_heuristic_run_rens", False),
    ("mip_heuristic_run_root_reduced_cost", False),
    ("mip_allow_restart", False),
    ("mip_heuristic_run_feasibility_jump", False),
    ("mip_detect_symmetry", False),
    ("mip_pscost_minreliable", 2),
)
"""HiGHS options for small MIPs: sub-MIP heuristics, restarts and eight strong-branching trials take longer than the MIP itself."""

# HiGHS keeps a scheduler for each Python thread; it refuses to run a program that asks for another number of threads
_of_this_thread = threading.local()
_last_threads = 1


@cache
def _silent_class() -> type:
    import highspy

    class Silent(highspy.Highs):
        """From 1.16 on HiGHS prints a banner as soon as callbacks are enabled, which its constructor does: no option can be set before."""

        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]  # highspy has no annotations

        def run(self) -> Any:
            self.setOptionValue("threads", set_threads())
            return super().run()

    return Silent


def new_highs() -> Any:
    """Create a HiGHS that prints nothing and runs with the number of threads set last."""
    return _silent_class()()


def set_threads(threads: int | None = None) -> int:
    """Prepare HiGHS for a number of threads; None keeps the number last used in this Python thread, else in any other."""
    import highspy

    global _last_threads
    before = getattr(_of_this_thread, "threads", None)
    wanted = threads or before or _last_threads
    if before != wanted:
        highspy.Highs.resetGlobalScheduler(True)  # also of a number that others used here
    _of_this_thread.threads = _last_threads = wanted
    return wanted


def highs_lp(
    cost: Floats,
    matrix: sparse.csc_array,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    integer: Bools | None = None,
) -> Any:
    """Load min cost x with rows[0] <= matrix x <= rows[1], columns[0] <= x <= columns[1], x integer where `integer`."""
    import highspy

    lp, matrix = highspy.HighsLp(), matrix.tocsc()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_, (lp.row_lower_, lp.row_upper_), (lp.col_lower_, lp.col_upper_) = cost, rows, columns
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    if integer is not None and integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(one)] for one in integer]
    return lp


class MipResult(NamedTuple):
    """Best solution found, and a lower bound on the optimum: inf where the program is infeasible."""

    x: Floats | None
    bound: float


def solve_mip(
    cost: Floats,
    matrix: sparse.csc_array,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    integer: Bools,
    gap: float,
    seconds: float,
    settings: tuple[tuple[str, Any], ...] = SMALL_MIP_OPTIONS,
) -> MipResult:
    """Solve the program of `highs_lp` to a relative gap, or as far as the time allows. `settings`: options of HiGHS.

    Raises SolverError where HiGHS ends with another status.
    """
    import highspy

    highs = new_highs()
    limits = (
        ("mip_rel_gap", gap),
        ("time_limit", max(seconds, 0.0)),
        ("presolve_rule_off", ENUMERATION_PRESOLVE_RULE),
    )
    for name, value in (*limits, *settings):
        highs.setOptionValue(name, value)
    highs.passModel(highs_lp(cost, matrix, rows, columns, integer))
    highs.run()
    info, status, statuses = highs.getInfo(), highs.getModelStatus(), highspy.HighsModelStatus
    if status == statuses.kInfeasible:
        return MipResult(None, np.inf)
    if status not in (
        statuses.kOptimal,
        statuses.kTimeLimit,
        statuses.kSolutionLimit,
    ):  # the last also for a node limit
        raise SolverError(f"HiGHS ended with {highs.modelStatusToString(status)}")
    has_x = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    # HiGHS states no bound of a program without integers
    lp_bound = info.objective_function_value if status == statuses.kOptimal else -np.inf
    return MipResult(
        np.array(highs.getSolution().col_value) if has_x else None, info.mip_dual_bound if integer.any() else lp_bound
    )
