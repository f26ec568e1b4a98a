"""Distributions known by three cumulants: quantile, share below a limit, and both of mixtures. No queue and no transformer here.

A sum of independent times adds its cumulants, so a latency made of many parts needs no convolution. Curves belong to a shifted gamma
variable: by the cube-root transform, which takes a deviate of the normal distribution and no special function per quantile,
and by the incomplete gamma function where they are more skewed than that transform follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincinv, gammaln, ndtr, ndtri

from models.arrays import Bools, Floats, Result, as_result

_ROUNDS, _BISECTING, _CLOSE = 120, 4, 1e-9
# Skewness beyond which the cube root no longer follows the gamma distribution.
_MOST_SKEW = 4.0
_LARGEST_SKEW = 1e6
# Shares of requests, by length, that stand for all: fine where outputs are short and their times scatter most.
LENGTH_WEIGHTS = np.array([0.01, 0.03, 0.08, 0.20, 0.33, 0.35])


@dataclass(frozen=True, slots=True)
class Cumulants:
    """Mean, variance and third cumulant of a time [s, s^2, s^3]; `+` is the sum of independent times.

    `least`: a value that the time is never below [s].
    """

    mean: Result
    variance: Result
    third: Result
    least: Result = 0.0

    def __add__(self, other: Cumulants) -> Cumulants:
        return Cumulants(
            self.mean + other.mean, self.variance + other.variance, self.third + other.third, self.least + other.least
        )

    def times(self, factor: ArrayLike) -> Cumulants:
        """Scale the time by a constant."""
        factor = np.asarray(factor, float)
        return Cumulants(
            factor * self.mean, factor**2 * self.variance, factor**3 * self.third, factor * np.asarray(self.least)
        )


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


@dataclass(frozen=True, slots=True)
class _Curve:
    """Shifted gamma variable: mean and deviation [s], skewness [1]; `steep`: where the cube root does not follow it, and its start there [s].

    `scale`, `bend`, `shift`: what the normal deviate of a limit takes of these.
    """

    mean: Result
    deviation: Result
    skew: Result
    steep: Bools | None
    start: Result
    scale: Result
    bend: Result
    shift: Result

    @classmethod
    def of(cls, time: Cumulants) -> _Curve:
        """Fit the curve. A variable above its least value l is at least as skewed as a gamma variable there, 2 s/(m - l), once s > 2 (m - l);

        from s = m - l on, 4 (s/(m - l) - 1), which joins both: the median stays above l.
        """
        deviation = np.sqrt(np.maximum(time.variance, 0.0))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            skew = time.third / np.maximum(deviation, 1e-100) ** 3
            skew = np.maximum(np.where(np.isfinite(skew), skew, 0.0), 0.0)
            wide = deviation / np.maximum(time.mean - np.asarray(time.least), 1e-100)
            if np.any(wide > 1.0):
                skew = np.maximum(skew, np.minimum(np.where(wide > 2.0, 2.0 * wide, 4.0 * (wide - 1.0)), _LARGEST_SKEW))
            steep, start = skew > _MOST_SKEW, np.asarray(0.0)
            if np.any(steep):
                start = np.maximum(time.mean - 2.0 * deviation / np.maximum(skew, _MOST_SKEW), time.least)
        scale = np.maximum(deviation, 1e-9 * np.abs(time.mean) + 1e-300)
        followed = np.minimum(skew, _MOST_SKEW)
        return cls(
            time.mean, deviation, skew, np.asarray(steep) if np.any(steep) else None, start, scale, 0.5 * followed, followed / 6.0,
        )  # fmt: skip

    def quantile_s(self, quantile: ArrayLike) -> Result:
        """Compute the quantile [s]."""
        skew = np.minimum(self.skew, _MOST_SKEW)
        a = ndtri(np.asarray(quantile, float)) / 6.0 - skew / 36.0
        a = np.maximum(a, -1.0 / np.maximum(skew, 1e-6))  # below lies nothing
        found = self.mean + self.deviation * (2.0 * a) * (3.0 + skew * a * (3.0 + skew * a))
        return found if self.steep is None else self._with_steep(found, _gamma_quantile_s, quantile)

    def below(self, limit: Result) -> tuple[Result, Result]:
        """Compute the share below the limit and its derivative by the limit [1/s]."""
        z, square = self._deviate(limit)
        share, slope = ndtr(z), np.exp(-0.5 * z * z) / (2.5066282746310002 * self.scale * square)
        if self.steep is None:
            return share, slope
        return self._with_steep(share, _gamma_share, limit), self._with_steep(slope, _gamma_density, limit)

    def share(self, limit: Result) -> Result:
        """Compute the share below the limit."""
        share = ndtr(self._deviate(limit)[0])
        return share if self.steep is None else self._with_steep(share, _gamma_share, limit)

    def _deviate(self, limit: Result) -> tuple[Result, Result]:
        """Compute the normal deviate of the limit, with the square that its slope takes."""
        k = (limit - self.mean) / self.scale
        y = np.cbrt(np.maximum(1.0 + self.bend * k, 1e-30))
        square = y * y
        return 3.0 * k / (square + y + 1.0) + self.shift, square

    def _with_steep(
        self, found: Result, by_gamma: Callable[[Floats, Floats, Floats, Floats], Floats], given: ArrayLike
    ) -> Result:
        """Replace what was found at the steep places by a function of the given values, start, shape and scale there."""
        filled = np.array(found, float)
        steep = np.broadcast_to(np.asarray(self.steep), filled.shape)
        at, start, deviation, skew = (
            np.broadcast_to(part, filled.shape)[steep] for part in (given, self.start, self.deviation, self.skew)
        )
        filled[steep] = by_gamma(at, start, 4.0 / skew**2, 0.5 * deviation * skew)
        return filled


def _gamma_quantile_s(quantile: Floats, start: Floats, shape: Floats, scale: Floats) -> Floats:
    found: Floats = start + scale * gammaincinv(shape, quantile)
    return found


def _gamma_share(limit: Floats, start: Floats, shape: Floats, scale: Floats) -> Floats:
    found: Floats = gammainc(shape, np.maximum((limit - start) / scale, 0.0))
    return found


def _gamma_density(limit: Floats, start: Floats, shape: Floats, scale: Floats) -> Floats:
    x = np.maximum((limit - start) / scale, 1e-300)
    found: Floats = np.exp((shape - 1.0) * np.log(x) - x - gammaln(shape)) / scale
    return found


def quantile_s(quantile: ArrayLike, time: Cumulants) -> Result:
    """Compute the quantile of a time of three cumulants, from the normal deviate z of its share:

    m + s [6 a + 6 g a^2 + 2 g^2 a^3],  a = z/6 - g/36,  g = third / s^3 (Wilson-Hilferty; the bracket is z for g = 0), up to g = 4;
    beyond that the gamma quantile itself, m - 2 s/g + (s g/2) G^-1(4/g^2; q).
    Shapes: broadcast. Units: quantile [1], result [s]. Exact for a normal variable, within 2 % for an exponential one between its 10th
    and 99.9th percentile, exact for a gamma variable of g > 4. From the median on, no quantile is below the least value of the time.
    Reference: Wilson and Hilferty, PNAS 17 (1931); Kirby, Water Resources Research 8 (1972); Johnson, Kotz and Balakrishnan,
    Continuous Univariate Distributions 1, 2nd ed. (1994), chapter 17.

    >>> round(float(quantile_s(0.5, Cumulants(1.0, 1.0, 2.0))), 3), round(float(quantile_s(0.9, gamma_cumulants(1.0, 9.0))), 3)
    (0.702, 2.768)
    """
    return as_result(_Curve.of(time).quantile_s(quantile))


def share_below(limit_s: ArrayLike, time: Cumulants) -> Result:
    """Compute P(time <= limit), the inverse of `quantile_s`:  Phi(3 k / (y^2 + y + 1) + g/6),  y = (1 + g k/2)^(1/3),  k = (limit - m)/s.

    Shapes: broadcast. Units: limit [s], result [1]. Reference: Wilson and Hilferty, PNAS 17 (1931).

    >>> round(float(share_below(0.702, Cumulants(1.0, 1.0, 2.0))), 3)
    0.5
    """
    return as_result(_Curve.of(time).share(np.asarray(limit_s, float)))


def mixture_share(limit_s: ArrayLike, weights: Floats, time: Cumulants) -> Result:
    """Compute the share of a mixture below a limit; the first axis of cumulants and weights holds the components.

    sum_i w_i P_i(limit). Shapes: limit broadcasts to the rest. Units: limit [s], result [1].
    Reference: Johnson, Kotz and Balakrishnan (1994), chapter 17 (mixtures of gamma distributions).

    >>> two = Cumulants(np.array([1.0, 3.0]), np.array([0.01, 0.01]), np.zeros(2))
    >>> round(float(mixture_share(2.0, np.array([0.3, 0.7]), two)), 6)
    0.3
    """
    return MixtureShares(weights, time).below(limit_s)


class MixtureShares:
    """The shares of a mixture below one limit after the other: what does not depend on the limit is computed once."""

    def __init__(self, weights: Floats, time: Cumulants):
        self._weights, self._curve = weights, _Curve.of(time)

    def below(self, limit_s: ArrayLike) -> Result:
        """Compute `mixture_share` at a limit [s]."""
        return as_result((self._weights * self._curve.share(np.asarray(limit_s, float))).sum(axis=0))


def mixture_quantile_s(quantile: float, weights: Floats, time: Cumulants) -> Result:
    """Find the quantile of a mixture by Newton steps on the logarithm of the upper tail, between the smallest and the largest component's quantile.

    Shapes: as `mixture_share`. Units: quantile [1], result [s]. Reference: as `mixture_share`.

    >>> two = Cumulants(np.array([1.0, 3.0]), np.array([0.01, 0.01]), np.zeros(2))
    >>> round(float(mixture_quantile_s(0.5, np.array([0.3, 0.7]), two)), 3)
    2.943
    """
    curve = _Curve.of(time)
    each = np.asarray(curve.quantile_s(quantile))
    if len(each) == 1:
        return as_result(each[0])
    low, high = each.min(axis=0), each.max(axis=0)
    guess = (weights * each).sum(axis=0)
    for turn in range(1, _ROUNDS + 1):
        with np.errstate(over="ignore"):
            below, slope = curve.below(guess)
        above = 1.0 - (weights * below).sum(axis=0)
        short = above > 1.0 - quantile
        low, high = np.where(short, guess, low), np.where(short, high, guess)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # The tail is nearly a straight line in the logarithm, which a CDF is not.
            step = guess + np.log(above / (1.0 - quantile)) * above / (weights * slope).sum(axis=0)
            # Where a component begins, its density is without bounds and steps are too short: bisect now and then.
            newton = (step >= low) & (step <= high) & bool(turn % _BISECTING)
            missing = np.abs(above - (1.0 - quantile)) > _CLOSE * (1.0 - quantile)
            moving = missing & (high - low > _CLOSE * high)
        guess = np.where(moving, np.where(newton, step, 0.5 * (low + high)), guess)
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
        (without.least, both.least),
    )
    filled = np.empty((len(parts), 2, *np.broadcast(chance, both.mean, both.variance, both.third).shape))
    for place, (first, second) in zip(filled, parts, strict=True):
        place[0], place[1] = first, second
    return filled[0], Cumulants(*filled[1:])
