"""Find a plan part by part: the first stage from the merged program, the slots of each part with it, the part of most load first.

Each part is a small mixed-integer program over its slots and the first stage. What the first stage holds already stays, and may grow where
a part needs more. Rows over several parts, such as the work of a job or a limit, count what the other parts do: what was decided there, or
what the merged program expects; a part may leave them wrong at a price, and later parts make up for it. Further sweeps mend the parts that
rows over several parts, or a first stage that grew, leave wrong: with what the first stage holds as far as that goes, and with more of it for
a share of what a row lacks then, by its coefficients, since all parts that are still to come use what one of them adds. A part that makes the
first stage grow much is decided again together with its neighbours (`solvers.general.neighbours`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from solvers.arrays import Bools, Floats, Ints
from solvers.general.impossible import has_none
from solvers.general.neighbours import ROW_TOL, Neighbours
from solvers.general.structure import FIRST, Structure
from solvers.interface import Options
from solvers.mip import polish
from solvers.mip import solve as solve_mip
from solvers.program import Arrays, row_size

SWEEPS = 4
LACKING = 0.1  # what rows of a part without a solution are said to lack, of their largest coefficient
SHRINKS = 0.7  # share of what was wrong before: the sweeps end where more is left and the first stage did not grow
PENALTY = 1.0  # price of leaving a row over several parts by its largest coefficient in units of its columns, as a share of what the plan costs
DEARER = 10.0  # by how much it rises with each sweep, so that a small lack does not stay cheaper than one more system
QUICK_SHARE = 0.4  # share of the time left before a sweep, beyond which its parts are rounded up instead of searched
LEAST_TIME_S = 1.0
WHOLE_TOL = 1e-5
GROWS_MUCH = (
    0.01  # share of what the first stage costs: growth by a part from which on its neighbours are decided again with it
)
SIDE_SLACK = 1e-9  # share of what the sides of linking rows leave to a part: rounding of the other parts' sum


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

    def __init__(self, structure: Structure, options: Options, kept: Bools, price: Floats | None = None):
        """`kept` [columns]: which columns of the first stage may grow. `price` [columns]: what a part pays beside its cost while it is decided."""
        self.structure, self.options, self._begin = structure, options, time.perf_counter()
        self._kept, self._cost = kept, structure.cost if price is None else structure.cost + price
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
        self._neighbours = Neighbours(structure, self._by_row, touched[:, 1:].tocsr(), self._size)
        self._rows = [
            np.sort(by_part.indices[by_part.indptr[p + 1] : by_part.indptr[p + 2]]).astype(np.int64)
            for p in range(structure.parts)
        ]
        self._first_rows = np.flatnonzero(structure.row_part == FIRST)
        self._first = np.flatnonzero(structure.first)
        self._among_first = self._by_row[self._first_rows].tocsc()
        self._penalty = self._held = 1.0
        self.grew = np.zeros(structure.parts, dtype=bool)
        """[parts]: in which more whole numbers of the first stage were needed."""
        self.growth = np.zeros(structure.parts)
        """[parts]: by how much each made the first stage dearer, as a share of what it cost at first."""
        self.infeasible = False
        """Whether a part has no solution whatever the first stage and the other parts do."""

    def plan(self, expected: Floats) -> tuple[Floats | None, Floats]:
        """Decide all parts; `expected` [columns]: the solution of the merged program, whole in the first stage.

        Returns all columns, or None, and by how much each row stays wrong, relative to its largest coefficient.
        """
        structure, arrays = self.structure, self.structure.arrays
        x = np.clip(expected, arrays.lower, arrays.upper)
        self._penalty = PENALTY * max(float(np.abs(structure.cost) @ np.abs(x)), 1e-9)
        self._held = float(np.abs(structure.cost[self._first]) @ np.abs(x[self._first]))
        load = _load(structure, expected)
        free = load == 0  # copies after failures that are parts of their own, before the days
        every: Sequence[int] = np.lexsort((-load, ~free)).tolist()
        order = every
        before, wrong = math.inf, np.zeros(len(arrays.row_lower))
        for sweep in range(SWEEPS):
            held, coming = x[self._first], np.zeros(structure.parts, dtype=bool)
            coming[order] = True
            begin, left = time.perf_counter(), self.options.left_s(self._begin)
            for i, p in enumerate(order):
                if not coming[p]:  # decided with a neighbour
                    continue
                coming[p] = False
                mean_s = (time.perf_counter() - begin) / max(i, 1)
                quick = left * QUICK_SHARE < mean_s * len(order)
                allowed = None
                if sweep:
                    allowed = self._allowed(x, np.array([p]), coming)
                    used = self._used(x, p, quick)
                    x = x if used is None else used
                    most = allowed + ROW_TOL * self._size[self._rows[p]]
                    if used is not None and (self._lack(x, self._rows[p]) <= most).all():
                        continue
                alone = free[p] and not sweep
                found = self._beside_none(x, p, quick) if alone else self._grown(x, np.array([p]), quick, allowed)
                if found is None:
                    wrong[self._rows[p]] = LACKING
                    self.infeasible = self.has_none([p])
                    return None, wrong
                if self.growth[p] + self._growth(x, found) > GROWS_MUCH:
                    found = self._with_neighbours(x, p, found, quick, sweep, coming)
                x = self._noted(x, p, found)
            wrong = self._wrong(x)
            if not wrong.any():
                return x, wrong
            if wrong.sum() > SHRINKS * before and (x[self._first] <= held + WHOLE_TOL).all():
                break
            before, self._penalty = wrong.sum(), self._penalty * DEARER
            order = [p for p in every if wrong[self._rows[p]].any()]
        return None, wrong

    def has_none(self, parts: Sequence[int]) -> bool:
        """Tell whether one of some parts has no solution whatever the first stage and the other parts do."""
        own = {p: np.append(self._first_rows, self._rows[p][~self._shared[self._rows[p]]]) for p in parts}
        return any(has_none(self.structure, self._by_row, own[p], p, self.options.left_s(self._begin)) for p in parts)

    def _noted(self, x: Floats, p: int, found: Floats) -> Floats:
        """Note by how much a part made the first stage grow; returns what was found."""
        whole = self._first[self.structure.arrays.integer[self._first]]
        self.growth[p] += self._growth(x, found)
        self.grew[p] |= bool((found[whole] > x[whole] + WHOLE_TOL).any())
        return found

    def _growth(self, x: Floats, found: Floats) -> float:
        """Compute how much dearer the first stage became, as a share of what it cost at first."""
        first = self._first
        more = float(self.structure.cost[first] @ (found[first] - x[first]))
        return more / self._held if self._held else math.copysign(math.inf, more) if more else 0.0

    def _with_neighbours(self, x: Floats, p: int, found: Floats, quick: bool, sweep: int, coming: Bools) -> Floats:
        """Decide a part again together with its neighbours; returns what was found before where the first stage grows as much.

        `coming` [parts]: parts of the sweep after this one; neighbours that are decided are taken out.
        """
        others = self._neighbours.of(p, self._rows[p], x, found)
        if not len(others):
            return found
        parts, later = np.append(p, others), coming.copy()
        later[others] = False
        again = self._grown(x, parts, quick, self._allowed(x, parts, later) if sweep else None)
        if again is None or self._growth(x, again) >= self._growth(x, found):
            return found
        coming[others] = False
        return again

    def _grown(self, x: Floats, parts: Ints, quick: bool, allowed: Floats | None = None) -> Floats | None:
        """Decide the slots of parts, over what the first stage does without too where there is no solution else."""
        found = self._decide(x, parts, self._kept, quick, allowed)
        return self._decide(x, parts, np.ones_like(self._kept), quick) if found is None else found

    def _beside_none(self, x: Floats, p: int, quick: bool) -> Floats | None:
        """Decide a part that costs nothing as if no other part ran anything, so that jobs yield to copies instead of copies adding systems."""
        mine = self.structure.first | (self.structure.part == p)
        alone = np.where(mine, x, 0.0)
        found = self._used(alone, p, quick)
        if found is None or (self._lack(found, self._rows[p]) > ROW_TOL * self._size[self._rows[p]]).any():
            found = self._grown(alone, np.array([p]), quick)
        return None if found is None else np.where(mine, found, x)

    def _rows_of(self, parts: Ints) -> Ints:
        """Find the rows with columns of some parts."""
        return np.unique(np.concatenate([self._rows[p] for p in parts.tolist()]))

    def _allowed(self, x: Floats, parts: Ints, coming: Bools) -> Floats:
        """Compute what rows of parts may lack [rows of the parts] since parts that are still to come can do it, shared by their coefficients."""
        rows = self._rows_of(parts)
        mine, later = self._reach[:, parts].sum(axis=1)[rows], (self._reach @ coming)[rows]
        share = mine / np.maximum(mine + later, np.finfo(float).tiny)
        allowed: Floats = self._lack(x, rows) * np.clip(1 - share, 0.0, 1.0)
        return allowed

    def _lack(self, x: Floats, rows: Ints) -> Floats:
        """Compute by how much x violates rows that several parts share [of those given]; 0 for others."""
        arrays = self.structure.arrays
        activity = self._by_row[rows] @ x
        lack: Floats = np.maximum(np.maximum(arrays.row_lower[rows] - activity, activity - arrays.row_upper[rows]), 0.0)
        return np.where(self._shared[rows], lack, 0.0)

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
        kept = self._kept & ~self.structure.arrays.integer
        return self._decide(x, np.array([p]), kept, quick, None, self._near(p))

    def _decide(
        self,
        x: Floats,
        parts: Ints,
        kept: Bools,
        quick: bool,
        allowed: Floats | None = None,
        near: tuple[Ints, Ints] | None = None,
    ) -> Floats | None:
        """Decide the slots of parts, and what the first stage needs more for them; returns all columns, or None.

        `kept` [columns]: which columns of the first stage may grow. `quick`: round up what the first stage needs more, instead of searching for it.
        `allowed` [rows of the parts]: by how much a row may stay wrong at no price, which is left to other parts. `near`: columns and rows of the
        first stage, all of them if None; the others stay.
        """
        left = self.options.left_s(self._begin)
        if left <= 0:
            return None
        structure, arrays = self.structure, self.structure.arrays
        first, first_rows = (self._first, self._first_rows) if near is None else near
        mine = np.concatenate([first, np.flatnonzero(np.isin(structure.part, parts))])
        rows = np.concatenate([first_rows, self._rows_of(parts)])
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
        beyond = _either_way(shared, self._size[rows])
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
        cost = np.concatenate([self._cost[mine], np.full(2 * len(shared), self._penalty)])
        limits = replace(self.options, time_limit_s=max(left, LEAST_TIME_S), progress=None, method="direct")
        decided = _solve_part(piece, cost, limits, quick)
        if decided is None:
            return None
        result = x.copy()
        result[mine] = decided[:count]
        return self._without_needless(result, mine[held], lower[held], rows[len(first_rows) :])

    def _without_needless(self, x: Floats, first: Ints, before: Floats, rows: Ints) -> Floats:
        """Take back what parts changed of the first stage beyond their own rows, but for columns that rows of the first stage join to a change they need.

        Such columns cost nothing, or the search would have left them; other parts would pay for what was chosen for them at random.
        `first`: columns of the first stage that were decided, `before` [first]: the amount held. `rows`: of the parts.
        """
        own = np.zeros(len(x), dtype=bool)
        own[self._by_row[rows].indices] = True
        beyond, before = first[~own[first]], before[~own[first]]
        arrays, mine, trial = self.structure.arrays, self._first_rows, x.copy()
        trial[beyond] = before
        activity, slack = self._by_row[mine] @ trial, ROW_TOL * self._size[mine]
        broken = (activity < arrays.row_lower[mine] - slack) | (activity > arrays.row_upper[mine] + slack)
        if broken.any():
            joined = self._among_first[:, np.searchsorted(self._first, beyond)]
            _, piece = connected_components(joined.T @ joined, directed=False)
            needed = np.isin(piece, piece[joined.tocsr()[np.flatnonzero(broken)].indices])
            trial[beyond[needed]] = x[beyond[needed]]
        return trial


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
        few = np.where(
            np.abs(x - piece.lower) <= WHOLE_TOL, piece.integer, False
        )  # integers that the LP leaves as they are
        found = solve_mip(Piece(replace(piece, upper=np.where(few, piece.lower, piece.upper))), cost, "min", limits).x
        if found is not None:
            return found
    return solve_mip(Piece(piece), cost, "min", limits).x


def _either_way(rows: Ints, size: Floats) -> sparse.csc_array:
    """Build the columns by which some rows may be left wrong, upwards and downwards; `size` [all rows]."""
    values = np.tile([1.0, -1.0], len(rows)) * np.repeat(size[rows], 2)
    return sparse.csc_array((values, (np.repeat(rows, 2), np.arange(2 * len(rows)))), shape=(len(size), 2 * len(rows)))


def _load(structure: Structure, x: Floats) -> Floats:
    """[parts]: cost of the slots of each part in the merged program, per slot: a stand-in for how much is asked of the first stage."""
    timed = structure.part >= 0
    load = np.bincount(structure.part[timed], (np.abs(structure.cost) * x)[timed], structure.parts)
    slots = np.bincount(
        np.unique(np.column_stack([structure.part, structure.slot])[timed], axis=0)[:, 0], minlength=structure.parts
    )
    found: Floats = load / np.maximum(slots, 1)
    return found


def _whole(x: Floats, arrays: Arrays) -> Floats:
    """Round integer columns down to whole numbers, but for the solver's tolerance."""
    return np.where(arrays.integer, np.floor(x + WHOLE_TOL), x)
