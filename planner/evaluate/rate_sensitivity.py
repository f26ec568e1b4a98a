"""Evaluate how the latencies of a serving point answer to its load: their factors at a multiple of its rate."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from models.serving.continuous_batching import ServingPoint
from models.serving.percentiles import latency_s
from planner.evaluate.serving import QUANTILES
from planner.spec.slo import TPOT


def at_other_rates(point: ServingPoint | None) -> Callable[[str, float], float] | None:
    """Return the factor on a latency ("ttft.p95") at a multiple of the rate of a point; None for one without a rate of its own.

    Waits for an encoder, for prefill and for a slot follow the rate (`ServingPoint.with_waits_at`), infinite where it is more than the point serves; the time
    per output token stays.
    """
    if point is None or point.arrivals is None:
        return None
    other = cache(point.with_waits_at)

    def factor(name: str, times: float) -> float:
        metric, _, percentile = name.partition(".")
        if metric == TPOT:
            return 1.0
        moved, here = (float(latency_s(each, metric, QUANTILES[percentile])) for each in (other(times), point))
        return moved / here

    return factor
