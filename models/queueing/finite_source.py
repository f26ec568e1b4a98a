"""Wait at one server that a fixed number of customers visit in turn, as it differs from visit to visit. Its mean is `queues.closed_loop_response_s`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from models.arrays import Result, as_result


@np.errstate(invalid="ignore", divide="ignore", over="ignore")  # layouts that do not run
def finite_source_wait(
    customers: ArrayLike, service_s: ArrayLike, think_s: ArrayLike, service_scv: ArrayLike = 0.0
) -> tuple[Result, Result]:
    """Describe the wait at one server visited in turn by c customers with think time Z: (chance to wait, squared coefficient of variation of those who do).

    An arrival finds c - 1 - j others there, j Poisson of mean Z/S cut off at c - 1 (whatever the distribution of Z). Of k >= 1 found it
    waits for k services, the one under way in part: scv = var k / E[k]^2 + (s + (1 - s)/3) / E[k], s = `service_scv`.
    Shapes: broadcast; customers [1] (rounded), service S and think time Z [s], results [1]. Exact for exponential service times.
    Reference: Lavenberg and Reiser, J. Applied Probability 17 (1980) (arrival theorem); Gross and Harris, Fundamentals of Queueing
    Theory, 3rd ed. (1998), section 2.7 (finite sources).

    >>> chance, scv = finite_source_wait(2, 1.0, 1.0)
    >>> round(float(chance), 6), round(float(scv), 6)
    (0.5, 0.333333)
    """
    others, offered, s = np.broadcast_arrays(
        np.maximum(np.rint(np.asarray(customers, float)) - 1.0, 0.0),
        np.asarray(think_s, float) / np.asarray(service_s, float),
        np.asarray(service_scv, float),
    )
    others = np.where(np.isfinite(others), others, 0.0)
    offered = np.clip(np.where(np.isfinite(offered), offered, 1.0), 1e-12, 1e12)
    away = np.arange(float(others.max(initial=0.0)) + 1.0)
    found = others[..., None] - away
    logs = np.where(found >= 0.0, away * np.log(offered)[..., None] - gammaln(away + 1.0), -np.inf)
    share = np.exp(logs - logs.max(axis=-1, keepdims=True))
    share = np.where(found >= 1.0, share, 0.0) / share.sum(axis=-1, keepdims=True)
    chance = share.sum(axis=-1)
    mean = (share * found).sum(axis=-1) / np.maximum(chance, 1e-300)
    square = (share * found**2).sum(axis=-1) / np.maximum(chance, 1e-300)
    mean = np.maximum(mean, 1.0)
    scv = np.maximum(square / mean**2 - 1.0, 0.0) + (s + (1.0 - s) / 3.0) / mean
    return as_result(chance), as_result(np.where(chance > 0.0, scv, 1.0))
