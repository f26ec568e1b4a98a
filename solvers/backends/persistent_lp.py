"""Linear programs that live long in HiGHS: solved again and again from the last basis while bounds and rows change.

The caller scales: numbers go to the solver as they come.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.highs import highs_lp, new_highs
from solvers.interface import ENUMERATION_PRESOLVE_RULE, SolverError

NODES = 50  # of a search for whole columns


def _loaded_highs(
    matrix: sparse.csc_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats, cost: Floats
):
    highs = new_highs()
    for name, value in (("solver", "simplex"), ("presolve", "off"), ("simplex_strategy", 1)):
        highs.setOptionValue(name, value)
    highs.passModel(highs_lp(cost, matrix, (row_lower, row_upper), (lower, upper)))
    return highs


def _copy_basis(highs, old, columns: Ints, rows: Ints) -> None:
    before = old.getBasis()
    if before.valid:
        highs.setBasis(mapped_basis(before, columns, rows))


def mapped_basis(before: Any, columns: Ints, rows: Ints) -> Any:
    """The basis of another program, told for each column and row which one of it that was, -1 for a new one: new columns are at their least,
    new rows free."""
    import highspy

    basis, status = highspy.HighsBasis(), highspy.HighsBasisStatus
    column_status, row_status = [*before.col_status, status.kLower], [*before.row_status, status.kBasic]
    basis.col_status, basis.row_status = (
        [column_status[i] for i in columns.tolist()],
        [row_status[i] for i in rows.tolist()],
    )
    basis.valid = basis.alien = True
    return basis


class SlotLp:
    """One linear program whose row sides and first columns' upper bounds move."""

    def __init__(self, *parts) -> None:
        self._highs = _loaded_highs(*parts)
        self._tolerance = float(self._highs.getOptionValue("primal_feasibility_tolerance")[1])

    def solve(self, rows: Ints, row_upper: Floats, most: Floats) -> tuple[float, Floats, Floats]:
        """(value, row duals, reduced costs of the first columns) with rows at most `row_upper`, first columns at most `most`."""
        import highspy

        count = len(most)
        self._highs.changeRowsBounds(len(rows), rows.astype(np.int32), np.full(len(rows), -np.inf), row_upper)
        self._highs.changeColsBounds(count, np.arange(count, dtype=np.int32), np.zeros(count), most)
        self._highs.run()
        for tolerance in (None, 1e-7):  # the basis led astray, or the tolerance is too strict
            if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                break
            self._highs.clearSolver()
            if tolerance is not None:
                self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.run()
        self.set_tolerance(self._tolerance)
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"a slot's program ended as {self._highs.getModelStatus()}")
        found = self._highs.getSolution()
        return (
            self._highs.getInfo().objective_function_value,
            np.array(found.row_dual),
            np.array(found.col_dual)[:count],
        )

    def values(self) -> Floats:
        """The columns of the last answer."""
        return np.array(self._highs.getSolution().col_value)

    def warm_start_from(self, old: SlotLp, columns: Ints, rows: Ints) -> None:
        """From where another program is, as far as the two have columns and rows in common."""
        _copy_basis(self._highs, old._highs, columns, rows)

    def set_costs(self, columns: Ints, cost: Floats) -> None:
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), cost)

    def fix_at_zero(self, columns: Ints) -> None:
        """Columns that may no longer be used."""
        zero = np.zeros(len(columns))
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), zero, zero)

    def set_tolerance(self, tolerance: float) -> None:
        """Rows hold to the tolerance from now on."""
        self._tolerance = tolerance
        self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)


class CoefficientLp:
    """One linear program whose entries change."""

    def __init__(self, *parts) -> None:
        self._highs = _loaded_highs(*parts)

    def change(self, rows: Ints, columns: Ints, values: Floats) -> None:
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            self._highs.changeCoeff(row, column, value)

    def solve(self) -> Floats:
        """The columns."""
        import highspy

        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"a program whose entries change ended as {self._highs.getModelStatus()}")
        return np.array(self._highs.getSolution().col_value)


class RowGenerationLp:
    """A program to which rows are added; solved as linear, or once in a while with its integers whole."""

    def __init__(self, *parts) -> None:
        self._highs, self._tolerance = _loaded_highs(*parts), 1e-7
        self.columns = parts[0].shape[1]

    def set_tolerance(self, tolerance: float) -> None:
        """Rows hold to the tolerance from now on."""
        self._tolerance = tolerance

    def add_rows(self, lower: Floats, matrix: sparse.csr_array) -> None:
        """Rows of at least `lower`."""
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
        self._highs.deleteRows(len(rows), rows.astype(np.int32))

    def set_bounds(self, lower: Floats, upper: Floats) -> None:
        """Of all columns."""
        self._highs.changeColsBounds(self.columns, np.arange(self.columns, dtype=np.int32), lower, upper)

    def solve(self, seconds: float = np.inf) -> tuple[float, Floats, Floats] | None:
        """(value, columns, row duals); None where nothing satisfies the rows, or the solver cannot tell, or not in so many seconds."""
        import highspy

        until = self._highs.getRunTime() + seconds
        self._highs.setOptionValue("time_limit", until)  # of all that it ran
        settled = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
        # the basis may have led astray, the tolerance be too strict, or the numbers too far apart
        for tolerance, presolve in (
            (self._tolerance, "off"),
            (self._tolerance, "off"),
            (self._tolerance, "on"),
            (1e-7, "on"),
        ):
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
        """(value, columns) of the best answer found with these whole, in a copy; None where none was found."""
        import highspy

        program = self._highs.getLp()
        kinds = [highspy.HighsVarType.kContinuous] * self.columns
        for column in integer.tolist():
            kinds[column] = highspy.HighsVarType.kInteger
        program.integrality_ = kinds
        highs = new_highs()
        for name, value in (("mip_rel_gap", gap), ("time_limit", float(np.clip(seconds, 1.0, 1e7))), ("random_seed", seed), ("mip_max_nodes", NODES),
                            ("mip_feasibility_tolerance", 1e-7), ("presolve_rule_off", ENUMERATION_PRESOLVE_RULE)):  # fmt: skip
            highs.setOptionValue(name, value)
        highs.passModel(program)
        highs.run()
        if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        return highs.getInfo().objective_function_value, np.array(highs.getSolution().col_value)
