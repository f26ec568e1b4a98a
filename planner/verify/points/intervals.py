"""The 80 % interval of a used point, computed again from the bands of the calibration; `planner.problem.intervals` holds the bands only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from models.statistics.intervals import TIERS, tier_of
from planner.problem.intervals import Calibration, Interval

Bounds = dict[str, list[float]]
SERVING_FIGURES = ("tpot", "ttft", "throughput")
KNOWN, OF_EIGHTY_PER_CENT = "known", 1.2816  # of a normal distribution, in standard deviations to either side
BAND_OF = {"ttft": "ttft", "tpot": "tpot", "e2e": "tpot", "task": "tpot"}  # a request and a task are mostly decode


def serving_tier(known: Calibration, chips: Sequence[tuple[str, str]]) -> str:
    """Return the tier of a serving point: the least known over its pools' (chip, precision) and its figures."""
    ranks = [
        TIERS.index(tier_of((chip, precision, figure) in known.anchors, chip in known.chips, chip in known.relatives))
        for chip, precision in chips
        for figure in SERVING_FIGURES
    ]
    return TIERS[max(ranks)]


def serving_bounds(
    known: Calibration, chips: Sequence[tuple[str, str]], latency_s: Mapping[str, float], capacity: float
) -> Bounds:
    """Bound each latency and the capacity of a serving point, by the pool that is known least."""
    found = {}
    for name, seconds in latency_s.items():
        low, high = _widest(known, chips, BAND_OF[name.partition(".")[0]])
        found[name] = [low * seconds, high * seconds]
    low, high = _widest(known, chips, "throughput")
    return {**found, "capacity": [low * capacity, high * capacity]}


def _widest(known: Calibration, chips: Sequence[tuple[str, str]], figure: str) -> tuple[float, float]:
    """Return the widest of the pools' bounds of a figure."""
    bounds = []
    for chip, precision in chips:
        tier = tier_of((chip, precision, figure) in known.anchors, chip in known.chips, chip in known.relatives)
        spread = known.spreads.get((chip, precision, figure))
        if tier == KNOWN and spread is not None:
            bounds.append((math.exp(-OF_EIGHTY_PER_CENT * spread), math.exp(OF_EIGHTY_PER_CENT * spread)))
        else:
            low, high = known.bands[tier, figure]
            share = known.narrowed.get((chip, figure), 1.0)
            bounds.append((low**share, high**share))
    return max(bounds, key=lambda pair: pair[1] / pair[0])


def training_bounds(interval: Interval, time_s: Mapping[str, float], tokens_per_s: float) -> Bounds:
    """Bound the times and the throughput of a job: the slowest run has the lowest throughput."""
    found = {name: [interval.low * seconds, interval.high * seconds] for name, seconds in time_s.items()}
    return {**found, "capacity": [tokens_per_s / interval.high, tokens_per_s / interval.low]}
