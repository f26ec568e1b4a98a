"""Propagate bounds of integer columns through the rows: what a fixed binary leaves to the others (Savelsbergh 1994).

a_ij x_j <= side_i - min sum_{k != j} a_ik x_k    for each row i, with the others at their least activity
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.program import Arrays

TOL = 1e-6  # slack of a bound before it is rounded, and of the side of a row, relative to its entries


class Propagation:
    """Bounds of the columns of a program, tightened as integers are fixed."""

    def __init__(self, arrays: Arrays, lower: Floats, upper: Floats):
        """`lower`, `upper` [columns]: bounds to begin with."""
        rows = arrays.matrix.tocsr()
        below, above = np.isfinite(arrays.row_lower), np.isfinite(arrays.row_upper)
        # every row as one from above
        self._start = rows.indptr
        self._column, self._value = rows.indices, rows.data
        self._sides = ((1.0, arrays.row_upper, above), (-1.0, -arrays.row_lower, below))
        columns = arrays.matrix
        self._column_start, self._row = columns.indptr, columns.indices
        self._integer = arrays.integer
        self.lower, self.upper = lower.copy(), upper.copy()

    def fix(self, column: int, value: float) -> bool:
        """Fix a column and tighten what follows from it; returns False, with the bounds as they were, where nothing is left."""
        before = self.lower.copy(), self.upper.copy()
        self.lower[column] = self.upper[column] = value
        changed = np.array([column])
        while len(changed):
            spans = [self._row[self._column_start[j] : self._column_start[j + 1]] for j in changed.tolist()]
            found = self._tightened(np.unique(np.concatenate(spans)))
            if found is None:
                self.lower, self.upper = before
                return False
            changed = found
        return True

    def _tightened(self, rows: Ints) -> Ints | None:
        """Tighten the integer columns of rows once; returns those that changed, None where a row cannot hold."""
        length = self._start[rows + 1] - self._start[rows]
        row = np.repeat(np.arange(len(rows)), length)
        entry = np.arange(int(length.sum())) + np.repeat(self._start[rows] - np.cumsum(length) + length, length)
        column, value = self._column[entry], self._value[entry]
        changed: list[Ints] = []
        for sign, side, there in self._sides:
            kept = there[rows][row]
            at, of, a = row[kept], column[kept], sign * value[kept]
            least = np.where(a > 0, a * self.lower[of], a * self.upper[of])
            endless = ~np.isfinite(least)
            total = np.bincount(at, np.where(endless, 0.0, least), len(rows))
            without = np.bincount(at, endless, len(rows))
            size = np.zeros(len(rows))
            np.maximum.at(size, at, np.abs(a))
            slack = TOL * np.maximum(size, np.abs(total))
            if ((without == 0) & (total > side[rows] + slack) & there[rows]).any():
                return None
            able = self._integer[of] & (without[at] - endless == 0) & (self.lower[of] < self.upper[of])
            at, of, a = at[able], of[able], a[able]
            room = (side[rows][at] - total[at] + np.where(endless[able], 0.0, least[able]) + slack[at]) / a
            changed += [self._tighten(of, room, a > 0)]
            if (self.lower > self.upper).any():
                return None
        return np.unique(np.concatenate(changed))

    def _tighten(self, columns: Ints, room: Floats, from_above: Bools) -> Ints:
        """Tighten integer columns to the room that rows leave; returns those whose bounds changed."""
        high, low = columns[from_above], columns[~from_above]
        before_high, before_low = self.upper[high], self.lower[low]
        np.minimum.at(self.upper, high, np.floor(room[from_above] + TOL))
        np.maximum.at(self.lower, low, np.ceil(room[~from_above] - TOL))
        return np.concatenate([high[self.upper[high] < before_high], low[self.lower[low] > before_low]])
