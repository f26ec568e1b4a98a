"""Rounding heuristics: binaries that cost nothing, and counts once all binaries are fixed.

An LP relaxation leaves a binary at the least value that its rows require, often fractional although 1 would cost nothing more. Such
binaries are raised, or lowered, as far as the rows permit. With all binaries fixed few columns are left, so that LPs are fast and
dives round one count after another, in several orders: the most expensive first, so that cheap ones fill up the lack, or the
least fractional first. A local search around the best counts follows (`solvers.branch_and_bound.count_search`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.count_search import CountSearch, LinearProgram
from solvers.branch_and_bound.dive import Selection, dive
from solvers.branch_and_bound.nodes import SubMipResult
from solvers.branch_and_bound.settings import INTEGRALITY_TOL, ROUNDING, RoundingSettings
from solvers.program import Arrays, Scaled


class ZeroCostBinaries:
    """The binaries of a program that have no cost."""

    def __init__(self, scaled: Scaled, settings: RoundingSettings = ROUNDING) -> None:
        arrays = scaled.arrays
        self._arrays, self._settings = arrays, settings
        self._columns = np.flatnonzero(arrays.integer & (arrays.upper - arrays.lower <= 1) & (scaled.cost == 0))

    def rounded(self, x: Floats) -> Floats:
        """Round those that are fractional to 1, else to 0, where no row is violated by more than before. The value stays the same."""
        open_columns = self._columns[np.abs(x[self._columns] - np.round(x[self._columns])) > INTEGRALITY_TOL]
        if not open_columns.size:
            return x
        arrays, matrix, x, tol = self._arrays, self._arrays.matrix, x.copy(), self._settings.row_tol
        activity = matrix @ x
        for column in open_columns[np.argsort(-x[open_columns], kind="stable")]:
            entries = slice(matrix.indptr[column], matrix.indptr[column + 1])
            rows, values = matrix.indices[entries], matrix.data[entries]
            most = np.maximum(arrays.row_upper[rows], activity[rows])
            least = np.minimum(arrays.row_lower[rows], activity[rows])
            for integer in (1.0, 0.0):
                changed = activity[rows] + values * (integer - x[column])
                in_bounds = arrays.lower[column] <= integer <= arrays.upper[column]
                if in_bounds and (changed <= most + tol).all() and (changed >= least - tol).all():
                    activity[rows], x[column] = changed, integer
                    break
        return x


def round_counts(
    scaled: Scaled,
    lower: Floats,
    upper: Floats,
    target: float,
    cutoff: float,
    gap: float,
    make_lp: Callable[[Scaled], LinearProgram],
    settings: RoundingSettings = ROUNDING,
) -> SubMipResult:
    """Find integer counts between bounds that fix all binaries.

    Stop at a value of `target`; look for values below `cutoff` only. `make_lp` loads the LP of a scaled program. The bound returned is
    the optimum of the LP relaxation.
    """
    narrow, wide = _propagated_bounds(scaled.arrays, lower, upper, settings.propagation_rounds)
    fixed = wide - narrow <= settings.fixed_width_tol
    columns = np.flatnonzero(~fixed)
    part, constant = _restricted(scaled, lower, upper, columns, np.where(fixed, narrow, 0.0), settings.row_tol)
    search = CountSearch(make_lp(part), part, constant, settings)
    root = search.relax(part.arrays.lower, part.arrays.upper, None, math.inf)
    if root.x is None or root.value is None:
        return SubMipResult(math.inf, None, -math.inf if root.value is None else root.value)
    value, best = cutoff, None
    orders: tuple[Selection, ...] = (
        _most_expensive(search.size),
        _least_fractional,
        _largest_rounding_cost(search.size),
    )
    for select in orders:
        if value <= target or root.value >= value:
            break
        far = math.inf if select is orders[-1] else target + gap * abs(target)  # the next order may do better
        stop = math.inf if cutoff == math.inf else far
        last = dive(search.relax, root, part.arrays.lower, part.arrays.upper, search.columns, select, gap, stop)
        if last is not None and last.x is not None:
            search.evaluate(np.round(last.x[search.columns]))
        if root.value < target < search.best < far:
            search.improve(target)
        if search.best < value:
            value, best = search.best, search.x
    if best is None:
        return SubMipResult(math.inf, None, root.value)
    x = np.where(fixed, narrow, 0.0)
    x[columns] = best
    return SubMipResult(value, x, root.value)


def _most_expensive(size: Floats) -> Selection:
    return lambda x, open_columns: int(np.argmax(size[open_columns]))


def _least_fractional(x: Floats, open_columns: Ints) -> int:
    return int(np.argmax(np.abs(x[open_columns] - np.floor(x[open_columns]) - 0.5)))


def _largest_rounding_cost(size: Floats) -> Selection:
    """Select by the cost of moving to the nearest integer."""
    return lambda x, open_columns: int(
        np.argmax(size[open_columns] * np.abs(x[open_columns] - np.round(x[open_columns])))
    )


def _propagated_bounds(arrays: Arrays, lower: Floats, upper: Floats, rounds: int) -> tuple[Floats, Floats]:
    """Tighten upper bounds by bound propagation: a row with an upper side limits a column with the others at their least activity."""
    upper = upper.copy()
    entry_column = np.repeat(np.arange(arrays.matrix.shape[1]), np.diff(arrays.matrix.indptr))
    rows, values = arrays.matrix.indices, arrays.matrix.data
    up = (values > 0) & np.isfinite(arrays.row_upper[rows]) & np.isfinite(lower[entry_column])
    for _ in range(rounds):
        least = np.bincount(
            rows, values * np.where(values < 0, upper[entry_column], lower[entry_column]), arrays.matrix.shape[0]
        )
        room = (arrays.row_upper - least)[rows]
        limited = up & np.isfinite(room)
        before = upper.copy()
        widest = lower[entry_column[limited]] + np.maximum(room[limited], 0.0) / values[limited]
        np.minimum.at(upper, entry_column[limited], widest)
        if (upper == before).all():
            break
    return lower, upper


def _restricted(
    scaled: Scaled, lower: Floats, upper: Floats, columns: Ints, fixed: Floats, row_tol: float
) -> tuple[Scaled, float]:
    """Return the program over some columns, the others fixed, and the cost of the fixed ones."""
    arrays = scaled.arrays
    matrix, activity = arrays.matrix[:, columns].tocsr(), arrays.matrix @ fixed
    row_lower, row_upper = arrays.row_lower - activity, arrays.row_upper - activity
    # keep an empty row that is violated: it shows that there is no solution
    rows = (np.diff(matrix.indptr) > 0) | (row_lower > row_tol) | (row_upper < -row_tol)
    part = Arrays(
        matrix[rows].tocsc(),
        row_lower[rows],
        row_upper[rows],
        lower[columns],
        upper[columns],
        arrays.integer[columns],
        arrays.unit[columns],
    )
    restricted = Scaled(part, scaled.cost[columns], scaled.column[columns], scaled.row[rows], scaled.objective)
    return restricted, float(scaled.cost @ fixed)
