"""Thresholds from solves at some prices equal those of all plans, listed one by one, and the intervals hold them whatever the gap."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.studies.quotes.threshold import (
    Question,
    Slopes,
    Trial,
    first_threshold,
    full_threshold,
    searched,
)
from tests.conftest import few_of

COUNT = 4
NEVER = Trial(math.nan, 100.0, 100.0)


@st.composite
def markets(draw):
    """Plans as (fixed cost, systems taken), the best without any, and a gap of the solver; one system costs its price."""
    without = draw(st.integers(50, 200))
    plans = [(float(without), 0)]
    plans += [
        (float(fixed), taken) for fixed, taken in draw(st.lists(st.tuples(st.integers(-50, 300), st.integers(1, COUNT)), min_size=1, max_size=12))
    ]  # fmt: skip
    return plans, draw(st.sampled_from((0.0, 0.0, 0.02, 0.1)))


def solver(plans, gap, draw_within):
    """A solver that returns a plan within the gap, and a bound that holds."""

    def solve(amount):
        costs = [fixed + taken * amount for fixed, taken in plans]
        best = min(costs)
        near = [i for i, cost in enumerate(costs) if cost <= best + gap * abs(best)]
        fixed, taken = plans[draw_within(near)]
        return Trial(amount, fixed + taken * amount, best - gap * abs(best), taken, float(taken))

    return solve


def exactly(plans):
    """The price below which the best plan takes something, and the one below which it takes all; None where it never does."""
    without = plans[0][0]
    some = max((without - fixed) / taken for fixed, taken in plans[1:])
    full = [fixed for fixed, taken in plans if taken == COUNT]
    every = None
    if full:
        every = min((fixed - min(full)) / (COUNT - taken) for fixed, taken in plans if taken < COUNT)
    return some, every


@settings(max_examples=few_of(400))
@given(markets(), st.integers(0, 300), st.randoms(use_true_random=False))
def test_thresholds_are_those_of_all_plans(market, amount, random):
    plans, gap = market
    solve = solver(plans, gap, lambda near: near[0] if gap == 0.0 else random.choice(near))
    base = plans[0][0]
    asked = Question(Trial(math.nan, base, base * (1 - gap)), Slopes(1.0, 1.0, float(COUNT)), COUNT, limited=False)
    trials = searched(asked, solve, solve(float(amount)), first_threshold)
    trials = searched(asked, solve, trials[0], full_threshold, trials)
    first, full = first_threshold(asked, trials), full_threshold(asked, trials)
    some, every = exactly(plans)
    assert first.low <= max(some, 0.0) + 1e-9 and max(some, 0.0) <= first.high + 1e-9
    assert full.low <= max(every or 0.0, 0.0) + 1e-9 and max(every or 0.0, 0.0) <= full.high + 1e-9
    if gap == 0.0:
        if some > 0:
            assert first.at == pytest.approx(some, rel=1e-3) and first.low == pytest.approx(first.at)
        if every is not None and every > 0:
            assert full.at == pytest.approx(every, rel=1e-3)
        if every is None:
            assert full.at is None


@settings(max_examples=few_of(200))
@given(markets(), st.integers(10, 300))
def test_under_a_ceiling_thresholds_lie_between_prices_that_were_solved(market, ceiling):
    """Plans whose payments for the quote exceed a ceiling cannot be had: the last price at which something is taken is met from below."""
    plans, _ = market
    free = solver(plans, 0.0, lambda near: near[0])

    def solve(amount):
        kept = [(fixed, taken) for fixed, taken in plans if taken * amount <= ceiling]
        return solver(kept, 0.0, lambda near: near[0])(amount)

    base = plans[0][0]
    some = max(min((base - fixed) / taken, ceiling / taken) for fixed, taken in plans[1:])
    assume(some > 1)
    asked = Question(Trial(math.nan, base, base), Slopes(1.0, 1.0, float(COUNT)), COUNT, limited=True)
    trials = searched(asked, solve, free(0.0), first_threshold)
    found = first_threshold(asked, trials)
    assert (found.at or 0.0) <= some + 1e-9 and some <= found.high + 1e-9
    for trial in trials:
        takes = any(
            taken and taken * trial.amount <= ceiling and fixed + taken * trial.amount < base for fixed, taken in plans
        )
        assert (trial.value < base) == takes


def test_by_hand():
    """Without 100; one system saves 30, two save 50: the first is worth 30, the second 20."""
    plans = [(100.0, 0), (70.0, 1), (50.0, 2)]
    solve = solver(plans, 0.0, lambda near: near[0])
    asked = Question(NEVER, Slopes(1.0, 1.0, 2.0), 2, limited=False)
    trials = searched(asked, solve, solve(5.0), first_threshold)
    trials = searched(asked, solve, trials[0], full_threshold, trials)
    first, full = first_threshold(asked, trials), full_threshold(asked, trials)
    assert (first.at, first.low, first.high) == pytest.approx((30.0, 30.0, 30.0))
    assert (full.at, full.low, full.high) == pytest.approx((20.0, 20.0, 20.0))


def test_what_is_never_taken_has_no_threshold():
    solve = solver([(100.0, 0), (120.0, 1)], 0.0, lambda near: near[0])
    asked = Question(NEVER, Slopes(1.0, 1.0, 1.0), 1, limited=False)
    trials = searched(asked, solve, solve(5.0), first_threshold)
    found = first_threshold(asked, trials)
    assert found.at is None and found.high == pytest.approx(0.0)
    assert full_threshold(Question(NEVER, Slopes(1.0, 1.0, 0.0), None, limited=False), trials) is None


def test_a_gap_widens_the_interval_by_the_gap_over_what_one_system_costs():
    """Value 100 with bound 98 without; with one system 70 + price, bound 2 below: from 28 to 34 around 30."""
    trials = [Trial(10.0, 80.0, 78.0, 1, 1.0), Trial(30.0, 100.0, 98.0, 0, 0.0)]
    asked = Question(Trial(math.nan, 100.0, 98.0), Slopes(1.0, 1.0, 1.0), 1, limited=False)
    found = first_threshold(asked, trials)
    assert (found.at, found.low, found.high) == pytest.approx((30.0, 28.0, 32.0))
