"""Intervals of predictions, from empirical quantiles of the errors on held-out measurements. No predictions are made here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, as_result

TIERS = ("known", "new_source", "new_chip")
COVERAGE = 0.80
FEWEST = 8  # residuals below which a band takes those of all labels of its tier together


@dataclass(frozen=True, slots=True)
class Band:
    """Quantiles of ln(measured / predicted) that bound the stated share of runs."""

    low: float
    high: float


def band(log_measured_over_predicted: ArrayLike, coverage: float = COVERAGE) -> Band:
    """Compute central quantiles of ln(measured / predicted):  (1 - c)/2 and (1 + c)/2.

    Quantiles at rank q (n + 1), so that the share holds for the next run and not only for those seen.
    Shapes: one axis of two or more. Units: [1]. Assumes that the next run resembles those left out.
    Reference: Lei et al., Distribution-free predictive inference for regression, J. American Statistical Association 113 (2018), section 2.2.

    >>> found = band(np.linspace(-0.5, 0.5, 101))
    >>> round(found.low, 2), round(found.high, 2)
    (-0.41, 0.41)
    """
    missed = np.sort(np.asarray(log_measured_over_predicted, float))
    low, high = (1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0
    return Band(float(np.quantile(missed, low, method="weibull")), float(np.quantile(missed, high, method="weibull")))


def interval(predicted: ArrayLike, found: Band) -> tuple[Floats | float, Floats | float]:
    """Bound a predicted time by (low, high):  T exp(low), T exp(high).

    Shapes: as predicted. Units: predicted, low and high in one unit, such as [s].
    Reference: quantiles of the logarithm carry over to the time, `band`.

    >>> low, high = interval(10.0, Band(-0.1, 0.2))
    >>> round(float(low), 2), round(float(high), 2)
    (9.05, 12.21)
    """
    time = np.asarray(predicted, float)
    return as_result(time * np.exp(found.low)), as_result(time * np.exp(found.high))


def tier_of(source_seen: bool, chip_seen: bool) -> str:
    """Classify how far a run is from those of the calibration: another chip counts before another source.

    Shapes: scalars. Units: flags and a name [1].
    Reference: leave-one-chip-out misses more than leave-one-source-out, and that more than leave-group-out.

    >>> tier_of(True, True), tier_of(False, True), tier_of(False, False)
    ('known', 'new_source', 'new_chip')
    """
    return ("known" if source_seen else "new_source") if chip_seen else "new_chip"


def bands_by_tier(missed: Mapping[tuple[str, str], ArrayLike]) -> dict[tuple[str, str], Band]:
    """Build a band for each (tier, label); one with too few residuals takes all of its tier, and no tier is narrower than a nearer one.

    A label tells apart what is missed by different amounts, such as dense networks and those with experts.
    Shapes: residuals along one axis each. Units: ln(measured / predicted) [1].
    Reference: `band`.

    >>> rng = np.random.default_rng(0)
    >>> found = bands_by_tier({(tier, label): rng.normal(0, 0.1, n) for tier in TIERS for label, n in (("dense", 100), ("moe", 3))})
    >>> all(found["known", label].high <= found["new_source", label].high <= found["new_chip", label].high for label in ("dense", "moe"))
    True
    """
    labels = dict.fromkeys(label for _, label in missed)
    found: dict[tuple[str, str], Band] = {}
    for label in labels:
        nearer: Band | None = None
        for tier in TIERS:
            own = np.asarray(missed.get((tier, label), ()), float)
            if len(own) < FEWEST:
                own = np.concatenate([np.asarray(missed.get((tier, other), ()), float) for other in labels])
            here = band(own)
            if nearer is not None:
                here = Band(min(here.low, nearer.low), max(here.high, nearer.high))
            found[tier, label] = nearer = here
    return found
