"""Run branch and bound on a scaled program, within its limits of nodes and time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs_run import run_highs
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.branch_and_bound.nodes import SubMip, SubMipResult
from solvers.branch_and_bound.relaxation import NodeLp
from solvers.branch_and_bound.rounding import ZeroCostBinaries, round_counts
from solvers.branch_and_bound.search import BranchAndBound, BranchAndBoundResult, FindMipStart, SearchProblem
from solvers.branch_and_bound.settings import SETTINGS
from solvers.interface import Options, Outcome, ProgressReporter
from solvers.program import Arrays, Scaled

LEAST_SUB_MIP_S = 0.1  # time limit of a sub-MIP when the time is nearly up
LEAST_HANDOVER_S = 1.0  # time left for which HiGHS is still started


def uses_branch_and_bound(arrays: Arrays, options: Options) -> bool:
    """Whether `options.method` asks for this search, or leaves the choice and the program is large with few binaries."""
    binaries = int((arrays.integer & (arrays.upper - arrays.lower <= 1)).sum())
    if options.method == "auto":
        return len(arrays.integer) >= SETTINGS.least_columns and 0 < binaries <= SETTINGS.most_binaries
    return options.method == "branch" and binaries > 0


def run_branch_and_bound(
    scaled: Scaled,
    options: Options,
    tolerance: float,
    start: Floats | None = None,
    relaxation: NodeLp | None = None,
    earlier_solutions: Sequence[Floats] = (),
    mip_start: FindMipStart | None = None,
    mip_start_first: bool = False,
    progress: ProgressReporter | None = None,
) -> Outcome:
    """Search over the binaries; when the node limit is reached, hand the whole program to HiGHS with the incumbent as MIP start.

    `relaxation`: that of a similar program, changed to this one. `earlier_solutions`, `mip_start` and `mip_start_first`: as of
    `solvers.branch_and_bound.search.BranchAndBound`.
    """
    begin = time.perf_counter()
    arrays = scaled.arrays

    def seconds_left() -> float:
        return options.left_s(begin)

    small = options.method == "auto" and len(arrays.integer) <= SETTINGS.small_columns and not _only_earns(scaled.cost)
    of_sub_mips = 0  # simplex iterations
    if relaxation is None:
        relaxation = NodeLp(scaled, options, seconds_left)
    relaxation.seconds_left = seconds_left
    before = relaxation.iterations

    def solve_sub_mip(
        lower: Floats,
        upper: Floats,
        known: Floats | None,
        target: float,
        gap: float,
        progress: ProgressReporter | None = None,
        longest_s: float | None = None,
    ) -> SubMipResult:
        nonlocal of_sub_mips
        part = replace(scaled, arrays=replace(arrays, lower=lower, upper=upper))
        limits = replace(options, time_limit_s=max(LEAST_SUB_MIP_S, seconds_left()), longest_s=longest_s, gap=gap)
        outcome = run_highs(part, limits, tolerance, known, target, progress)
        of_sub_mips += outcome.iterations
        if outcome.status == "infeasible":
            return SubMipResult(math.inf, None, math.inf)
        value = math.inf if outcome.x is None else float(scaled.cost @ outcome.x)
        return SubMipResult(value, outcome.x, -math.inf if outcome.bound is None else outcome.bound)

    search = make_search(
        scaled, options, relaxation, solve_sub_mip, options.node_limit or SETTINGS.node_limit, earlier_solutions
    )
    search.mip_start, search.mip_start_first = mip_start, mip_start_first
    search.report = None if progress is None else progress.report
    if small and mip_start is None:
        search.is_slow = lambda: relaxation.iterations - before + of_sub_mips >= SETTINGS.slow_iterations
    search.hand_over_gap = SETTINGS.small_root_gap if small else math.inf
    found = search.run(arrays.lower, arrays.upper, start, math.inf if start is None else float(scaled.cost @ start))
    if relaxation.status in ("infeasible", "unbounded") and found.x is None and not math.isfinite(found.bound):
        # HiGHS tells the two apart, and unbounded from a program without an integer solution
        return run_highs(scaled, options, tolerance)
    if found.complete:
        return _outcome(found.x, found.bound, found.bound)
    longest_s = options.until_found().left_s(begin) if found.x is None else seconds_left()
    if longest_s > LEAST_HANDOVER_S:
        # Small programs start afresh: HiGHS 1.15 may end early from a MIP start, far from the optimum.
        known = None if small else found.x
        answer = solve_sub_mip(arrays.lower, arrays.upper, known, found.bound, options.gap, progress, longest_s)
        x = answer.x if answer.value < found.value else found.x
        return _outcome(x, answer.bound, max(found.bound, answer.bound))
    return _outcome(found.x, found.bound, found.bound)


def _only_earns(cost: Floats) -> bool:
    """Tell whether columns earn and none costs, as where throughput is maximised; HiGHS then seldom gets beyond a factor of 0."""
    return bool((cost < 0.0).any() and not (cost > 0.0).any())


def _outcome(x: Floats | None, last_bound: float, bound: float) -> Outcome:
    status = "optimal" if x is not None else "infeasible" if last_bound == math.inf else "limit"
    return Outcome(status, x, bound)


def run_without_sub_mips(
    scaled: Scaled, options: Options, relaxation: NodeLp, earlier_solutions: Sequence[Floats], start: Floats | None
) -> BranchAndBoundResult:
    """Solve the root relaxation and run the heuristics there, for programs that are too small for the search."""

    def no_sub_mip(*_: object) -> SubMipResult:
        return SubMipResult(math.inf, None, -math.inf)

    search = make_search(scaled, options, relaxation, no_sub_mip, 0, earlier_solutions)
    value = math.inf if start is None else float(scaled.cost @ start)
    return search.run(scaled.arrays.lower, scaled.arrays.upper, start, value)


def make_search(
    scaled: Scaled,
    options: Options,
    relaxation: NodeLp,
    solve_sub_mip: SubMip,
    node_limit: int,
    earlier_solutions: Sequence[Floats],
) -> BranchAndBound:
    """Set up a search whose LPs are solved by `relaxation`."""
    arrays = scaled.arrays
    binary = arrays.integer & (arrays.upper - arrays.lower <= 1)

    def round_all_counts(lower: Floats, upper: Floats, target: float, cutoff: float) -> SubMipResult:
        limits = replace(options, time_limit_s=max(LEAST_SUB_MIP_S, relaxation.seconds_left()))

        def make_lp(part: Scaled) -> WarmStartedLp:
            return WarmStartedLp(part.arrays, part.cost, limits, deadline=time.perf_counter() + limits.time_limit_s)

        return round_counts(scaled, lower, upper, target, cutoff, options.gap, make_lp)

    problem = SearchProblem(
        binaries=np.flatnonzero(binary),
        counts=np.flatnonzero(arrays.integer & ~binary),
        relax=relaxation.solve,
        round_counts=round_all_counts,
        solve_sub_mip=solve_sub_mip,
        round_free=ZeroCostBinaries(scaled).rounded,
        branching_sets=arrays.branching_sets,
    )
    return BranchAndBound(
        problem,
        options.gap,
        node_limit,
        SETTINGS,
        earlier_solutions,
        relaxation.pseudocosts,
        iterations=lambda: relaxation.iterations,
    )
