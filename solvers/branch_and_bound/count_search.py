"""Local search over vectors of integer counts, with cuts from every vector that was evaluated.

With all binaries fixed, the cost of a program is a convex function of its counts. So each evaluated vector gives a Benders optimality
cut, value + slope (n - n0), and each infeasible one a feasibility cut from its Farkas ray. The vector with the least lower bound by
these cuts is evaluated next.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Protocol

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.backends.warm_started_lp import LpResult
from solvers.branch_and_bound.nodes import NodeResult
from solvers.branch_and_bound.settings import ROUNDING, RoundingSettings
from solvers.program import Scaled

STEPS_AT_ONCE = 1 << 16  # neighbours whose bounds are computed together


class LinearProgram(Protocol):
    """An LP that is solved repeatedly under other bounds; see `solvers.backends.warm_started_lp.WarmStartedLp`."""

    def solve(self, lower: Floats, upper: Floats) -> LpResult:
        """Solve between these bounds."""
        ...

    def farkas_ray(self) -> Floats | None:
        """Row multipliers that prove the last solve infeasible; None where unknown."""
        ...


class CountSearch:
    """Costs of evaluated counts, the cuts from them, and the best counts found."""

    def __init__(
        self, program: LinearProgram, part: Scaled, constant: float, settings: RoundingSettings = ROUNDING
    ) -> None:
        """`part`: the program over the columns that are not fixed; `constant`: cost of those that are."""
        self._program, self._part, self._constant, self._settings = program, part, constant, settings
        self.columns = np.flatnonzero(part.arrays.integer)
        self.size = np.abs(part.cost)
        self.best, self.x = math.inf, np.zeros(0)
        self._slope = np.zeros(0)
        self._optimality_cuts: list[tuple[float, Floats, Floats]] = []  # value, counts, slope
        self._feasibility_cuts: list[tuple[Floats, float]] = []  # weights, least weighted sum of feasible counts

    def relax(self, lower: Floats, upper: Floats, basis: object, cutoff: float) -> NodeResult:
        """Solve the LP between these bounds."""
        found = self._program.solve(lower, upper)
        if found.value is None or found.x is None or found.reduced_costs is None:
            return NodeResult(math.inf if found.status == "infeasible" else None)
        value, self._slope = found.value + self._constant, found.reduced_costs[self.columns]
        return NodeResult(cutoff) if value >= cutoff else NodeResult(value, found.x)

    def evaluate(self, counts: Floats) -> float:
        """Solve the LP with these counts, add the cut that follows, and return the cost."""
        lower, upper = self._part.arrays.lower.copy(), self._part.arrays.upper.copy()
        lower[self.columns] = upper[self.columns] = counts
        found = self.relax(lower, upper, None, math.inf)
        if found.x is None or found.value is None:
            self._add_feasibility_cut(counts)
            return math.inf
        self._optimality_cuts.append((found.value, counts, self._slope))
        if found.value < self.best:
            self.best, self.x = found.value, found.x
        return found.value

    def improve(self, target: float) -> None:
        """Evaluate neighbours of the best counts, least bound first, until `target` is reached or none can be better."""
        evaluated = {counts.tobytes() for _, counts, _ in self._optimality_cuts}
        for _ in range(self._settings.neighbours_evaluated):
            if self.best <= target:
                return
            chosen = self._least_neighbour(evaluated)
            if chosen is None:
                return
            evaluated.add(chosen.tobytes())
            self.evaluate(chosen)

    def _least_neighbour(self, evaluated: Collection[bytes]) -> Floats | None:
        """Find the neighbour of the best counts with the least bound that was not evaluated; None where none can be better."""
        arrays, here = self._part.arrays, np.round(self.x[self.columns])
        room = arrays.lower[self.columns] - here, arrays.upper[self.columns] - here
        rows = [(float(here @ weights) - side, weights) for weights, side in self._feasibility_cuts]
        cuts = [(value + float((here - counts) @ slope), slope) for value, counts, slope in self._optimality_cuts]
        least, chosen = self.best, None
        for first, down, second, up in neighbour_steps(len(here), self._settings.neighbourhood_radius):
            able = (
                (down >= room[0][first]) & (down <= room[1][first]) & (up >= room[0][second]) & (up <= room[1][second])
            )
            for over, weights in rows:
                able &= over + down * weights[first] + up * weights[second] >= 0.0
            first, down, second, up = first[able], down[able], second[able], up[able]
            bound = np.full(len(first), -math.inf)
            for value, slope in cuts:
                np.maximum(bound, value + down * slope[first] + up * slope[second], out=bound)
            while len(bound) and bound[best := int(np.argmin(bound))] < least:
                near = here.copy()
                near[first[best]] += down[best]
                near[second[best]] += up[best]
                if near.tobytes() not in evaluated:
                    least, chosen = float(bound[best]), near
                bound[best] = math.inf
        return chosen

    def _add_feasibility_cut(self, counts: Floats) -> None:
        """Add the row that the Farkas ray aggregates, with the other columns at their best bounds, if these counts violate it."""
        ray, arrays = self._program.farkas_ray(), self._part.arrays
        if ray is None or not ray.any():
            return
        row_tol, weight_tol = self._settings.row_tol, self._settings.fixed_width_tol
        for weights in (ray, -ray):  # the sign of a ray is a convention of the solver
            used = np.abs(weights) > weight_tol * np.abs(weights).max()
            least = float((weights[used] * np.where(weights > 0, arrays.row_lower, arrays.row_upper)[used]).sum())
            coefficients = arrays.matrix.T @ weights
            others = np.abs(coefficients) > row_tol * np.abs(coefficients).max()
            others[self.columns] = False
            best = np.where(coefficients > 0, arrays.upper, arrays.lower)
            least -= float((coefficients[others] * best[others]).sum())
            side = least - row_tol * abs(least)
            if math.isfinite(least) and counts @ coefficients[self.columns] < side:
                self._feasibility_cuts.append((coefficients[self.columns], side))
                return


def neighbour_steps(count: int, radius: int) -> Iterator[tuple[Ints, Floats, Ints, Floats]]:
    """Yield (first, its change, second, its change) of every step: one count changed, or one lowered and another raised, each by up to `radius`.

    In arrays of about `STEPS_AT_ONCE` steps, so that the memory does not grow with the number of all steps.
    """
    every, fars = np.arange(count), range(1, radius + 1)
    for far in (*range(-radius, 0), *fars):
        yield every, np.full(count, float(far)), every, np.zeros(count)
    up, second = (each.ravel() for each in np.meshgrid(np.array(fars, dtype=float), every, indexing="ij"))
    at_once = max(STEPS_AT_ONCE // max(len(second), 1), 1)
    for down in range(-radius, 0):
        for begin in range(0, count, at_once):
            lowered = every[begin : begin + at_once]
            first, others, raised = (
                lowered.repeat(len(second)),
                np.tile(second, len(lowered)),
                np.tile(up, len(lowered)),
            )
            apart = first != others
            yield first[apart], np.full(int(apart.sum()), float(down)), others[apart], raised[apart]
