"""Sums of terms, against numbers derived by hand: two windows of two slots, the second at a discount of one half."""

from __future__ import annotations

import numpy as np
import pytest

from planner.money.components import GRID, PORT, REPLICA, SITE, SYSTEM
from planner.money.terms import (
    CARBON,
    Dated,
    Dates,
    Flowing,
    by_position,
    coefficients,
    in_phase,
    in_window,
    purchases,
    total,
)

DATES = Dates(
    window=np.array([0, 0, 1, 1]),
    seconds=np.array([10.0, 20.0, 10.0, 20.0]),
    discount=np.array([1.0, 1.0, 0.5, 0.5]),
    year_worth=np.array([0.9, 0.6]),
    phases=np.array([[0, 0], [1, 1]]),
)
WORTH = DATES.seconds * DATES.discount  # 10, 20, 5, 10
PLACE = ("here", "box", "buy")


def flowing(**changes):
    """Two uses of point 1 and one of point 0, all at 3 per watt and second."""
    fields = {
        "component": "energy", "decision": REPLICA, "at": np.array([1, 1, 0]), "places": (PLACE,) * 3, "dates": DATES,
        "per_unit": np.array([2.0, 5.0, 1.0]), "profile": 3.0 * WORTH[None, :], "follows": np.zeros(3, dtype=int),
    }  # fmt: skip
    return Flowing(**fields | changes)


def held(**changes):
    """Two systems of holding 0, over both windows and over the second: worth 90 and 60, bought for 100 and 70."""
    fields = {
        "component": "systems", "decision": SYSTEM, "at": np.array([0, 1]), "places": (PLACE,) * 2, "dates": DATES,
        "worth": np.array([90.0, 60.0]), "paid": np.array([[100.0, 0.0], [0.0, 70.0]]), "capital": np.array([100.0, 70.0]),
        "phase": np.array([0, 1]), "windows": np.array([[0, 1], [1, 1]]),
    }  # fmt: skip
    return Dated(**fields | changes)


def test_dates_mark_slots_of_a_phase_and_windows_of_a_row():
    assert [DATES.inside(p).tolist() for p in (0, 1)] == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert DATES.covered(np.array([[0, 1], [1, 1], [0, 0]])).tolist() == [[1, 1], [0, 1], [1, 0]]
    assert DATES.by_window(np.array([[1.0, 2.0, 3.0, 4.0], WORTH])).tolist() == [[3, 7], [30, 15]]


def test_coefficients_of_each_slot_add_up_the_rows_of_a_decision():
    found = coefficients([flowing()], REPLICA, (3, 4))
    assert found.tolist() == [[30, 60, 15, 30], [210, 420, 105, 210], [0, 0, 0, 0]]


def test_coefficients_without_slots_count_the_windows_of_a_row():
    rent = flowing(component="rent", decision=SYSTEM, windows=np.array([[0, 0], [0, 1], [1, 1]]))
    # 3 x (30 in the first window, 15 in the second): 2 x 90 + 5 x 135 of decision 1, 1 x 45 of decision 0
    assert coefficients([rent], SYSTEM, (2,)).tolist() == [45.0, 855.0]
    assert total([rent], {SYSTEM: np.array([2.0, 1.0])}) == 2 * 45 + 855


def test_amounts_are_coefficients_times_decisions():
    active = np.array([[0.0, 0, 0, 0], [1.0, 0, 2, 0]])
    # point 1 at work: 3 x (1 x 10 + 2 x 5) = 60 per watt
    assert flowing().amounts(active).tolist() == [120.0, 300.0, 0.0]
    assert by_position([flowing()], REPLICA, {REPLICA: active}).tolist() == [0.0, 420.0]
    assert total([flowing(), held()], {REPLICA: active, SYSTEM: np.array([2.0, 3.0])}) == 420 + 2 * 90 + 3 * 60


def test_a_phase_pays_what_falls_due_in_it_and_not_discounted():
    active = np.ones((2, 4))
    # 8 watts x 3 x 30 seconds in each phase; the second system is delivered in the second phase
    for p, bought in ((0, 100.0 * 2), (1, 70.0 * 3)):
        terms = in_phase([flowing(), held()], p)
        assert total(terms, {REPLICA: active, SYSTEM: np.array([2.0, 3.0])}) == 8 * 3 * 30 + bought
    assert in_phase([flowing(component="operation", functional=CARBON)], 0) == []


def test_a_window_gets_its_slots_and_equal_yearly_payments_of_what_is_held():
    units = {REPLICA: np.ones((2, 4)), SYSTEM: np.array([1.0, 1.0])}
    first, second = (total(in_window([flowing(), held()], v), units) for v in (0, 1))
    # 8 x 3 x 30 and 8 x 3 x 15; 90 is split 0.9 to 0.6, and 60 belongs to the second window alone
    assert (first, second) == pytest.approx((720 + 54, 360 + 36 + 60))


def test_what_belongs_to_no_system_is_spread_evenly_at_present_value():
    fixed = flowing(component="site", decision=SITE, windows=np.array([[1, 1]] * 3))
    grid = flowing(decision=GRID)
    units = {SITE: np.ones(2), GRID: np.ones((2, 4))}
    for v, share in ((0, 30 / 45), (1, 15 / 45)):
        assert total(in_window([fixed], v), units) == pytest.approx(8 * 3 * 15 * share)
        assert total(in_window([grid], v), units) == pytest.approx(8 * 3 * 45 * share)


def test_a_dated_amount_of_no_system_is_spread_evenly_too():
    port = held(component="porting", decision=PORT, windows=None, capital=None, phase=None)
    units = {PORT: np.array([1.0, 1.0])}
    for v, share in ((0, 30 / 45), (1, 15 / 45)):
        assert total(in_window([port], v), units) == pytest.approx(150 * share)


def test_purchases_are_prices_on_delivery_of_a_phase_or_of_all():
    units = {SYSTEM: np.array([2.0, 3.0])}
    assert total(purchases([flowing(), held()]), units) == 2 * 100 + 3 * 70
    assert [total(purchases([held()], p), units) for p in (0, 1)] == [200.0, 210.0]
    assert purchases([held(component="rent", capital=None)]) == []


def test_a_term_of_a_decision_that_is_not_made_has_no_amount():
    assert total([flowing()], {}) == 0.0


def test_a_component_is_refused_for_decisions_that_it_is_not_paid_for():
    with pytest.raises(ValueError, match="staff is not paid for each replica"):
        flowing(component="staff")
    with pytest.raises(ValueError, match="one place"):
        flowing(places=(PLACE,))
