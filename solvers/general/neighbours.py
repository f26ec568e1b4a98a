"""Find the parts to decide together with one that makes the first stage grow much.

Such a part may lack what another one took without need: copies after a failure of the same slots, which share the rows that the growth
relaxes, or the days before and after it and others of a row over many parts that lacked something, which can do more of what the row asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.general.structure import Structure

TOGETHER = 3  # times the columns of the largest part: a day with the ones before and after it
ROW_TOL = 1e-7  # violation of a row, relative to its largest coefficient in units of its columns


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The rows of a program, `reach` [rows, parts]: which rows each part has columns in, `size` [rows]."""

    structure: Structure
    by_row: sparse.csr_array
    reach: sparse.csr_array
    size: Floats

    def of(self, p: int, rows: Ints, x: Floats, found: Floats) -> Ints:
        """Find the neighbours of a part [neighbours], the ones with most rows that lacked something, or that its growth relaxes, first, and the nearest of them.

        `rows`: of the part. `x`, `found` [columns]: before and after it made the first stage grow.
        """
        structure = self.structure
        relaxed = self._broken(rows, np.where(structure.first, x, found))
        lacking = self._broken(rows, x)
        parts, run = np.arange(structure.parts), self._run(p)
        shares = np.bincount(self.reach[relaxed].indices, minlength=structure.parts)
        shares += np.bincount(self.reach[lacking].indices, minlength=structure.parts)
        beside = parts < structure.runs
        beside &= np.abs(parts - run) == 1 if run == p else parts == run
        shares[beside] += 1
        columns = np.bincount(structure.part[structure.part >= 0], minlength=structure.parts)
        order = np.lexsort((np.abs(parts - run), -shares))
        order = order[(shares[order] > 0) & (order != p)]
        fits = columns[p] + np.cumsum(columns[order]) <= TOGETHER * columns.max()
        nearest: Ints = order[fits].astype(np.int64)
        return nearest

    def _broken(self, rows: Ints, x: Floats) -> Ints:
        """Select the rows that x violates."""
        arrays, activity = self.structure.arrays, self.by_row[rows] @ x
        beyond = np.maximum(arrays.row_lower[rows] - activity, activity - arrays.row_upper[rows])
        broken: Ints = rows[beyond > ROW_TOL * self.size[rows]]
        return broken

    def _run(self, p: int) -> int:
        """Find the part of the calendar that a part's slots belong to."""
        slot = self.structure.slot[self.structure.part == p]
        return int(self.structure.run[slot[0]])
