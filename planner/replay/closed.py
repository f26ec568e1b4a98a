"""The closed forms at the load that is replayed: the operating point at a rate, and the share of requests within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from models.serving.continuous_batching import ServingPoint
from models.serving.percentiles import latency_s, share_within

PointAt = Callable[[float], ServingPoint]
LEVELS = np.geomspace(1e-3, 1.0, 160)  # batches over the most that fit, between which the rate is found
ROUNDS = 30


def at_rate(point_at: PointAt, requests_per_s: float) -> ServingPoint | None:
    """Find the operating point at a rate of one replica, of the smallest batch that has it; None where no batch that fits has.

    By bisection between two batches of a grid.
    """
    most = float(np.floor(point_at(1.0).slots))
    if most < 1.0:
        return None
    batches = (most * LEVELS).tolist()
    below = None
    for batch in batches:
        if float(point_at(batch).requests_per_s) >= requests_per_s:
            break
        below = batch
    else:
        return None
    low, high = (batch * 1e-3 if below is None else below), batch
    for _ in range(ROUNDS):
        middle = (low * high) ** 0.5
        if float(point_at(middle).requests_per_s) < requests_per_s:
            low = middle
        else:
            high = middle
    return point_at(high)


def mean_parts(point: ServingPoint, two_pools: bool) -> dict[str, float]:
    """Name the means of a point that a simulation has too: batch [1], step, prompt and wait [s], share of prompts found."""
    waits = float(point.prefill_wait_s + point.slot_wait_s + 0.5 * point.boundary_s)
    found = {"batch": float(point.batch), "step_s": float(point.step_s), "wait_s": waits}
    return found if two_pools else {**found, "prefill_s": float(point.prefill_s)}


def within(point: ServingPoint, limits: Mapping[str, float]) -> float:
    """Predict the share of requests that keep all limits [s] by metric, as if these were independent."""
    return float(np.prod([float(share_within(point, metric, limit)) for metric, limit in limits.items()]))


def quantile_s(point: ServingPoint, metric: str, share: float) -> float | None:
    """Predict a quantile of a latency [s]; None where it is infinite."""
    found = float(latency_s(point, metric, share))
    return found if np.isfinite(found) else None
