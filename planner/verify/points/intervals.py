"""The 80 % interval of a used point, computed again from the bands of the calibration; `planner.problem.intervals` holds the bands only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.statistics.intervals import TIERS, tier_of
from planner.problem.intervals import Calibration, Interval

Bounds = dict[str, list[float]]
SERVING_FIGURES = ("tpot", "ttft", "throughput")
BAND_OF = {"ttft": "ttft", "tpot": "tpot", "e2e": "tpot", "task": "tpot"}  # a request and a task are mostly decode


def serving_tier(known: Calibration, chips: Sequence[tuple[str, str]]) -> str:
    """Return the tier of a serving point: the least known over its pools' (chip, precision) and its figures."""
    ranks = [
        TIERS.index(tier_of((chip, precision, figure) in known.anchors, chip in known.chips, chip in known.relatives))
        for chip, precision in chips
        for figure in SERVING_FIGURES
    ]
    return TIERS[max(ranks)]


def serving_bounds(known: Calibration, tier: str, latency_s: Mapping[str, float], capacity: float) -> Bounds:
    """Bound each latency and the capacity of a serving point."""
    found = {}
    for name, seconds in latency_s.items():
        low, high = known.bands[tier, BAND_OF[name.partition(".")[0]]]
        found[name] = [low * seconds, high * seconds]
    low, high = known.bands[tier, "throughput"]
    return {**found, "capacity": [low * capacity, high * capacity]}


def training_bounds(interval: Interval, time_s: Mapping[str, float], tokens_per_s: float) -> Bounds:
    """Bound the times and the throughput of a job: the slowest run has the lowest throughput."""
    found = {name: [interval.low * seconds, interval.high * seconds] for name, seconds in time_s.items()}
    return {**found, "capacity": [tokens_per_s / interval.high, tokens_per_s / interval.low]}
