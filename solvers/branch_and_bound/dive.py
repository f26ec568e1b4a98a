"""Diving: fix fractional columns one by one, each time re-solving the LP, until all are integer."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.nodes import NodeResult, Relax
from solvers.branch_and_bound.settings import DIVE_SLACK_SHARE, DIVE_VALUE_TOL, INTEGRALITY_TOL

Selection = Callable[[Floats, Ints], int]
"""(x, fractional columns) -> position of the next one to fix."""


def dive(
    relax: Relax,
    root: NodeResult,
    lower: Floats,
    upper: Floats,
    columns: Ints,
    select: Selection,
    gap: float,
    cutoff: float,
) -> NodeResult | None:
    """Fix `columns` to integers in the order of `select`, starting from the solution `root`.

    Each column goes to the nearest integer if that costs less than `DIVE_SLACK_SHARE` of the gap, otherwise to the neighbour that
    costs less. Return the last LP, in which all columns are integer; None where both neighbours are infeasible or exceed `cutoff`.
    """
    lower, upper, last = lower.copy(), upper.copy(), root
    while last.x is not None and last.value is not None and (open_columns := fractional(last.x, columns)).size:
        x, value, basis = last.x, last.value, last.basis
        column = int(open_columns[select(x, open_columns)])
        nearest = float(np.round(x[column]))
        other = nearest + (1.0 if x[column] > nearest else -1.0)

        def fixed(at: float, stop: float, column: int = column, basis: object = basis) -> NodeResult:
            low, high = lower.copy(), upper.copy()
            low[column] = high[column] = at
            return relax(low, high, basis, min(stop, cutoff))

        best, integer = fixed(nearest, value + max(DIVE_SLACK_SHARE * gap, DIVE_VALUE_TOL) * abs(value)), nearest
        if best.x is None:
            second = fixed(other, math.inf)
            limit = math.inf if second.x is None or second.value is None else second.value
            if best.value is not None and math.isfinite(best.value) and best.value < limit:
                best = fixed(nearest, limit)
            if best.x is None:
                best, integer = second, other
        if best.x is None:
            return None
        last = best
        lower[column] = upper[column] = integer
    return last


def fractional(x: Floats, columns: Ints) -> Ints:
    """The columns whose value is not integer."""
    values = x[columns]
    return columns[np.abs(values - np.round(values)) > INTEGRALITY_TOL]


def largest_value(x: Floats, open_columns: Ints) -> int:
    """Select the binary closest to 1: choosing a site or a design rules out its alternatives."""
    return int(np.argmax(x[open_columns]))
