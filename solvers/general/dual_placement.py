"""Place the duals of merged rows on the slots where columns ask for them, instead of evenly over a group.

Rows a x <= b z of a part with all a > 0 on its slots and all b > 0 on the first stage hold what slots take of it: capacity, open sites,
peaks. Their duals y <= 0 charge the columns of a slot and pay for the first stage. Two closed forms, with d = c - A'y:

    raised   y_i -= max_j max(0, -d_j) / a_ij        over the columns whose row with the fewest entries is i: then d >= 0 at every slot
    lowered  y_i += min_j max(0, d_j) / (a_ij r_j)   over all columns of i, r_j rows of the kind for column j: d stays >= 0

Raising keeps single slots from earning without end where a group does not; lowering gives back to the first stage what no slot asks for.
Any duals bound the optimum (`solvers.general.dual_bound`), so that nothing here needs to be right.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats
from solvers.general.structure import LINK, Structure

EARNS = 1e-9  # share of the largest cost, below which a reduced cost is rounding


def placed(structure: Structure, duals: Floats, upper: Floats) -> Floats:
    """Raise, then lower the duals [rows] of rows that hold what slots take of the first stage.

    `upper` [columns]: upper bounds, as far as rows imply them. Duals stay as they are where a column without one would earn.
    """
    arrays, holding = structure.arrays, holding_rows(structure)
    entries = arrays.matrix.tocoo()
    kept = holding[entries.row] & ~structure.first[entries.col]
    row, column, value = entries.row[kept], entries.col[kept], entries.data[kept]
    y = np.where(holding, np.minimum(duals, 0.0), duals)
    reduced = structure.cost - arrays.matrix.T @ y
    width = np.bincount(row, minlength=len(y))
    order = np.lexsort((width[row], column))
    narrow = order[np.r_[True, column[order][1:] != column[order][:-1]]] if len(order) else order
    raised = np.zeros(len(y))
    np.maximum.at(raised, row[narrow], np.maximum(-reduced[column[narrow]], 0.0) / value[narrow])
    y -= raised
    reduced = structure.cost - arrays.matrix.T @ y
    shares = np.bincount(column, minlength=len(reduced))
    room = np.full(len(y), np.inf)
    np.minimum.at(room, row, np.maximum(reduced[column], 0.0) / (value * shares[column]))
    y = np.where(holding & np.isfinite(room), np.minimum(y + np.where(np.isfinite(room), room, 0.0), 0.0), y)
    return np.where(_overpaying(structure, y, upper), duals, y)


def _overpaying(structure: Structure, y: Floats, upper: Floats) -> Bools:
    """[rows]: rows of columns of the first stage that would earn without end at these duals."""
    reduced = structure.cost - structure.arrays.matrix.T @ y
    slack = EARNS * float(np.abs(structure.cost).max(initial=0.0))
    endless = structure.first & np.isinf(upper) & (reduced < -slack)
    found: Bools = abs(structure.arrays.matrix) @ endless.astype(float) > 0
    return found


def holding_rows(structure: Structure) -> Bools:
    """[rows]: rows from above with entries > 0 of slots and < 0 of the first stage, some of each and no others."""
    arrays, entries = structure.arrays, structure.arrays.matrix.tocoo()
    first, rows = structure.first[entries.col], len(structure.arrays.row_lower)
    wrong = np.bincount(entries.row, (entries.data > 0) == first, rows)
    of_slots, of_first = np.bincount(entries.row, ~first, rows), np.bincount(entries.row, first, rows)
    above = np.isfinite(arrays.row_upper) & ~np.isfinite(arrays.row_lower)
    found: Bools = above & (structure.row_part == LINK) & (wrong == 0) & (of_slots > 0) & (of_first > 0)
    return found
