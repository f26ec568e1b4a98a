"""The LP relaxation at the nodes of a search, kept in HiGHS so that each solve starts from a parent's basis."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.backends.highs_run import LP_FEASIBILITY_TOL, configured_highs
from solvers.backends.persistent_lp import mapped_basis
from solvers.backends.warm_started_lp import DEVEX
from solvers.branch_and_bound.branching import Pseudocosts
from solvers.branch_and_bound.nodes import NodeResult
from solvers.branch_and_bound.settings import SETTINGS
from solvers.interface import Options
from solvers.program import Scaled


class NodeLp:
    """The LP relaxation of a scaled program, with what earlier searches over it learnt.

    `root_basis`: of the last optimum that was not solved from another node's; `pseudocosts`: carried from one search to the next;
    `seconds_left`: asked before each solve; `status`: of the last solve; `iterations`: simplex iterations of all solves.
    """

    def __init__(self, scaled: Scaled, options: Options, seconds_left: Callable[[], float]) -> None:
        arrays = scaled.arrays
        linear = replace(scaled, arrays=replace(arrays, integer=np.zeros_like(arrays.integer)))
        self._highs = configured_highs(replace(options, node_limit=None), LP_FEASIBILITY_TOL, linear)
        self._lower, self._upper = arrays.lower.copy(), arrays.upper.copy()
        self._scaled = linear
        self.root_basis: Any = None
        self.seconds_left, self.pseudocosts = seconds_left, Pseudocosts(SETTINGS.pseudocost_history)
        self.status, self.iterations = "", 0

    def start_from(self, other: NodeLp, columns: Ints, rows: Ints) -> None:
        """Take over the root basis of a similar program; `columns`, `rows`: the number that each had there, -1 for a new one."""
        self.root_basis = None if other.root_basis is None else mapped_basis(other.root_basis, columns, rows)

    def change(self, scaled: Scaled) -> None:
        """Change to a program with its entries in the same places; the next solve starts from `root_basis`."""
        old, new, highs = self._scaled.arrays, scaled.arrays, self._highs
        column = np.flatnonzero(scaled.cost != self._scaled.cost).astype(np.int32)
        highs.changeColsCost(len(column), column, scaled.cost[column])
        row = np.flatnonzero((new.row_lower != old.row_lower) | (new.row_upper != old.row_upper)).astype(np.int32)
        highs.changeRowsBounds(len(row), row, new.row_lower[row], new.row_upper[row])
        for entry in np.flatnonzero(new.matrix.data != old.matrix.data):
            at = int(np.searchsorted(new.matrix.indptr, entry, side="right")) - 1
            highs.changeCoeff(int(new.matrix.indices[entry]), at, new.matrix.data[entry])
        self._scaled = scaled

    def solve(self, lower: Floats, upper: Floats, basis: Any, cutoff: float) -> NodeResult:
        """Solve the relaxation between these bounds from `basis` (None: the root basis), up to a value of `cutoff`."""
        import highspy

        highs, statuses = self._highs, highspy.HighsModelStatus
        for column in np.flatnonzero((lower != self._lower) | (upper != self._upper)):
            highs.changeColBounds(int(column), lower[column], upper[column])
        self._lower, self._upper = lower.copy(), upper.copy()
        at_root, basis = basis is None, self.root_basis if basis is None else basis
        if basis is not None:
            # Devex weights start at 1; steepest-edge weights would be computed anew from the basis
            highs.setOptionValue("simplex_dual_edge_weight_strategy", DEVEX)
            highs.setBasis(basis)
        highs.setOptionValue("objective_bound", cutoff)
        highs.setOptionValue("time_limit", highs.getRunTime() + max(0.0, self.seconds_left()))
        highs.run()
        self.iterations += highs.getInfo().simplex_iteration_count
        status = highs.getModelStatus()
        if status == statuses.kOptimal:
            self.status, found = "optimal", highs.getBasis()
            if at_root:
                self.root_basis = found
            x = np.array(highs.getSolution().col_value)
            return NodeResult(highs.getInfo().objective_function_value, x, found)
        if status == statuses.kObjectiveBound:
            return NodeResult(cutoff)
        if status == statuses.kInfeasible:
            self.status = "infeasible"
            return NodeResult(math.inf)
        if status in (statuses.kUnbounded, statuses.kUnboundedOrInfeasible):
            self.status = "unbounded"
            return NodeResult(-math.inf)
        self.status = "limit"
        return NodeResult(None)
