"""The bulk builder: columns, rows, the map back, functionals and scaling."""

import numpy as np
import pytest

from solvers.program import COEFFICIENT_TOL, Program


def test_columns_are_numbered_where_they_exist():
    program = Program()
    first = program.add_columns("a", (2, 2), where=[[True, False], [True, True]])
    second = program.add_columns("b", (), upper=4.0)
    assert first.tolist() == [[0, -1], [1, 2]] and int(second) == 3 and program.column_count == 4
    values = program.values(np.array([1.0, 2.0, 3.0, 9.0]))
    assert values["a"].tolist() == [[1.0, 0.0], [2.0, 3.0]] and float(values["b"]) == 9.0


def test_rows_drop_absent_columns_and_sum_repeated_ones():
    program = Program()
    columns = program.add_columns("a", (3,), where=[True, False, True])
    program.add_rows("sum", 0.0, [5.0], np.zeros(4, dtype=int), np.append(columns, columns[0]), [1.0, 7.0, 2.0, 3.0])
    assert program.arrays().matrix.toarray().tolist() == [[4.0, 2.0]]


def test_a_row_knows_its_block_and_index():
    program = Program()
    column = program.add_columns("a", (1,))
    program.add_rows("one", 0.0, 1.0, np.array([0]), column, 1.0)
    program.add_rows("two", 0.0, 1.0, np.array([0, 1]), np.repeat(column, 2), 1.0, index=np.array([[4, 7], [5, 8]]))
    assert program.row_of(0) == ("one", (0,)) and program.row_of(2) == ("two", (5, 8))
    with pytest.raises(IndexError):
        program.row_of(3)
    index, values = program.by_block(np.array([1.0, 2.0, 3.0]))["two"]
    assert index.tolist() == [[4, 7], [5, 8]] and values.tolist() == [2.0, 3.0]


def test_functionals_add_up():
    program = Program()
    columns = program.add_columns("a", (2,), cost={"cost": [1.0, 2.0], "carbon": 5.0})
    program.add_cost("cost", columns, 10.0)
    assert program.functional("cost").tolist() == [11.0, 12.0]
    assert program.functional("carbon").tolist() == [5.0, 5.0]
    assert program.functional("unknown").tolist() == [0.0, 0.0]


def test_a_bounded_functional_is_split_into_sub_totals_without_changing_it():
    program = Program()
    program.add_columns("a", (4,), cost={"cost": [1.0, 2.0, 3.0, 4.0]})
    program.add_functional_row("limit", "cost", -np.inf, 10.0, np.array([0, 1, 1, -1]))
    arrays = program.arrays()
    a = np.array([1.0, 1.0, 1.0, 0.5])
    x = np.concatenate([a, [1.0, 5.0]])  # the sub-totals 1 and 2 + 3
    assert (arrays.matrix @ x).tolist() == [0.0, 0.0, 8.0]  # 1 + 5 + 4 * 0.5
    assert program.functional("cost") @ x == 8.0


def test_scaling_loses_no_digit_and_brings_rows_near_one():
    rng = np.random.default_rng(1)
    program = Program()
    columns = program.add_columns("a", (30,), upper=1e7, unit=10.0 ** rng.uniform(-3, 6, 30))
    counts = program.add_columns("n", (5,), upper=100.0, integer=True)
    cols = np.concatenate([columns, counts])
    vals = 10.0 ** rng.uniform(-6, 9, (20, 35))
    program.add_rows("r", -np.inf, np.full(20, 1e9), np.repeat(np.arange(20), 35), np.tile(cols, 20), vals.ravel())
    cost = 10.0 ** rng.uniform(-2, 8, 35)
    arrays = program.arrays()
    scaled = arrays.scaled(cost)
    kept = scaled.arrays.matrix.toarray() != 0
    back = scaled.arrays.matrix.toarray() / scaled.row[:, None] / scaled.column
    assert np.array_equal(back[kept], vals[kept])
    largest = np.abs(scaled.arrays.matrix.toarray()).max(axis=1)
    assert ((largest >= 1) & (largest < 2)).all()
    assert (np.abs(vals * scaled.row[:, None] * scaled.column)[~kept] < COEFFICIENT_TOL).all()
    assert (scaled.column[30:] == 1).all(), "whole columns keep their unit"
    assert np.array_equal(scaled.cost / scaled.objective / scaled.column, cost)
    assert np.abs(scaled.cost).max() <= 1e4


def test_violation_is_relative_to_the_row():
    program = Program()
    column = program.add_columns("a", (1,), upper=2.0)
    program.add_rows("r", -np.inf, [1e6], np.array([0]), column, 1e6)
    arrays = program.arrays()
    assert arrays.violation(np.array([1.0])) == 0.0
    assert arrays.violation(np.array([1.5])) == pytest.approx(0.5)  # 1.5e6 against 1e6, in units of 1e6
    assert arrays.violation(np.array([-0.25])) == pytest.approx(0.25)  # violation of the bound


@pytest.mark.parametrize("row", [-1, 2])
def test_an_entry_outside_its_block_is_refused(row):
    """It would change a row of another block."""
    program = Program()
    column = program.add_columns("n", (1,))
    program.add_rows("first", 0.0, 1.0, np.zeros(1, dtype=int), column, 1.0, count=1)
    with pytest.raises(ValueError, match="second: an entry in a row outside the block"):
        program.add_rows("second", 0.0, 1.0, np.array([row]), column, 1.0, count=2)
