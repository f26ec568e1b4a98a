"""HiGHS as it is used here: without a word on the standard output, and with one number of threads at a time."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats
from solvers.interface import ENUMERATION_PRESOLVE_RULE, SolverError

SMALL_MIP_OPTIONS = (("mip_heuristic_run_rins", False), ("mip_heuristic_run_rens", False), ("mip_heuristic_run_root_reduced_cost", False), ("mip_allow_restart", False),
         ("mip_heuristic_run_feasibility_jump", False), ("mip_detect_symmetry", False), ("mip_pscost_minreliable", 2))  # fmt: skip
# programs within programs take longer than small ones do, starting again as well, and trying each branching eight times

_own = (
    threading.local()
)  # HiGHS has threads of its own in each of ours, which refuse to run a program that asks for another number of them
_last = 1


@cache
def _silent() -> type:
    import highspy

    class Silent(highspy.Highs):
        """From 1.16 on it says who it is as soon as callbacks are enabled, which its constructor does: no option can be set before."""

        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

        def run(self) -> Any:
            self.setOptionValue("threads", set_threads())
            return super().run()

    return Silent


def new_highs() -> Any:
    """A HiGHS that prints nothing and runs with as many threads as were taken last."""
    return _silent()()


def set_threads(threads: int | None = None) -> int:
    """Makes HiGHS ready for so many threads, or for as many as it was used with last, here or elsewhere."""
    import highspy

    global _last
    before = getattr(_own, "threads", None)
    wanted = threads or before or _last
    if before != wanted:
        highspy.Highs.resetGlobalScheduler(True)  # also of a number that others used here
    _own.threads = _last = wanted
    return wanted


def highs_lp(
    cost: Floats,
    matrix: sparse.csc_array,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    whole: Bools | None = None,
) -> Any:
    """min cost x  with  rows[0] <= matrix x <= rows[1],  columns[0] <= x <= columns[1]  as HiGHS takes it; `whole`: which columns are, none if left out."""
    import highspy

    lp, matrix = highspy.HighsLp(), matrix.tocsc()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_, (lp.row_lower_, lp.row_upper_), (lp.col_lower_, lp.col_upper_) = cost, rows, columns
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data,
    )
    if whole is not None and whole.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(one)] for one in whole]
    return lp


class MipResult(NamedTuple):
    """A point that is whole where asked, and what none is below: inf where there is no point at all."""

    x: Floats | None
    bound: float


def solve_mip(cost: Floats, matrix: sparse.csc_array, sides: tuple[Floats, Floats], bounds: tuple[Floats, Floats], whole: Bools, gap: float, seconds: float,
                settings: tuple[tuple[str, Any], ...] = SMALL_MIP_OPTIONS) -> MipResult:  # fmt: skip
    """min cost x  with  sides[0] <= matrix x <= sides[1],  bounds[0] <= x <= bounds[1],  to the gap or as near as time allows. `settings`: options of HiGHS.
    Raises SolverError where HiGHS ends in another way."""
    import highspy

    highs = new_highs()
    for name, value in (
        ("mip_rel_gap", gap),
        ("time_limit", max(seconds, 0.0)),
        ("presolve_rule_off", ENUMERATION_PRESOLVE_RULE),
        *settings,
    ):
        highs.setOptionValue(name, value)
    highs.passModel(highs_lp(cost, matrix, sides, bounds, whole))
    highs.run()
    info, status, feasible = highs.getInfo(), highs.getModelStatus(), highspy.SolutionStatus.kSolutionStatusFeasible
    if status == highspy.HighsModelStatus.kInfeasible:
        return MipResult(None, np.inf)
    if status not in (
        highspy.HighsModelStatus.kOptimal,
        highspy.HighsModelStatus.kTimeLimit,
        highspy.HighsModelStatus.kSolutionLimit,
    ):  # the last one also of nodes
        raise SolverError(f"HiGHS ended with {highs.modelStatusToString(status)}")
    linear = (
        info.objective_function_value if status == highspy.HighsModelStatus.kOptimal else -np.inf
    )  # where nothing is whole HiGHS has no bound of its own
    return MipResult(
        np.array(highs.getSolution().col_value) if info.primal_solution_status == feasible else None,
        info.mip_dual_bound if whole.any() else linear,
    )
