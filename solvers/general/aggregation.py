"""Merge slots of a program: the columns of a group of slots are tied, the rows of a group are added up.

    min (T'c) z,  S l <= (S A T) z <= S u,  z within the mean of the bounds of its columns

With T [columns, merged columns] and S [merged rows, rows] of ones. Rows of storage and waiting add up to the balance of the group, since
what a slot passes on to the next of its group cancels. A merged row has the dual of each of its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.general.structure import Keys, Structure, column_keys, row_keys
from solvers.program import Arrays, Program

AnyArray = TypeVar("AnyArray", Floats, Bools)
LEAST_PIECES = 3  # pieces of a part: spans of eight hours of a day
NONE: Ints = np.zeros(0, dtype=np.int64)
FURTHER = 1.5  # by how much more groups than asked may be made, so that parts need not be merged
DISCOUNT, MOST_DISCOUNT = 1.2, 0.5  # discount on what slots were found not to do


@dataclass(frozen=True, slots=True)
class Merged:
    """A program over groups of slots, and which of its columns and rows stand for columns and rows of the whole program."""

    arrays: Arrays
    cost: Floats
    columns: Keys
    rows: Keys
    deferred: Bools  # [rows of the whole program] left out, with a dual of 0

    def occurring(self) -> int:
        """Count the columns that occur in a row."""
        return int((np.diff(self.arrays.matrix.indptr) > 0).sum())

    def spread(self, values: AnyArray) -> AnyArray:
        """Give each column of the whole program the value of its merged column."""
        return values[self.columns.number]

    def spread_duals(self, duals: Floats) -> Floats:
        """Give each row of the whole program the dual of its merged row; 0 to those left out."""
        return np.where(self.deferred, 0.0, duals[self.rows.number])


def merge(program: Program, structure: Structure, group: Ints, deferred: Bools | None = None) -> Merged:
    """Build the program over groups of slots; `group` [slots], `deferred` [rows]: rows that the structure leaves out."""
    arrays = structure.arrays
    deferred = np.zeros(len(arrays.row_lower), dtype=bool) if deferred is None else deferred
    columns, rows = column_keys(program, structure, group), row_keys(program, structure, group)
    tie = sparse.csc_array(
        (np.ones(len(columns.number)), (np.arange(len(columns.number)), columns.number)),
        shape=(len(columns.number), columns.count),
    )
    add = sparse.csr_array(
        (np.ones(len(rows.number)), (rows.number, np.arange(len(rows.number)))), shape=(rows.count, len(rows.number))
    )
    matrix = (add @ arrays.matrix @ tie).tocsc()
    matrix.data[np.abs(matrix.data) < np.finfo(float).tiny] = 0.0
    matrix.eliminate_zeros()
    share = np.bincount(columns.number, minlength=columns.count)
    integer = np.bincount(columns.number, arrays.integer & (structure.slot < 0), columns.count) > 0
    merged = Arrays(
        matrix,
        _added(arrays.row_lower, rows, -np.inf),
        _added(arrays.row_upper, rows, np.inf),
        _mean(arrays.lower, columns, share, -np.inf),
        _mean(arrays.upper, columns, share, np.inf),
        integer,
        np.bincount(columns.number, arrays.unit, columns.count) / share,
    )
    cost: Floats = np.asarray(np.bincount(columns.number, structure.cost, columns.count), dtype=float)
    return Merged(merged, cost, columns, rows, deferred)


def _added(side: Floats, rows: Keys, endless: float) -> Floats:
    """Add up the sides of the rows of each group; endless where one is."""
    finite = np.isfinite(side)
    total: Floats = np.asarray(np.bincount(rows.number, np.where(finite, side, 0.0), rows.count), dtype=float)
    return np.where(np.bincount(rows.number, ~finite, rows.count) > 0, endless, total)


def _mean(bound: Floats, columns: Keys, share: Ints, endless: float) -> Floats:
    return _added(bound, columns, endless) / share


def discounted(merged: Merged, structure: Structure, wrong: Floats) -> Merged:
    """Take what slots do for rows that they left wrong for less in the merged program, so that another first stage is chosen.

    `wrong` [rows]: shares of a row's largest coefficient. A row that its slots fill from below gets smaller coefficients of its slots, one
    that they fill from above larger ones.
    """
    share = np.zeros(merged.rows.count)
    np.maximum.at(share, merged.rows.number, np.minimum(DISCOUNT * wrong, MOST_DISCOUNT))
    timed = np.zeros(merged.columns.count, dtype=bool)
    timed[merged.columns.number[structure.slot >= 0]] = True
    matrix = merged.arrays.matrix.copy()
    column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
    below = np.isfinite(merged.arrays.row_lower[matrix.indices])
    helps = (matrix.data > 0) == below
    factor = np.where(helps, 1.0 - share[matrix.indices], 1.0 + share[matrix.indices])
    matrix.data *= np.where(timed[column], factor, 1.0)
    return replace(merged, arrays=replace(merged.arrays, matrix=matrix))


def groups_of(structure: Structure, slots: int, most: int, alone: Ints = NONE) -> Ints:
    """Group consecutive slots of a part [slots], about `most` groups in all; each slot of `alone` is a group of its own.

    Where that leaves a part fewer than `LEAST_PIECES`, and `FURTHER` times as many would too, neighbouring parts of equal length are merged
    too, place by place: load and prices differ more by the hour than from day to day.
    """
    part, parts = structure.run, structure.runs
    lengths = np.bincount(part, minlength=parts)
    apart = most > 1 and parts * LEAST_PIECES <= FURTHER * most
    together = 1 if apart or most <= 1 else math.ceil(parts * LEAST_PIECES / most)
    first, cluster = 0, np.zeros(parts, dtype=np.int64)
    for p in range(1, parts):
        if p - first >= together or lengths[p] != lengths[first]:
            first = p
        cluster[p] = first
    each = max(most // max(len(np.unique(cluster)), 1), LEAST_PIECES if apart else 1)
    group, number, start = np.zeros(slots, dtype=np.int64), 0, {}
    for p in range(parts):
        mine = np.flatnonzero(part == p)
        pieces = min(each, max(len(mine), 1))
        if int(cluster[p]) not in start:
            start[int(cluster[p])] = number
            number += pieces
        group[mine] = start[int(cluster[p])] + np.arange(len(mine)) * pieces // max(len(mine), 1)
    group[alone] = number + np.arange(len(alone))
    return group
