"""Slots to merge and choices to swap: cuts of least squares, groups within what is asked, first stages no dearer than those of a dive."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.general.aggregation import groups_of, merge
from solvers.general.deferred_rows import DeferrableRows
from solvers.general.diving import dive
from solvers.general.grouping import Grouping, _runs
from solvers.general.merged_lp import solve_merged_lp
from solvers.general.structure import structure_of
from solvers.general.swapping import sets_of_one, swapped
from solvers.model.build import build, objective_vector
from solvers.program import Program
from tests.solvers.test_all_blocks_bruteforce import problem


def squares(values):
    return float(((values - values.mean(axis=0)) ** 2).sum())


@given(st.integers(1, 7), st.integers(1, 3), st.integers(0, 1000))
def test_runs_are_of_least_squares(places, entries, seed):
    """Against all ways to cut."""
    values = np.random.default_rng(seed).standard_normal((places, entries))
    least, cuts = _runs(values)
    assert len(least) == len(cuts) == places
    for k in range(1, places + 1):
        ways = combinations(range(1, places), k - 1)
        best = min(sum(squares(part) for part in np.split(values, list(way))) for way in ways)
        assert least[k - 1] == pytest.approx(best, abs=1e-9)
        assert (np.diff(cuts[k - 1]) >= 0).all() and len(np.unique(cuts[k - 1])) == k
        assert sum(squares(values[cuts[k - 1] == run]) for run in range(k)) == pytest.approx(best, abs=1e-9)


def of_days(days, hours, noise):
    """Serve a load that differs by the hour, with systems of one price, and energy of a price that differs a little by the day."""
    slots = days * hours
    program = Program()
    held = program.add_columns("n", (), upper=100.0, integer=True, cost={"cost": 10.0})
    load = np.tile(1.0 + np.arange(hours) ** 2, days)
    price = 0.01 * np.repeat(1 + noise * np.random.default_rng(0).random(days), hours)
    served = program.add_columns("x", (slots,), cost={"cost": price})
    each = np.arange(slots)
    program.add_rows("demand", load, np.inf, each, served, 1.0, index=each[:, None])
    program.add_rows(
        "capacity",
        -np.inf,
        0.0,
        np.tile(each, 2),
        np.concatenate([served, np.repeat(held, slots)]),
        np.repeat([1.0, -1.0], slots),
        index=each[:, None],
    )
    program.add_rows("storage", 0.0, np.inf, *_joined(days, hours, served), count=days * (hours - 1))
    return program


def _joined(days, hours, served):
    """Rows that join consecutive slots of a day: all that is served in both is not negative."""
    first = (np.arange(days)[:, None] * hours + np.arange(hours - 1)).ravel()
    return np.repeat(np.arange(len(first)), 2), np.column_stack([served[first], served[first + 1]]).ravel(), 1.0


def test_days_that_are_alike_are_merged_hour_by_hour():
    """With as many groups as hours, one for each hour of all days, so that the merged LP loses nothing."""
    days, hours = 6, 8
    program = of_days(days, hours, 1e-3)
    whole = structure_of(program, program.functional("cost"), days * hours)
    assert whole.parts == days
    solved = solve_merged_lp(merge(program, whole, groups_of(whole, days * hours, 12)), 60.0)
    group = Grouping(program, whole, days * hours, solved).groups(hours)
    assert (group.reshape(days, hours) == group[:hours]).all()
    assert len(np.unique(group)) == hours
    found = solve_merged_lp(merge(program, whole, group), 60.0, rough=False)
    peak = 1.0 + (hours - 1) ** 2
    assert found.merged.cost @ found.x >= 10.0 * peak
    evenly = solve_merged_lp(merge(program, whole, groups_of(whole, days * hours, hours)), 60.0, rough=False)
    assert evenly.merged.cost @ evenly.x < 10.0 * peak


def test_groups_are_no_more_than_asked():
    for seed in range(20):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        waiting = DeferrableRows(
            program, structure_of(program, objective_vector(program, data), data.slots), data.slots
        )
        whole = waiting.lighter(waiting.busiest())
        evenly = groups_of(whole.structure, data.slots, 1)
        solved = solve_merged_lp(merge(program, whole.structure, evenly), 60.0)
        if solved is None:
            continue
        grouping = Grouping(program, whole.structure, data.slots, solved)
        for most in (1, 2, data.slots):
            group = grouping.groups(most, np.array([0]))
            assert (np.flatnonzero(group == group[0]) == [0]).all()
            kinds = len(np.unique(np.bincount(whole.structure.run)))
            assert len(np.unique(group[1:])) <= max(most, kinds) + 1


def test_swapped_choices_are_no_dearer():
    """One binary of each set is chosen, and in some questions a cheaper one than the dive's."""
    better = asked = 0
    for seed in range(60):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        whole = structure_of(program, objective_vector(program, data), data.slots)
        found = solve_merged_lp(merge(program, whole, groups_of(whole, data.slots, 1)), 60.0)
        if found is None or not sets_of_one(found.merged.arrays):
            continue
        kept = np.ones(len(found.x), dtype=bool)
        dived = dive(found, kept, lambda: 60.0)
        if dived is None:
            continue
        x, other = dived.whole(), swapped(found, kept, dived, lambda: 60.0).whole()
        cost = found.merged.cost
        assert cost @ other <= cost @ x + 1e-9
        for mine in sets_of_one(found.merged.arrays):
            assert other[mine].sum() == pytest.approx(1.0)
        asked, better = asked + 1, better + (cost @ other < cost @ x * (1 - 1e-4))
    assert asked
    assert better
