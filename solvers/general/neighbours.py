"""Find the parts to decide together with one that makes the first stage grow much.

Such a part may lack what another one took without need: copies after a failure of the same slots, which share the rows that the growth
relaxes, or the days before and after it, which can do more of what a row over many parts asks for.
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
    """Which rows each part has columns in ([rows, parts], any values), and the size of the rows [rows]."""

    structure: Structure
    reach: sparse.csr_array
    size: Floats

    def of(self, p: int, rows: Ints, x: Floats, found: Floats) -> Ints:
        """Find the neighbours of a part [neighbours], those of most rows that its growth relaxes first.

        `rows`: of the part. `x`, `found` [columns]: before and after it made the first stage grow.
        """
        structure, arrays = self.structure, self.structure.arrays
        without = np.where(structure.first, x, found)
        activity = arrays.matrix.tocsr()[rows] @ without
        lack = np.maximum(arrays.row_lower[rows] - activity, activity - arrays.row_upper[rows])
        relaxed = rows[lack > ROW_TOL * self.size[rows]]
        shares = np.bincount(self.reach[relaxed].indices, minlength=structure.parts)
        run = self._run(p)
        beside = np.array([run - 1, run + 1] if run == p else [run])
        beside = beside[(beside >= 0) & (beside < structure.runs)]
        shares[beside] += 1
        columns = np.bincount(structure.part[structure.part >= 0], minlength=structure.parts)
        order = np.argsort(-shares, kind="stable")
        order = order[(shares[order] > 0) & (order != p)]
        fits = columns[p] + np.cumsum(columns[order]) <= TOGETHER * columns.max()
        nearest: Ints = order[fits].astype(np.int64)
        return nearest

    def _run(self, p: int) -> int:
        """Find the part of the calendar that a part's slots belong to."""
        slot = self.structure.slot[self.structure.part == p]
        return int(self.structure.run[slot[0]])
