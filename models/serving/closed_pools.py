"""Separate pools driven by a fixed number of clients, as a point with its percentiles. Open arrivals are in disaggregation.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.queueing.queues import closed_loop_response_s
from models.serving.constants import ServingConstants
from models.serving.disaggregation import DisaggregatedPoint

_ROUNDS = 12


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def closed_pools(
    point_at: Callable[[Result], DisaggregatedPoint], clients: ArrayLike, constants: ServingConstants
) -> tuple[DisaggregatedPoint, Result]:
    """Predict separate pools under a closed loop of c clients: (the group, the wait of clients beyond the slots).

    Prefill is one server of S / n_p that the n = min(c, slots) clients that run visit in turn, decode a delay Z = (O - 1) TPOT:
    R = closed-loop response, b = n Z / (R + Z) / n_d,  TTFT = unloaded + f (R - S/n_p + kappa (n - 1)/2 Z/(R + Z) S/n_p) + (c - n)/X,
    X = n / (TTFT + Z) without the last part. kappa, the share of clients in step with each other, falls as lengths of answers spread:
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
    steps = found.point.output_tokens - 1.0
    batch = served / n_d
    for _ in range(_ROUNDS):
        found = point_at(batch)
        stay, service = steps * found.point.tpot_s, found.point.prefill_s / n_p
        response = closed_loop_response_s(served, service, stay)
        deciding = served * stay / (response + stay)
        batch = 0.5 * batch + 0.5 * deciding / n_d
    point = found.point
    apart = np.sqrt(point.output_scv) * stay / (served * service)
    together = constants.burst_share / (1.0 + apart) * 0.5 * (served - 1.0) / served * deciding * service
    wait = constants.disaggregated_first_token_factor * (response - service + together)
    rate = served / (point.unloaded_ttft_s + wait + stay)
    surplus = np.maximum(clients - served, 0.0) / rate
    utilisation = np.minimum(rate * service, 1.0)
    at_load = replace(
        point, fits=np.asarray(point.fits) & (np.asarray(point.slots) >= 1.0), requests_per_s=rate, unloaded_ttft_s=point.unloaded_ttft_s + surplus,
        prefill_wait_s=wait, prefill_wait_probability=utilisation, prefill_utilisation=utilisation,
        slot_wait_s=np.zeros(np.shape(rate))[()], slot_wait_probability=np.zeros(np.shape(rate))[()],
    )  # fmt: skip
    return replace(found, point=at_load), surplus
