"""Run branch and bound on a program, within its limits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs_run import run_highs
from solvers.branch_and_bound.relaxation import Linear, Relaxation
from solvers.branch_and_bound.rounding import FreeChoices, whole_counts
from solvers.branch_and_bound.search import Finished, Search
from solvers.interface import Options, Outcome, Standing
from solvers.program import Arrays, Scaled

LARGE = 3000  # columns from which on the search over binaries is worth its linear programs


NODES = 100  # of that search, before HiGHS takes over


def branches(arrays: Arrays, options: Options) -> bool:
    binaries = int((arrays.integer & (arrays.upper - arrays.lower <= 1)).sum())
    if options.method == "auto":
        return len(arrays.integer) >= LARGE and 0 < binaries <= 400
    return options.method == "branch" and binaries > 0


def run_branch(
    scaled: Scaled,
    options: Options,
    tolerance: float,
    start: Floats | None = None,
    relaxation: Relaxation | None = None,
    known: Sequence[Floats] = (),
    hint: Callable[[], tuple[float, Floats | None, float]] | None = None,
    at_once: bool = False,
    standing: Standing | None = None,
) -> Outcome:
    """The search over the binaries; what it leaves open when its nodes are used up goes to HiGHS as a whole.
    `relaxation`: that of a program alike, changed to this one; `known`: answers of programs alike; `hint`, `at_once`: as of the search."""
    begin = time.perf_counter()
    arrays = scaled.arrays
    left = lambda: options.time_limit_s - (time.perf_counter() - begin)
    if relaxation is None:
        relaxation = Relaxation(scaled, options, left)
    relaxation.left = left

    def finish(
        lower: Floats, upper: Floats, known: Floats | None, target: float, gap: float, standing: Standing | None = None
    ) -> Finished:
        part = replace(scaled, arrays=replace(arrays, lower=lower, upper=upper))
        limits = replace(options, time_limit_s=max(0.1, left()), gap=gap)
        outcome = run_highs(part, limits, tolerance, known, target, standing)
        if outcome.status == "infeasible":
            return Finished(math.inf, None, math.inf)
        value = math.inf if outcome.x is None else float(scaled.cost @ outcome.x)
        return Finished(value, outcome.x, -math.inf if outcome.bound is None else outcome.bound)

    search = search_of(
        scaled,
        options,
        relaxation,
        finish,
        options.node_limit or NODES,
        known,
        None if standing is None else standing.tell,
        hint,
        at_once,
    )
    value = math.inf if start is None else float(scaled.cost @ start)
    found = search.run(arrays.lower, arrays.upper, start, value)
    if relaxation.ended in ("infeasible", "unbounded") and found.x is None and not math.isfinite(found.bound):
        return run_highs(
            scaled, options, tolerance
        )  # HiGHS tells the two apart, and unbounded from infeasible integers
    if not found.complete and left() > 1.0:
        answer = finish(arrays.lower, arrays.upper, found.x, found.bound, options.gap, standing)
        x = answer.x if answer.value < found.value else found.x
        return Outcome(
            "optimal" if x is not None else "infeasible" if answer.bound == math.inf else "limit",
            x,
            max(found.bound, answer.bound),
        )
    status = "optimal" if found.x is not None else ("infeasible" if found.bound == math.inf else "limit")
    return Outcome(status, found.x, found.bound)


def search_of(
    scaled: Scaled, options: Options, relaxation: Relaxation, finish: Callable[..., Finished], node_limit: int, known: Sequence[Floats],
    tell: Callable[[float, float], None] | None, hint: Callable[[], tuple[float, Floats | None, float]] | None = None, at_once: bool = False,
) -> Search:  # fmt: skip
    arrays = scaled.arrays
    binary = arrays.integer & (arrays.upper - arrays.lower <= 1)

    def count(lower: Floats, upper: Floats, target: float, most: float) -> Finished:
        limits = replace(options, time_limit_s=max(0.1, relaxation.left()))
        return whole_counts(
            scaled,
            lower,
            upper,
            target,
            most,
            options.gap,
            lambda part: Linear(part.arrays, part.cost, limits, ends=time.perf_counter() + limits.time_limit_s),
        )

    return Search(
        np.flatnonzero(binary),
        np.flatnonzero(arrays.integer & ~binary),
        relaxation.solve,
        count,
        finish,
        FreeChoices(scaled).settled,
        options.gap,
        node_limit,
        known,
        relaxation.gain,
        arrays.halves,
        hint,
        at_once,
        lambda: relaxation.iterations,
        tell,
    )
