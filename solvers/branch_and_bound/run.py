"""Run branch and bound on a program, within its limits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs_run import run_highs
from solvers.branch_and_bound.relaxation import NodeLp, WarmStartedLp
from solvers.branch_and_bound.rounding import ZeroCostBinaries, round_counts
from solvers.branch_and_bound.search import BranchAndBound, SubMipResult
from solvers.interface import Options, Outcome, ProgressReporter
from solvers.program import Arrays, Scaled

LARGE = 3000  # columns from which on the search over binaries is worth its linear programs


NODES = 100  # of that search, before HiGHS takes over


def uses_branch_and_bound(arrays: Arrays, options: Options) -> bool:
    binaries = int((arrays.integer & (arrays.upper - arrays.lower <= 1)).sum())
    if options.method == "auto":
        return len(arrays.integer) >= LARGE and 0 < binaries <= 400
    return options.method == "branch" and binaries > 0


def run_branch_and_bound(
    scaled: Scaled,
    options: Options,
    tolerance: float,
    start: Floats | None = None,
    relaxation: NodeLp | None = None,
    known: Sequence[Floats] = (),
    mip_start: Callable[[], tuple[float, Floats | None, float]] | None = None,
    mip_start_first: bool = False,
    progress: ProgressReporter | None = None,
) -> Outcome:
    """The search over the binaries; what it leaves open when its nodes are used up goes to HiGHS as a whole.
    `relaxation`: that of a program alike, changed to this one; `known`: answers of programs alike; `mip_start`, `mip_start_first`: as of the search."""
    begin = time.perf_counter()
    arrays = scaled.arrays
    left = lambda: options.time_limit_s - (time.perf_counter() - begin)
    if relaxation is None:
        relaxation = NodeLp(scaled, options, left)
    relaxation.left = left

    def finish(
        lower: Floats,
        upper: Floats,
        known: Floats | None,
        target: float,
        gap: float,
        progress: ProgressReporter | None = None,
    ) -> SubMipResult:
        part = replace(scaled, arrays=replace(arrays, lower=lower, upper=upper))
        limits = replace(options, time_limit_s=max(0.1, left()), gap=gap)
        outcome = run_highs(part, limits, tolerance, known, target, progress)
        if outcome.status == "infeasible":
            return SubMipResult(math.inf, None, math.inf)
        value = math.inf if outcome.x is None else float(scaled.cost @ outcome.x)
        return SubMipResult(value, outcome.x, -math.inf if outcome.bound is None else outcome.bound)

    search = make_search(
        scaled,
        options,
        relaxation,
        finish,
        options.node_limit or NODES,
        known,
        None if progress is None else progress.report,
        mip_start,
        mip_start_first,
    )
    value = math.inf if start is None else float(scaled.cost @ start)
    found = search.run(arrays.lower, arrays.upper, start, value)
    if relaxation.ended in ("infeasible", "unbounded") and found.x is None and not math.isfinite(found.bound):
        return run_highs(
            scaled, options, tolerance
        )  # HiGHS tells the two apart, and unbounded from infeasible integers
    if not found.complete and left() > 1.0:
        answer = finish(arrays.lower, arrays.upper, found.x, found.bound, options.gap, progress)
        x = answer.x if answer.value < found.value else found.x
        return Outcome(
            "optimal" if x is not None else "infeasible" if answer.bound == math.inf else "limit",
            x,
            max(found.bound, answer.bound),
        )
    status = "optimal" if found.x is not None else ("infeasible" if found.bound == math.inf else "limit")
    return Outcome(status, found.x, found.bound)


def make_search(
    scaled: Scaled, options: Options, relaxation: NodeLp, finish: Callable[..., SubMipResult], node_limit: int, known: Sequence[Floats],
    report: Callable[[float, float], None] | None, mip_start: Callable[[], tuple[float, Floats | None, float]] | None = None, mip_start_first: bool = False,
) -> BranchAndBound:  # fmt: skip
    arrays = scaled.arrays
    binary = arrays.integer & (arrays.upper - arrays.lower <= 1)

    def count(lower: Floats, upper: Floats, target: float, most: float) -> SubMipResult:
        limits = replace(options, time_limit_s=max(0.1, relaxation.left()))
        return round_counts(
            scaled,
            lower,
            upper,
            target,
            most,
            options.gap,
            lambda part: WarmStartedLp(part.arrays, part.cost, limits, ends=time.perf_counter() + limits.time_limit_s),
        )

    return BranchAndBound(
        np.flatnonzero(binary),
        np.flatnonzero(arrays.integer & ~binary),
        relaxation.solve,
        count,
        finish,
        ZeroCostBinaries(scaled).rounded,
        options.gap,
        node_limit,
        known,
        relaxation.pseudocosts,
        arrays.branching_sets,
        mip_start,
        mip_start_first,
        lambda: relaxation.iterations,
        report,
    )
