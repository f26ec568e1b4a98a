"""Find a plan part by part: the first stage from the merged program, the slots of each part with it, the part of most load first.

Each part is a small mixed-integer program over its slots and the first stage. What the first stage holds already stays, and may grow where
a part needs more. Rows over several parts, such as the work of a job or a limit, count what the other parts do: what was decided there, or
what the merged program expects; a part may leave them wrong at a price, and later parts make up for it. Further sweeps mend the parts that
rows over several parts, or a first stage that grew, leave wrong: with what the first stage holds as far as that goes, and with more of it for
a share of what a row lacks then, by its coefficients, since all parts that are still to come use what one of them adds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.general.structure import FIRST, Structure
from solvers.interface import Options
from solvers.mip import polish
from solvers.mip import solve as solve_mip
from solvers.program import Arrays, row_size

ROW_TOL = 1e-7  # violation of a row, relative to its largest coefficient in units of its columns
SWEEPS = 4
LACKING = 0.1  # what rows of a part without a solution are said to lack, of their largest coefficient
SHRINKS = 0.7  # of what was wrong before: the sweeps end where more is left and the first stage did not grow
PENALTY = 1.0  # of leaving a row over several parts by its largest coefficient in units of its columns, as a share of what the plan costs
DEARER = 10.0  # by how much it rises with each sweep, so that a small lack does not stay cheaper than one more system
QUICK_SHARE = 0.4  # of the time left before a sweep, beyond which its parts are rounded up instead of searched
LEAST_TIME_S = 1.0
WHOLE_TOL = 1e-5
SIDE_SLACK = 1e-9  # of what the sides of linking rows leave to a part, relative: rounding of the other parts' sum


@dataclass(frozen=True, slots=True)
class Piece:
    """A program for `solvers.mip.solve`."""

    matrices: Arrays
    presolve: bool = True

    def arrays(self) -> Arrays:
        """Return rows and columns."""
        return self.matrices


class Rolling:
    """Decide a program part by part."""

    def __init__(self, structure: Structure, options: Options, kept: Bools):
        """`kept` [columns]: which columns of the first stage may grow."""
        self.structure, self.options, self._begin = structure, options, time.perf_counter()
        self._kept = kept
        arrays = structure.arrays
        self._by_row = arrays.matrix.tocsr()
        self._size = row_size(arrays.matrix, arrays.unit)
        entries = arrays.matrix.tocoo()
        touched = sparse.csr_array(
            (np.ones(entries.nnz), (entries.row, structure.part[entries.col] + 1)),
            shape=(len(arrays.row_lower), structure.parts + 1),
        )
        touched.sum_duplicates()
        self._shared = np.diff(touched[:, 1:].tocsr().indptr) > 1  # rows over several parts
        by_part = touched.tocsc()
        reach = sparse.csc_array(
            (np.abs(entries.data) * arrays.unit[entries.col], (entries.row, structure.part[entries.col] + 1)),
            shape=touched.shape,
        )
        self._reach = reach[:, 1:].tocsc()  # [rows, parts]: sums of coefficients
        self._rows = [
            np.sort(by_part.indices[by_part.indptr[p + 1] : by_part.indptr[p + 2]]) for p in range(structure.parts)
        ]
        self._first_rows = np.flatnonzero(structure.row_part == FIRST)
        self._first = np.flatnonzero(structure.first)
        self._among_first = self._by_row[self._first_rows].tocsc()
        self._penalty = 1.0
        self.grew = np.zeros(structure.parts, dtype=bool)
        """[parts]: in which more whole numbers of the first stage were needed."""

    def plan(self, expected: Floats) -> tuple[Floats | None, Floats]:
        """Decide all parts; `expected` [columns]: the solution of the merged program, whole in the first stage.

        Returns all columns, or None, and by how much each row stays wrong, relative to its largest coefficient.
        """
        structure, arrays = self.structure, self.structure.arrays
        x = np.clip(expected, arrays.lower, arrays.upper)
        self._penalty = PENALTY * max(float(np.abs(structure.cost) @ np.abs(x)), 1e-9)
        load = self._load(expected)
        free = load == 0  # copies after failures, before the days
        every: Sequence[int] = np.lexsort((-load, ~free)).tolist()
        order = every
        before, wrong = math.inf, np.zeros(len(arrays.row_lower))
        for sweep in range(SWEEPS):
            held, coming = x[self._first], self._reach @ np.bincount(order, minlength=structure.parts)
            begin, left = time.perf_counter(), self.options.left_s(self._begin)
            for i, p in enumerate(order):
                mean_s = (time.perf_counter() - begin) / max(i, 1)
                quick = left * QUICK_SHARE < mean_s * len(order)
                allowed = None
                if sweep:
                    mine = self._reach[:, [p]].toarray()[:, 0]
                    coming -= mine  # of the parts after this one
                    share = mine[self._rows[p]] / np.maximum(mine + coming, np.finfo(float).tiny)[self._rows[p]]
                    allowed = self._lack(x, p) * np.clip(1 - share, 0.0, 1.0)
                    used = self._used(x, p, quick)
                    x = x if used is None else used
                    if used is not None and (self._lack(x, p) <= allowed + ROW_TOL * self._size[self._rows[p]]).all():
                        continue
                found = self._beside_none(x, p, quick) if free[p] and not sweep else self._grown(x, p, quick, allowed)
                if found is None:
                    wrong[self._rows[p]] = LACKING
                    return None, wrong
                whole = self._first[arrays.integer[self._first]]
                self.grew[p] |= bool((found[whole] > x[whole] + WHOLE_TOL).any())
                x = found
            wrong = self._wrong(x)
            if not wrong.any():
                return x, wrong
            if wrong.sum() > SHRINKS * before and (x[self._first] <= held + WHOLE_TOL).all():
                break
            before, self._penalty = wrong.sum(), self._penalty * DEARER
            order = [p for p in every if wrong[self._rows[p]].any()]
        return None, wrong

    def _grown(self, x: Floats, p: int, quick: bool, allowed: Floats | None = None) -> Floats | None:
        """Decide the slots of a part, over what the first stage does without too where there is no solution else."""
        found = self._decide(x, p, self._kept, quick, allowed)
        return self._decide(x, p, np.ones_like(self._kept), quick) if found is None else found

    def _beside_none(self, x: Floats, p: int, quick: bool) -> Floats | None:
        """Decide a part that costs nothing as if no other part ran anything, so that jobs yield to copies instead of copies adding systems."""
        mine = self.structure.first | (self.structure.part == p)
        alone = np.where(mine, x, 0.0)
        found = self._used(alone, p, quick)
        if found is None or (self._lack(found, p) > ROW_TOL * self._size[self._rows[p]]).any():
            found = self._grown(alone, p, quick)
        return None if found is None else np.where(mine, found, x)

    def _lack(self, x: Floats, p: int) -> Floats:
        """Compute by how much x violates rows of a part that other parts share [rows of the part]; 0 for others."""
        arrays, rows = self.structure.arrays, self._rows[p]
        activity = self._by_row[rows] @ x
        lack: Floats = np.maximum(np.maximum(arrays.row_lower[rows] - activity, activity - arrays.row_upper[rows]), 0.0)
        return np.where(self._shared[rows], lack, 0.0)

    def _load(self, x: Floats) -> Floats:
        """[parts]: cost of the slots of each part in the merged program, per slot: a stand-in for how much is asked of the first stage."""
        structure = self.structure
        timed = structure.part >= 0
        load = np.bincount(structure.part[timed], (np.abs(structure.cost) * x)[timed], structure.parts)
        slots = np.bincount(
            np.unique(np.column_stack([structure.part, structure.slot])[timed], axis=0)[:, 0], minlength=structure.parts
        )
        found: Floats = load / np.maximum(slots, 1)
        return found

    def _wrong(self, x: Floats) -> Floats:
        """[rows]: by how much x violates each, relative to its largest coefficient; 0 within the tolerance."""
        arrays = self.structure.arrays
        activity = self._by_row @ x
        beyond = np.maximum(arrays.row_lower - activity, activity - arrays.row_upper) / self._size
        found: Floats = np.where(beyond > ROW_TOL * np.maximum(1.0, np.abs(activity) / self._size), beyond, 0.0)
        return found

    def _near(self, p: int) -> tuple[Ints, Ints]:
        """Find the columns of the first stage in rows of a part, and the rows of the first stage alone with such columns."""
        touched = np.unique(self._by_row[self._rows[p]].indices).astype(np.int64)
        columns = touched[self.structure.first[touched]]
        rows = np.unique(self._among_first[:, columns].indices)
        return columns, self._first_rows[rows].astype(np.int64)

    def _used(self, x: Floats, p: int, quick: bool) -> Floats | None:
        """Decide the slots of a part with the whole numbers that the first stage holds; returns all columns, or None."""
        return self._decide(x, p, self._kept & ~self.structure.arrays.integer, quick, None, self._near(p))

    def _decide(
        self,
        x: Floats,
        p: int,
        kept: Bools,
        quick: bool,
        allowed: Floats | None = None,
        near: tuple[Ints, Ints] | None = None,
    ) -> Floats | None:
        """Decide the slots of a part, and what the first stage needs more for it; returns all columns, or None.

        `kept` [columns]: which columns of the first stage may grow. `quick`: round up what the first stage needs more, instead of searching for it.
        `allowed` [rows of the part]: by how much a row may stay wrong at no price, which is left to other parts. `near`: columns and rows of the
        first stage, all of them if None; the others stay.
        """
        left = self.options.left_s(self._begin)
        if left <= 0:
            return None
        structure, arrays = self.structure, self.structure.arrays
        first, first_rows = (self._first, self._first_rows) if near is None else near
        mine = np.concatenate([first, np.flatnonzero(structure.part == p)])
        rows = np.concatenate([first_rows, self._rows[p]])
        inside = np.zeros(len(x), dtype=bool)
        inside[mine] = True
        others = self._by_row[rows] @ np.where(inside, 0.0, x)
        slack = SIDE_SLACK * np.abs(others)
        if allowed is not None:
            slack[len(first_rows) :] += allowed
        lower, upper = arrays.lower[mine].copy(), arrays.upper[mine].copy()
        held = structure.part[mine] < 0
        lower[held] = np.maximum(lower[held], np.minimum(_whole(x, arrays)[mine][held], upper[held]))
        fixed = held & ~kept[mine]
        upper[fixed] = lower[fixed]
        shared, count = np.flatnonzero(self._shared[rows]), len(mine)
        beyond = sparse.csc_array(
            (
                np.tile([1.0, -1.0], len(shared)) * np.repeat(self._size[rows][shared], 2),
                (np.repeat(shared, 2), np.arange(2 * len(shared))),
            ),
            shape=(len(rows), 2 * len(shared)),
        )
        none, free = np.zeros(2 * len(shared)), np.full(2 * len(shared), np.inf)
        piece = Arrays(
            sparse.hstack([self._by_row[rows][:, mine], beyond], format="csc"),
            arrays.row_lower[rows] - others - slack,
            arrays.row_upper[rows] - others + slack,
            np.concatenate([lower, none]),
            np.concatenate([upper, free]),
            np.concatenate([arrays.integer[mine], none > 0]),
            np.concatenate([arrays.unit[mine], np.ones(2 * len(shared))]),
        )
        cost = np.concatenate([structure.cost[mine], np.full(2 * len(shared), self._penalty)])
        limits = replace(self.options, time_limit_s=max(left, LEAST_TIME_S), progress=None, method="direct")
        decided = _solve_part(piece, cost, limits, quick)
        if decided is None:
            return None
        result = x.copy()
        result[mine] = decided[:count]
        return result


def _solve_part(piece: Arrays, cost: Floats, limits: Options, quick: bool) -> Floats | None:
    """Solve the program of a part: as an LP where that leaves integers whole, or rounded up where it is `quick`; by a search else."""
    relaxed = polish(piece, (piece.lower, piece.upper), cost, limits)
    if relaxed is not None:
        x = relaxed[0]
        whole = np.where(piece.integer, np.round(x), x)
        if (np.abs(x - whole) <= WHOLE_TOL).all() and piece.violation(whole) <= ROW_TOL:
            return whole
        if quick:
            up = np.where(piece.integer, np.minimum(np.ceil(x - WHOLE_TOL), piece.upper), x)
            bounds = np.where(piece.integer, up, piece.lower), np.where(piece.integer, up, piece.upper)
            rounded = polish(piece, bounds, cost, limits)
            if rounded is not None:
                return rounded[0]
    return solve_mip(Piece(piece), cost, "min", limits).x


def _whole(x: Floats, arrays: Arrays) -> Floats:
    """Round integer columns down to whole numbers, but for the solver's tolerance."""
    return np.where(arrays.integer, np.floor(x + WHOLE_TOL), x)
