"""Prove that a part of a program has no solution, whatever the first stage holds and the other parts do."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from solvers.arrays import Ints
from solvers.backends.plain_lp import solve_lp
from solvers.general.structure import Structure
from solvers.program import Arrays


def has_none(structure: Structure, by_row: sparse.csr_array, rows: Ints, part: int, seconds: float) -> bool:
    """Tell whether the linear program of a part's slots and the first stage has no solution; False where time is up first.

    `by_row`: the matrix of the program. `rows`: rows of the part and of the first stage alone. Rows over several parts are left out, so that
    the program of all parts has no solution either.
    """
    if seconds <= 0:
        return False
    arrays = structure.arrays
    mine = np.flatnonzero(structure.first | (structure.part == part))
    alone = Arrays(
        by_row[rows][:, mine].tocsc(), arrays.row_lower[rows], arrays.row_upper[rows], arrays.lower[mine], arrays.upper[mine],
        arrays.integer[mine], arrays.unit[mine],
    )  # fmt: skip
    cost = np.zeros(len(mine))
    scaled = alone.scaled(cost).arrays
    sides, bounds = (scaled.row_lower, scaled.row_upper), (scaled.lower, scaled.upper)
    return solve_lp(cost, scaled.matrix, sides, bounds, seconds=seconds).bound == math.inf
