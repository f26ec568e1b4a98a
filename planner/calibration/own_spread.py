"""Spread of the user's further runs around predictions that are calibrated with some of them: the interval of own measurements.

A user's runs of one environment (engine, chip, precision) share an offset, which calibration removes. The rest is the residual of
a source: its spread from run to run, estimated from the residuals of the few own points together with the usual spread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.statistics.fitting import Fit
from planner.calibration.measurements import MeasuredCase
from planner.calibration.target import AnyTarget

USUAL_WEIGHT = 4.0  # own points that the usual spread counts as much as
# Standard deviation of ln(measured / predicted) within a source once its offset is removed, by metric. That of training is the median
# over eight sources (benchmarks/own_points.py); those of serving are rounded estimates that no benchmark has confirmed yet.
USUAL_SPREAD = {"step_time": 0.10, "tpot": 0.15, "ttft": 0.40, "throughput": 0.15}


def own_spreads(target: AnyTarget, cases: Sequence[MeasuredCase], found: Fit, keys: Sequence[str]) -> dict[str, float]:
    """Estimate by environment the standard deviation of ln(measured / predicted) of further runs.

    s^2 = (nu s0^2 + sum r^2) / (nu + n - 1), times 1 + 1/n for the offset, which n points leave uncertain.
    """
    chosen = [o for o in target.observations(cases) if o.fits]
    named = np.array([target.offset_key(cases[o.case], o.metric) for o in chosen])
    metric_of = {key: o.metric for key, o in zip(named, chosen, strict=True)}
    spreads = {}
    for key in keys:
        residuals = np.asarray(found.residuals)[named == key]
        n = len(residuals)
        usual = USUAL_WEIGHT * USUAL_SPREAD[metric_of[key]] ** 2
        variance = (usual + float(residuals @ residuals)) / (USUAL_WEIGHT + n - 1.0)
        spreads[key] = float(np.sqrt(variance * (1.0 + 1.0 / n)))
    return spreads
