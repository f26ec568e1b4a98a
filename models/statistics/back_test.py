"""Forecast a series some steps ahead by robust trends, and bound the forecast by its errors from earlier origins. It knows no units of demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats

TREND_STEPS = 52  # steps back from an origin over which a trend is taken
LEVEL_STEPS = 4  # last steps whose median is the level
DAMPING = 0.95  # factor on a damped trend from one step to the next
MEMORY = 0.97  # factor on the weight of an error from one origin to the next later one
LEAST_STEPS = 8  # steps before the first origin
LEAST_ERRORS = 20  # errors behind the first interval
FIRST_ERRORS = 4  # errors behind the first choice of a trend


@dataclass(frozen=True, slots=True)
class BackTest:
    """Forecasts `ahead` steps ahead from the origins of a series, and the last interval; logarithms where the series is of logarithms.

    `low`, `high`: bounds at the last origin; `typical`: the forecast there plus its median error. `errors`: what came less the forecast,
    by origin. `kept`, `tried`: origins whose interval, from errors known at that time, held what came, and all with an interval.
    """

    ahead: int
    typical: float
    low: float
    high: float
    errors: Floats
    kept: int
    tried: int


def theil_sen(values: ArrayLike) -> float:
    """Estimate the slope of a series [1/step] by the median of the slopes of all pairs:  median (y_j - y_i)/(j - i).

    Shapes: one axis, of at least two. Units: as the values, per step. A quarter of the values may lie anywhere.
    Reference: Theil, Proc. KNAW 53 (1950); Sen, J. American Statistical Association 63 (1968).

    >>> theil_sen([0.0, 2.0, 4.0, 600.0, 8.0])
    2.0
    """
    found = np.asarray(values, dtype=float)
    first, second = np.triu_indices(len(found), 1)
    return float(np.median((found[second] - found[first]) / (second - first)))


def steps_needed(ahead: int) -> int:
    """Count the steps [step] of a series behind an interval `ahead` steps ahead:  max(8, h) + max(20, 2 h) + h.

    As many to forecast from, as many errors, and the time until the last of these is known. Shapes: scalars.
    Reference: Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 3rd ed. (2021), section 5.10 (rolling origins).

    >>> [steps_needed(h) for h in (1, 4, 13, 26, 52)]
    [29, 32, 52, 104, 208]
    """
    return max(LEAST_STEPS, ahead) + max(LEAST_ERRORS, 2 * ahead) + ahead


def trends_ahead(values: ArrayLike, ahead: int) -> Floats:
    """Forecast a series `ahead` steps ahead of its end in three ways: no trend, a damped one, a straight one.

    l,  l + s sum_{i=1..h} phi^i,  l + s h,  with s the slope of the last year of steps by `theil_sen`, l the median of the last four values,
    moved along the slope where there is one. Shapes: values along one axis; result [3]. Units: as the values.
    Reference: Gardner and McKenzie, Management Science 31 (1985) (damped trends).

    >>> trends_ahead([0.0, 1.0, 2.0, 3.0, 4.0], 2).round(6).tolist()
    [2.5, 5.8525, 6.0]
    """
    last = np.asarray(values, dtype=float)[-TREND_STEPS:]
    slope, end = theil_sen(last), last[-LEVEL_STEPS:]
    level = float(np.median(end - slope * np.arange(1 - len(end), 1)))
    damped = DAMPING * (1.0 - DAMPING**ahead) / (1.0 - DAMPING)
    return np.array([np.median(end), level + slope * damped, level + slope * ahead])


def conformal_bounds(errors: ArrayLike, coverage: float) -> tuple[float, float]:
    """Bound the next of exchangeable errors:  their order statistics floor((n + 1) a) and ceil((n + 1)(1 - a)),  a = (1 - coverage)/2.

    They hold it with at least this coverage, and by up to 2/(n + 1) more. Shapes: one axis, of at least nine for a coverage of 0.8. Units:
    as the errors; coverage [1]. Errors that overlap in time are not exchangeable: with few of them less is held, which a back-test shows.
    Reference: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, Springer (2005), chapter 2 (split conformal prediction).

    >>> conformal_bounds(range(1, 20), 0.8)
    (2.0, 18.0)
    """
    found = np.sort(np.asarray(errors, dtype=float))
    tail, count = (1.0 - coverage) / 2.0, len(found)
    low = max(int(np.floor((count + 1) * tail + 1e-9)), 1)
    high = min(int(np.ceil((count + 1) * (1.0 - tail) - 1e-9)), count)
    return float(found[low - 1]), float(found[high - 1])


def back_test(values: ArrayLike, ahead: int, coverage: float = 0.8) -> BackTest | None:
    """Forecast a series from every origin, choose the trend by the errors known there, and bound what comes by them; None for one too short.

    At origin t the way of `trends_ahead` is taken whose absolute errors, weighed by 0.97^age, were least; its interval is the forecast plus
    `conformal_bounds` of the errors of the forecasts made until then, all from before t. Nothing of the series after an origin is used at it.
    Shapes: values along one axis. Units: as the values [1] for logarithms; ahead [step].
    Reference: Tashman, International Journal of Forecasting 16 (2000) (rolling origins).

    >>> found = back_test(0.01 * np.arange(60), 4)
    >>> round(found.typical, 6), found.tried
    (0.63, 26)
    """
    series = np.asarray(values, dtype=float)
    count, first = len(series), max(LEAST_STEPS, ahead) - 1
    if count < steps_needed(ahead):
        return None
    ways = np.array([trends_ahead(series[: t + 1], ahead) for t in range(first, count)])  # [origin, way]
    missed = series[first + ahead :, None] - ways[: count - first - ahead]  # errors by origin, of each way
    made = np.array([ways[o, _best(missed[: max(o - ahead + 1, 0)])] for o in range(len(ways))])
    errors = series[first + ahead :] - made[: len(missed)]
    kept = tried = 0
    for o in range(max(LEAST_ERRORS, 2 * ahead) - 1 + ahead, len(errors)):
        low, high = conformal_bounds(errors[: o - ahead + 1], coverage)
        tried += 1
        kept += int(low <= errors[o] <= high)
    low, high = conformal_bounds(errors, coverage)
    middle, end = float(np.median(errors)), float(made[-1])
    return BackTest(ahead, end + middle, end + low, end + high, errors, kept, tried)


def _best(missed: Floats) -> int:
    """Return the way whose known errors [origin, way] were least; the damped trend where there are too few."""
    if len(missed) < FIRST_ERRORS:
        return 1
    weights = MEMORY ** np.arange(len(missed))[::-1]
    return int(np.argmin(weights @ np.abs(missed)))
