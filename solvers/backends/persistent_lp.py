"""Linear programs that stay loaded in HiGHS and are re-solved from the last basis while bounds, rows or coefficients change.

The caller scales: numbers go to the solver as given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.highs import highs_lp, new_highs
from solvers.interface import ENUMERATION_PRESOLVE_RULE, SolverError

MIP_NODE_LIMIT = 50  # nodes of `RowGenerationLp.solve_mip`
LOOSE_FEASIBILITY_TOL = 1e-7  # tried where HiGHS fails at a tighter tolerance
DUAL_SIMPLEX = 1


def _loaded_highs(
    matrix: sparse.csc_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats, cost: Floats
) -> Any:
    highs = new_highs()
    for name, value in (("solver", "simplex"), ("presolve", "off"), ("simplex_strategy", DUAL_SIMPLEX)):
        highs.setOptionValue(name, value)
    highs.passModel(highs_lp(cost, matrix, (row_lower, row_upper), (lower, upper)))
    return highs


def mapped_basis(before: Any, columns: Ints, rows: Ints) -> Any:
    """Carry a basis over to another program.

    `columns`, `rows`: the number that each had in the program of `before`, -1 for a new one. New columns start at their lower bound,
    new rows as basic.
    """
    import highspy

    basis, status = highspy.HighsBasis(), highspy.HighsBasisStatus
    column_status, row_status = [*before.col_status, status.kLower], [*before.row_status, status.kBasic]
    basis.col_status = [column_status[i] for i in columns.tolist()]
    basis.row_status = [row_status[i] for i in rows.tolist()]
    basis.valid = basis.alien = True
    return basis


class SlotLp:
    """A linear program whose row sides, costs and leading columns' upper bounds change."""

    def __init__(
        self, matrix: sparse.csc_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats, cost: Floats
    ) -> None:
        self._highs = _loaded_highs(matrix, row_lower, row_upper, lower, upper, cost)
        self._tolerance = float(self._highs.getOptionValue("primal_feasibility_tolerance")[1])

    def solve(self, rows: Ints, row_upper: Floats, most: Floats) -> tuple[float, Floats, Floats]:
        """Solve with `rows` at most `row_upper` and the first columns at most `most`.

        Return the value, all row duals, and the reduced costs of the first columns.
        """
        import highspy

        count = len(most)
        self._highs.changeRowsBounds(len(rows), rows.astype(np.int32), np.full(len(rows), -np.inf), row_upper)
        self._highs.changeColsBounds(count, np.arange(count, dtype=np.int32), np.zeros(count), most)
        self._highs.run()
        for tolerance in (None, LOOSE_FEASIBILITY_TOL):  # without the basis, then with a looser tolerance too
            if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                break
            self._highs.clearSolver()
            if tolerance is not None:
                self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.run()
        self.set_tolerance(self._tolerance)
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"the program of a slot ended as {self._highs.getModelStatus()}")
        found = self._highs.getSolution()
        value = self._highs.getInfo().objective_function_value
        return value, np.array(found.row_dual), np.array(found.col_dual)[:count]

    def values(self) -> Floats:
        """Columns of the last solution."""
        return np.array(self._highs.getSolution().col_value)

    def warm_start_from(self, other: SlotLp, columns: Ints, rows: Ints) -> None:
        """Take over the basis of a similar program, as in `mapped_basis`."""
        before = other._highs.getBasis()
        if before.valid:
            self._highs.setBasis(mapped_basis(before, columns, rows))

    def set_costs(self, columns: Ints, cost: Floats) -> None:
        """Change the cost of columns."""
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), cost)

    def fix_at_zero(self, columns: Ints) -> None:
        """Fix columns at 0."""
        zero = np.zeros(len(columns))
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), zero, zero)

    def set_tolerance(self, tolerance: float) -> None:
        """Set the feasibility tolerance of rows for all later solves."""
        self._tolerance = tolerance
        self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)


class CoefficientLp:
    """A linear program whose coefficients change."""

    def __init__(
        self, matrix: sparse.csc_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats, cost: Floats
    ) -> None:
        self._highs = _loaded_highs(matrix, row_lower, row_upper, lower, upper, cost)

    def change(self, rows: Ints, columns: Ints, values: Floats) -> None:
        """Change coefficients, given by row and column."""
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            self._highs.changeCoeff(row, column, value)

    def bound(self, columns: Ints, lower: Floats, upper: Floats) -> None:
        """Change the bounds of columns."""
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)

    def price(self, columns: Ints, cost: Floats) -> None:
        """Change the cost of columns."""
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), cost)

    def solve(self) -> Floats:
        """Solve and return the columns."""
        import highspy

        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # again without the basis
            self._highs.clearSolver()
            self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"a program with changed coefficients ended as {self._highs.getModelStatus()}")
        return np.array(self._highs.getSolution().col_value)


class RowGenerationLp:
    """A linear program to which rows are added; a copy of it can be solved with integer columns."""

    def __init__(
        self, matrix: sparse.csc_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats, cost: Floats
    ) -> None:
        self._highs = _loaded_highs(matrix, row_lower, row_upper, lower, upper, cost)
        self._tolerance = LOOSE_FEASIBILITY_TOL
        self.columns = matrix.shape[1]

    def set_tolerance(self, tolerance: float) -> None:
        """Set the feasibility tolerance of rows for all later solves."""
        self._tolerance = tolerance

    def add_rows(self, lower: Floats, matrix: sparse.csr_array) -> None:
        """Add rows `matrix x >= lower`."""
        self._highs.addRows(
            len(lower),
            lower,
            np.full(len(lower), np.inf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def delete_rows(self, rows: Ints) -> None:
        """Delete rows by number."""
        self._highs.deleteRows(len(rows), rows.astype(np.int32))

    def set_bounds(self, lower: Floats, upper: Floats) -> None:
        """Set the bounds of all columns."""
        self._highs.changeColsBounds(self.columns, np.arange(self.columns, dtype=np.int32), lower, upper)

    def solve(self, seconds: float = np.inf) -> tuple[float, Floats, Floats] | None:
        """Return (value, columns, row duals); None where infeasible, out of time, or numerically unsolved."""
        import highspy

        until = self._highs.getRunTime() + seconds
        self._highs.setOptionValue("time_limit", until)  # HiGHS counts the time of all its runs
        settled = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
        attempts = (  # again without the basis, with presolve, and with a looser tolerance
            (self._tolerance, "off"),
            (self._tolerance, "off"),
            (self._tolerance, "on"),
            (LOOSE_FEASIBILITY_TOL, "on"),
        )
        for tolerance, presolve in attempts:
            self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.setOptionValue("presolve", presolve)
            self._highs.run()
            status = self._highs.getModelStatus()
            if status in settled or self._highs.getRunTime() >= until:
                break
            self._highs.clearSolver()
        self._highs.setOptionValue("presolve", "off")
        if status != highspy.HighsModelStatus.kOptimal:
            return None
        found = self._highs.getSolution()
        return self._highs.getInfo().objective_function_value, np.array(found.col_value), np.array(found.row_dual)

    def solve_mip(self, integer: Ints, gap: float, seconds: float, seed: int) -> tuple[float, Floats] | None:
        """Solve a copy in which the columns `integer` are integer; return (value, columns) of the incumbent, None without one."""
        import highspy

        program = self._highs.getLp()
        kinds = [highspy.HighsVarType.kContinuous] * self.columns
        for column in integer.tolist():
            kinds[column] = highspy.HighsVarType.kInteger
        program.integrality_ = kinds
        highs = new_highs()
        settings = (
            ("mip_rel_gap", gap),
            ("time_limit", float(np.clip(seconds, 1.0, 1e7))),
            ("random_seed", seed),
            ("mip_max_nodes", MIP_NODE_LIMIT),
            ("mip_feasibility_tolerance", LOOSE_FEASIBILITY_TOL),
            ("presolve_rule_off", ENUMERATION_PRESOLVE_RULE),
        )
        for name, value in settings:
            highs.setOptionValue(name, value)
        highs.passModel(program)
        highs.run()
        if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        return highs.getInfo().objective_function_value, np.array(highs.getSolution().col_value)
