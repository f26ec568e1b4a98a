"""Rounding heuristics return feasible solutions at the stated cost, with valid bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.branch_and_bound.rounding import ZeroCostBinaries, round_counts
from solvers.branch_and_bound.settings import ROUNDING
from solvers.mip import Options
from solvers.program import Arrays, Scaled
from tests.conftest import few_of

GAP = 1e-3


def scaled(matrix, row_lower, row_upper, upper, integer, cost) -> Scaled:
    matrix = sparse.csc_array(np.array(matrix, dtype=float))
    rows, columns = matrix.shape
    ones = np.ones(columns)
    arrays = Arrays(
        matrix,
        np.array(row_lower, dtype=float),
        np.array(row_upper, dtype=float),
        np.zeros(columns),
        np.array(upper, dtype=float),
        np.array(integer, dtype=bool),
        ones,
    )
    return Scaled(arrays, np.array(cost, dtype=float), ones, np.ones(rows), 1.0)


def found(program: Scaled, lower=None, upper=None, target=-math.inf, most=math.inf, rounding=ROUNDING):
    arrays = program.arrays
    opened = lambda part: WarmStartedLp(part.arrays, part.cost, Options())
    return round_counts(
        program,
        arrays.lower if lower is None else lower,
        arrays.upper if upper is None else upper,
        target,
        most,
        GAP,
        opened,
        rounding,
    )


# -- choices without a cost ----------------------------------------------------------------------------------------------


def test_a_binary_is_raised_where_rows_permit():
    """x0 <= 10 z: any z of at least 0.2 permits x0 = 2, and 1 is integer."""
    program = scaled([[1, -10]], [-np.inf], [0], [10, 1], [False, True], [1, 0])
    assert ZeroCostBinaries(program).rounded(np.array([2.0, 0.2])).tolist() == [2.0, 1.0]


def test_a_binary_is_lowered_where_it_cannot_be_raised():
    program = scaled([[1, 1]], [-np.inf], [1.2], [1, 1], [True, True], [0, 0])
    settled = ZeroCostBinaries(program).rounded(np.array([0.7, 0.5]))
    assert settled.tolist() == [0.0, 1.0]  # the first is looked at while the second takes 0.5 of the room


def test_a_binary_with_a_cost_or_bound_by_rows_stays_fractional():
    program = scaled([[1, 1, 0]], [1], [1], [1, 1, 1], [True] * 3, [0, 0, 5])
    x = np.array([0.5, 0.5, 0.5])
    assert ZeroCostBinaries(program).rounded(x).tolist() == x.tolist()


@settings(max_examples=few_of(60), deadline=None, derandomize=True)
@given(st.data())
def test_rounded_binaries_cost_the_same_and_violate_no_row(data):
    rows, columns = 3, 5
    number = st.integers(-3, 3)
    matrix = np.array([[data.draw(number) for _ in range(columns)] for _ in range(rows)], dtype=float)
    x = np.array([data.draw(st.integers(0, 10)) / 10 for _ in range(columns)])
    room = np.array([data.draw(st.integers(0, 3)) for _ in range(rows)])
    cost = np.array([data.draw(st.sampled_from([0.0, 0.0, 2.0])) for _ in range(columns)])
    program = scaled(matrix, matrix @ x - room, matrix @ x + room, np.ones(columns), [True] * columns, cost)
    settled = ZeroCostBinaries(program).rounded(x)
    assert cost @ settled == pytest.approx(cost @ x)
    assert program.arrays.violation(settled) <= 1e-8
    assert ((settled == x) | (settled == np.round(settled))).all()


# -- counts --------------------------------------------------------------------------------------------------------------


def covering(data) -> Scaled:
    """Counts of three kinds and what runs on them, so that each of two demands is served; and a choice, settled, without which the
    third kind may not be."""
    size = [data.draw(st.integers(1, 9)) for _ in range(3)]
    cost = [data.draw(st.integers(1, 20)) for _ in range(3)]
    demand = [data.draw(st.integers(0, 25)) for _ in range(2)]
    rows = []
    for i in range(2):  # columns: n0 n1 n2, x of each kind for each demand, choice
        row = np.zeros(10)
        row[3 + 3 * i : 6 + 3 * i] = -1.0
        rows.append((row, -demand[i]))
    for k in range(3):
        row = np.zeros(10)
        row[k], row[3 + k], row[6 + k] = -size[k], 1.0, 1.0
        rows.append((row, 0.0))
    row = np.zeros(10)
    row[2], row[9] = 1.0, -6.0
    rows.append((row, 0.0))
    choice = float(data.draw(st.booleans()))
    program = scaled(
        [row for row, _ in rows],
        [-np.inf] * len(rows),
        [side for _, side in rows],
        [6] * 3 + [100] * 6 + [1],
        [True] * 3 + [False] * 6 + [True],
        [*cost, *[0.01] * 6, 0],
    )
    arrays = program.arrays
    return replace(
        program,
        arrays=replace(arrays, lower=np.append(arrays.lower[:-1], choice), upper=np.append(arrays.upper[:-1], choice)),
    )


def brute(program: Scaled) -> float:
    """The least cost over all counts; the rest is plain: all is served where there is enough."""
    arrays, best = program.arrays, math.inf
    matrix = arrays.matrix.toarray()
    demand, size = -arrays.row_upper[:2], -np.array([matrix[2 + k, k] for k in range(3)])
    most = int(6 * arrays.lower[9])
    for n in np.ndindex(7, 7, most + 1):
        if size @ np.array(n) >= demand.sum():
            best = min(best, float(program.cost[:3] @ np.array(n)) + 0.01 * float(demand.sum()))
    return best


@settings(max_examples=few_of(60), deadline=None, derandomize=True)
@given(st.data())
def test_rounded_counts_are_feasible_and_no_better_than_their_bound(data):
    program = covering(data)
    best = brute(program)
    answer = found(program)
    assert answer.bound <= best + 1e-6
    if answer.x is None:
        assert math.isinf(answer.value)
        return
    arrays = program.arrays
    assert arrays.violation(answer.x) <= 1e-6
    assert np.abs(answer.x[arrays.integer] - np.round(answer.x[arrays.integer])).max() <= 1e-6
    assert answer.value == pytest.approx(program.cost @ answer.x) and answer.value >= best - 1e-6


def test_an_infeasible_program_has_an_infinite_bound():
    program = scaled([[-1.0]], [-np.inf], [-5], [3], [True], [1])
    answer = found(program)
    assert answer.x is None and answer.bound == math.inf


def test_counts_beyond_the_cutoff_are_not_returned():
    program = scaled([[-2.0]], [-np.inf], [-5], [9], [True], [1])
    assert found(program).value == pytest.approx(3.0)
    known = found(program, most=2.4)
    assert known.x is None and known.bound == pytest.approx(2.5)


@settings(max_examples=few_of(20), deadline=None, derandomize=True)
@given(st.data())
def test_feasibility_cuts_exclude_infeasible_counts_only(data):
    from solvers.branch_and_bound.count_search import CountSearch

    program = covering(data)
    part = replace(
        program, arrays=replace(program.arrays, upper=np.append([6.0] * 3 + [100.0] * 6, program.arrays.upper[-1:]))
    )
    counts = CountSearch(WarmStartedLp(part.arrays, part.cost, Options()), part, 0.0)
    columns = counts.columns[:3]
    x = np.zeros(10)
    x[9] = part.arrays.lower[9]
    none = math.isinf(counts.evaluate(x[counts.columns]))
    assert not counts._feasibility_cuts or none
    for weights, least in tuple(counts._feasibility_cuts):
        assert x[counts.columns] @ weights < least
        for n in np.ndindex(3, 3, 3):
            x[columns] = n
            if x[counts.columns] @ weights < least:
                assert math.isinf(counts.evaluate(x[counts.columns]))


def test_a_feasibility_cut_excludes_other_counts_too():
    """Of 17 asked, 10 are there: what rules that out rules out one of 7 as well, but not two of 10."""
    from solvers.branch_and_bound.count_search import CountSearch

    program = scaled([[-10.0, -7.0]], [-np.inf], [-17], [5, 5], [True] * 2, [10.0, 7.5])
    counts = CountSearch(WarmStartedLp(program.arrays, program.cost, Options()), program, 0.0)
    assert math.isinf(counts.evaluate(np.array([1.0, 0.0])))
    ((weights, least),) = counts._feasibility_cuts
    assert weights @ np.array([0, 1]) < least <= weights @ np.array([2, 0])


def test_the_local_search_over_counts_improves_on_dives():
    """Three kinds fill a demand of 17: 10 + 7 for 17, where a dive by the dearest kind takes two of 10 for 20."""
    program = scaled([[-10.0, -7.0, -4.0]], [-np.inf], [-17], [5, 5, 5], [True] * 3, [10.0, 7.5, 4.6])
    best = min(10 * a + 7.5 * b + 4.6 * c for a, b, c in np.ndindex(6, 6, 6) if 10 * a + 7 * b + 4 * c >= 17)
    dived = found(program, target=best, rounding=replace(ROUNDING, neighbours_evaluated=0)).value
    assert found(program, target=best + 1e-9).value == pytest.approx(best) and dived >= best


def test_neighbours_are_one_count_changed_or_one_lowered_and_another_raised() -> None:
    from solvers.branch_and_bound.count_search import neighbour_steps

    found = []
    for first, down, second, up in neighbour_steps(3, 2):
        for one, less, other, more in zip(first, down, second, up, strict=True):
            step = [0.0, 0.0, 0.0]
            step[one] += less
            step[other] += more
            found.append(tuple(step))
    changes = product((-2.0, -1.0, 0.0, 1.0, 2.0), repeat=3)
    expected = [
        step
        for step in changes
        if 1 <= (moved := sum(map(bool, step))) <= 2 and (moved == 1 or min(step) < 0 < max(step))
    ]
    assert sorted(found) == sorted(expected)


def test_neighbours_of_many_counts_take_little_memory() -> None:
    """288 n^3 bytes would be 62 GB here."""
    import tracemalloc

    from solvers.branch_and_bound.count_search import neighbour_steps

    tracemalloc.start()
    count = sum(len(first) for first, *_ in neighbour_steps(600, 3))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 6 * 600 + 9 * 600 * 599
    assert most < 50e6
