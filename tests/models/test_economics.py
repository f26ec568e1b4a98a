"""Laws of the time value of money and of carbon, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import economics
from models.energy import carbon, power

rates = st.one_of(st.just(0.0), st.floats(1e-9, 0.5))
years = st.integers(1, 30)
fractions = st.floats(0, 1)


@given(rates, years)
def test_capital_recovery_repays_exactly(rate, n):
    assert economics.capital_recovery_factor(rate, n) * economics.present_worth_factor(rate, n) == pytest.approx(
        1.0, rel=1e-12
    )
    # By hand, year by year: the debt with interest less the payment is nothing after n years.
    debt, payment = 1.0, economics.capital_recovery_factor(rate, n)
    for _ in range(n):
        debt = debt * (1 + rate) - payment
    assert debt == pytest.approx(0.0, abs=1e-9 * (1 + rate) ** n)


@given(rates, years)
def test_present_worth_is_the_sum_of_discounted_payments(rate, n):
    by_hand = sum((1 + rate) ** -k for k in range(1, n + 1))
    assert economics.present_worth_factor(rate, n) == pytest.approx(
        by_hand, rel=1e-7
    )  # r = 1e-9 costs the plain power digits
    assert economics.window_present_worth(rate, 0.0, float(n), n) == pytest.approx(by_hand, rel=1e-7)


@given(rates, years, fractions)
def test_annuity_with_residual_is_worth_price_less_discounted_residual(rate, n, residual):
    paid = economics.annuity(1000.0, rate, n, residual) * economics.present_worth_factor(rate, n)
    assert paid == pytest.approx(1000.0 * (1 - residual * economics.discount_factor(rate, n)), rel=1e-9, abs=1e-6)


@given(rates, years, years, fractions)
def test_horizon_share_grows_with_the_horizon_and_falls_with_residual(rate, life, horizon, residual):
    share = economics.horizon_share(rate, life, horizon, residual)
    assert share <= economics.horizon_share(rate, life, horizon + 1, residual) * (1 + 1e-12)
    assert share <= economics.horizon_share(rate, life, horizon, 0.0) * (1 + 1e-12)
    assert economics.horizon_share(rate, life, life, 0.0) == pytest.approx(1.0, rel=1e-12)


@given(rates, st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
def test_windows_add_up(rate, a, b, c):
    a, b, c = sorted((a, b, c))
    parts = economics.window_present_worth(rate, a, b, 10) + economics.window_present_worth(rate, b, c, 10)
    assert parts == pytest.approx(economics.window_present_worth(rate, a, c, 10), rel=1e-9, abs=1e-12)
    assert economics.window_present_worth(0.0, a, c, 10) == pytest.approx(c - a, abs=1e-9)


@given(st.floats(1, 1e9), st.floats(1, 1e9), st.floats(1, 3))
def test_carbon_and_energy_scale(amount, tokens, pue):
    power_w = power.facility_power_w(amount, pue)
    assert power_w >= amount
    assert power.energy_per_token_j(power_w, tokens) * tokens == pytest.approx(power_w, rel=1e-12)
    halves = carbon.embodied_carbon_kg(amount, 1.0, 2.0) + carbon.embodied_carbon_kg(amount, 1.0, 2.0)
    assert halves == pytest.approx(amount, rel=1e-12)


@given(st.lists(rates, min_size=2, max_size=5))
def test_one_number_and_many_take_the_same_path(many_rates):
    r = np.array(many_rates)
    of_rate = (
        lambda x: economics.discount_factor(x, 3), lambda x: economics.present_worth_factor(x, 3),
        lambda x: economics.capital_recovery_factor(x, 3), lambda x: economics.annuity(10.0, x, 3, 0.2),
        lambda x: economics.horizon_share(x, 5, 3, 0.1), lambda x: economics.window_present_worth(x, 0.25, 2.5, 3),
        lambda x: economics.cost_per_million_tokens(x, 5.0), lambda x: carbon.embodied_carbon_kg(x, 1.0, 2.0),
        lambda x: power.system_power_w(10.0, 20.0, x), lambda x: power.energy_per_token_j(x, 3.0),
    )  # fmt: skip
    for function in of_rate:
        whole = function(r)
        for i, number in enumerate(r.tolist()):
            alone = function(number)
            assert np.ndim(alone) == 0 and alone == pytest.approx(whole[i], rel=1e-12)
