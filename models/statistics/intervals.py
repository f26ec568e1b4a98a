"""Intervals of predictions, from empirical quantiles of the errors on held-out measurements. No predictions are made here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, as_result
from models.statistics.levels import row_weights, weighted_quantiles

# What of a run the calibration has seen: all; its chip and kind of network; its chip, with networks of other kinds; only other chips of its
# generation; none of them.
TIERS = ("known", "new_source", "new_kind", "new_chip", "new_generation")
NEARER = {"new_source": "known", "new_kind": "new_source", "new_chip": "new_source", "new_generation": "new_chip"}
COVERAGE = 0.80
FEWEST = 8  # residuals below which a band takes those of all labels of its tier together


@dataclass(frozen=True, slots=True)
class Band:
    """Quantiles of ln(measured / predicted) that bound the stated share of runs."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Missed:
    """Errors of held-out runs [ln(measured / predicted)], the group that was held out together with each, and who has a vote.

    Rows of one of `votes` share a vote; without votes, rows of one group do.
    """

    errors: Floats
    groups: Sequence[str]
    votes: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.errors)

    @property
    def weights(self) -> Floats:
        """Weight of each row, so that all votes count alike [1]."""
        return row_weights(self.votes or self.groups, 1.0) if len(self.errors) else np.zeros(0)

    def kept(self, rows: Bools) -> Missed:
        """Take a part of the rows."""
        groups, votes = (
            [name for name, keep in zip(names, rows, strict=True) if keep] if names else []
            for names in (self.groups, self.votes)
        )
        return Missed(self.errors[rows], groups, votes)


def pooled(parts: Sequence[Missed]) -> Missed:
    """Put errors together, each with its vote.

    Shapes: one axis each. Units: ln(measured / predicted) [1]. Reference: `Missed`.

    >>> len(pooled([Missed(np.zeros(2), ["a", "b"]), Missed(np.zeros(1), ["a"])]))
    3
    """
    errors = np.concatenate([part.errors for part in parts])
    return Missed(
        errors, [g for part in parts for g in part.groups], [v for part in parts for v in part.votes or part.groups]
    )


def quantiles(missed: Missed, levels: ArrayLike) -> Floats:
    """Compute quantiles of ln(measured / predicted) for a run of a group that was not seen.

    Shapes: as the levels. Units: [1]. Reference: `models.statistics.levels.weighted_quantiles`.

    >>> np.abs(quantiles(Missed(np.linspace(-0.5, 0.5, 101), ["a"] * 101), [0.5])).round(6).tolist()
    [0.0]
    """
    return weighted_quantiles(missed.errors, missed.weights, levels)


def band(missed: Missed, coverage: float = COVERAGE) -> Band:
    """Compute central quantiles of ln(measured / predicted):  (1 - c)/2 and (1 + c)/2, for a run of a group that was not seen.

    Shapes: errors along one axis of two or more. Units: [1]. Assumes that the next group resembles those left out.
    Reference: Lei et al., Distribution-free predictive inference for regression, J. American Statistical Association 113 (2018), section 2.2;
    groups: Dunn, Wasserman and Ramdas, ibid. 118 (2023).

    >>> found = band(Missed(np.linspace(-0.5, 0.5, 101), ["a"] * 101))
    >>> round(found.low, 2), round(found.high, 2)
    (-0.41, 0.41)
    """
    low, high = quantiles(missed, [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])
    return Band(float(low), float(high))


def inside_left_out(missed: Missed, coverage: float = COVERAGE) -> Bools:
    """Tell of each error whether the band of all other groups holds it.

    Shapes: as the errors. Units: flags. A single group has no others, and none of its rows is inside.
    Reference: Barber et al., Annals of Statistics 49 (2021) (jackknife+), by groups.

    >>> inside_left_out(Missed(np.array([0.0, 0.1, 0.2, 9.0]), ["a", "b", "c", "d"])).tolist()
    [False, True, True, False]
    """
    groups, found = np.asarray(missed.groups, dtype=str), np.zeros(len(missed), bool)
    for group in sorted(set(missed.groups)):
        own = groups == group
        if not np.all(own):
            others = band(missed.kept(~own), coverage)
            found[own] = (missed.errors[own] >= others.low) & (missed.errors[own] <= others.high)
    return found


def widened(found: Band, calm: float, busy: float) -> Band:
    """Widen a band by what a time becomes under the load of a faster and of a slower machine, as by independent errors:  sqrt(b^2 + l^2) per side.

    Shapes: scalars. Units: band, calm <= 0 and busy >= 0 are ln of factors on the time [1], which may be infinite; a bound on the far side of 0 moves as much.
    Reference: Gauss, Theoria combinationis observationum (1823) (propagation of independent errors).

    >>> wide = widened(Band(-0.3, 0.3), -0.4, float("inf"))
    >>> round(wide.low, 9), wide.high
    (-0.5, inf)
    """
    return Band(
        found.low - (math.hypot(found.low, calm) - abs(found.low)),
        found.high + (math.hypot(found.high, busy) - abs(found.high)),
    )


def either_way(found: Band, least: float, most: float) -> Band:
    """Join the intervals of one run in each way in which it may have gone:  low + l, high + m.

    Shapes: scalars. Units: band, least <= 0 and most >= 0 are ln of factors on the time that is stated [1].
    Reference: the union holds the run with the stated share or more, whichever way it went.

    >>> either_way(Band(-0.3, 0.3), -0.5, 0.0)
    Band(low=-0.8, high=0.3)
    """
    return Band(found.low + least, found.high + most)


def without_ways(errors: Floats, least: Floats, most: Floats) -> Floats:
    """Take out of errors what another way of going explains:  e - clip(e, l, m).

    A band about 0 holds the result just where the band that `either_way` makes of it holds the error.
    Shapes: along one axis. Units: as `either_way`. Reference: as `either_way`.

    >>> without_ways(np.array([-0.5, 0.1, 0.5]), np.array([-0.2, 0.0, 0.0]), np.array([0.0, 0.3, 0.3])).round(9).tolist()
    [-0.3, 0.0, 0.2]
    """
    left: Floats = errors - np.clip(errors, least, most)
    return left


def without_load(errors: Floats, calm: Floats, busy: Floats) -> Floats:
    """Take out of errors what the load explains:  sign(e) sqrt(e^2 - l^2), 0 where l is more; l is calm of e < 0 and busy of others.

    A band about 0 holds the result just where the band that `widened` makes of it holds the error.
    Shapes: along one axis. Units: as `widened`. Reference: as `widened`.

    >>> without_load(np.array([-0.5, 0.5, 0.5, 1.0]), np.array([-0.4, 0.0, 0.0, 0.0]), np.array([0.0, 0.3, 0.6, 0.0])).round(9).tolist()
    [-0.3, 0.4, 0.0, 1.0]
    """
    load = np.where(errors < 0.0, calm, busy)
    left: Floats = np.sign(errors) * np.sqrt(np.maximum(errors**2 - load**2, 0.0))
    return left


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


def tier_of(source_seen: bool, chip_seen: bool, generation_seen: bool = True, kind_seen: bool = True) -> str:
    """Classify how far a run is from the runs of the calibration: another chip counts before another kind of network, that before another source.

    Shapes: scalars. Units: flags and a name [1].
    Reference: no tier's band is narrower than that of its `NEARER` one.

    >>> tier_of(True, True), tier_of(False, True), tier_of(True, True, kind_seen=False), tier_of(False, False), tier_of(False, False, False)
    ('known', 'new_source', 'new_kind', 'new_chip', 'new_generation')
    """
    if not chip_seen:
        return "new_chip" if generation_seen else "new_generation"
    if not kind_seen:
        return "new_kind"
    return "known" if source_seen else "new_source"


def own_or_pooled(missed: Mapping[tuple[str, str], Missed], tier: str, label: str) -> Missed:
    """Take the errors of a tier and label, or where they are too few, the errors of all labels of the tier.

    Shapes: errors along one axis. Units: ln(measured / predicted) [1]. Reference: FEWEST.

    >>> one, many = Missed(np.zeros(1), ["a"]), Missed(np.zeros(9), ["a"] * 9)
    >>> len(own_or_pooled({("known", "x"): one, ("known", "y"): many}, "known", "x"))
    10
    """
    own = missed.get((tier, label))
    if own is not None and len(own) >= FEWEST:
        return own
    return pooled([part for (name, _), part in missed.items() if name == tier])


def bands_by_tier(missed: Mapping[tuple[str, str], Missed]) -> dict[tuple[str, str], Band]:
    """Build a band for each (tier, label); one with too few errors takes all of its tier, and no tier is narrower than a nearer one.

    A label tells apart cases that are missed by different amounts, such as dense networks and those with experts.
    Shapes: errors along one axis each. Units: ln(measured / predicted) [1].
    Reference: `band`.

    >>> rng = np.random.default_rng(0)
    >>> found = bands_by_tier({(tier, label): Missed(rng.normal(0, 0.1, n), ["a"] * n) for tier in TIERS for label, n in (("dense", 100), ("moe", 3))})
    >>> all(found["known", label].high <= found["new_source", label].high <= found["new_chip", label].high for label in ("dense", "moe"))
    True
    """
    found: dict[tuple[str, str], Band] = {}
    for label in dict.fromkeys(label for _, label in missed):
        for tier in TIERS:
            here = band(own_or_pooled(missed, tier, label))
            if tier in NEARER:
                nearer = found[NEARER[tier], label]
                here = Band(min(here.low, nearer.low), max(here.high, nearer.high))
            found[tier, label] = here
    return found
