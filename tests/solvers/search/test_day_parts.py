"""Plans of few layouts a day: where the day is cut, against every cut, and the plan of two parts, against every assignment of systems to deployments."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.model.build import objective_vector
from solvers.search.day_parts import day_parts, spread, systems_of, with_day_parts
from solvers.search.direct import solve_direct
from tests.conftest import few_of
from tests.solvers.model.test_relays import SEEDS, SLOTS, drawn, enumerated
from tests.solvers.test_bruteforce import EXACT

needs = st.integers(2, 7).flatmap(
    lambda hours: st.lists(st.lists(st.integers(0, 9), min_size=hours, max_size=hours), min_size=1, max_size=3)
)


def most(systems, part):
    """The systems of the part that holds most: of each kind what it needs at its fullest."""
    return max(systems[:, part == p].max(axis=1).sum() for p in set(part.tolist()))


def changes(part):
    return sum(a != b for a, b in zip(part, np.roll(part, -1), strict=True))


@settings(max_examples=few_of(100))
@given(needs)
def test_no_other_cut_of_a_day_in_two_holds_less(kinds):
    systems = np.array(kinds, dtype=float)
    hours = systems.shape[1]
    part = day_parts(systems, np.zeros(hours, dtype=int), 2)
    assert changes(part) == 2 and set(part.tolist()) == {0, 1}
    others = (np.array(p) for p in itertools.product((0, 1), repeat=hours))
    assert most(systems, part) == min(most(systems, other) for other in others if changes(other) == 2)


def test_windows_have_parts_of_their_own_and_their_days_the_same_cuts():
    """Two windows of two days of 24 hours: days are busy from 6 to 18 in the first, from 0 to 12 in the second."""
    hour = np.tile(np.arange(24), 4)
    window = np.repeat([0, 1], 48)
    busy = np.where(window == 0, (hour >= 6) & (hour < 18), hour < 12)
    part = day_parts(np.array([np.where(busy, 9.0, 1.0)]), window, 2)
    assert len(set(part.tolist())) == 4
    assert all(len(set(part[(window == w) & (busy == b)].tolist())) == 1 for w in (0, 1) for b in (False, True))
    assert set(day_parts(np.ones((1, 96)), window, 1).tolist()) == {0, 1}


@settings(max_examples=few_of(40), deadline=None)
@given(SEEDS)
def test_the_plan_of_two_parts_is_the_best_of_them(seed):
    data = drawn(seed)
    divisible = solve_direct(data.divisible(), EXACT)
    if not divisible.values:
        return
    group = day_parts(systems_of(data, divisible.values), data.slot_window, 2)
    best = enumerated(data, group)
    found = with_day_parts(data, divisible.values, np.ones(len(data.point_pool), dtype=bool), EXACT)
    assert (best is None) == (found is None)
    if found is None:
        return
    program, values = found
    x = program.vector(values)
    assert program.arrays().violation(x) < 1e-6
    assert objective_vector(program, data) @ x == pytest.approx(best)
    resident = values["resident"]
    same = [
        (resident[:, a] == resident[:, b]).all()
        for a, b in itertools.combinations(range(SLOTS), 2)
        if group[a] == group[b]
    ]
    assert all(same)


def test_residents_of_a_part_are_those_of_its_slots():
    data = drawn(1)
    grouped = replace(data, resident_group=np.array([1, 0, 1]))
    values = {"residents": np.array([[5.0, 7.0]]), "n": np.array([9.0])}
    found = spread(values, grouped, data)
    assert found["residents"].tolist() == [[7, 5, 7]] and found["n"].tolist() == [9]
    own = replace(data, resident_group=np.array([0, 1, 0]))
    assert spread(values, grouped, own)["residents"].tolist() == [[7, 5]]
