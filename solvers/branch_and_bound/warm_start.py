"""A mixed-integer program that stays loaded, so that a similar one starts from its bases, solutions and pseudocosts."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.relaxation import NodeLp
from solvers.branch_and_bound.run import run_branch_and_bound, run_without_sub_mips, uses_branch_and_bound
from solvers.interface import Options, Outcome
from solvers.program import Arrays, Scaled

REMEMBERED_PROGRAMS = 8  # earlier programs whose bases are kept: the first, and the latest ones
ROOT = "root"  # key of the root relaxation's basis


class WarmStartedMip:
    """A program in the solver that the next one of the same structure is changed to.

    Only costs, bounds, sides and coefficients may differ. The relaxation starts from the last root basis, and earlier solutions are
    tried as MIP starts. `bases`: bases of the program last changed to, which others may add to.
    """

    def __init__(
        self, scaled: Scaled, options: Options, before: tuple[WarmStartedMip, Ints, Ints] | None = None
    ) -> None:
        """`before`: a program to take the basis from, and the number that each column and row had there, -1 for a new one."""
        self._scaled = scaled
        self.earlier_solutions: Sequence[Floats] = ()  # only their integers count
        self._remembered: list[tuple[Scaled, dict[str, Any]]] = []  # programs and their bases
        self._relaxation = NodeLp(scaled, options, lambda: options.time_limit_s)
        if before is not None:
            self._relaxation.start_from(before[0]._relaxation, *before[1:])
        else:
            self._relaxation.solve(scaled.arrays.lower, scaled.arrays.upper, None, math.inf)
        self._remember({ROOT: self._relaxation.root_basis})

    def _remember(self, bases: dict[str, Any]) -> None:
        self.bases = bases
        latest = self._remembered[1:][2 - REMEMBERED_PROGRAMS :]
        self._remembered = [*self._remembered[:1], *latest, (self._scaled, bases)]

    def has_structure_of(self, arrays: Arrays) -> bool:
        """Whether a program has its nonzeros and its integers in the same places as this one."""
        mine, other = self._scaled.arrays, arrays
        if mine.matrix.shape != other.matrix.shape:
            return False
        other = arrays.scaled_like(np.zeros(len(arrays.lower)), self._scaled).arrays
        return bool(
            np.array_equal(mine.matrix.indptr, other.matrix.indptr)
            and np.array_equal(mine.matrix.indices, other.matrix.indices)
            and np.array_equal(mine.integer, other.integer)
        )

    def change(self, arrays: Arrays, cost: Floats) -> Scaled:
        """Change to a program of the same structure, starting from the bases of the most similar one so far."""
        self._scaled = arrays.scaled_like(cost, self._scaled)
        self._relaxation.change(self._scaled)
        nearest = min(reversed(self._remembered), key=lambda known: _differences(known[0], self._scaled))
        self._remember(dict(nearest[1]))
        self._relaxation.root_basis = self.bases[ROOT]
        return self._scaled

    def run(self, scaled: Scaled, options: Options, tolerance: float, start: Floats | None = None) -> Outcome:
        """Solve the program last changed to: by the search where it is worth it, else by the root relaxation and its heuristics."""
        found = self._run(scaled, options, tolerance, start)
        self.bases[ROOT] = self._relaxation.root_basis
        return found

    def _run(self, scaled: Scaled, options: Options, tolerance: float, start: Floats | None) -> Outcome:
        arrays, known = scaled.arrays, [x / scaled.column for x in self.earlier_solutions]
        if (arrays.lower > arrays.upper).any():
            return Outcome("infeasible")
        if uses_branch_and_bound(arrays, options):
            return run_branch_and_bound(scaled, options, tolerance, start, self._relaxation, known)
        deadline = time.perf_counter() + options.time_limit_s
        self._relaxation.seconds_left = lambda: options.noted(deadline - time.perf_counter())
        found = run_without_sub_mips(scaled, options, self._relaxation, known, start)
        return Outcome("limit" if found.x is None else "optimal", found.x, found.bound)


def _differences(one: Scaled, other: Scaled) -> int:
    """Count the numbers in which two programs of the same structure differ."""

    def numbers(scaled: Scaled) -> tuple[Floats, ...]:
        return scaled.cost, scaled.arrays.row_lower, scaled.arrays.row_upper, scaled.arrays.matrix.data

    return sum(int((first != second).sum()) for first, second in zip(numbers(one), numbers(other), strict=True))
