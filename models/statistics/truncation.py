"""Moments of positive variables within an interval: lognormal ones, and those known by quantiles. No requests and no tokens here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from models.arrays import Result, as_result


def lognormal_moment(order: int, most: ArrayLike, mean: float, cv: float) -> Result:
    """Compute the moment of a lognormal variable up to a value:  E[X^k; X <= x] = exp(k mu + k^2 s^2/2) Phi((ln x - mu - k s^2)/s),

    s^2 = ln(1 + c^2), mu = ln m - s^2/2. Order 0 is the share up to x. Shapes: as `most`, which may be infinite. Units: `most` and
    mean in one unit, such as [token]; result in its power k. Without variation all is at the mean.
    Reference: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 2nd ed. (1994), section 14.3.

    >>> float(lognormal_moment(0, np.inf, 1000.0, 1.0)), float(lognormal_moment(1, np.inf, 1000.0, 1.0).round(9))
    (1.0, 1000.0)
    >>> round(float(lognormal_moment(0, 1000.0, 1000.0, 1.0)), 4)
    0.6614
    """
    x = np.asarray(most, float)
    if cv <= 0.0:
        return as_result(np.where(x >= mean, mean**order, 0.0))
    variance = np.log1p(cv**2)
    location, spread = np.log(mean) - 0.5 * variance, np.sqrt(variance)
    whole = np.exp(order * location + 0.5 * order**2 * variance)
    with np.errstate(divide="ignore"):
        return as_result(whole * ndtr((np.log(x) - location - order * variance) / spread))


def tabulated_moment(order: int, most: ArrayLike, levels: ArrayLike, quantiles: ArrayLike) -> Result:
    """Compute the moment up to a value of a variable whose logarithm is linear in its level between stated quantiles:

    E[X^k; X <= x] = sum_i w_i (b_i^k - a_i^k) / (k ln(e_i/a_i)),  a_i, e_i: quantiles at the ends of piece i of weight w_i, b_i = min(x, e_i).

    Order 0 is the share up to x. Shapes: as `most`; levels from 0 to 1 and quantiles along one axis, both rising. Units: `most` and
    quantiles in one unit, such as [token]; result in its power k. Reference: direct integration of exp of a uniform variable.

    >>> float(tabulated_moment(0, 10.0, [0.0, 1.0], [1.0, 100.0])), round(float(tabulated_moment(1, 100.0, [0.0, 1.0], [1.0, 100.0])), 4)
    (0.5, 21.4976)
    """
    x = np.asarray(most, float)[..., None]
    level, value = np.asarray(levels, float), np.asarray(quantiles, float)
    low, high, weight = value[:-1], value[1:], np.diff(level)
    end, width = np.clip(x, low, high), np.log(high / low)
    within = np.log(end / low) if order == 0 else (end**order - low**order) / order
    return as_result((weight * within / width).sum(axis=-1))
