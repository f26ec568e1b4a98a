"""Errors outside the range of what was fitted: how much wider an interval grows with the distance from it. It knows no chip and no file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result, sum_of
from models.statistics.intervals import COVERAGE
from models.statistics.levels import weighted_quantiles

_STEEPEST = 4.0  # times as wide for each factor e of distance, up to which a slope is sought
_TRIED = 401  # slopes


def beyond(values: Mapping[str, float], ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Compute how far each value lies outside its range on the log scale:  d = max(ln(x / high), ln(low / x), 0);  only those outside.

    Shapes: scalars by name; a value without a range is inside. Units: values and ranges alike and positive, d [1].
    Reference: the log scale on which errors are fitted, `models.statistics.fitting`.

    >>> found = beyond({"batch": 1024.0, "context": 100.0, "other": 5.0}, {"batch": (1.0, 512.0), "context": (64.0, 8192.0)})
    >>> {name: round(distance, 3) for name, distance in found.items()}
    {'batch': 0.693}
    """
    found = {}
    for name, value in values.items():
        if name in ranges and value > 0.0:
            low, high = ranges[name]
            distance = max(float(np.log(value / high)), float(np.log(low / value)))
            if distance > 1e-9:
                found[name] = distance
    return found


def distance(parts: Mapping[str, float]) -> float:
    """Put the distances of single values together:  sqrt(sum d^2),  as for steps in directions that are independent.

    Shapes: scalars by name. Units: [1]. Reference: Euclidean distance on the log scale.

    >>> distance({"batch": 3.0, "context": 4.0}), distance({})
    (5.0, 0.0)
    """
    return float(np.sqrt(sum_of(part * part for part in parts.values())))


def widened(low: ArrayLike, high: ArrayLike, slope: float, far: float) -> tuple[Result, Result]:
    """Widen the bounds of measured / predicted:  bound^(1 + b d),  b the slope and d the distance; a bound of 1 stays.

    Shapes: broadcast. Units: bounds, slope and distance [1]. Reference: `slope_of`.

    >>> [float(bound) for far in (1.0, 0.0) for bound in widened(0.5, 2.0, 1.0, far)]
    [0.25, 4.0, 0.5, 2.0]
    """
    power = 1.0 + slope * far
    return as_result(np.asarray(low, float) ** power), as_result(np.asarray(high, float) ** power)


def slope_of(missed: ArrayLike, distances: ArrayLike, weights: ArrayLike, coverage: float = COVERAGE) -> float:
    """Estimate how errors grow with the distance from what the fit has seen: b >= 0 where c of |e| lie within a (1 + b d), c the coverage.

    Quantile regression of |e|, by the least sum of w |e|'s deviations from a (1 + b d), those above weighed c and those below 1 - c; for each b
    the best a is a weighted quantile. A bias of all errors says nothing of the distance and is taken off first, by their median.
    Shapes: one axis. Units: errors ln(measured / predicted) [1], distances [1], result [1]. 0 where no error lies outside.
    Reference: Koenker and Bassett, Regression Quantiles, Econometrica 46 (1978).

    >>> rng = np.random.default_rng(0)
    >>> far = np.repeat([0.0, 1.0, 2.0], 2000)
    >>> round(slope_of(rng.laplace(0.0, 0.1 * (1.0 + 0.5 * far)), far, np.ones(6000)), 1)
    0.5
    """
    far, weight, errors = (np.asarray(each, float) for each in (distances, weights, missed))
    if not np.any(far > 0.0):
        return 0.0
    size = np.abs(errors - np.median(errors))

    def loss(slope: float) -> float:
        spread = 1.0 + slope * far
        above = size - spread * float(weighted_quantiles(size / spread, weight * spread, coverage))
        return float(np.average(np.maximum(coverage * above, (coverage - 1.0) * above), weights=weight))

    slopes = np.linspace(0.0, _STEEPEST, _TRIED)
    return float(slopes[int(np.argmin([loss(slope) for slope in slopes]))])


def range_of(values: Floats) -> tuple[float, float] | None:
    """Return the least and the largest of the values that are known; None where none is.

    Shapes: one axis, NaN where not known. Units: as the values. Reference: none.

    >>> range_of(np.array([2.0, np.nan, 8.0])), range_of(np.array([np.nan]))
    ((2.0, 8.0), None)
    """
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else None
