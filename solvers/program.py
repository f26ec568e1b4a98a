"""Build a mixed-integer program in bulk: named blocks of columns and rows from arrays, linear functionals, scaling to numbers near 1.

It knows neither the meaning of a block nor a solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints

COEFFICIENT_TOL = 1e-12  # a coefficient this small, relative to the largest of its row, is below the solver's precision
MOST_OBJECTIVE_TERM = 1e6  # largest term of a scaled objective, coefficient times range
MOST_OBJECTIVE_COEFFICIENT = 1e4  # largest coefficient of a scaled objective


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows `start` to `start + len(index)`; `index` holds the index tuple of each row, over the index sets of its block."""

    start: int
    index: Ints

    @property
    def rows(self) -> slice:
        """Row numbers in the program."""
        return slice(self.start, self.start + len(self.index))


@dataclass(slots=True)
class Program:
    """Columns, rows and functionals of a program, in SI units.

    `branching_sets`: pairs of sets of binaries of which only one set may contain a nonzero (GUB branching). `presolve`: False for
    programs of which HiGHS 1.15 was seen to lose optima in presolve, those with binaries that switch flows on in many slots.
    """

    columns: dict[str, Ints] = field(default_factory=dict)
    row_blocks: dict[str, list[RowBlock]] = field(default_factory=dict)
    column_count: int = 0
    row_count: int = 0
    branching_sets: list[tuple[Ints, Ints]] = field(default_factory=list)
    presolve: bool = True
    _columns: list[tuple[Floats, ...]] = field(default_factory=list)
    _rows: list[tuple[Floats, Floats]] = field(default_factory=list)
    _entries: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    _functionals: dict[str, list[tuple[Ints, Floats]]] = field(default_factory=dict)

    def add_columns(
        self,
        block: str,
        shape: tuple[int, ...],
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        *,
        integer: bool = False,
        cost: Mapping[str, ArrayLike] | None = None,
        where: ArrayLike = True,
        unit: ArrayLike = 1.0,
    ) -> Ints:
        """Add columns and return their numbers, shaped `shape`, -1 outside `where`.

        `unit`: a typical size of the value; the solver sees continuous columns divided by it.
        """
        mask = np.broadcast_to(np.asarray(where, dtype=bool), shape)
        index = np.full(shape, -1, dtype=np.int64)
        count = int(mask.sum())
        index[mask] = self.column_count + np.arange(count)
        self.column_count += count

        def pick(values: ArrayLike) -> Floats:
            picked: Floats = np.broadcast_to(np.asarray(values, dtype=float), shape)[mask]
            return picked

        self._columns.append((pick(lower), pick(upper), np.full(count, float(integer)), pick(unit)))
        for functional, values in (cost or {}).items():
            self.add_cost(functional, index[mask], pick(values))
        self.columns[block] = index
        return index

    def copied(self) -> Program:
        """Copy the program, so that columns and rows can be added to the copy alone."""
        return Program(
            dict(self.columns),
            {block: list(parts) for block, parts in self.row_blocks.items()},
            self.column_count,
            self.row_count,
            list(self.branching_sets),
            self.presolve,
            list(self._columns),
            list(self._rows),
            list(self._entries),
            {name: list(parts) for name, parts in self._functionals.items()},
        )

    def add_cost(self, functional: str, columns: Ints, values: ArrayLike) -> None:
        """Add `values` to the coefficients of `columns` in a functional."""
        values = np.broadcast_to(np.asarray(values, dtype=float), columns.shape).ravel()
        self._functionals.setdefault(functional, []).append((columns.ravel(), values))

    def add_rows(
        self,
        block: str,
        lower: ArrayLike,
        upper: ArrayLike,
        rows: Ints,
        cols: Ints,
        vals: ArrayLike,
        *,
        index: Ints | None = None,
        count: int | None = None,
    ) -> slice:
        """Add rows `lower <= A x <= upper` and return their numbers.

        A is given by its entries, with `rows` counted from 0 within the block. Entries of absent columns (-1) are dropped: those columns
        are 0 by definition. Raises ValueError for an entry of a column in a row outside the block.
        """
        if count is None:
            count = len(index) if index is not None else max(np.size(lower), np.size(upper))
        index = np.arange(count)[:, None] if index is None else np.asarray(index)
        vals = np.broadcast_to(np.asarray(vals, dtype=float), np.shape(cols))
        rows, cols, vals = np.ravel(np.broadcast_to(rows, np.shape(cols))), np.ravel(cols), np.ravel(vals)
        there = cols >= 0
        if there.any() and not 0 <= rows[there].min() <= rows[there].max() < count:
            raise ValueError(f"{block}: an entry in a row outside the block")
        self._entries.append((rows[there] + self.row_count, cols[there], vals[there]))
        low, high = (np.broadcast_to(np.asarray(side, dtype=float), (count,)).copy() for side in (lower, upper))
        self._rows.append((low, high))
        added = RowBlock(self.row_count, index)
        self.row_blocks.setdefault(block, []).append(added)
        self.row_count += count
        return added.rows

    def add_linking_rows(self, block: str, part: Ints, whole: Ints, bound: ArrayLike, index: Ints) -> slice:
        """Add rows part <= bound * whole over two lists of columns; absent columns (-1) are 0."""
        rows, bounds = np.arange(len(part)), np.broadcast_to(np.asarray(bound, dtype=float), (len(part),))
        return self.add_rows(
            block,
            -np.inf,
            0.0,
            np.tile(rows, 2),
            np.concatenate([part, whole]),
            np.concatenate([np.ones(len(part)), -bounds]),
            index=index,
        )

    def add_entries(self, rows: Ints, cols: Ints, vals: ArrayLike) -> None:
        """Add entries to existing rows, by their numbers; entries of absent columns (-1) are dropped."""
        there = cols >= 0
        self._entries.append(
            (rows[there], cols[there], np.broadcast_to(np.asarray(vals, dtype=float), np.shape(cols))[there])
        )

    def add_functional_row(
        self, block: str, functional: str, lower: float, upper: float, part: Ints, index: int = 0
    ) -> None:
        """Add a row that bounds a functional.

        `part` [columns]: the sub-total that a column is counted in, -1 for none. Sub-totals are columns of their own, because one row over
        everything makes the solver's linear algebra dense.
        """
        vector = self.functional(functional)
        counted = np.flatnonzero(vector)
        number = part[counted]
        parts = int(number.max(initial=-1)) + 1
        size = max(float(np.abs(vector).max(initial=0.0)), np.finfo(float).tiny)
        total = self.add_columns(f"{block} {index} sub-totals", (parts,), lower=-np.inf, unit=size)
        inside, alone = counted[number >= 0], counted[number < 0]
        self.add_rows(
            f"{block} sub-total",
            0.0,
            0.0,
            np.concatenate([part[inside], np.arange(parts)]),
            np.concatenate([inside, total]),
            np.concatenate([vector[inside], -np.ones(parts)]),
            index=np.column_stack([np.full(parts, index), np.arange(parts)]),
        )
        self.add_rows(
            block,
            [lower],
            [upper],
            np.zeros(len(alone) + parts, dtype=np.int64),
            np.concatenate([alone, total]),
            np.concatenate([vector[alone], np.ones(parts)]),
            index=np.array([[index]]),
        )

    def functional(self, name: str) -> Floats:
        """Coefficients of a functional over all columns."""
        vector = np.zeros(self.column_count)
        for columns, values in self._functionals.get(name, ()):
            np.add.at(vector, columns, values)
        return vector

    @property
    def functionals(self) -> tuple[str, ...]:
        """Names of all functionals, sorted."""
        return tuple(sorted(self._functionals))

    def row_of(self, row: int) -> tuple[str, tuple[int, ...]]:
        """Block and index tuple of a row."""
        for block, parts in self.row_blocks.items():
            for part in parts:
                if part.rows.start <= row < part.rows.stop:
                    return block, tuple(int(i) for i in part.index[row - part.start])
        raise IndexError(row)

    def arrays(self) -> Arrays:
        """Matrix, sides, bounds and units as arrays, in SI units."""
        rows, cols, vals = _joined(self._entries, 3)
        matrix = sparse.coo_array(
            (vals, (rows.astype(np.int64), cols.astype(np.int64))), shape=(self.row_count, self.column_count)
        ).tocsc()
        matrix.eliminate_zeros()
        row_lower, row_upper = _joined(self._rows, 2)
        lower, upper, integer, unit = _joined(self._columns, 4)
        return Arrays(matrix, row_lower, row_upper, lower, upper, integer > 0, unit, tuple(self.branching_sets))

    def values(self, x: Floats) -> dict[str, Floats]:
        """Shape a solution by the blocks, 0 where a block has no column."""
        padded = np.append(x, 0.0)  # column -1 reads the 0 at the end
        return {block: padded[index] for block, index in self.columns.items()}

    def vector(self, values: Mapping[str, Floats], missing: float = 0.0) -> Floats:
        """Flatten a solution that is shaped by the blocks; `missing` for blocks that it lacks or has in another shape."""
        x = np.full(self.column_count, missing)
        for block, index in self.columns.items():
            if block in values and values[block].shape == index.shape:
                x[index[index >= 0]] = values[block][index >= 0]
        return x

    def by_block(self, per_row: Floats) -> dict[str, tuple[Ints, Floats]]:
        """Group row values by block, with their index tuples."""
        return {
            block: (
                np.concatenate([part.index for part in parts]),
                np.concatenate([per_row[part.rows] for part in parts]),
            )
            for block, parts in self.row_blocks.items()
        }


@dataclass(frozen=True, slots=True)
class Arrays:
    """A program `row_lower <= matrix x <= row_upper`, `lower <= x <= upper`, x integer where `integer`; `unit`: typical size of a column."""

    matrix: sparse.csc_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    integer: Bools
    unit: Floats
    branching_sets: tuple[tuple[Ints, Ints], ...] = ()

    @property
    def binary(self) -> Bools:
        """[columns]: integers between 0 and 1."""
        return self.integer & (self.lower >= 0.0) & (self.upper <= 1.0)

    def violation(self, x: Floats) -> float:
        """Largest violation of a row, relative to its largest coefficient, or of a bound, relative to the column's unit."""
        activity = self.matrix @ x
        size = row_size(self.matrix, self.unit)
        rows = np.maximum(self.row_lower - activity, activity - self.row_upper) / size
        bounds = np.maximum(self.lower - x, x - self.upper) / self.unit
        return float(max(rows.max(initial=0.0), bounds.max(initial=0.0)))

    def scaled(self, objective: Floats) -> Scaled:
        """Scale the program to numbers near 1, by powers of two, so that no digit is lost."""
        column = np.where(self.integer, 1.0, _power_of_two(self.unit))
        row = 1.0 / _power_of_two(row_size(self.matrix, column))
        cost = objective * column
        span = np.where(np.isfinite(self.upper - self.lower), (self.upper - self.lower) / column, 1.0)
        largest = max(
            float(np.abs(cost * span).max(initial=0.0)) / MOST_OBJECTIVE_TERM,
            float(np.abs(cost).max(initial=0.0)) / MOST_OBJECTIVE_COEFFICIENT,
        )
        scale = float(_power_of_two(np.array(1 / largest))) if largest > 0 else 1.0
        return self._in_units(cost * scale, column, row, scale)

    def scaled_like(self, objective: Floats, other: Scaled) -> Scaled:
        """Scale the program by the factors of another one with as many rows and columns."""
        return self._in_units(objective * other.column * other.objective, other.column, other.row, other.objective)

    def _in_units(self, cost: Floats, column: Floats, row: Floats, scale: float) -> Scaled:
        matrix = self.matrix.tocsc(copy=True)
        matrix.sum_duplicates()
        matrix.data = row[matrix.indices] * matrix.data * np.repeat(column, np.diff(matrix.indptr))
        small = np.abs(matrix.data) < COEFFICIENT_TOL
        if small.any():  # the largest entry of every row lies in [1, 2)
            matrix.data[small] = 0.0
            matrix.eliminate_zeros()
        arrays = Arrays(
            matrix,
            self.row_lower * row,
            self.row_upper * row,
            self.lower / column,
            self.upper / column,
            self.integer,
            np.ones_like(column),
            self.branching_sets,
        )
        return Scaled(arrays, cost, column, row, scale)


@dataclass(frozen=True, slots=True)
class Scaled:
    """A scaled program: x = column x', row dual = row dual' / objective."""

    arrays: Arrays
    cost: Floats
    column: Floats
    row: Floats
    objective: float


def _joined(parts: Sequence[tuple[Floats | Ints, ...]], width: int) -> list[Floats]:
    """Concatenate each field of tuples of arrays; empty arrays where there is no tuple."""
    return [np.concatenate([part[k] for part in parts]) if parts else np.zeros(0) for k in range(width)]


def row_size(matrix: sparse.csc_array, column: Floats) -> Floats:
    """Largest coefficient of every row with its columns in `column` units; 1 for an empty row."""
    size = np.zeros(matrix.shape[0])
    entry_column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
    np.maximum.at(size, matrix.indices, np.abs(matrix.data) * column[entry_column])
    return np.where(size > 0, size, 1.0)


def _power_of_two(values: Floats) -> Floats:
    return np.exp2(np.floor(np.log2(values)))
