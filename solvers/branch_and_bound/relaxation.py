"""Linear relaxations: their answers, and what a node of the search reads of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.backends.highs_run import configured_highs
from solvers.branch_and_bound.search import NodeResult
from solvers.interface import Options
from solvers.program import Arrays, Scaled


class NodeLp:
    """The linear relaxation, kept in one HiGHS object so that each solve starts from the last basis."""

    def __init__(self, scaled: Scaled, options: Options, left) -> None:
        arrays = scaled.arrays
        linear = replace(scaled, arrays=replace(arrays, integer=np.zeros_like(arrays.integer)))
        self._highs = configured_highs(replace(options, node_limit=None), 1e-7, linear)
        self._lower, self._upper = arrays.lower.copy(), arrays.upper.copy()
        self._scaled, self.root = linear, None  # the basis of the last optimum that was not searched from another
        self.left, self.pseudocosts = left, {}  # what choices cost, learnt by searches
        self.ended, self.iterations = "", 0

    def start_from(self, other: NodeLp, columns: Ints, rows: Ints) -> None:
        from solvers.backends.persistent_lp import mapped_basis

        self.root = None if other.root is None else mapped_basis(other.root, columns, rows)

    def change(self, scaled: Scaled) -> None:
        """To another program with entries in the same places; the next solve starts from `root`."""
        old, new, highs = self._scaled.arrays, scaled.arrays, self._highs
        column = np.flatnonzero(scaled.cost != self._scaled.cost).astype(np.int32)
        highs.changeColsCost(len(column), column, scaled.cost[column])
        row = np.flatnonzero((new.row_lower != old.row_lower) | (new.row_upper != old.row_upper)).astype(np.int32)
        highs.changeRowsBounds(len(row), row, new.row_lower[row], new.row_upper[row])
        for entry in np.flatnonzero(new.matrix.data != old.matrix.data):
            at = int(np.searchsorted(new.matrix.indptr, entry, side="right")) - 1
            highs.changeCoeff(int(new.matrix.indices[entry]), at, new.matrix.data[entry])
        self._scaled = scaled

    def solve(self, lower: Floats, upper: Floats, basis: object, stop_at: float) -> NodeResult:
        import highspy

        changed = np.flatnonzero((lower != self._lower) | (upper != self._upper))
        for column in changed:
            self._highs.changeColBounds(int(column), lower[column], upper[column])
        self._lower, self._upper = lower.copy(), upper.copy()
        first, basis = basis is None, self.root if basis is None else basis
        if basis is not None:
            # weights of Devex pricing start at 1; those of steepest edge would be computed anew from the basis
            self._highs.setOptionValue("simplex_dual_edge_weight_strategy", 1)
            self._highs.setBasis(basis)
        self._highs.setOptionValue("objective_bound", stop_at)
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(0.0, self.left()))
        self._highs.run()
        self.iterations += self._highs.getInfo().simplex_iteration_count
        status, kinds = self._highs.getModelStatus(), highspy.HighsModelStatus
        if status == kinds.kOptimal:
            self.ended, found = "optimal", self._highs.getBasis()
            if first:
                self.root = found
            return NodeResult(
                self._highs.getInfo().objective_function_value, np.array(self._highs.getSolution().col_value), found
            )
        if status == kinds.kObjectiveBound:
            return NodeResult(stop_at)
        if status == kinds.kInfeasible:
            self.ended = "infeasible"
            return NodeResult(math.inf)
        if status in (kinds.kUnbounded, kinds.kUnboundedOrInfeasible):
            self.ended = "unbounded"
            return NodeResult(-math.inf)
        self.ended = "limit"
        return NodeResult(None)


@dataclass(frozen=True, slots=True)
class LpResult:
    """`row_duals`, `reduced_costs`: change of the objective per unit of a row's side, or of the bound a column is at."""

    status: str  # optimal | infeasible | unbounded | limit
    value: float | None = None
    x: Floats | None = None
    row_duals: Floats | None = None
    reduced_costs: Floats | None = None


class WarmStartedLp:
    """A linear program that is minimised again and again under other bounds or costs, each time from the last basis."""

    def __init__(
        self, arrays: Arrays, cost: Floats, options: Options, basis: object = None, ends: float = math.inf
    ) -> None:
        """`basis`: of a program alike, to start from. `ends`: on the performance counter [s], when no answer is sought any longer."""
        self._scaled = replace(arrays, integer=np.zeros_like(arrays.integer)).scaled(cost)
        self._highs = configured_highs(replace(options, node_limit=None), 1e-7, self._scaled)
        self._highs.setOptionValue(
            "simplex_dual_edge_weight_strategy", 1
        )  # Devex: steepest edge takes longer than it saves
        if not options.presolve:
            self._highs.setOptionValue("presolve", "off")
        self._lower, self._upper, self._cost, self._seconds, self._ends = (
            arrays.lower,
            arrays.upper,
            cost,
            options.time_limit_s,
            ends,
        )
        self.start_from(basis)

    @property
    def basis(self) -> object:
        """Where the last answer stands."""
        return self._highs.getBasis()

    def start_from(self, basis: object) -> None:
        """The next answer starts there; one of another shape is passed over."""
        if basis is not None and (len(basis.row_status), len(basis.col_status)) == self._scaled.arrays.matrix.shape:
            self._highs.setBasis(basis)

    def farkas_ray(self) -> Floats | None:
        """Multipliers of rows that show why the last one has no answer; None where they are not known."""
        _, known, multipliers = self._highs.getDualRay()
        return multipliers * self._scaled.row if known else None

    def solve(self, lower: Floats, upper: Floats, cost: Floats | None = None, *, value_only: bool = False) -> LpResult:
        import highspy

        column, highs = self._scaled.column, self._highs
        cost_changed = cost is not None and bool((cost != self._cost).any())
        highs.setOptionValue(
            "simplex_strategy", 4 if cost_changed else 1
        )  # the last answer is still one under other costs: primal simplex goes on from it
        if cost_changed:
            for j in np.flatnonzero(cost != self._cost):
                highs.changeColCost(int(j), cost[j] * column[j] * self._scaled.objective)
            self._cost = cost.copy()
        for j in np.flatnonzero((lower != self._lower) | (upper != self._upper)):
            highs.changeColBounds(int(j), lower[j] / column[j], upper[j] / column[j])
        self._lower, self._upper = lower.copy(), upper.copy()
        highs.setOptionValue(
            "time_limit", highs.getRunTime() + max(min(self._seconds, self._ends - time.perf_counter()), 0.0)
        )
        highs.run()
        kinds = highspy.HighsModelStatus
        named = {kinds.kOptimal: "optimal", kinds.kInfeasible: "infeasible", kinds.kUnbounded: "unbounded"}
        status = named.get(highs.getModelStatus(), "limit")
        if status != "optimal":
            return LpResult(status)
        value, scale = highs.getInfo().objective_function_value / self._scaled.objective, self._scaled.objective
        if value_only:
            return LpResult(status, value)
        solution = highs.getSolution()
        return LpResult(
            status,
            value,
            np.array(solution.col_value) * column,
            np.array(solution.row_dual) * self._scaled.row / scale,
            np.array(solution.col_dual) / column / scale,
        )
