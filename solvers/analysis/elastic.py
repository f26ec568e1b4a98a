"""The LP relaxation with elastic limits: which limits are too tight together, and by how much at least.

Each solve answers more than its own question, and its result is kept: its point shows that any limits it does not violate can be
satisfied, its duals that any limits they weight cannot. Not here: relief with integers (`solvers.analysis.relief`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from solvers.analysis.relief import LimitKey, elastic_program, is_structurally_infeasible, without_limits
from solvers.arrays import Floats
from solvers.backends.warm_started_lp import LpResult, WarmStartedLp
from solvers.interface import Options
from solvers.model.data import PlanData

VIOLATION_TOL = 1e-6  # sum of relative violations of limits below which the LP satisfies them
DUAL_TOL = 1e-9  # duals below this, relative to those of the objective, are rounding


class ElasticProgram:
    """Columns r_i >= 0 for limits i, rows use_i - r_i <= limit_i, objective sum_i c_i r_i / limit_i; warm-started between objectives.

    A solution of value v whose duals weight limit i by Y_i proves sum_i Y_i r_i / limit_i >= v for every plan.
    """

    def __init__(self, data: PlanData, keys: Sequence[LimitKey], options: Options, deadline: float = math.inf) -> None:
        """`keys`: the limits that are elastic. `columns`: size of the program, 0 where some demand or job has nothing that can serve it.
        `deadline`: on the performance counter [s]; a solve that it ends proves nothing.
        """
        self._data, self._place = data, {key: i for i, key in enumerate(keys)}
        self._points: list[Floats] = []  # [limits] relative relief of the solutions found
        self._proofs: list[tuple[float, Floats]] = []  # (v, Y [limits])
        self.columns = 0
        if is_structurally_infeasible(without_limits(data, keys)):
            return
        program, self._relief, self._size = elastic_program(data, keys, math.inf)
        arrays = program.arrays()
        self._lower, self._upper, self.columns = arrays.lower, arrays.upper, program.column_count
        options = replace(options, solver="highs", presolve=False)
        self._lp = WarmStartedLp(arrays, self._costs(np.ones(len(keys))), options, deadline=deadline)

    def is_infeasible_without(self, removed: Iterable[LimitKey]) -> bool:
        """Whether the other limits are proven too tight together, even in the LP relaxation."""
        gone = set(removed)
        if is_structurally_infeasible(without_limits(self._data, gone)):
            return True
        kept = np.array([key not in gone for key in self._place], dtype=bool)
        if any(violated[kept].sum() <= VIOLATION_TOL for violated in self._points):
            return False
        if any((weight[~kept] <= DUAL_TOL).all() and _is_proof(v, weight) for v, weight in self._proofs):
            return True
        # minimising the violation is much faster than asking whether there is none
        answer = self._solve(kept.astype(float), self._upper)
        return answer.status == "infeasible" or (answer.value or 0.0) > VIOLATION_TOL

    def least_relief(self, keys: Collection[LimitKey]) -> float:
        """Compute a lower bound on the sum of relative increases of these limits in any plan; infinite where no increase suffices."""
        if is_structurally_infeasible(without_limits(self._data, keys)):
            return math.inf
        change, known = np.array([key in keys for key in self._place], dtype=bool), self.relief_bound(keys)
        for r in self._points:
            if r[~change].sum() <= VIOLATION_TOL and r[change].sum() <= known * (1 + VIOLATION_TOL):
                return known
        upper = self._upper.copy()
        upper[self._relief[~change]] = 0.0
        answer = self._solve(change.astype(float), upper)
        return math.inf if answer.status == "infeasible" else max(answer.value or 0.0, known)

    def relief_bound(self, keys: Collection[LimitKey]) -> float:
        """Return a lower bound of `least_relief` from earlier solves; 0 without any."""
        change = [self._place[key] for key in keys]
        bounds = (
            v / most if (most := weight[change].max(initial=0.0)) > DUAL_TOL else math.inf
            for v, weight in self._proofs
            if v > VIOLATION_TOL
        )
        return max(bounds, default=0.0)

    def infeasible_subset(self, keys: Sequence[LimitKey]) -> list[LimitKey]:
        """Return the limits that are too tight together by the proof that needs fewest; all where there is no proof."""
        mine, proofs = {self._place[key] for key in keys}, []
        for v, weight in self._proofs:
            needed = set(np.flatnonzero(weight > DUAL_TOL).tolist())
            if _is_proof(v, weight) and mine.issuperset(needed):
                proofs.append(needed)
        fewest = min(proofs, key=len, default=mine)
        return [key for key in keys if self._place[key] in fewest]

    def _costs(self, weight: Floats) -> Floats:
        cost = np.zeros(self.columns)
        cost[self._relief] = weight / self._size
        return cost

    def _solve(self, weight: Floats, upper: Floats) -> LpResult:
        """Minimise the relief with these weights, and keep the point and the proof."""
        answer = self._lp.solve(self._lower, upper, self._costs(weight))
        if answer.x is not None and answer.value is not None and answer.reduced_costs is not None:
            self._points.append(np.maximum(answer.x[self._relief], 0.0) / self._size)
            proof = np.maximum(weight - answer.reduced_costs[self._relief] * self._size, 0.0)
            self._proofs.append((answer.value, proof))
        return answer


def _is_proof(value: float, weight: Floats) -> bool:
    """Whether a value proves infeasibility beyond rounding."""
    return value > VIOLATION_TOL * max(1.0, float(weight.max(initial=0.0)))
