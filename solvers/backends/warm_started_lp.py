"""A linear program that stays in HiGHS and is solved repeatedly under other bounds or costs, each time from the last basis."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs_run import LP_FEASIBILITY_TOL, configured_highs
from solvers.interface import Options
from solvers.program import Arrays

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # HiGHS option simplex_strategy
DEVEX = 1  # HiGHS option simplex_dual_edge_weight_strategy: steepest edge takes longer than it saves here


@dataclass(frozen=True, slots=True)
class LpResult:
    """Result of a linear program, in the units of its caller.

    `row_duals`: change of the objective per unit of a row's active side. `reduced_costs`: the same per unit of a column's active bound.
    """

    status: str  # optimal | infeasible | unbounded | limit
    value: float | None = None
    x: Floats | None = None
    row_duals: Floats | None = None
    reduced_costs: Floats | None = None


class WarmStartedLp:
    """Minimise cost x over the rows and bounds of `arrays`, with integrality dropped."""

    def __init__(
        self, arrays: Arrays, cost: Floats, options: Options, basis: Any = None, deadline: float = math.inf, most_iterations: int | None = None,
    ) -> None:  # fmt: skip
        """`basis`: of a program of the same shape, to start from; `deadline`: on the performance counter [s]; `most_iterations`: of each solve."""
        self._scaled = replace(arrays, integer=np.zeros_like(arrays.integer)).scaled(cost)
        self._highs = configured_highs(replace(options, node_limit=None), LP_FEASIBILITY_TOL, self._scaled)
        self._highs.setOptionValue("simplex_dual_edge_weight_strategy", DEVEX)
        if most_iterations is not None:
            self._highs.setOptionValue("simplex_iteration_limit", most_iterations)
        if not options.presolve:
            self._highs.setOptionValue("presolve", "off")
        self._lower, self._upper, self._cost = arrays.lower, arrays.upper, cost
        self._options, self._deadline = options, deadline
        self.start_from(basis)

    @property
    def basis(self) -> Any:
        """Basis of the last solution."""
        return self._highs.getBasis()

    def start_from(self, basis: Any) -> None:
        """Set the basis for the next solve; ignore one of another shape."""
        if basis is not None:
            self._highs.setBasis(basis)  # HiGHS refuses one of another size, sooner than it is read here

    def farkas_ray(self) -> Floats | None:
        """Row multipliers that prove the last solve infeasible; None where HiGHS has none."""
        _, known, multipliers = self._highs.getDualRay()
        return multipliers * self._scaled.row if known else None

    def solve(self, lower: Floats, upper: Floats, cost: Floats | None = None, *, value_only: bool = False) -> LpResult:
        """Solve between these bounds, at another cost if given. `value_only` leaves out columns and duals."""
        import highspy

        highs = self._highs
        self._change(lower, upper, cost)
        seconds = max(min(self._options.time_limit_s, self._deadline - time.perf_counter()), 0.0)
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        statuses = highspy.HighsModelStatus
        named = {
            statuses.kOptimal: "optimal",
            statuses.kInfeasible: "infeasible",
            statuses.kUnbounded: "unbounded",
        }
        if highs.getModelStatus() == statuses.kTimeLimit:
            self._options.note_time_up()
        status = named.get(highs.getModelStatus(), "limit")
        if status != "optimal":
            return LpResult(status)
        scaled = self._scaled
        value = highs.getInfo().objective_function_value / scaled.objective
        if value_only:
            return LpResult(status, value)
        solution = highs.getSolution()
        return LpResult(
            status,
            value,
            np.array(solution.col_value) * scaled.column,
            np.array(solution.row_dual) * scaled.row / scaled.objective,
            np.array(solution.col_dual) / scaled.column / scaled.objective,
        )

    def _change(self, lower: Floats, upper: Floats, cost: Floats | None) -> None:
        """Pass changed bounds and costs to HiGHS, and choose the simplex that the last basis suits.

        After a change of cost the last solution is still primal feasible, so that primal simplex continues from it.
        """
        highs, column = self._highs, self._scaled.column
        cost_changed = cost is not None and bool((cost != self._cost).any())
        highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX if cost_changed else DUAL_SIMPLEX)
        if cost is not None and cost_changed:
            for j in np.flatnonzero(cost != self._cost):
                highs.changeColCost(int(j), cost[j] * column[j] * self._scaled.objective)
            self._cost = cost.copy()
        for j in np.flatnonzero((lower != self._lower) | (upper != self._upper)):
            highs.changeColBounds(int(j), lower[j] / column[j], upper[j] / column[j])
        self._lower, self._upper = lower.copy(), upper.copy()
