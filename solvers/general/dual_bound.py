"""Bound a program from below by any duals of the rows that link its parts (Lagrangian relaxation).

    L(y) = sum_i y_i side_i + min_{x first} (c - A'y) x + sum_p min_{x of p} (c - A'y) x

Rows of one part and rows of the first stage alone stay; rows that link are priced at y. A positive dual prices the lower side of a row, a
negative one the upper; duals towards an endless side count as 0. L(y) is a lower bound for every y (Geoffrion 1974). Columns without an
upper bound get the one that the rows imply, or one that is enough for some optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from solvers.arrays import Floats, Ints
from solvers.backends.plain_lp import ROUGH_INTERIOR, solve_lp
from solvers.general.structure import FIRST, LINK, Structure, implied_upper, sufficient_upper
from solvers.program import row_size

INTERIOR_COLUMNS = (
    30_000  # columns of a block, from which on the interior point solves it as an LP; its duals prove the bound
)
SAFETY = 1e-9  # relative, of what rounding may add to the optimum of a part


@dataclass(frozen=True, slots=True)
class Block:
    """Columns of the first stage or of a part, with the rows that only they occur in."""

    columns: Ints
    matrix: sparse.csc_array
    row_lower: Floats
    row_upper: Floats
    piece: Ints  # [columns] which of the pieces that share no row a column belongs to

    def where_costly(self, cost: Floats) -> Block:
        """Leave out the pieces in which no column has a cost [columns of the program]: their least cost is 0."""
        costly = np.zeros(int(self.piece.max(initial=-1)) + 1, dtype=bool)
        costly[self.piece[cost[self.columns] != 0]] = True
        if costly.all():
            return self
        columns = costly[self.piece]
        matrix = self.matrix[:, columns]
        rows = np.unique(matrix.indices)
        return Block(
            self.columns[columns],
            matrix.tocsr()[rows].tocsc(),
            self.row_lower[rows],
            self.row_upper[rows],
            self.piece[columns],
        )


class DualBound:
    """The relaxation of one program, evaluated at many duals."""

    def __init__(self, structure: Structure):
        self.structure = structure
        arrays = structure.arrays
        self.upper = sufficient_upper(arrays, structure.cost, implied_upper(arrays))
        self.links = np.flatnonzero(structure.row_part == LINK)
        by_row = arrays.matrix.tocsr()
        self._link_matrix = by_row[self.links]
        self._size = row_size(self._link_matrix.tocsc(), np.ones(self._link_matrix.shape[1]))
        self._first = _block(structure, np.flatnonzero(structure.first), FIRST)
        self._parts = [_block(structure, np.flatnonzero(structure.part == p), p) for p in range(structure.parts)]

    def at(self, duals: Floats, left_s: Callable[[], float]) -> tuple[float, Floats]:
        """Evaluate L at duals of all rows; returns -inf, and the values of the columns, where time ends first.

        The columns' values minimise their parts, nearly so where the interior point solves one; A x of the linking rows less their sides is a supergradient of L.
        """
        arrays, y = self.structure.arrays, self._valid(duals[self.links])
        reduced = self.structure.cost - self._link_matrix.T @ y
        side = np.where(y > 0, arrays.row_lower[self.links], arrays.row_upper[self.links])
        bound = float(y @ np.where(y != 0, side, 0.0))
        x = np.zeros(len(reduced))
        for block, integer in ((self._first, True), *((part, False) for part in self._parts)):
            if left_s() <= 0:
                return -math.inf, x
            value = self._least(block.where_costly(reduced), reduced, integer, x, left_s())
            if not math.isfinite(value):
                return value, x
            bound += value - SAFETY * abs(value)
        return bound, x

    def slope(self, duals: Floats, x: Floats) -> tuple[Floats, float]:
        """Compute a supergradient g of L at duals from the columns that attain it, with D = the rows' largest coefficients squared.

        Returns the direction D^-1 g, 0 outside linking rows, and g D^-1 g.
        """
        arrays, y = self.structure.arrays, duals[self.links]
        activity = self._link_matrix @ x
        low, high = arrays.row_lower[self.links], arrays.row_upper[self.links]
        side = np.where(y > 0, low, np.where(y < 0, high, np.clip(activity, low, high)))
        found = np.zeros(len(duals))
        scaled = np.where(np.isfinite(side), side - activity, 0.0) / self._size
        found[self.links] = scaled / self._size
        return found, float(scaled @ scaled)

    def projected(self, duals: Floats) -> Floats:
        """Set duals towards an endless side to 0."""
        found = np.zeros(len(duals))
        found[self.links] = self._valid(duals[self.links])
        return found

    def _valid(self, y: Floats) -> Floats:
        """Set duals towards an endless side to 0."""
        arrays = self.structure.arrays
        endless = np.where(
            y > 0, ~np.isfinite(arrays.row_lower[self.links]), ~np.isfinite(arrays.row_upper[self.links])
        )
        return np.where(endless, 0.0, y)

    def _least(self, block: Block, reduced: Floats, integer: bool, x: Floats, limit_s: float) -> float:
        """Minimise the reduced cost over a block and write its columns into x; returns a lower bound on the minimum."""
        arrays, mine = self.structure.arrays, block.columns
        if not len(mine):
            return 0.0
        interior = len(mine) >= INTERIOR_COLUMNS
        whole = arrays.integer[mine] if integer and not interior else np.zeros(len(mine), dtype=bool)
        cost, bounds = reduced[mine], (arrays.lower[mine], self.upper[mine])
        if not len(block.row_lower):
            return _least_within(cost, bounds, mine, x)
        size = max(float(np.abs(cost).max(initial=0.0)), np.finfo(float).tiny)
        found = solve_lp(
            cost / size,
            block.matrix,
            (block.row_lower, block.row_upper),
            bounds,
            whole,
            seconds=limit_s,
            settings=ROUGH_INTERIOR if interior else (),
        )
        if found.x is not None:
            x[mine] = found.x
        if found.duals is None:
            return found.bound * size
        rows = block.row_lower, block.row_upper
        certified = value_of_duals(found.duals, cost / size, block.matrix, rows, bounds)
        if interior:  # what a rough interior point says of its own value proves nothing
            return certified * size
        return min(found.bound, certified if math.isfinite(certified) else found.bound) * size


def value_of_duals(
    duals: Floats, cost: Floats, matrix: sparse.csc_array, rows: tuple[Floats, Floats], bounds: tuple[Floats, Floats]
) -> float:
    """Compute the lower bound that duals of a linear program prove, whatever the solver's tolerance; -inf where an endless column leaves them without one.

    sum_i y_i side_i + sum_j min(d_j lower_j, d_j upper_j),  d = c - A'y, as in `DualBound.at`; `rows`, `bounds`: lower and upper sides.
    """
    endless = np.where(duals > 0, ~np.isfinite(rows[0]), ~np.isfinite(rows[1]))
    y = np.where(endless, 0.0, duals)
    reduced = cost - matrix.T @ y
    side = np.where(y > 0, rows[0], np.where(y < 0, rows[1], 0.0))
    end = np.where(reduced > 0, bounds[0], np.where(reduced < 0, bounds[1], 0.0))
    if not np.isfinite(end).all():
        return -math.inf
    return float(y @ side + reduced @ end)


def _least_within(cost: Floats, bounds: tuple[Floats, Floats], mine: Ints, x: Floats) -> float:
    """Minimise a cost over bounds alone."""
    best = np.where(
        cost > 0, bounds[0], np.where(cost < 0, bounds[1], np.where(np.isfinite(bounds[0]), bounds[0], 0.0))
    )
    if not np.isfinite(best).all():
        return -math.inf
    x[mine] = best
    return float(cost @ best)


def _block(structure: Structure, columns: Ints, rows: int) -> Block:
    """Cut a block out of the program."""
    arrays = structure.arrays
    entries = arrays.matrix[:, columns].tocoo()
    mine = structure.row_part[entries.row] == rows
    inside, row = np.unique(entries.row[mine], return_inverse=True)
    matrix = sparse.csc_array(
        (entries.data[mine], (row.reshape(-1), entries.col[mine])), shape=(len(inside), len(columns))
    )
    nodes = len(columns) + len(inside)
    joined = sparse.csr_array(
        (np.ones(int(mine.sum())), (entries.col[mine], len(columns) + row.reshape(-1))), shape=(nodes, nodes)
    )
    _, label = connected_components(joined, directed=False)
    piece = label[: len(columns)].astype(np.int64)
    return Block(columns, matrix, arrays.row_lower[inside], arrays.row_upper[inside], piece)
