"""Clear what a plan does not need: binaries that the tolerance of a search left on, and what they alone made necessary.

A binary that could be 0 costs little or nothing, so that a search within its gap has no reason to clear it: a site may host a workload of
which it serves no request, and weights travel there. Whoever adds up what a plan uses then counts less than the search did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.model.build import objective_vector
from solvers.model.data import COST, PlanData
from solvers.program import Arrays, Program
from solvers.search.hourly import with_least_held

STEP_TOL = 1e-9  # by which a column must fall to be lowered, relative to its value or 1
TOTALS, TOTAL = " sub-totals", " sub-total"  # ends of the names of columns and rows that add up a limited functional


def without_needless(program: Program, data: PlanData, values: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Return the values of a plan with needless binaries at 0, and what they alone made necessary as low as rows allow; itself where it needs all.

    No row is broken that held before, and neither objective nor cost rises; integers other than binaries stay.
    """
    values, sign = with_least_held(program, data, values), -1.0 if data.objective.maximises else 1.0
    objective, cost = sign * objective_vector(program, data), program.functional(COST)
    dear = (objective >= 0) & (cost >= 0)
    lowering = _Lowering.of(program, program.vector(values), dear, dear & ((objective > 0) | (cost > 0)))
    if not lowering.run():
        return values
    found = program.values(lowering.x)
    return {block: found[block] for block in values}


@dataclass(slots=True)
class _Lowering:
    """A plan whose columns are lowered one by one. Rows of `totals` follow: their own columns are lowered at the end."""

    arrays: Arrays
    by_column: sparse.csc_array
    by_row: sparse.csr_array
    x: Floats
    activity: Floats
    able: Bools
    """[columns]: binaries that save nothing, and columns of any value that cost something."""
    totals: Bools
    """[rows]"""
    own: Bools
    """[columns]: sub-totals."""

    @classmethod
    def of(cls, program: Program, x: Floats, dear: Bools, paying: Bools) -> _Lowering:
        """Load a plan."""
        arrays = program.arrays()
        by_row, totals = sparse.csr_array(arrays.matrix), np.zeros(program.row_count, dtype=bool)
        for name, parts in program.row_blocks.items():
            for part in parts if name.endswith(TOTAL) else ():
                totals[part.rows] = True
        able = np.where(arrays.integer, arrays.binary & dear, paying)
        own = np.zeros(program.column_count, dtype=bool)
        for name, columns in program.columns.items():
            if name.endswith(TOTALS):
                own[columns[columns >= 0]] = True
        return cls(arrays, sparse.csc_array(arrays.matrix), by_row, x, by_row @ x, able, totals, own)

    def run(self) -> bool:
        """Lower needless counts; False where nothing is."""
        x, arrays = self.x, self.arrays
        queue = np.flatnonzero(arrays.binary & self.able & (x > 0.5) & (arrays.lower < 0.5)).tolist()
        lowered = False
        while queue:
            column = queue.pop()
            part = slice(self.by_column.indptr[column], self.by_column.indptr[column + 1])
            at, each = self.by_column.indices[part].astype(np.int64), self.by_column.data[part]
            step = min(self._room(at, each), x[column] - arrays.lower[column])
            stays = arrays.binary[column] and x[column] - step > STEP_TOL
            if stays or step <= STEP_TOL * max(x[column], 1.0):
                continue
            x[column] -= step
            self.activity[at] -= each * step
            queue += self._beside(at[~self.totals[at]])
            lowered = True
        if lowered:
            rows = self.by_row[self.totals].tocoo()
            mine = self.own[rows.coords[1]]
            x[rows.coords[1][mine]] += self.activity[self.totals][rows.coords[0][mine]]
        return lowered

    def _room(self, at: Ints, each: Floats) -> float:
        """Return by how much a column may fall that has the coefficients `each` in the rows `at`."""
        low, high = self.activity[at] - self.arrays.row_lower[at], self.arrays.row_upper[at] - self.activity[at]
        low, high = np.where(self.totals[at], np.inf, low), np.where(self.totals[at], 0.0, high)
        room = np.where(each > 0, low, high) / np.abs(each)
        return float(np.maximum(room, 0.0).min(initial=np.inf))

    def _beside(self, rows: Ints) -> list[int]:
        """List the columns of the rows that may now fall as well."""
        found: list[int] = []
        for row in rows.tolist():
            columns = self.by_row.indices[self.by_row.indptr[row] : self.by_row.indptr[row + 1]]
            found += columns[self.able[columns] & (self.x[columns] > self.arrays.lower[columns])].tolist()
        return found
