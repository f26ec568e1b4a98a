"""Take out of errors on held-out runs what the load explains: a run that serves f of its predicted throughput is under 1/f of the load.

The bands of such errors are those of intervals that widen with the load (`planner.problem.intervals.serving_bounds`), and over the ways of
loading that a row leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.arrays import Floats
from models.statistics.intervals import Band, bands_by_tier, without_load, without_ways
from planner.calibration.fit import LEAVE_OUT_OF_TIER, log_measured
from planner.calibration.levels import missed_by_tier
from planner.calibration.measurements import MeasuredCase
from planner.calibration.targets import target_of


def by_load(
    cases: Sequence[MeasuredCase], values: Mapping[str, float], bands: Mapping[tuple[str, str], Band], tier: str
) -> tuple[Floats, Floats]:
    """Compute ln of the factors on each observation at the load of a run that serves as much, and as little, as its tier's band of rates says [1].

    0 for what no load moves; infinite where a run without end would not serve the load.
    """
    target = target_of(cases)
    observations = target.observations(cases)
    if target.at_other_rate is None:
        return np.zeros(len(observations)), np.zeros(len(observations))
    served = bands[tier, target.rate_label]
    calm, busy = (
        target.at_other_rate(cases, observations, values, float(np.exp(-edge))) for edge in (served.high, served.low)
    )
    return calm, busy


def by_way(cases: Sequence[MeasuredCase], values: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Compute ln of the least and of the most factor on each observation over the ways of loading that its row leaves open [1]."""
    target = target_of(cases)
    observations = target.observations(cases)
    if target.by_other_ways is None:
        return np.zeros(len(observations)), np.zeros(len(observations))
    return target.by_other_ways(cases, observations, values)


def without_load_by_tier(
    cases: Sequence[MeasuredCase], left_out: Mapping[str, Floats], values: Mapping[str, float]
) -> dict[str, Floats]:
    """Move ln(predicted) of leave-out predictions, by what was left out, as far towards the measured figure as the load and its open ways explain."""
    measured, bands = log_measured(cases), bands_by_tier(missed_by_tier(cases, left_out))
    ways = by_way(cases, values)
    return {
        by: measured - without_ways(without_load(measured - left_out[by], *by_load(cases, values, bands, tier)), *ways)
        for tier, by in LEAVE_OUT_OF_TIER.items()
    }


def without_ways_by_tier(
    cases: Sequence[MeasuredCase], left_out: Mapping[str, Floats], values: Mapping[str, float]
) -> dict[str, Floats]:
    """Move ln(predicted) of leave-out predictions as far towards the measured figure as the open ways of loading explain.

    What the load explains stays, since a scenario of a robust plan adds no load to the time to first token.
    """
    measured, ways = log_measured(cases), by_way(cases, values)
    return {by: measured - without_ways(measured - predicted, *ways) for by, predicted in left_out.items()}
