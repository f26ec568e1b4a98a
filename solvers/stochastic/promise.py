"""Keep a promise over a tree: the price of work left undone is raised until enough leaves have all of it done.

A price instead of a count of leaves keeps the program linear but for whole counts; by Everett's theorem what it finds is the cheapest of all
decisions that leave as little undone, though not always of all that keep the promise.

Reference: Everett, Generalized Lagrange multiplier method for solving problems of optimum allocation of resources, Operations Research 11 (1963).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from solvers.interface import Options
from solvers.stochastic.data import Aim, FleetData, Leaves, dearer
from solvers.stochastic.tree import TreeSolution, solved, unsolved

STEP = 1.15  # from each price to the next
PRICES = (*(STEP**i for i in range(23)), 40.0, 100.0, 1e3)
"""Factors on the price of work left undone that are tried."""
SHARE_TOL = 1e-9


@dataclass(frozen=True, slots=True)
class Promised:
    """A solution, the factor on the price of work left undone that it was found at, and whether it keeps the promise."""

    factor: float
    solution: TreeSolution
    reached: bool


def promised(
    data: FleetData, leaves: Leaves, promise: float, aim: Aim, options: Options,
    kept: Callable[[TreeSolution, float], bool] | None = None,
) -> Promised:  # fmt: skip
    """Find the solution at the least of `PRICES` that holds the promise: by `kept` of it and its factor; where not given, by the weight of leaves.

    Where none does, or the time is up before one was found, the solution that keeps most by weight.
    """
    ends = time.perf_counter() + options.time_limit_s
    tried: dict[int, Promised] = {}

    def in_tree(found: TreeSolution, factor: float) -> bool:
        return bool(leaves.weight @ found.kept >= promise - SHARE_TOL)

    holds = kept or in_tree

    def reaches(at: int) -> bool:
        factor, left = PRICES[at], max(ends - time.perf_counter(), 0.0)
        found = unsolved(data, leaves)
        if left > 0:
            found = solved(dearer(data, factor), leaves, aim, replace(options, time_limit_s=left))
        tried[at] = Promised(factor, found, found.found and holds(found, factor))
        return tried[at].reached

    low, high = 0, len(PRICES) - 1
    if reaches(low):
        return tried[low]
    low += 1
    while low < high and time.perf_counter() < ends:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    if low not in tried and time.perf_counter() < ends:
        reaches(low)
    able = [at for at, each in tried.items() if each.reached]
    if able:
        return tried[min(able)]
    share = {at: float(leaves.weight @ each.solution.kept) for at, each in tried.items() if each.solution.found}
    return tried[max(share, key=lambda at: (share[at], -at))] if share else tried[min(tried)]
