"""Time value of money: recovery of capital, present worth of payments, cost per token. No prices live here.

Money is in any one currency. Rates are per year and may be zero; every formula then takes its limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from catalog.units import MILLION
from models.arrays import Result, as_result


def discount_factor(rate: ArrayLike, years: ArrayLike) -> Result:
    """Discount one unit paid after `years`:  v = (1 + r)^-n.

    Shapes: broadcast. Units: rate [1/year], years [year], result [1]. Valid for rate > -1.
    Reference: Park, Contemporary Engineering Economics, 6th ed. (2016), chapter 3 (single payment, P/F).

    >>> float(round(discount_factor(0.08, 1), 6))
    0.925926
    """
    return as_result(np.exp(-np.asarray(years, float) * np.log1p(rate)))


def present_worth_factor(rate: ArrayLike, years: ArrayLike) -> Result:
    """Sum the present worth of one unit at the end of each of n years:  (1 - (1 + r)^-n) / r, and n when r = 0.

    Shapes: broadcast. Units: rate [1/year], years [year], result [year]. Valid for rate > -1, years >= 0.
    Reference: Park (2016), chapter 3 (uniform series, P/A).

    >>> float(round(present_worth_factor(0.08, 5), 4))
    3.9927
    >>> float(present_worth_factor(0.0, 5))
    5.0
    """
    rate, years = np.broadcast_arrays(np.asarray(rate, float), np.asarray(years, float))
    safe = np.where(rate == 0.0, 1.0, rate)
    # expm1 keeps the digits that 1 - (1 + r)^-n loses at a small rate.
    return as_result(np.where(rate == 0.0, years, -np.expm1(-years * np.log1p(safe)) / safe))


def capital_recovery_factor(rate: ArrayLike, years: ArrayLike) -> Result:
    """Compute the equal payment at the end of each of n years that repays one unit:  r (1 + r)^n / ((1 + r)^n - 1).

    Shapes: broadcast. Units: rate [1/year], years [year], result [1/year]. Valid for rate > -1, years > 0.
    Reference: Park (2016), chapter 3 (capital recovery, A/P); Short, Packey and Holt, NREL/TP-462-5173 (1995), section 2.

    >>> float(round(capital_recovery_factor(0.08, 5), 6))
    0.250456
    """
    return 1.0 / present_worth_factor(rate, years)


def annuity(price: ArrayLike, rate: ArrayLike, life_years: ArrayLike, residual_fraction: ArrayLike = 0.0) -> Result:
    """Compute the yearly cost of owning:  (P - R) CRF(r, n) + R r,  R = residual_fraction P recovered at the end of life.

    Shapes: broadcast. Units: price [money], rate [1/year], life [year], residual [1], result [money/year].
    Valid for life > 0 and 0 <= residual <= 1.
    Reference: Park (2016), chapter 6 (capital recovery with salvage value): CR(i) = (I - S)(A/P, i, N) + i S.

    >>> float(round(annuity(1000.0, 0.08, 5, 0.1), 3))
    233.411
    """
    price = np.asarray(price, float)
    residual = price * np.asarray(residual_fraction, float)
    return as_result(
        (price - residual) * capital_recovery_factor(rate, life_years) + residual * np.asarray(rate, float)
    )


def horizon_share(
    rate: ArrayLike, life_years: ArrayLike, horizon_years: ArrayLike, residual_fraction: ArrayLike = 0.0
) -> Result:
    """Compute the present worth, per unit of price, of owning through a horizon:  a(r, n, R) x PW(r, h).

    A system that outlives the horizon is charged its annuities up to the horizon only; one that wears out earlier
    is replaced at the same price. Shapes: broadcast. Units: rate [1/year], years [year], result [1].
    Reference: Park (2016), chapter 6 (annual worth with unequal lives).

    >>> float(round(horizon_share(0.08, 5, 5), 12))
    1.0
    >>> float(round(horizon_share(0.0, 5, 3), 12))
    0.6
    """
    return annuity(1.0, rate, life_years, residual_fraction) * present_worth_factor(rate, horizon_years)


def residual_value(ages_years: Sequence[float], fractions: Sequence[float], years: ArrayLike) -> Result:
    """Interpolate the share of a price that is left after `years`: linear between (0, 1) and the points (age, fraction).

    Beyond the last age it stays on the line through the last two points, and never below 0. Shapes: ages and fractions [point],
    years any, result that of years. Units: ages and years [year], fractions and result [1]. Valid for rising positive ages, and
    fractions that start at most at 1 and never rise.
    Reference: Park (2016), chapter 9 (market value by age).

    >>> [float(round(residual_value((1.0, 3.0), (0.6, 0.3), x), 4)) for x in (0, 0.5, 2, 4, 6)]
    [1.0, 0.8, 0.45, 0.15, 0.0]
    """
    ages, values = [0.0, *ages_years], [1.0, *fractions]
    fall = (values[-2] - values[-1]) / (ages[-1] - ages[-2])
    if fall > 0:
        ages, values = [*ages, ages[-1] + values[-1] / fall], [*values, 0.0]
    return as_result(np.interp(np.asarray(years, float), ages, values))


def purchase_share(
    rate: ArrayLike,
    life_years: ArrayLike,
    held_years: ArrayLike,
    ages_years: Sequence[float],
    fractions: Sequence[float],
    price_change: ArrayLike = 0.0,
) -> Result:
    """Compute the present worth at delivery, per unit of price, of owning for h years and selling at the end.

    (1 - f(n) v^n) (1 - q^k) / (1 - q)  +  q^k (1 - f(h - k n) v^(h - k n)),  v = 1 / (1 + r),  q = ((1 + g) v)^n,  k = floor(h / n):
    a system that reaches its life n is sold and replaced at the price of that time, which changes by g per year; f is
    `residual_value`, a share of what each cost. At q = 1 the middle factor is k. Shapes: rate, life, held and change broadcast; ages
    and fractions [point]. Units: rate and change [1/year], life, held and ages [year], fractions and result [1]. Valid for g > -1.
    Reference: Park (2016), chapter 6 (capital recovery with salvage value, repeated over unequal lives).

    >>> float(round(purchase_share(0.08, 5, 3, (3.0,), (0.3,)), 6)), float(round(purchase_share(0.0, 5, 10, (5.0,), (0.0,)), 6))
    (0.76185, 2.0)
    >>> round(300_000 * float(purchase_share(0.08, 5, 7, (5.0,), (0.0,), -0.3)))
    316664
    """
    rate, life, held, change = (np.asarray(a, float) for a in (rate, life_years, held_years, price_change))
    lives = np.floor(held / life)
    rest = np.maximum(held - lives * life, 0.0)
    one, fall = discount_factor(rate, life), np.log1p(rate) - np.log1p(change)
    gone = np.exp(-lives * life * fall)
    # expm1 keeps the digits that 1 - q loses where it is nearly 1.
    off = -np.expm1(-life * fall)
    safe = np.where(off == 0.0, 1.0, off)
    cycles = np.where(off == 0.0, lives, -np.expm1(-lives * life * fall) / safe)
    last = 1.0 - residual_value(ages_years, fractions, rest) * discount_factor(rate, rest)
    return as_result((1.0 - residual_value(ages_years, fractions, life) * one) * cycles + gone * last)


def window_present_worth(
    rate: ArrayLike,
    start_year: ArrayLike,
    end_year: ArrayLike,
    horizon_years: int,
    payments_per_year: int = 1,
    escalation: float = 0.0,
) -> Result:
    """Compute the present worth of one unit per year that flows during [a, b), each period's share paid at that period's end.

    sum over k of |[a, b) n [k/m, (k+1)/m)| (1 + g)^floor(k/m) (1 + r)^-((k+1)/m),  k = 0 .. m horizon - 1,  with m payments per year
    and an amount that rises by g at the end of each year;  equals PW(r, h) for [0, h), m = 1 and g = 0.
    Shapes: broadcast. Units: rate and g [1/year], start and end [year], result [year]. What lies outside the horizon counts 0. Valid for g > -1.
    Reference: Park (2016), chapter 2 (end-of-period convention), chapter 3 (geometric gradient) and chapter 4 (payments within a year).

    >>> float(round(window_present_worth(0.08, 0.5, 1.25, 2), 6)), float(round(window_present_worth(0.08, 0, 1, 1, 12), 6))
    (0.677298, 0.959405)
    >>> float(round(window_present_worth(0.08, 0, 2, 2, escalation=0.1), 6)) == round(1 / 1.08 + 1.1 / 1.08**2, 6)
    True
    """
    rate, start, end = (np.asarray(a, float)[..., None] for a in (rate, start_year, end_year))
    k = np.arange(horizon_years * payments_per_year, dtype=float)
    begins, paid = k / payments_per_year, (k + 1.0) / payments_per_year
    overlap = np.clip(np.minimum(end, paid) - np.maximum(start, begins), 0.0, 1.0 / payments_per_year)
    risen = (1.0 + escalation) ** (k // payments_per_year)
    return as_result((overlap * risen * discount_factor(rate, paid)).sum(axis=-1))


def level_payments(rate: ArrayLike, payments_per_year: int) -> Result:
    """Compute the present worth of one unit per year in m equal payments, over that of one unit at the end of each year:  r / (m ((1 + r)^(1/m) - 1)).

    Shapes: that of rate. Units: rate [1/year], result [1], 1 when m = 1 or r = 0. Valid for rate > -1.
    Reference: Park (2016), chapter 4 (effective rate per payment period).

    >>> float(level_payments(0.08, 1)), float(round(level_payments(0.08, 12), 5))
    (1.0, 1.03616)
    """
    rate = np.asarray(rate, float)
    per_period = payments_per_year * np.expm1(np.log1p(rate) / payments_per_year)
    return as_result(
        np.where((rate == 0.0) | (payments_per_year == 1), 1.0, rate / np.where(rate == 0.0, 1.0, per_period))
    )


def cost_per_million_tokens(cost: ArrayLike, tokens: ArrayLike) -> Result:
    """Compute the price of a million tokens:  10^6 cost / tokens; infinite where nothing is produced.

    Shapes: broadcast. Units: cost [money] and tokens [token], or both per second, result [money per million tokens].
    Reference: Barroso, Hölzle and Ranganathan, The Datacenter as a Computer, 3rd ed. (2018), chapter 6 (TCO per unit of work).

    >>> float(cost_per_million_tokens(2.0, 4e6))
    0.5
    """
    tokens = np.asarray(tokens, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return as_result(np.where(tokens > 0, MILLION * np.asarray(cost, float) / tokens, np.inf))
