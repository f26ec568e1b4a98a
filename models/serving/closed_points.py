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

    Prefill is one server of S / n_p, S of a prompt in a full pass, that the n = min(c, slots) clients that run visit in turn, and so are the
    links between the pools; all other times of a request are a delay, and each is the think time of the other's queue: R = closed-loop response,
    b = n Z / cycle / n_d with the decode Z = (O - 1) TPOT. A request meets the (n - 1)/n of the clients that are not its own, as an arrival meets
    the customers of an open stream, at the end of the pass under way too.  TTFT = unloaded + (R - S/n_p) + waits for the end of a pass and on links +
    kappa (n - 1)/2 Z/cycle S/n_p + (c - n)/X,  X = n / (TTFT + Z) without the last part. The fitted factor on the time to first token counts
    in `unloaded` only: waits are what conservation of clients leaves. kappa, the share of clients in step with each other, falls as lengths of
    answers spread:  kappa / (1 + sqrt(scv) Z / (n S/n_p)). The wait has an exponential tail.
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
    on_links: Result = np.zeros(served.shape)[()]
    deciding, others = served, (served - 1.0) / served
    for _ in range(_ROUNDS):
        found = point_at(np.maximum(others * deciding / n_d, 1e-9))
        stay, service = found.point.steps * found.point.step_s, found.full_s / n_p
        apart = np.sqrt(found.point.output_scv) * stay / (served * service)
        together = constants.burst_share / (1.0 + apart) * 0.5 * others * deciding * service
        delays = stay + found.point.unloaded_ttft_s + others * found.boundary_s + together
        queue = closed_loop_response_s(served, service, np.maximum(delays + on_links - service, 0.0)) - service
        on_links = (
            closed_loop_response_s(served, found.links_s, np.maximum(delays + queue - found.links_s, 0.0))
            - found.links_s
        )
        deciding = 0.5 * deciding + 0.5 * served * stay / (delays + queue + on_links)
    point, wait = (
        replace(found.point, batch=deciding / n_d),
        delays - stay - found.point.unloaded_ttft_s + queue + on_links,
    )
    rate = served / (delays + queue + on_links)
    surplus = np.maximum(clients - served, 0.0) / rate
    utilisation = np.minimum(rate * service, 1.0)
    at_load = replace(
        point, fits=np.asarray(point.fits) & (np.asarray(point.slots) >= 1.0), requests_per_s=rate, unloaded_ttft_s=point.unloaded_ttft_s + surplus,
        prefill_wait_s=wait, prefill_wait_probability=utilisation, prefill_utilisation=utilisation, prefill_load=utilisation,
        slot_wait_s=np.zeros(np.shape(rate))[()], slot_wait_probability=np.zeros(np.shape(rate))[()], arrivals=None,
    )  # fmt: skip
    return replace(found, point=at_load), surplus


@np.errstate(invalid="ignore", over="ignore")  # infinite waits, where the load is beyond the engine
def closed_sessions(point_at: Callable[[Result], ServingPoint], sessions: ArrayLike) -> ServingPoint:
    """Predict the point at which a number of sessions keep an engine busy:  N = X (R + Z),  Z = (1 - 1/n) wait  (Little's law).

    A session meets the others alone: R is the time of a call beside an open stream that keeps (N - 1)/N of the batch b = X (O - 1) TPOT in decode
    (arrival theorem). One session meets nobody, and its TPOT is the step of its own request.
    `point_at`: points of tasks at a batch [request]. The batch of the others is found by bisection up to the places of the engine.
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
        few = _others_in_decode(point_at(np.exp(middle)[()]), count) >= np.exp(middle)
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    found = point_at(np.exp(0.5 * (low + high))[()])
    # The rate that closes the loop exactly, whatever is left of the bisection.
    rate = count / (latency_s(found, "e2e", "mean") + _task(found).wait_per_call_s)
    batch = rate * (found.output_tokens - 1.0) * found.tpot_s
    return replace(
        found,
        requests_per_s=rate,
        batch=batch,
        fits=np.asarray(found.fits) & (np.asarray(found.slots) >= 1.0),
        arrivals=None,
    )


def _task(point: ServingPoint) -> Task:
    if point.task is None:
        raise ValueError("requests that belong to no task are no sessions")
    return point.task


def _others_in_decode(point: ServingPoint, sessions: Result) -> Result:
    """Compute how many of the other sessions decode, where each call takes the times of a point [1]; none where waits are infinite."""
    decode = (point.output_tokens - 1.0) * point.tpot_s
    share = decode / (latency_s(point, "e2e", "mean") + _task(point).wait_per_call_s)
    return np.nan_to_num((sessions - 1.0) * share)
