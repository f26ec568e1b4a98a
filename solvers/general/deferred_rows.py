"""Leave rows of failures out of merged programs but for the busiest slots in which a failure is tried.

Copies of a fleet after a failure cost nothing and make up most of a merged program, while few of their slots decide how much is held. Their
other rows are deferred: the parts of the calendar keep them all and add what they need (`solvers.general.rolling`), and in the bound they
have a dual of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.general.aggregation import NONE
from solvers.general.structure import Structure
from solvers.program import Program

AFTER_FAILURE = "zone "
"""Beginning of the names of blocks that hold copies after a failure, `zone z ...` for that of z."""
BUSIEST = 2  # slots of each failure whose rows are kept
MOST_COPIES = 80_000  # columns of such slots up to which all are kept; one slot of each failure is kept in any case


@dataclass(frozen=True, slots=True)
class Lighter:
    """A structure whose matrix has no entries in the deferred rows, and which these are [rows].

    `busiest`: slots in which rows of failures are kept. They are not merged with others, which such rows do not charge.
    """

    structure: Structure
    deferred: Bools
    busiest: Ints

    def without(self, duals: Floats) -> Floats:
        """Set the duals of deferred rows to 0."""
        return np.where(self.deferred, 0.0, duals)


def lighter(program: Program, structure: Structure, slots: int) -> Lighter:
    """Defer the rows of failures outside their busiest slots: those where rows of single parts ask for most in all."""
    arrays = structure.arrays
    copies = np.full(program.column_count, -1)
    names = sorted({name.rsplit(" ", 1)[0] for name in program.columns if name.startswith(AFTER_FAILURE)})
    for block, columns in program.columns.items():
        if block.startswith(AFTER_FAILURE):
            copies[columns[columns >= 0]] = names.index(block.rsplit(" ", 1)[0])
    if not names or (structure.slot[copies >= 0] < 0).any():
        return Lighter(structure, np.zeros(len(arrays.row_lower), dtype=bool), NONE)
    asks = np.maximum(np.maximum(arrays.row_lower, -arrays.row_upper), 0.0)  # what a row does not permit to be 0
    asks = np.where(np.isfinite(asks), asks, 0.0)
    entries = arrays.matrix.tocoo()
    mine = copies[entries.col] >= 0
    row, first = np.unique(entries.row[mine], return_index=True)
    copy, slot = copies[entries.col[mine][first]], structure.slot[entries.col[mine][first]]
    asked = np.zeros((len(names), slots))
    inside = structure.row_part[row] >= 0
    np.add.at(asked, (copy[inside], slot[inside]), asks[row[inside]])
    tried = np.zeros_like(asked, dtype=bool)
    tried[copy, slot] = True
    rank = np.argsort(np.argsort(-np.where(tried, asked, -1.0), axis=1, kind="stable"), axis=1)
    deferred = np.zeros(len(asks), dtype=bool)
    busy = BUSIEST
    while busy > 1 and _copies_kept(copies, structure.slot, rank < busy) > MOST_COPIES:
        busy -= 1
    deferred[row] = rank[copy, slot] >= busy
    busiest = np.flatnonzero((tried & (rank < busy)).any(axis=0))
    matrix = arrays.matrix.copy()
    matrix.data[deferred[matrix.indices]] = 0.0
    matrix.eliminate_zeros()
    lower, upper = (np.where(deferred & np.isfinite(side), 0.0, side) for side in (arrays.row_lower, arrays.row_upper))
    light = replace(structure, arrays=replace(arrays, matrix=matrix, row_lower=lower, row_upper=upper))
    return Lighter(light, deferred, busiest)


def _copies_kept(copies: Ints, slot: Ints, kept: Bools) -> int:
    """Count the columns after failures in kept slots [failures, slots]."""
    mine = copies >= 0
    return int(kept[copies[mine], slot[mine]].sum())
