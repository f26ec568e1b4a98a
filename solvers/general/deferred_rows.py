"""Leave rows of failures out of merged programs but for a few slots in which a failure is tried.

Copies of a fleet after a failure cost nothing and make up most of a merged program, while few of their slots decide how much is held. Their
other rows are deferred: the parts of the calendar keep them all and add what they need (`solvers.general.rolling`), and in the bound they
have a dual of 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.plain_lp import solve_lp
from solvers.general.aggregation import NONE
from solvers.general.structure import Structure, copies_after_failures
from solvers.program import Program

BUSIEST = 2  # slots of each failure whose rows are kept
SLACK = 1e-9  # share of what other columns take of a row: rounding of their sum
MOST_COPIES = 80_000  # columns of such slots up to which all are kept; one slot of each failure is kept in any case


@dataclass(frozen=True, slots=True)
class Lighter:
    """A structure whose matrix has no entries in the deferred rows, and which these are [rows].

    `kept` [failures, slots]: whose rows are kept. `apart`: slots in which some are; these are not merged with others, which such rows do not
    charge. `timed`: number of columns of slots beside the copies.
    """

    structure: Structure
    deferred: Bools
    kept: Bools
    apart: Ints
    timed: int


class DeferrableRows:
    """The rows of failures of a program."""

    def __init__(self, program: Program, structure: Structure, slots: int):
        self._structure = structure
        arrays, copies = structure.arrays, copies_after_failures(program)
        if (structure.slot[copies >= 0] < 0).any():
            copies[:] = -1  # copies of no slot: none of their rows can wait
        self._copies, self._shape = copies, (int(copies.max(initial=-1)) + 1, slots)
        entries = arrays.matrix.tocoo()
        mine = copies[entries.col] >= 0
        self._row, first = np.unique(entries.row[mine], return_index=True)
        self._copy, self._slot = copies[entries.col[mine][first]], structure.slot[entries.col[mine][first]]
        self.tried: Bools = np.zeros(self._shape, dtype=bool)
        """[failures, slots]: slots in which a failure is tried."""
        self.tried[self._copy, self._slot] = True
        asks = np.maximum(np.maximum(arrays.row_lower, -arrays.row_upper), 0.0)  # what a row does not permit to be 0
        self._asked = np.where(np.isfinite(asks) & (structure.row_part >= 0), asks, 0.0)
        waiting = np.zeros(len(arrays.row_lower), dtype=bool)
        waiting[self._row] = True
        binary = arrays.binary
        touched = np.zeros(program.column_count, dtype=bool)
        touched[entries.col[waiting[entries.row]]] = True
        touched &= binary
        rows = np.bincount(entries.row, touched[entries.col], len(waiting)) > 0
        rows &= np.bincount(entries.row, ~binary[entries.col], len(waiting)) == 0
        touched[entries.col[rows[entries.row]]] = True
        self.touched: Bools = touched
        """[columns]: binaries in rows of failures, and those that share a row of binaries alone with one, as a site does with a host."""

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(len(self._row))

    def busiest(self, count: int | None = None) -> Bools:
        """Select the `count` busiest slots of each failure [failures, slots], `BUSIEST` if None; fewer where there are many copies.

        The busiest slots are those where rows of single parts ask for most in all.
        """
        asked = np.zeros(self._shape)
        np.add.at(asked, (self._copy, self._slot), self._asked[self._row])
        rank = np.argsort(np.argsort(-np.where(self.tried, asked, -1.0), axis=1, kind="stable"), axis=1)
        most = BUSIEST if count is None else count
        while most > 1 and self._count(rank < most) > MOST_COPIES:
            most -= 1
        found: Bools = self.tried & (rank < most)
        return found

    def of(self, columns: Bools) -> Bools:
        """Select the failures and slots [failures, slots] with a copy among some columns [columns]."""
        found, mine = np.zeros(self._shape, dtype=bool), columns & (self._copies >= 0)
        found[self._copies[mine], self._structure.slot[mine]] = True
        return found

    def lighter(self, kept: Bools) -> Lighter:
        """Defer the rows of failures outside these slots [failures, slots]."""
        arrays = self._structure.arrays
        used = np.diff(arrays.matrix.indptr) > 0
        timed = int((used & (self._structure.slot >= 0) & (self._copies < 0)).sum())
        deferred = np.zeros(len(arrays.row_lower), dtype=bool)
        if not self:
            return Lighter(self._structure, deferred, kept, NONE, timed)
        deferred[self._row] = ~kept[self._copy, self._slot]
        matrix = arrays.matrix.copy()
        matrix.data[deferred[matrix.indices]] = 0.0
        matrix.eliminate_zeros()
        lower, upper = (
            np.where(deferred & np.isfinite(side), 0.0, side) for side in (arrays.row_lower, arrays.row_upper)
        )
        light = replace(self._structure, arrays=replace(arrays, matrix=matrix, row_lower=lower, row_upper=upper))
        return Lighter(light, deferred, kept, np.flatnonzero(kept.any(axis=0)), timed)

    def lacking(self, x: Floats, left_s: Callable[[], float]) -> Floats:
        """Compute the least share of its demand that each failure leaves unmet in each slot [failures, slots], with all other columns as in x.

        0 where time is up first. Shares of several rows are added up.
        """
        arrays, found = self._structure.arrays, np.zeros(self._shape)
        by_row, own = arrays.matrix.tocsr(), self._copies >= 0
        others = by_row[self._row] @ np.where(own, 0.0, x)
        pair = self._copy * self._shape[1] + self._slot
        of_column = np.where(own, self._copies * self._shape[1] + self._structure.slot, -1)
        rows, columns = np.argsort(pair, kind="stable"), np.argsort(of_column, kind="stable")
        for number in np.unique(pair).tolist():
            if left_s() <= 0:
                return found
            at = rows[np.searchsorted(pair[rows], number) : np.searchsorted(pair[rows], number, "right")]
            mine = columns[
                np.searchsorted(of_column[columns], number) : np.searchsorted(of_column[columns], number, "right")
            ]
            mine_rows = self._row[at]
            asked = self._asked[mine_rows]
            low, high = arrays.row_lower[mine_rows], arrays.row_upper[mine_rows]
            lack = sparse.diags_array(np.where(low > 0, asked, -asked)).tocsc()[:, np.flatnonzero(asked)]
            count = lack.shape[1]
            solved = solve_lp(
                np.concatenate([np.zeros(len(mine)), np.ones(count)]),
                sparse.hstack([by_row[mine_rows][:, mine], lack], format="csc"),
                (low - others[at] - SLACK * np.abs(others[at]), high - others[at] + SLACK * np.abs(others[at])),
                (np.append(arrays.lower[mine], np.zeros(count)), np.append(arrays.upper[mine], np.ones(count))),
                seconds=left_s(),
            )
            found.flat[number] = min(solved.bound, float(count)) if solved.x is not None or solved.bound > 0 else 0.0
        return found

    def _count(self, kept: Bools) -> int:
        """Count the columns after failures in kept slots [failures, slots]."""
        mine = self._copies >= 0
        return int(kept[self._copies[mine], self._structure.slot[mine]].sum())
