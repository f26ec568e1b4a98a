"""A mixed-integer program that keeps its state between solves."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound import relaxation, run
from solvers.branch_and_bound.search import SubMipResult
from solvers.interface import Options, Outcome
from solvers.program import Arrays, Scaled

ASKED = 8  # programs alike whose bases are kept


ROOT = "root"  # basis of the relaxation


class WarmStartedMip:
    """A program that stays with its solver. The next one that has its entries in the same places is told by its changes in
    costs, bounds, sides and entries; the relaxation goes on from the last root basis, and known answers are tried again."""

    def __init__(
        self, scaled: Scaled, options: Options, before: tuple[WarmStartedMip, Ints, Ints] | None = None
    ) -> None:
        """`before`: one to start from, and for each column and row which one of it that was, -1 for none."""
        self._scaled = scaled
        self.known: Sequence[Floats] = ()  # answers that may hold here too; of each, its integers count only
        self._asked: list[tuple[Scaled, dict[str, object]]] = []  # the first program and the last ones, and their bases
        self._relaxation = relaxation.NodeLp(scaled, options, lambda: options.time_limit_s)
        if before is not None:
            self._relaxation.start_from(before[0]._relaxation, *before[1:])
        else:
            self._relaxation.solve(scaled.arrays.lower, scaled.arrays.upper, None, math.inf)
        self._remember({ROOT: self._relaxation.root})

    def _remember(self, bases: dict[str, object]) -> None:
        self.bases = bases
        self._asked = [*self._asked[:1], *self._asked[1:][2 - ASKED :], (self._scaled, bases)]

    def alike(self, arrays: Arrays) -> bool:
        """Whether the program has its entries where this one has them."""
        one, other = (
            self._scaled.arrays,
            arrays.scaled_like(np.zeros(len(arrays.lower)), self._scaled).arrays
            if (self._scaled.arrays.matrix.shape == arrays.matrix.shape)
            else arrays,
        )
        return bool(
            one.matrix.shape == other.matrix.shape
            and np.array_equal(one.matrix.indptr, other.matrix.indptr)
            and np.array_equal(one.matrix.indices, other.matrix.indices)
            and np.array_equal(one.integer, other.integer)
        )

    def change(self, arrays: Arrays, cost: Floats) -> Scaled:
        """To a program that is alike; it starts where the one that differs least from it ended."""
        self._scaled = arrays.scaled_like(cost, self._scaled)
        self._relaxation.change(self._scaled)
        self._remember(dict(min(reversed(self._asked), key=lambda asked: _differences(asked[0], self._scaled))[1]))
        self._relaxation.root = self.bases[ROOT]
        return self._scaled

    def run(self, scaled: Scaled, options: Options, tolerance: float, start: Floats | None = None) -> Outcome:
        found = self._run(scaled, options, tolerance, start)
        self.bases[ROOT] = self._relaxation.root
        return found

    def _run(self, scaled: Scaled, options: Options, tolerance: float, start: Floats | None) -> Outcome:
        """As the search over the binaries where that is worth it; else what relaxation, known answers and one dive tell."""
        arrays, known = scaled.arrays, [x / scaled.column for x in self.known]
        if (arrays.lower > arrays.upper).any():
            return Outcome("infeasible")
        if run.uses_branch_and_bound(arrays, options):
            return run.run_branch_and_bound(scaled, options, tolerance, start, self._relaxation, known)
        end = time.perf_counter() + options.time_limit_s
        self._relaxation.left = lambda: end - time.perf_counter()
        search = run.make_search(
            scaled, options, self._relaxation, lambda *_: SubMipResult(math.inf, None, -math.inf), 0, known, None
        )
        found = search.run(arrays.lower, arrays.upper, start, math.inf if start is None else float(scaled.cost @ start))
        return Outcome("limit" if found.x is None else "optimal", found.x, found.bound)


def _differences(one: Scaled, other: Scaled) -> int:
    """Numbers that two programs with entries in the same places do not share."""
    numbers = lambda scaled: (scaled.cost, scaled.arrays.row_lower, scaled.arrays.row_upper, scaled.arrays.matrix.data)
    return sum(int((first != second).sum()) for first, second in zip(numbers(one), numbers(other), strict=True))
