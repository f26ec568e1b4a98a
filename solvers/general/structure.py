"""Find what ties a program together: columns of the first stage, the parts of the calendar, and the rows that link them.

A part is a run of slots that storage, waiting or interruptions may join, at most `MOST_SLOTS` long. Everything is read off the matrix and
the names of the blocks whose columns have a slot; a block that is missing there costs quality, never validity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from solvers.arrays import Bools, Floats, Ints
from solvers.program import Arrays, Program

MOST_SLOTS = 24  # slots of a part
FEW_SLOTS = 3  # rows over more slots are sums over the calendar, which join no parts
BY_SLOT = (
    "f",
    "x",
    "v",
    "loading",
    "present",
    "resident",
    "deployed",
    "grid",
    "taken",
    "charge",
    "discharge",
    "stored",
    "waiting",
    "rise",
    "back",
)
"""Blocks of columns with the slot as their last index."""
AFTER_FAILURE = "zone "
"""Beginning of the names of blocks that hold copies after a failure, `zone z ...` for that of z."""
ALSO_BY_SLOT = (AFTER_FAILURE, "limit ")
"""Beginnings of the names of further ones."""


@dataclass(frozen=True, slots=True)
class Structure:
    """`slot` [columns]: slot of a column, -1 in the first stage; `part` [columns]: part of a column, -1 in the first stage.

    `run` [slots]: the part of the calendar of each slot. Copies of a fleet after a failure belong to the part of their slot, so that they and
    what runs there are decided at once. Where they are more columns than all else that has a slot, each slot in which the failure is tried
    is a part of its own for them, after the parts of the calendar.
    `row_part` [rows]: the part that all columns of a row belong to, `LINK` for rows over several parts or with columns of both stages, and
    `FIRST` for rows of the first stage alone.
    """

    arrays: Arrays
    cost: Floats  # minimised
    slot: Ints
    part: Ints
    row_part: Ints
    parts: int
    run: Ints

    @property
    def runs(self) -> int:
        """Number of parts of the calendar."""
        return int(self.run.max(initial=-1)) + 1

    @property
    def apart(self) -> Bools:
        """[columns]: whether a column is a copy after a failure whose part holds nothing else."""
        return self.part >= self.runs

    @property
    def first(self) -> Bools:
        """[columns]: whether a column belongs to the first stage."""
        return self.part < 0


LINK, FIRST = -1, -2


def slots_of_columns(program: Program, slots: int) -> Ints:
    """Find the slot of each column [columns]; -1 for columns of no slot, or of several."""
    low, high = np.full(program.column_count, slots), np.full(program.column_count, -1)
    for block, columns in program.columns.items():
        if (block in BY_SLOT or block.startswith(ALSO_BY_SLOT)) and columns.ndim and columns.shape[-1] == slots:
            where = np.nonzero(columns >= 0)
            np.minimum.at(low, columns[where], where[-1])
            np.maximum.at(high, columns[where], where[-1])
    return np.where(low == high, high, -1)


def structure_of(program: Program, cost: Floats, slots: int) -> Structure:
    """Split a program into its first stage and its parts."""
    arrays = program.arrays()
    slot = slots_of_columns(program, slots)
    part_of_slot = _parts(arrays, slot, slots)
    part = np.where(slot >= 0, part_of_slot[np.maximum(slot, 0)], -1)
    parts = int(part_of_slot.max(initial=-1)) + 1
    copy = copies_after_failures(program)
    mine = np.flatnonzero((copy >= 0) & (slot >= 0))
    if len(mine) > int((slot >= 0).sum()) - len(mine):
        _, number = np.unique(copy[mine] * slots + slot[mine], return_inverse=True)
        part[mine] = parts + number.reshape(-1)
        parts += int(number.max(initial=-1)) + 1
    return Structure(arrays, cost, slot, part, _row_parts(arrays, part), parts, part_of_slot)


def copies_after_failures(program: Program) -> Ints:
    """Number the failures that columns are copies after [columns]; -1 for others."""
    found = np.full(program.column_count, -1)
    names = sorted({name.rsplit(" ", 1)[0] for name in program.columns if name.startswith(AFTER_FAILURE)})
    for block, columns in program.columns.items():
        if block.startswith(AFTER_FAILURE):
            found[columns[columns >= 0]] = names.index(block.rsplit(" ", 1)[0])
    return found


def _parts(arrays: Arrays, slot: Ints, slots: int) -> Ints:
    """Find the part of each slot [slots]: what rows over few slots join, in runs of at most `MOST_SLOTS`."""
    entries = arrays.matrix.tocoo()
    timed = slot[entries.col] >= 0
    of_row = sparse.csr_array(
        (np.ones(int(timed.sum())), (entries.row[timed], slot[entries.col[timed]])),
        shape=(len(arrays.row_lower), slots),
    )
    of_row.sum_duplicates()
    of_row.data[:] = 1.0
    few = np.diff(of_row.indptr)
    joining = of_row[np.flatnonzero((few > 1) & (few <= FEW_SLOTS))]
    _, component = connected_components((joining.T @ joining) + sparse.eye_array(slots), directed=False)
    sizes = np.bincount(component)
    order = np.argsort(component, kind="stable")
    place = np.empty(slots, dtype=np.int64)
    place[order] = np.arange(slots) - np.concatenate([[0], np.cumsum(sizes)[:-1]])[component[order]]
    whole = np.where(sizes[component] > 1, component, slots)  # slots that nothing joins are put together in order
    alone = whole == slots
    place[alone] = np.arange(int(alone.sum()))
    key = whole * (slots // MOST_SLOTS + 1) + place // MOST_SLOTS
    first = {int(k): i for i, k in enumerate(dict.fromkeys(key.tolist()))}
    return np.array([first[int(k)] for k in key], dtype=np.int64)


def _row_parts(arrays: Arrays, part: Ints) -> Ints:
    """Find the part of each row [rows], `LINK` or `FIRST`."""
    entries = arrays.matrix.tocoo()
    rows, of = len(arrays.row_lower), part[entries.col]
    low, high = np.full(rows, np.iinfo(np.int64).max), np.full(rows, -1)
    np.minimum.at(low, entries.row, of)
    np.maximum.at(high, entries.row, of)
    return np.where(high < 0, FIRST, np.where(low == high, high, LINK))


@dataclass(frozen=True, slots=True)
class Keys:
    """Numbers that equal rows, or columns, of a group of slots share."""

    number: Ints
    count: int


def column_keys(program: Program, structure: Structure, group: Ints) -> Keys:
    """Number the columns with their slots replaced by groups; columns of the first stage stay apart."""
    slots = len(group)
    key = np.arange(program.column_count)
    base = program.column_count
    for columns in program.columns.values():
        if not (columns.ndim and columns.shape[-1] == slots):
            continue
        flat = columns.reshape(-1, slots)
        other, slot = np.nonzero(flat >= 0)
        mine = flat[other, slot]
        timed = structure.slot[mine] == slot
        key[mine[timed]] = base + other[timed] * slots + group[slot[timed]]
        base += flat.shape[0] * slots
    return _numbered(key)


def row_keys(program: Program, structure: Structure, group: Ints) -> Keys:
    """Number the rows with their slots replaced by groups. Blocks without the slot among their indices keep each row apart."""
    entries = structure.arrays.matrix.tocoo()
    timed = structure.slot[entries.col] >= 0
    row, slot = entries.row[timed], structure.slot[entries.col[timed]]
    key = np.arange(program.row_count)
    base = program.row_count
    pairs = np.unique(row.astype(np.int64) * len(group) + slot)
    pair_row, pair_slot = np.divmod(pairs, len(group))
    for blocks in program.row_blocks.values():
        for block in blocks:
            if not len(block.index) or block.index.ndim != 2:
                continue
            low, high = np.searchsorted(pair_row, [block.rows.start, block.rows.stop])
            if low == high:
                continue
            inside, its_slot = pair_row[low:high] - block.rows.start, pair_slot[low:high]
            position = _slot_position(block.index, inside, its_slot)
            if position is None:
                continue
            index = block.index.astype(np.int64).copy()
            index[:, position] = group[np.clip(index[:, position], 0, len(group) - 1)]
            _, number = np.unique(index, axis=0, return_inverse=True)
            key[block.rows] = base + number.reshape(-1)
            base += int(number.max()) + 1
    return _numbered(key)


def _slot_position(index: Ints, row: Ints, slot: Ints) -> int | None:
    """Find the position in the index tuples that is a slot of each row's columns; None where there is none."""
    for position in reversed(range(index.shape[1])):
        found = np.zeros(len(index), dtype=bool)
        found[row[index[row, position] == slot]] = True
        if found[np.unique(row)].all():
            return position
    return None


def _numbered(key: Ints) -> Keys:
    values, number = np.unique(key, return_inverse=True)
    return Keys(number.reshape(-1), len(values))


def implied_upper(arrays: Arrays, passes: int = 3) -> Floats:
    """Derive the upper bounds [columns] that rows imply for columns without a finite one (activity-based bound tightening)."""
    matrix = arrays.matrix.tocoo()
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    for _ in range(passes):
        open_ends = ~np.isfinite(upper)
        if not open_ends.any():
            break
        for sign, side in ((1.0, arrays.row_upper), (-1.0, -arrays.row_lower)):
            value = sign * matrix.data
            with np.errstate(invalid="ignore"):
                least = np.where(value > 0, value * lower[matrix.col], value * upper[matrix.col])
            endless = ~np.isfinite(least)
            total = np.bincount(matrix.row, np.where(endless, 0.0, least), len(side))
            without = np.bincount(matrix.row, endless, len(side))
            others = total[matrix.row] - np.where(endless, 0.0, least)
            able = (
                (value > 0)
                & open_ends[matrix.col]
                & (without[matrix.row] - endless == 0)
                & np.isfinite(side[matrix.row])
            )
            room = (side[matrix.row[able]] - others[able]) / value[able]
            np.minimum.at(upper, matrix.col[able], np.maximum(room, lower[matrix.col[able]]))
    return upper


def sufficient_upper(arrays: Arrays, cost: Floats, upper: Floats) -> Floats:
    """Bound columns [columns] without an upper bound by an amount that is enough for all rows: some optimum keeps these bounds.

    Of a column that costs something and only ever relaxes rows, such as a peak of power, no more is needed than where every row that it
    occurs in holds whatever the other columns are within `upper`.
    """
    matrix, lower = arrays.matrix.tocoo(), arrays.lower
    row, column, value = matrix.row, matrix.col, matrix.data
    above = np.isfinite(arrays.row_upper) & ~np.isfinite(arrays.row_lower)
    below = np.isfinite(arrays.row_lower) & ~np.isfinite(arrays.row_upper)
    relaxes = (above[row] & (value < 0)) | (below[row] & (value > 0))
    able = np.isinf(upper) & np.isfinite(lower) & (cost >= 0)
    able &= np.bincount(column, ~relaxes, len(cost)) == 0
    sign = np.where(below, -1.0, 1.0)  # every row as one from above
    coefficient = sign[row] * value
    with np.errstate(invalid="ignore"):
        most = np.where(coefficient > 0, coefficient * upper[column], coefficient * lower[column])
    total = np.bincount(row, np.where(np.isfinite(most), most, 0.0), len(above))
    endless = np.bincount(row, ~np.isfinite(most), len(above))
    mine = able[column]
    row, column, coefficient, most = row[mine], column[mine], coefficient[mine], most[mine]
    side = np.where(below, -arrays.row_lower, arrays.row_upper)[row]
    needed = np.where(endless[row] > 0, np.inf, (total[row] - most - side) / -coefficient)
    enough = np.where(able, lower, -np.inf)
    np.maximum.at(enough, column, needed)
    return np.where(able, np.where(arrays.integer, np.ceil(enough), enough), upper)
