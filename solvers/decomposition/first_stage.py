"""The first stage of a program: variables that all slots share, and the rows over them alone.

Not here: what couples these variables to the slots (`linking.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.program import Program

SLOT_COLUMN_BLOCKS = ("f", "x", "v", "lambda")
"""Blocks of columns that belong to slots."""
SLOT_ROW_BLOCKS = ("balance", "capacity", "hosted", "installed", "power", "running", "progress")
"""Blocks of rows that belong to slots or couple them."""

FORCING_ROW_TOL = 1e-9
"""A row whose activity can move less than this, relative to the sum of its coefficients, fixes its columns."""
VIOLATED_ROW_TOL = 1e-6
"""A row that misses its side by more than this, relative to the same, cannot hold."""
PROPAGATION_ROUNDS = 4
"""Passes of bound propagation over all rows."""

RowKey: TypeAlias = tuple[str, tuple[int, ...]]
"""Block of a row, and its index there."""


@dataclass(frozen=True, slots=True)
class FirstStage:
    """The rows over first-stage columns alone:  row_lower <= matrix m <= row_upper,  0 <= m <= upper.

    `keys`: block and index of each row, by which the rows of a part are found in the whole.
    """

    matrix: sparse.csr_array
    row_lower: Floats
    row_upper: Floats
    upper: Floats
    cost: Floats
    integer: Bools
    columns: Mapping[str, Ints]  # block -> positions shaped as its index sets, -1 where there is none
    keys: tuple[RowKey, ...]
    pair_gate: Ints  # [W x R] column that must be 1 for a workload to be served at a site, -1 for none
    arc_pair: Ints  # [A] workload and site of an arc, as a position in `pair_gate`

    @property
    def arc_gate(self) -> Ints:
        """[A]: column that must be 1 for the arc to carry requests, -1 for none."""
        return self.pair_gate[self.arc_pair]

    @property
    def size(self) -> int:
        return len(self.upper)

    def part(self, data: PlanData, fleet_options: Ints, points: Ints) -> FirstStage:
        """Restrict the first stage to holdings of these fleet options and placements at these points; the others are 0."""
        stays = np.ones(self.size, dtype=bool)
        kept, place = np.isin(data.holding_option, fleet_options), self.columns["n"]
        stays[place[~kept & (place >= 0)]] = False
        kept = np.isin(np.arange(len(data.point_job)), points)
        for block in ("y", "run"):
            place = self.columns[block][~kept]
            stays[place[place >= 0]] = False
        new = np.full(self.size + 1, -1, dtype=np.int64)
        new[:-1][stays] = np.arange(int(stays.sum()))
        matrix = self.matrix[:, np.flatnonzero(stays)].tocsr()
        # rows that nothing can violate
        idle = (matrix.maximum(0).sum(axis=1) == 0) & np.isneginf(self.row_lower) & (self.row_upper >= 0)
        rows = np.flatnonzero(~idle)
        return replace(
            self, matrix=matrix[rows], row_lower=self.row_lower[rows], row_upper=self.row_upper[rows], upper=self.upper[stays],
            cost=self.cost[stays], integer=self.integer[stays], columns={block: new[place] for block, place in self.columns.items()},
            keys=tuple(self.keys[row] for row in rows), pair_gate=new[self.pair_gate],
        )  # fmt: skip

    def propagate_bounds(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats, bool]:
        """Fix the columns that a row leaves no choice, which would leave an interior-point method no interior.

        Returned: lower and upper bounds, and whether a row cannot hold.
        """
        lower, upper, matrix = lower.copy(), upper.copy(), self.matrix.tocoo()
        row, column, positive = matrix.row, matrix.col, matrix.data > 0

        def add(bounds: Floats) -> Floats:
            sums = np.bincount(row, weights=matrix.data * bounds, minlength=matrix.shape[0])
            return np.asarray(sums, dtype=np.float64)

        room = FORCING_ROW_TOL * np.maximum(add(np.sign(matrix.data)), 1.0)
        for _ in range(PROPAGATION_ROUNDS):
            at_least, at_most = (
                add(np.where(positive, lower[column], upper[column])),
                add(np.where(positive, upper[column], lower[column])),
            )
            full, empty = at_least >= self.row_upper - room, at_most <= self.row_lower + room
            down, up = (
                (full[row] & positive) | (empty[row] & ~positive),
                (full[row] & ~positive) | (empty[row] & positive),
            )
            before = float((upper - lower)[np.isfinite(upper)].sum())
            upper[column[down]] = lower[column[down]]
            lower[column[up]] = upper[column[up]]
            if float((upper - lower)[np.isfinite(upper)].sum()) == before:
                break
        allowed = VIOLATED_ROW_TOL * room / FORCING_ROW_TOL
        broken = (at_least > self.row_upper + allowed).any() or (at_most < self.row_lower - allowed).any()
        return lower, upper, bool(broken)


def first_stage_of(program: Program, data: PlanData, functional: str) -> FirstStage:
    """Extract the first stage of a program, which may have merged slots, one for each window."""
    arrays, cost = program.arrays(), program.functional(functional)
    here = np.ones(program.column_count, dtype=bool)
    for block in SLOT_COLUMN_BLOCKS:
        if block in program.columns:
            index = program.columns[block].ravel()
            here[index[index >= 0]] = False
    new = np.full(program.column_count, -1, dtype=np.int64)
    new[here] = np.arange(int(here.sum()))
    matrix = arrays.matrix.tocsr()
    without_slots = np.asarray(abs(matrix) @ (~here).astype(float)) == 0
    for block in SLOT_ROW_BLOCKS:
        for part in program.row_blocks.get(block, ()):
            without_slots[part.rows] = False
    rows = np.flatnonzero(without_slots)
    shifted = {}
    for block, index in program.columns.items():
        if block not in SLOT_COLUMN_BLOCKS:
            shifted[block] = np.append(new, -1)[index]
    host = shifted["host"]
    gate = np.where(host >= 0, host, shifted["open"]).ravel()
    return FirstStage(
        matrix=matrix[rows][:, np.flatnonzero(here)].tocsr(), row_lower=arrays.row_lower[rows], row_upper=arrays.row_upper[rows],
        upper=arrays.upper[here], cost=cost[here], integer=arrays.integer[here], columns=shifted,
        keys=tuple(_keys(program, rows)), pair_gate=gate, arc_pair=data.arc_workload * data.sites + data.arc_site,
    )  # fmt: skip


def _keys(program: Program, rows: Ints) -> Iterator[RowKey]:
    """Yield block and index of each row."""
    blocks = [(part.rows.start, block, part.index) for block, parts in program.row_blocks.items() for part in parts]
    blocks.sort(key=lambda item: item[0])
    starts = np.array([start for start, _, _ in blocks])
    for row in rows:
        start, block, index = blocks[int(np.searchsorted(starts, row, side="right")) - 1]
        yield block, tuple(int(i) for i in index[row - start])


def map_columns(old: FirstStage, new: FirstStage, values: Floats) -> Floats:
    """Map a vector over the columns of one first stage to the columns of another; 0 for columns that the old one lacks."""
    result = np.zeros(new.size)
    for block, index in new.columns.items():
        before = old.columns.get(block)
        if before is not None:
            both = (index >= 0) & (before >= 0)
            result[index[both]] = values[before[both]]
    return result
