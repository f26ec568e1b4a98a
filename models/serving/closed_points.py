"""Points driven by a fixed number of clients, with their percentiles: separate pools, and sessions that each begin their next task when the last one ends.

Open arrivals are in continuous_batching.py and disaggregation.py; the requests of one pool in closed_loop.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.queueing.queues import closed_loop_response_s
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint
from models.serving.disaggregation import DisaggregatedPoint
from models.serving.percentiles import latency_s
from models.serving.sessions import Task

_ROUNDS = 12
_BISECTIONS = 40
_LEAST_BATCH = 1e-6


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def closed_pools(
    point_at: Callable[[Result], DisaggregatedPoint], clients: ArrayLike, constants: ServingConstants
) -> tuple[DisaggregatedPoint, Result]:
    """Predict separate pools under a closed loop of c clients: (the group, the wait of clients beyond the slots).

    Prefill is one server of S / n_p that the n = min(c, slots) clients that run visit in turn, decode a delay Z = (O - 1) TPOT:
    R = closed-loop response, b = n Z / (R + Z) / n_d. A request meets the (n - 1)/n of them that are not its own, as an arrival meets those
    of an open stream.  TTFT = unloaded + f (R - S/n_p + kappa (n - 1)/2 Z/(R + Z) S/n_p) + (c - n)/X,
    X = n / (TTFT + Z) without the last part. The links between the pools are visited likewise, after prefill. kappa, the share of clients in step with each other, falls as lengths of answers spread:
    kappa / (1 + sqrt(scv) Z / (n S/n_p)). The quantiles of the wait are those of an exponential tail.
    `point_at` gives the group of open arrivals at a batch of each decode worker. Shapes: as its points; clients [1], result [s].
    Valid for clients >= 1.
    Reference: Reiser and Lavenberg, J. ACM 27 (1980); Seidmann, Schweitzer and Shalev-Oren, Performance Evaluation 7 (1987)
    (many servers as a faster one); Zhong et al., DistServe, OSDI 2024, section 3.

    >>> from models.serving import examples
    >>> from models.serving.decode import ServingLayouts
    >>> from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
    >>> from models.serving.workload import Lengths, Precisions
    >>> pool = lambda workers: WorkerPool(examples.CHIP, ServingLayouts(1, 1, 1, 1), workers, examples.SERVING)
    >>> at = lambda batch: disaggregated(examples.DENSE, pool(1), pool(2), batch, link=TransferLink(25e9),
    ...     lengths=Lengths(1000, 200), precisions=Precisions("bf16", "bf16"))
    >>> few, many = (closed_pools(at, c, examples.SERVING)[0].point for c in (1, 64))
    >>> bool(few.prefill_wait_s < 1e-9 and many.requests_per_s > 20 * few.requests_per_s)
    True
    """
    clients = np.asarray(clients, float)
    found = point_at(np.ones(clients.shape)[()])
    n_p, n_d = np.asarray(found.prefill_workers, float), np.asarray(found.decode_workers, float)
    served = np.clip(clients, 1.0, np.maximum(n_d * found.point.slots, 1.0))
    deciding = served
    for _ in range(_ROUNDS):
        found = point_at(np.maximum((served - 1.0) / served * deciding / n_d, 1e-9))
        stay, service = found.point.steps * found.point.step_s, found.point.prefill_s / n_p
        response = closed_loop_response_s(served, service, stay)
        on_links = closed_loop_response_s(served, found.links_s, stay + response) - found.links_s
        deciding = 0.5 * deciding + 0.5 * served * stay / (response + on_links + stay)
    point = replace(found.point, batch=deciding / n_d)
    apart = np.sqrt(point.output_scv) * stay / (served * service)
    together = constants.burst_share / (1.0 + apart) * 0.5 * (served - 1.0) / served * deciding * service
    wait = constants.disaggregated_first_token_factor * (response - service + together) + on_links
    rate = served / (point.unloaded_ttft_s + wait + stay)
    surplus = np.maximum(clients - served, 0.0) / rate
    utilisation = np.minimum(rate * service, 1.0)
    at_load = replace(
        point, fits=np.asarray(point.fits) & (np.asarray(point.slots) >= 1.0), requests_per_s=rate, unloaded_ttft_s=point.unloaded_ttft_s + surplus,
        prefill_wait_s=wait, prefill_wait_probability=utilisation, prefill_utilisation=utilisation, prefill_load=utilisation,
        slot_wait_s=np.zeros(np.shape(rate))[()], slot_wait_probability=np.zeros(np.shape(rate))[()],
    )  # fmt: skip
    return replace(found, point=at_load), surplus


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
