"""Price what copies after failures take of the first stage, where they are decided apart from the day of their slot.

A copy costs nothing, so that any of its solutions is as good as another, and one that takes systems which the day needs too makes the
day buy more. With y the duals of a merged program, a copy pays for a row what the day pays in the same slot for the rows with the same
columns of the first stage:

    price_j = max(0, -sum_i a_ij y_i')    over the rows i of copy j with columns of the first stage, i' the like rows of the day
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.general.structure import Structure


def copy_prices(structure: Structure, duals: Floats) -> Floats:
    """Price the columns [columns] of copies that are parts of their own by duals [rows] of a merged program; 0 for others."""
    price = np.zeros(len(structure.cost))
    if not structure.apart.any():
        return price
    entries, rows = structure.arrays.matrix.tocoo(), len(duals)
    slot = _slots_of_rows(structure)
    of_copies = np.bincount(entries.row, structure.apart[entries.col], rows) > 0
    holding = (slot >= 0) & (np.bincount(entries.row, structure.first[entries.col], rows) > 0)
    tried = np.unique(slot[of_copies & holding])
    mine = np.flatnonzero(holding & np.isin(slot, tried))
    like = _like_rows(structure, mine, slot)
    paid = np.bincount(like, np.where(of_copies[mine], 0.0, duals[mine]))
    of_day = np.zeros(rows)
    of_day[mine] = np.where(of_copies[mine], paid[like], 0.0)
    price[structure.apart] = np.maximum(-(structure.arrays.matrix.T @ of_day)[structure.apart], 0.0)
    return price


def _slots_of_rows(structure: Structure) -> Ints:
    """Find the only slot of each row's columns [rows]; -1 of rows with none, or several."""
    entries = structure.arrays.matrix.tocoo()
    slot, rows = structure.slot[entries.col], len(structure.arrays.row_lower)
    low, high = np.full(rows, np.iinfo(np.int64).max), np.full(rows, -1)
    np.minimum.at(low, entries.row[slot >= 0], slot[slot >= 0])
    np.maximum.at(high, entries.row[slot >= 0], slot[slot >= 0])
    return np.where(low == high, high, -1)


def _like_rows(structure: Structure, rows: Ints, slot: Ints) -> Ints:
    """Number rows [of those given] so that rows of one slot with the same columns of the first stage, at the same coefficients, share a number."""
    held = structure.arrays.matrix[:, np.flatnonzero(structure.first)].tocsr()[rows]
    held.sort_indices()
    number: dict[tuple[int, bytes, bytes], int] = {}
    found = np.empty(len(rows), dtype=np.int64)
    for i, (row, a, b) in enumerate(
        zip(rows.tolist(), held.indptr[:-1].tolist(), held.indptr[1:].tolist(), strict=True)
    ):
        key = int(slot[row]), held.indices[a:b].tobytes(), held.data[a:b].tobytes()
        found[i] = number.setdefault(key, len(number))
    return found
