"""Line units are polished for the fleet that was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers import mip
from solvers.mip import Options, RawSolution
from solvers.program import Program
from solvers.search import line_units
from solvers.search.line_units import polish_line_units


@pytest.fixture
def program():
    """Ten systems at 1,000; traffic of 2.5 on two lines of capacity 1 a unit at 3 and 5, or by the byte at 2."""
    program = Program()
    fleet = program.add_columns("n", (1,), lower=0.0, upper=20.0, integer=True, cost={"cost": 1000.0}, where=True)
    unit = program.add_columns("unit", (2,), upper=9.0, integer=True, cost={"cost": np.array([3.0, 5.0])}, where=True)
    metered = program.add_columns("way", (1,), upper=9.0, cost={"cost": 2.0}, where=True)
    program.add_rows("demand", [9.5], [np.inf], np.zeros(1, dtype=int), fleet, 1.0)
    program.add_rows("line", [2.5], [np.inf], np.zeros(3, dtype=int), np.concatenate([unit, metered]), 1.0)
    return program


def test_units_that_do_not_pay_are_dropped_and_the_fleet_stays(program):
    cost, options = program.functional("cost"), Options(gap=0.01)
    x = np.array([11.0, 3.0, 2.0, 0.0])
    wasteful = RawSolution("within_gap", float(cost @ x), 10_950.0, 0.0, x, 1.0, None, True)
    better = polish_line_units(program, cost, "min", wasteful, options)
    assert better.x == pytest.approx([11.0, 0.0, 0.0, 2.5])  # the systems too many are not its business
    assert better.objective == pytest.approx(11_005.0) and better.bound == wasteful.bound
    assert better.gap == pytest.approx(mip.relative_gap(11_005.0, 10_950.0))


def test_an_optimal_or_missing_solution_is_unchanged(program):
    cost, options = program.functional("cost"), Options(gap=1e-6)
    best = mip.solve(program, cost, "min", options)
    assert polish_line_units(program, cost, "min", best, options) is best
    nothing = RawSolution("limit")
    assert polish_line_units(program, cost, "min", nothing, options) is nothing


def test_a_further_time_for_a_first_plan_is_not_spent_on_units(program, monkeypatch):
    """The plan is there already: the search for units ends at its own limit."""
    seen = []

    def solve(*given, **named):
        seen.append(given[3].until_found().time_limit_s)
        return mip.solve(*given, **named)

    monkeypatch.setattr(line_units, "solve", solve)
    cost, options = program.functional("cost"), Options(gap=0.01, time_limit_s=100.0, longest_s=200.0)
    x = np.array([11.0, 3.0, 2.0, 0.0])
    wasteful = RawSolution("within_gap", float(cost @ x), 10_950.0, 0.0, x, 1.0, None, True)
    assert polish_line_units(program, cost, "min", wasteful, options) is not wasteful
    assert seen == [line_units.TIME_LIMIT_S]


def test_of_a_plan_from_parts_only_the_traffic_is_chosen_anew(program):
    """What serves stays, with rows as far off as the parts left them; so do the duals, which its search did not have."""
    power = program.add_columns("x", (1,), upper=9.0, cost={"cost": 10.0}, where=True)
    program.add_rows("power", [2.0], [np.inf], np.zeros(1, dtype=int), power, 1.0)
    cost, said = program.functional("cost"), []
    x = np.array([9.0, 3.0, 2.0, 0.0, 4.0])  # half a system less than asked for
    apart = RawSolution("limit", float(cost @ x), 8_000.0, 0.1, x, 1.0, None, False)
    better = polish_line_units(program, cost, "min", apart, Options(gap=0.01, progress=said.append))
    assert better.x == pytest.approx([9.0, 0.0, 0.0, 2.5, 4.0])
    assert better.row_duals is None and not better.polished and better.bound == apart.bound
    y = x + np.eye(5)[0]
    in_one_piece = replace(apart, x=y, objective=float(cost @ y), polished=True)
    whole = polish_line_units(program, cost, "min", in_one_piece, Options())
    assert whole.x == pytest.approx([10.0, 0.0, 0.0, 2.5, 2.0]) and whole.row_duals is not None
    assert [line for line in said if line.startswith("line units within 0.00%")]


def test_traffic_over_several_rows_moves_with_the_units():
    """A send that no unit's row holds back carries what a pass needs, and both are chosen anew."""
    program = Program()
    unit = program.add_columns("unit", (2,), upper=9.0, integer=True, cost={"cost": np.array([5.0, 3.0])}, where=True)
    send = program.add_columns("send", (2,), upper=1.0, where=True)
    passed = program.add_columns("pass", (2,), upper=1.0, where=True)
    program.add_rows(
        "line",
        -np.inf,
        [0.0, 0.0],
        np.array([0, 0, 1, 1]),
        np.stack([send, unit], axis=1).ravel(),
        np.tile([1.0, -1.0], 2),
    )
    program.add_rows(
        "sent",
        -np.inf,
        [0.0, 0.0],
        np.array([0, 0, 1, 1]),
        np.stack([passed, send], axis=1).ravel(),
        np.tile([1.0, -1.0], 2),
    )
    program.add_rows("arriving", [1.0], [1.0], np.zeros(2, dtype=int), passed, 1.0)
    cost, x = program.functional("cost"), np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    apart = RawSolution("limit", 5.0, 3.0, 0.4, x, 1.0, None, False)
    better = polish_line_units(program, cost, "min", apart, Options())
    assert better.x == pytest.approx([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]) and better.objective == pytest.approx(3.0)
