"""The linear relaxation with limits that give way: which of them are too tight together, and by how much at least.

Each answer settles more than its own question, and is kept: its point shows that any limits it does not violate can be
met, its duals that any limits they weigh cannot. Not here: relief of whole systems (`solvers.analysis.conflicts`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from solvers.analysis.relief import Row, elastic_program, is_structurally_infeasible, without_limits
from solvers.arrays import Floats
from solvers.backends.warm_started_lp import LpResult, WarmStartedLp
from solvers.mip import Options
from solvers.model.data import PlanData

VIOLATION = 1e-6  # sum of relative violations of limits below which the linear program meets them
UNWEIGHED = 1e-9  # duals below this, relative to those of the objective, are the solver's rounding


class ElasticProgram:
    """Columns r_i >= 0 for the limits i, rows use_i - r_i <= limit_i, objective sum c_i r_i / limit_i with c_i of the
    question; warm from question to question.

    Duals with the value v that weigh limit i by Y_i prove sum_i Y_i r_i / limit_i >= v for every answer.
    """

    def __init__(self, data: PlanData, rows: Sequence[Row], options: Options) -> None:
        self._data, self._place = data, {row: i for i, row in enumerate(rows)}
        self._points: list[Floats] = []  # [limits] relative relief of the points found
        self._proofs: list[tuple[float, Floats]] = []  # (v, Y [limits])
        self.columns = 0
        if is_structurally_infeasible(without_limits(data, rows)):
            return
        program, self._relief, self._size = elastic_program(data, rows, math.inf)
        arrays = program.arrays()
        self._lower, self._upper, self.columns = arrays.lower, arrays.upper, program.column_count
        self._linear = WarmStartedLp(
            arrays, self._costs(np.ones(len(rows))), replace(options, solver="highs", presolve=False)
        )

    def is_infeasible_without(self, loose: Iterable[Row]) -> bool:
        """Whether the other limits are proven to be too tight, even with integers in fractions."""
        gone = set(loose)
        if is_structurally_infeasible(without_limits(self._data, gone)):
            return True
        kept = np.array([row not in gone for row in self._place], dtype=bool)
        if any(violated[kept].sum() <= VIOLATION for violated in self._points):
            return False
        if any(
            (weight[~kept] <= UNWEIGHED).all() and v > VIOLATION * max(1.0, weight.max(initial=0.0))
            for v, weight in self._proofs
        ):
            return True
        # to ask for the least violation is far quicker than to ask whether there is none
        answer = self._solve(kept.astype(float), self._upper)
        return answer.status == "infeasible" or (answer.value or 0.0) > VIOLATION

    def least_relief(self, rows: Collection[Row]) -> float:
        """A sum of relative changes of these limits below which there is surely no plan; infinite where none is enough."""
        if is_structurally_infeasible(without_limits(self._data, rows)):
            return math.inf
        change, known = np.array([row in rows for row in self._place], dtype=bool), self.relief_bound(rows)
        if any(r[~change].sum() <= VIOLATION and r[change].sum() <= known * (1 + VIOLATION) for r in self._points):
            return known
        upper = self._upper.copy()
        upper[self._relief[~change]] = 0.0
        answer = self._solve(change.astype(float), upper)
        return math.inf if answer.status == "infeasible" else max(answer.value or 0.0, known)

    def relief_bound(self, rows: Collection[Row]) -> float:
        """As `least_relief`, from what is known already: 0 where that is nothing."""
        change = [self._place[row] for row in rows]
        return max(
            (
                v / most if (most := weight[change].max(initial=0.0)) > UNWEIGHED else math.inf
                for v, weight in self._proofs
                if v > VIOLATION
            ),
            default=0.0,
        )

    def infeasible_subset(self, rows: Sequence[Row]) -> list[Row]:
        """Those of the rows that are too tight together by the proof that needs fewest of them; all where nothing is proven of them."""
        mine, proofs = {self._place[row] for row in rows}, []
        for v, weight in self._proofs:
            needed = np.flatnonzero(weight > UNWEIGHED)
            if v > VIOLATION * max(1.0, weight.max(initial=0.0)) and mine.issuperset(needed.tolist()):
                proofs.append(set(needed.tolist()))
        least = min(proofs, key=len, default=mine)
        return [row for row in rows if self._place[row] in least]

    def _costs(self, weight: Floats) -> Floats:
        cost = np.zeros(self.columns)
        cost[self._relief] = weight / self._size
        return cost

    def _solve(self, weight: Floats, upper: Floats) -> LpResult:
        """Minimise the relief so weighed, and note what the answer shows."""
        answer = self._linear.solve(self._lower, upper, self._costs(weight))
        if answer.status == "optimal":
            self._points.append(np.maximum(answer.x[self._relief], 0.0) / self._size)
            self._proofs.append(
                (answer.value, np.maximum(weight - answer.reduced_costs[self._relief] * self._size, 0.0))
            )
        return answer
