"""What is made whole without a search: choices that cost nothing, and counts by dives once all choices are made.

A relaxation holds yes-or-no columns at the least that its rows ask for, often far from whole though nothing is lost by more: such are
raised, or lowered, as far as rows allow. With every choice made few columns are left, so that linear programs are quick and a count
after the other can be made whole, in several orders: the dearest first, so that the cheap ones fill up what is missing, or the surest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.search import INTEGRALITY_TOL, NodeResult, SubMipResult, dive
from solvers.program import Arrays, Scaled

if TYPE_CHECKING:
    from solvers.branch_and_bound.relaxation import LpResult

HOLDS = 1e-9  # by how much a rounded choice may break a scaled row
ROUNDS = 3  # of narrowing the columns' bounds
LEFT = 1e-12  # a column narrower than this is settled
ASKED, FAR = 40, 3  # sets of counts around the best that are asked about, and how far from it


class ZeroCostBinaries:
    """The yes-or-no columns of a program without a cost."""

    def __init__(self, scaled: Scaled) -> None:
        arrays = scaled.arrays
        self._arrays = arrays
        self._free = np.flatnonzero(arrays.integer & (arrays.upper - arrays.lower <= 1) & (scaled.cost == 0))

    def rounded(self, x: Floats) -> Floats:
        """x with those of them whole that rows let be so; it costs what it did."""
        between = self._free[np.abs(x[self._free] - np.round(x[self._free])) > INTEGRALITY_TOL]
        if not between.size:
            return x
        arrays, matrix, x = self._arrays, self._arrays.matrix, x.copy()
        activity = matrix @ x
        for column in between[np.argsort(-x[between], kind="stable")]:
            entries = slice(matrix.indptr[column], matrix.indptr[column + 1])
            rows, values = matrix.indices[entries], matrix.data[entries]
            most, least = (
                np.maximum(arrays.row_upper[rows], activity[rows]),
                np.minimum(arrays.row_lower[rows], activity[rows]),
            )
            for whole in (1.0, 0.0):
                moved = activity[rows] + values * (whole - x[column])
                if (
                    arrays.lower[column] <= whole <= arrays.upper[column]
                    and (moved <= most + HOLDS).all()
                    and (moved >= least - HOLDS).all()
                ):
                    activity[rows], x[column] = moved, whole
                    break
        return x


class LinearProgram(Protocol):
    """A linear program that is solved again and again under other bounds; see `solvers.branch_and_bound.relaxation.WarmStartedLp`."""

    def solve(self, lower: Floats, upper: Floats) -> LpResult: ...

    def farkas_ray(self) -> Floats | None: ...


def round_counts(
    scaled: Scaled,
    lower: Floats,
    upper: Floats,
    target: float,
    most: float,
    gap: float,
    opened: Callable[[Scaled], LinearProgram],
) -> SubMipResult:
    """The best counts found between bounds that settle all choices; the bound is that of the relaxation. `target`: good enough;
    `most`: what an answer must stay below; `opened`: the linear program of a scaled one."""
    narrow, wide = _propagated_bounds(scaled.arrays, lower, upper)
    columns, settled = np.flatnonzero(wide - narrow > LEFT), wide - narrow <= LEFT
    part, constant = _restricted(scaled, lower, upper, columns, np.where(settled, narrow, 0.0))
    counts = _CountSearch(opened(part), part, constant)
    root = counts.relax(part.arrays.lower, part.arrays.upper, None, math.inf)
    if root.x is None:
        return SubMipResult(math.inf, None, -math.inf if root.value is None else root.value)
    value, best = most, None
    orders = _most_expensive(counts.size), _least_fractional, _largest_rounding_cost(counts.size)
    for first in orders:
        if value <= target or root.value >= value:
            break
        far = math.inf if first is orders[-1] else target + gap * abs(target)  # another order may lead nearer
        last = dive(
            counts.relax,
            root,
            part.arrays.lower,
            part.arrays.upper,
            counts.columns,
            first,
            gap,
            math.inf if most == math.inf else far,
        )
        if last is not None:
            counts.learn(last)
        if root.value < target < counts.best < far:
            counts.improve(target)
        if counts.best < value:
            value, best = counts.best, counts.x
    if best is None:
        return SubMipResult(math.inf, None, root.value)
    x = np.where(settled, narrow, 0.0)
    x[columns] = best
    return SubMipResult(value, x, root.value)


class _CountSearch:
    """What counts cost. The cost of the linear program is convex in them, so that each set of counts that was asked about bounds all
    others from below: those that the bounds find cheapest are asked about next. Counts with no answer tell what all that have one keep to."""

    def __init__(self, program: LinearProgram, part: Scaled, constant: float) -> None:
        self._program, self._part, self._constant = program, part, constant
        self.columns = np.flatnonzero(part.arrays.integer)
        self.size = np.abs(part.cost)
        self.best, self.x = math.inf, np.zeros(0)
        self._slope = np.zeros(0)
        self._optimality_cuts: list[tuple[float, Floats, Floats]] = []  # value, counts, slope
        self._feasibility_cuts: list[
            tuple[Floats, float]
        ] = []  # weights of counts, and the least weight of any that have an answer

    def relax(self, lower: Floats, upper: Floats, basis: object, stop_at: float) -> NodeResult:
        found = self._program.solve(lower, upper)
        if found.value is None:
            return NodeResult(math.inf if found.status == "infeasible" else None)
        value, self._slope = found.value + self._constant, found.reduced_costs[self.columns]
        return NodeResult(stop_at) if value >= stop_at else NodeResult(value, found.x)

    def learn(self, whole: NodeResult) -> float:
        """What the counts of an answer cost, and the slope there."""
        lower, upper = self._part.arrays.lower.copy(), self._part.arrays.upper.copy()
        counts = np.round(whole.x[self.columns])
        lower[self.columns] = upper[self.columns] = counts
        found = self.relax(lower, upper, None, math.inf)
        if found.x is None:
            self._learn_cut(counts)
            return math.inf
        self._optimality_cuts.append((found.value, counts, self._slope))
        if found.value < self.best:
            self.best, self.x = found.value, found.x
        return found.value

    def _learn_cut(self, counts: Floats) -> None:
        """Rows together that these counts contradict, whatever the other columns are."""
        ray, arrays = self._program.farkas_ray(), self._part.arrays
        if ray is None or not ray.any():
            return
        for weights in (ray, -ray):
            asked = np.abs(weights) > LEFT * np.abs(weights).max()
            least = float((weights[asked] * np.where(weights > 0, arrays.row_lower, arrays.row_upper)[asked]).sum())
            taken = arrays.matrix.T @ weights
            others = np.abs(taken) > HOLDS * np.abs(taken).max()
            others[self.columns] = False
            least -= float((taken[others] * np.where(taken > 0, arrays.upper, arrays.lower)[others]).sum())
            if math.isfinite(least) and counts @ taken[self.columns] < least - HOLDS * abs(least):
                self._feasibility_cuts.append((taken[self.columns], least - HOLDS * abs(least)))
                return

    def improve(self, target: float) -> None:
        """Looks around the best counts for better ones."""
        least, most = self._part.arrays.lower[self.columns], self._part.arrays.upper[self.columns]
        steps, asked = _steps(len(self.columns)), {counts.tobytes() for _, counts, _ in self._optimality_cuts}
        for _ in range(ASKED):
            if self.best <= target:
                return
            near = np.round(self.x[self.columns]) + steps
            near = near[((near >= least) & (near <= most)).all(axis=1)]
            near = (
                near[np.all([near @ weights >= held for weights, held in self._feasibility_cuts], axis=0)]
                if self._feasibility_cuts
                else near
            )
            if not len(near):
                return
            at_least = np.max(
                [value + (near - counts) @ slope for value, counts, slope in self._optimality_cuts], axis=0
            )
            order = np.argsort(at_least, kind="stable")
            chosen = next((i for i in order if near[i].tobytes() not in asked), None)
            if chosen is None or at_least[chosen] >= self.best:
                return
            asked.add(near[chosen].tobytes())
            x = np.zeros(len(self._part.cost))
            x[self.columns] = near[chosen]
            self.learn(NodeResult(0.0, x))


def _steps(count: int) -> Floats:
    """[steps, counts]: one count more or less, or one more and another less, by up to FAR each."""
    one = np.vstack([far * np.eye(count) for far in range(-FAR, FAR + 1) if far])
    pairs = (one[:, None, :] + one[None, :, :]).reshape(-1, count)
    return np.vstack([one, pairs[(pairs.min(axis=1, initial=0.0) < 0) & (pairs.max(axis=1, initial=0.0) > 0)]])


def _most_expensive(size: Floats) -> Callable[[Floats, Ints], int]:
    return lambda x, between: int(np.argmax(size[between]))


def _least_fractional(x: Floats, between: Ints) -> int:
    return int(np.argmax(np.abs(x[between] - np.floor(x[between]) - 0.5)))


def _largest_rounding_cost(size: Floats) -> Callable[[Floats, Ints], int]:
    """By what the way to the next whole number costs."""
    return lambda x, between: int(np.argmax(size[between] * np.abs(x[between] - np.round(x[between]))))


def _propagated_bounds(arrays: Arrays, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Bounds that no answer goes beyond: what rows with an upper side leave a column where all the others are at their best."""
    upper = upper.copy()
    entry_column = np.repeat(np.arange(arrays.matrix.shape[1]), np.diff(arrays.matrix.indptr))
    rows, values = arrays.matrix.indices, arrays.matrix.data
    up = (values > 0) & np.isfinite(arrays.row_upper[rows]) & np.isfinite(lower[entry_column])
    for _ in range(ROUNDS):
        least = np.bincount(
            rows, values * np.where(values < 0, upper[entry_column], lower[entry_column]), arrays.matrix.shape[0]
        )
        room = (arrays.row_upper - least)[rows]
        told = up & np.isfinite(room)
        before = upper.copy()
        np.minimum.at(upper, entry_column[told], lower[entry_column[told]] + np.maximum(room[told], 0.0) / values[told])
        if (upper == before).all():
            break
    return lower, upper


def _restricted(scaled: Scaled, lower: Floats, upper: Floats, columns: Ints, settled: Floats) -> tuple[Scaled, float]:
    """The program in some of the columns, the others as settled, and what those cost."""
    arrays = scaled.arrays
    matrix, there = arrays.matrix[:, columns].tocsr(), arrays.matrix @ settled
    row_lower, row_upper = arrays.row_lower - there, arrays.row_upper - there
    rows = (
        (np.diff(matrix.indptr) > 0) | (row_lower > HOLDS) | (row_upper < -HOLDS)
    )  # an empty row that cannot hold stays
    part = Arrays(
        matrix[rows].tocsc(), row_lower[rows], row_upper[rows], lower[columns], upper[columns], arrays.integer[columns], arrays.unit[columns])  # fmt: skip
    return Scaled(part, scaled.cost[columns], scaled.column[columns], scaled.row[rows], scaled.objective), float(
        scaled.cost @ settled
    )
