"""Sessions in a closed loop: so many agents at once, each of which begins its next task when the last one ends.

Tasks that come at a rate of their own are in continuous_batching.py and disaggregation.py; requests without tasks in closed_loop.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.serving.continuous_batching import ServingPoint
from models.serving.percentiles import latency_s
from models.serving.sessions import Task

_BISECTIONS = 40
_LEAST_BATCH = 1e-6


@np.errstate(invalid="ignore", over="ignore")  # infinite waits, where the load is beyond the engine
def closed_sessions(point_at: Callable[[Result], ServingPoint], sessions: ArrayLike) -> ServingPoint:
    """Predict the point at which so many sessions keep an engine busy:  N = X (R + Z),  Z = (1 - 1/n) wait  (Little's law).

    R is the time of a call at the rate X of open arrivals, of whose waits a session sees (N - 1)/N, since it never waits for itself.
    `point_at`: points of tasks at a batch [request]. N(b) grows with the batch, which is found by bisection up to the places of the engine.
    Shapes: sessions [1] as the points; result as the points. Valid for sessions >= 1. Follows an event simulation within 10 % in
    throughput and p95 of the task up to utilisation 0.85, where prompts take up to two chunks; 14 % high where they take several before
    answers of a hundred tokens, as the calls themselves are (`percentiles.latency_s`).
    Reference: Little, Operations Research 9 (1961); Schweitzer (1979) and Reiser and Lavenberg, J. ACM 27 (1980) (what an arrival sees).

    >>> from models.serving import examples
    >>> from models.serving.continuous_batching import aggregated
    >>> from models.serving.sessions import Session
    >>> from models.serving.workload import Lengths
    >>> agents = Session(Task(5.0, wait_s=4.0), 300.0)
    >>> at = lambda b: aggregated(examples.DENSE, examples.CHIP, examples.ONE, b, lengths=Lengths(1000, 100), precisions=examples.BF16,
    ...     constants=examples.SERVING, cache=agents)
    >>> found = closed_sessions(at, 20.0)
    >>> round(float(found.requests_per_s * (latency_s(found, "e2e", "mean") + 0.8 * 4.0)), 6)
    20.0
    """
    count = np.asarray(sessions, float)
    alone = point_at(np.full(count.shape, _LEAST_BATCH)[()])
    low, high = (
        np.full(count.shape, np.log(_LEAST_BATCH)),
        np.log(np.maximum(np.asarray(alone.slots, float), 1.0) + 0.0 * count),
    )
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        few = ~(_sessions_at(_seen_by_others(point_at(np.exp(middle)[()]), count)) >= count)
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    found = _seen_by_others(point_at(np.exp(0.5 * (low + high))[()]), count)
    # The rate that closes the loop exactly, whatever is left of the bisection.
    return replace(found, requests_per_s=count / (latency_s(found, "e2e", "mean") + _task(found).wait_per_call_s))


def _task(point: ServingPoint) -> Task:
    if point.task is None:
        raise ValueError("requests that belong to no task are no sessions")
    return point.task


def _sessions_at(point: ServingPoint) -> Result:
    """Compute the sessions of an operating point by Little's law [1]; infinite where waits are."""
    total = point.requests_per_s * (latency_s(point, "e2e", "mean") + _task(point).wait_per_call_s)
    return np.where(np.isnan(total), np.inf, total)


def _seen_by_others(point: ServingPoint, sessions: Result) -> ServingPoint:
    """Take the own part out of the waits that a session meets."""
    others = (sessions - 1.0) / sessions
    return replace(point, prefill_wait_s=others * point.prefill_wait_s, slot_wait_s=others * point.slot_wait_s)
