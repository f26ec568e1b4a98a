"""Forecasts with a back-test: exact on a line, nothing of the future used, and bounds that hold errors that are exchangeable."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.statistics.back_test import back_test, conformal_bounds, steps_needed, theil_sen, trends_ahead

REALS = st.floats(-5, 5)


@settings(max_examples=10)
@given(st.floats(-1, 1), REALS, st.integers(1, 8))
def test_a_straight_line_is_forecast_exactly(slope, level, ahead):
    series = level + slope * np.arange(steps_needed(ahead) + ahead)
    found = back_test(series, ahead)
    comes = level + slope * (len(series) - 1 + ahead)
    assert found is not None and trends_ahead(series, ahead)[2] == pytest.approx(comes, abs=1e-6)
    assert found.errors[-1] == pytest.approx(
        0.0, abs=1e-6
    )  # the straight trend is chosen once four errors of it are known


@given(st.lists(REALS, min_size=4, max_size=30), REALS)
def test_the_slope_moves_with_the_series(values, slope):
    line = slope * np.arange(len(values))
    assert theil_sen(np.array(values) + line) == pytest.approx(theil_sen(values) + slope, abs=1e-9)


def test_a_quarter_of_wild_values_leaves_the_slope():
    values = 0.5 * np.arange(40)
    values[[3, 9, 17, 22, 28, 31, 36, 39]] = 1e6
    assert theil_sen(values) == pytest.approx(0.5)


@pytest.mark.parametrize("ahead", [1, 4, 13, 26])
def test_a_shorter_history_has_no_interval_and_says_how_long_it_must_be(ahead):
    series = np.random.default_rng(1).standard_normal(steps_needed(ahead))
    assert back_test(series, ahead) is not None
    assert back_test(series[1:], ahead) is None


@pytest.mark.parametrize("ahead", [1, 4])
def test_nothing_after_an_origin_is_used_at_it(ahead):
    """What comes after step 60 changes no error of a forecast that was made and settled before."""
    rng = np.random.default_rng(2)
    series = np.cumsum(rng.standard_normal(90))
    other = series.copy()
    other[60:] += 100.0 * rng.standard_normal(30)
    first, second = back_test(series, ahead), back_test(other, ahead)
    assert first is not None and second is not None
    settled = 60 - max(8, ahead) + 1 - ahead  # errors whose step lies before 60
    assert np.array_equal(first.errors[:settled], second.errors[:settled])
    assert not np.array_equal(first.errors, second.errors)


@given(st.lists(REALS, min_size=20, max_size=60), st.floats(0.1, 10), REALS)
def test_bounds_scale_and_move_with_the_errors(errors, scale, shift):
    low, high = conformal_bounds(errors, 0.8)
    moved = conformal_bounds(scale * np.array(errors) + shift, 0.8)
    assert moved == pytest.approx((scale * low + shift, scale * high + shift), abs=1e-9)
    assert min(errors) - 1e-9 <= low <= high <= max(errors) + 1e-9


@pytest.mark.parametrize("count", [9, 19, 24])
def test_bounds_hold_the_next_of_exchangeable_errors_as_counted(count):
    """Of n + 1 exchangeable errors each rank is as likely: the interval from rank i to rank j holds the next with (j - i)/(n + 1)."""
    low, high = conformal_bounds(np.arange(1, count + 1), 0.8)
    exact = (high - low) / (count + 1)
    assert 0.8 - 1e-9 <= exact <= 0.8 + 2 / (count + 1)
    drawn = np.random.default_rng(3).standard_normal((4000, count + 1))
    kept = np.mean([a <= row[-1] <= b for row in drawn for a, b in [conformal_bounds(row[:-1], 0.8)]])
    assert abs(kept - exact) < 5 * np.sqrt(exact * (1 - exact) / 4000)
