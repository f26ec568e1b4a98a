"""Distributions known by three cumulants: quantile, share below a limit, and both of mixtures. No queue and no transformer here.

A sum of independent times adds its cumulants, so a latency made of many parts needs no convolution. Curves are those of a shifted
gamma variable by the cube-root transform, which takes a deviate of the normal distribution and no special function per quantile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtr, ndtri

from models.arrays import Floats, Result, as_result

_ROUNDS, _CLOSE = 40, 1e-9
# Skewness beyond which the cube root no longer follows the gamma distribution.
_MOST_SKEW = 4.0
# Shares of requests, by length, that stand for all: fine where outputs are short and their times scatter most.
LENGTH_WEIGHTS = np.array([0.01, 0.03, 0.08, 0.20, 0.33, 0.35])


@dataclass(frozen=True, slots=True)
class Cumulants:
    """Mean, variance and third cumulant of a time [s, s^2, s^3]; `+` is the sum of independent times."""

    mean: Result
    variance: Result
    third: Result

    def __add__(self, other: Cumulants) -> Cumulants:
        return Cumulants(self.mean + other.mean, self.variance + other.variance, self.third + other.third)

    def times(self, factor: ArrayLike) -> Cumulants:
        """Scale the time by a constant."""
        factor = np.asarray(factor, float)
        return Cumulants(factor * self.mean, factor**2 * self.variance, factor**3 * self.third)


def gamma_cumulants(mean_s: ArrayLike, scv: ArrayLike) -> Cumulants:
    """Describe a gamma variable of given mean [s] and squared coefficient of variation [1]:  (m, c m^2, 2 c^2 m^3).

    Shapes: broadcast. Reference: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 2nd ed. (1994), chapter 17.

    >>> gamma_cumulants(2.0, 0.5).variance
    np.float64(2.0)
    """
    mean, scv = np.asarray(mean_s, float), np.asarray(scv, float)
    return Cumulants(mean, scv * mean**2, 2.0 * scv**2 * mean**3)


def delayed_cumulants(mean_s: ArrayLike, probability: ArrayLike, scv: ArrayLike) -> Cumulants:
    """Describe a time that is 0 with chance 1 - p and else gamma of squared coefficient of variation c [1], of mean W [s] in all.

    E[t^2] = W^2 (1 + c)/p,  E[t^3] = W^3 (1 + c)(1 + 2 c)/p^2. Shapes: broadcast. Units: seconds and [1].
    Reference: Kleinrock, Queueing Systems 1 (1975), chapter 5 (atom at zero of a waiting time).

    >>> d = delayed_cumulants(1.0, 1.0, 1.0)
    >>> float(d.variance), float(d.third)
    (1.0, 2.0)
    """
    mean, scv = np.asarray(mean_s, float), np.asarray(scv, float)
    p = np.maximum(np.asarray(probability, float), 1e-12)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite waits stay infinite
        square = mean**2 * (1.0 + scv) / p
        cube = square * mean * (1.0 + 2.0 * scv) / p
        return Cumulants(mean, square - mean**2, np.maximum(cube - 3.0 * mean * square + 2.0 * mean**3, 0.0))


def quantile_s(normal: ArrayLike, time: Cumulants) -> Result:
    """Compute the quantile of a time of three cumulants at a normal deviate z:

    m + s [6 a + 6 g a^2 + 2 g^2 a^3],  a = z/6 - g/36,  g = third / s^3 (Wilson-Hilferty; the bracket is z for g = 0).
    Shapes: broadcast. Units: z [1], result [s]. Exact for a normal variable, within 2 % for an exponential one between its 10th
    and 99.9th percentile; skewness is cut at 4.
    Reference: Wilson and Hilferty, PNAS 17 (1931); Kirby, Water Resources Research 8 (1972).

    >>> round(float(quantile_s(0.0, Cumulants(1.0, 1.0, 2.0))), 3), float(quantile_s(1.0, Cumulants(1.0, 4.0, 0.0)))
    (0.702, 3.0)
    """
    deviation, skew = _shape(time)
    a = np.asarray(normal, float) / 6.0 - skew / 36.0
    a = np.maximum(a, -1.0 / np.maximum(skew, 1e-6))  # below lies nothing
    return as_result(time.mean + deviation * (2.0 * a) * (3.0 + skew * a * (3.0 + skew * a)))


def share_below(limit_s: ArrayLike, time: Cumulants) -> Result:
    """Compute P(time <= limit), the inverse of `quantile_s`:  Phi(3 k / (y^2 + y + 1) + g/6),  y = (1 + g k/2)^(1/3),  k = (limit - m)/s.

    Shapes: broadcast. Units: limit [s], result [1]. Reference: Wilson and Hilferty, PNAS 17 (1931).

    >>> round(float(share_below(0.702, Cumulants(1.0, 1.0, 2.0))), 3)
    0.5
    """
    return ndtr(_deviate(np.asarray(limit_s, float), time.mean, *_shape(time))[0])


def _shape(time: Cumulants) -> tuple[Result, Result]:
    deviation = np.sqrt(np.maximum(time.variance, 0.0))
    with np.errstate(invalid="ignore"):
        skew = time.third / np.maximum(deviation, 1e-100) ** 3
    return deviation, np.clip(np.where(np.isfinite(skew), skew, 0.0), 0.0, _MOST_SKEW)


def _deviate(limit: Result, mean: Result, deviation: Result, skew: Result) -> tuple[Result, Result, Result]:
    """Compute the normal deviate of the limit, with the scale and the square that its slope takes."""
    scale = np.maximum(deviation, 1e-9 * np.abs(mean) + 1e-300)
    k = (limit - mean) / scale
    y = np.cbrt(np.maximum(1.0 + 0.5 * skew * k, 1e-30))
    square = y * y
    return 3.0 * k / (square + y + 1.0) + skew / 6.0, scale, square


def _below(limit: Result, mean: Result, deviation: Result, skew: Result) -> tuple[Result, Result]:
    """Compute the share below the limit and its derivative by the limit [1/s]."""
    z, scale, square = _deviate(limit, mean, deviation, skew)
    return ndtr(z), np.exp(-0.5 * z * z) / (2.5066282746310002 * scale * square)


def mixture_share(limit_s: ArrayLike, weights: Floats, time: Cumulants) -> Result:
    """Compute the share of a mixture below a limit; the first axis of cumulants and weights holds the components.

    sum_i w_i P_i(limit). Shapes: limit broadcasts to the rest. Units: limit [s], result [1].
    Reference: Johnson, Kotz and Balakrishnan (1994), chapter 17 (mixtures of gamma distributions).

    >>> two = Cumulants(np.array([1.0, 3.0]), np.array([0.01, 0.01]), np.zeros(2))
    >>> round(float(mixture_share(2.0, np.array([0.3, 0.7]), two)), 6)
    0.3
    """
    return next(mixture_shares([limit_s], weights, time))


def mixture_shares(limits_s: Iterable[ArrayLike], weights: Floats, time: Cumulants) -> Iterator[Result]:
    """Compute `mixture_share` at one limit after the other. Units: limits [s], results [1]. Reference: as `mixture_share`.

    >>> two = Cumulants(np.array([1.0, 3.0]), np.array([0.01, 0.01]), np.zeros(2))
    >>> [round(float(share), 6) for share in mixture_shares([2.0, 9.0], np.array([0.3, 0.7]), two)]
    [0.3, 1.0]
    """
    deviation, skew = _shape(time)
    for limit in limits_s:
        z = _deviate(np.asarray(limit, float), time.mean, deviation, skew)[0]
        yield as_result((weights * ndtr(z)).sum(axis=0))


def mixture_quantile_s(quantile: float, weights: Floats, time: Cumulants) -> Result:
    """Find the quantile of a mixture by Newton steps on the logarithm of the upper tail, between the smallest and the largest component's quantile.

    Shapes: as `mixture_share`. Units: quantile [1], result [s]. Reference: as `mixture_share`.

    >>> two = Cumulants(np.array([1.0, 3.0]), np.array([0.01, 0.01]), np.zeros(2))
    >>> round(float(mixture_quantile_s(0.5, np.array([0.3, 0.7]), two)), 3)
    2.943
    """
    deviation, skew = _shape(time)
    each = np.asarray(quantile_s(ndtri(quantile), time))
    if len(each) == 1:
        return as_result(each[0])
    low, high = each.min(axis=0), each.max(axis=0)
    guess = (weights * each).sum(axis=0)
    for _ in range(_ROUNDS):
        below, slope = _below(guess, time.mean, deviation, skew)
        above = 1.0 - (weights * below).sum(axis=0)
        short = above > 1.0 - quantile
        low, high = np.where(short, guess, low), np.where(short, high, guess)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # The tail is nearly a straight line in the logarithm, which a CDF is not.
            step = guess + np.log(above / (1.0 - quantile)) * above / (weights * slope).sum(axis=0)
            following = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
            moving = np.abs(following - guess) > _CLOSE * high
        guess = following
        if not np.any(moving):
            break
    return as_result(guess)


def length_nodes(scv: ArrayLike) -> tuple[Floats, Floats]:
    """Discretise a gamma distribution of lengths into (weights, relative lengths); one node where lengths are equal.

    Each node is the quantile in the middle of its weight. Shapes: scalar scv [1] in, two arrays [node] out; of several, the nodes
    are the first axis and the weights broadcast. Units: [1]. Reference: Johnson, Kotz and Balakrishnan (1994), chapter 17.

    >>> [len(length_nodes(c)[0]) for c in (0.0, 1.0)]
    [1, 6]
    """
    scv = np.asarray(scv, float)
    return _nodes_of(float(scv)) if not scv.ndim else _nodes(scv)


@lru_cache(maxsize=256)
def _nodes_of(scv: float) -> tuple[Floats, Floats]:
    """Cache the nodes of one spread, which all points of a search share; callers must not write to them."""
    found = _nodes(np.asarray(scv))
    for array in found:
        array.flags.writeable = False
    return found


def _nodes(scv: Floats) -> tuple[Floats, Floats]:
    if not np.any(scv > 1e-6):
        return np.ones((1,) + (1,) * scv.ndim), np.ones((1, *scv.shape))
    weights = LENGTH_WEIGHTS.reshape((-1,) + (1,) * scv.ndim)
    middle = np.cumsum(weights, axis=0) - 0.5 * weights
    safe = np.maximum(scv, 1e-6)
    return weights, safe * gammaincinv(1.0 / safe, middle)


def either(probability: ArrayLike, without: Cumulants, more: Cumulants) -> tuple[Floats, Cumulants]:
    """Mix a time with its sum with another, added with some chance: (weights, mixture).

    Shapes: broadcast; the two cases are the first axis. Units: probability [1]. Reference: as `mixture_share`.

    >>> weights, both = either(0.1, Cumulants(1.0, 0.0, 0.0), gamma_cumulants(1.0, 1.0))
    >>> weights.tolist(), both.mean.tolist()
    ([0.9, 0.1], [1.0, 2.0])
    """
    both, chance = without + more, np.asarray(probability, float)
    parts = (
        (1.0 - chance, chance),
        (without.mean, both.mean),
        (without.variance, both.variance),
        (without.third, both.third),
    )
    filled = np.empty((len(parts), 2, *np.broadcast(chance, both.mean, both.variance, both.third).shape))
    for place, (first, second) in zip(filled, parts, strict=True):
        place[0], place[1] = first, second
    return filled[0], Cumulants(*filled[1:])
