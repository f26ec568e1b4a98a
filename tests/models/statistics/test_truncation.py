"""Moments of truncated variables against numerical integration of their densities, and their sums over parts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from models.statistics.truncation import lognormal_moment, tabulated_moment

MEANS = st.floats(10.0, 1e5)
CVS = st.floats(0.05, 3.0)
ORDERS = (0, 1, 2)


@pytest.mark.parametrize("order", ORDERS)
@given(mean=MEANS, cv=CVS, part=st.floats(0.1, 10.0))
def test_lognormal_moments_are_integrals_of_the_density(order, mean, cv, part):
    spread = np.sqrt(np.log1p(cv**2))
    law = stats.lognorm(spread, scale=mean * np.exp(-(spread**2) / 2))
    levels = np.linspace(0.0, float(law.cdf(part * mean)), 20_001)
    middle = law.ppf((levels[1:] + levels[:-1]) / 2)
    found = float(lognormal_moment(order, part * mean, mean, cv))
    assert found == pytest.approx(float((middle**order).sum() * levels[1]), rel=2e-3, abs=1e-9 * mean**order)


@given(mean=MEANS, cv=CVS)
def test_a_whole_lognormal_has_the_stated_mean_and_variation(mean, cv):
    share, first, second = (float(lognormal_moment(order, np.inf, mean, cv)) for order in ORDERS)
    assert (share, first) == (1.0, pytest.approx(mean))
    assert second / first**2 - 1.0 == pytest.approx(cv**2, rel=1e-9)


def test_without_variation_all_is_at_the_mean():
    assert float(lognormal_moment(1, 99.0, 100.0, 0.0)) == 0.0
    assert float(lognormal_moment(2, 100.0, 100.0, 0.0)) == 1e4


@st.composite
def tables(draw):
    count = draw(st.integers(1, 5))
    steps = draw(st.lists(st.floats(0.05, 1.0), min_size=count, max_size=count))
    ratios = draw(st.lists(st.floats(1.1, 10.0), min_size=count, max_size=count))
    levels = np.concatenate([[0.0], np.cumsum(steps) / sum(steps)])
    levels[-1] = 1.0
    return levels, draw(st.floats(1.0, 100.0)) * np.concatenate([[1.0], np.cumprod(ratios)])


@pytest.mark.parametrize("order", ORDERS)
@given(table=tables(), part=st.floats(0.01, 1.0))
def test_tabulated_moments_are_integrals_over_levels(order, table, part):
    levels, values = table
    most = values[0] * (values[-1] / values[0]) ** part
    top = float(np.interp(np.log(most), np.log(values), levels))
    edges = [0.0, *(level for level in levels if 0 < level < top), top]
    exact = sum(
        integrate.quad(lambda u: float(np.exp(np.interp(u, levels, np.log(values)))) ** order, low, high)[0]
        for low, high in pairwise(edges)
    )
    assert float(tabulated_moment(order, most, levels, values)) == pytest.approx(exact, rel=1e-7)


@given(table=tables())
def test_nothing_lies_below_the_least_and_all_below_the_largest(table):
    levels, values = table
    assert float(tabulated_moment(0, values[0], levels, values)) == 0.0
    assert float(tabulated_moment(0, values[-1] * 2, levels, values)) == pytest.approx(1.0)
