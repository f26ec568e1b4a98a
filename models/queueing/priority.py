"""Priority classes in one queue: waits of each class where nobody is interrupted. Queues without classes are in queues.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


def priority_factors(load: ArrayLike, shares: Sequence[float]) -> list[Result]:
    """Compute the mean wait of each class over that of a queue in order of arrival:  (1 - rho)/((1 - s_{k-1})(1 - s_k)),  s_k = rho x (shares up to k).

    The first class goes first, and nobody is interrupted. Over all classes, weighed by their shares, the factors add up to one, since
    the order cannot change the work in the queue. Shapes: as the load rho [1]; shares [1] add up to 1, one result [1] per class.
    Exact for M/G/1 and M/M/c with one distribution of service. Of several servers with services steadier than exponential the first
    class waits longer than said: 29 % for eight servers and a squared coefficient of variation of 0.3.
    Reference: Cobham, Operations Research 2 (1954); Kleinrock, Queueing Systems 2 (1976), section 3.6 (conservation law).

    >>> first, last = priority_factors(0.8, [0.5, 0.5])
    >>> round(float(first), 4), round(float(last), 4), round(float(0.5 * first + 0.5 * last), 4)
    (0.3333, 1.6667, 1.0)
    """
    rho, before, found = np.minimum(np.asarray(load, float), 1.0), 0.0, []
    for share in shares:
        up_to = before + share
        room = np.maximum(1.0 - rho * up_to, 1e-300) * (1.0 - rho * before)
        found.append(as_result(np.where(rho * up_to < 1.0, (1.0 - rho) / room, np.inf)))
        before = up_to
    return found


def priority_scvs(load: ArrayLike, service_scv: ArrayLike, shares: Sequence[float]) -> list[Result]:
    """Compute the squared coefficient of variation of the wait of the customers of each class who wait [1].

    From E[W_k^2] = m3/(3 a^2 b) + m2 m2_k/(2 a^2 b^2) + m2 m2_{k-1}/(2 a^3 b),  a = 1 - s_{k-1}, b = 1 - s_k,  m2 and m3 the rates times the
    moments of all services, m2_k the same of classes up to k, and the chance rho to wait. Gamma services. Shapes: broadcast.
    Exact for M/G/1. Reference: Takács, Operations Research 12 (1964) (moments of waits by priority); Kesten and Runnenburg (1957).

    >>> [round(float(c), 3) for c in priority_scvs(0.5, 1.0, [1.0])], len(priority_scvs(0.5, 1.0, [0.2, 0.8]))
    ([1.0], 2)
    """
    rho, c = np.clip(np.asarray(load, float), 1e-9, 1.0 - 1e-9), np.asarray(service_scv, float)
    second, third = rho * (1.0 + c), rho * (1.0 + c) * (1.0 + 2.0 * c)  # in units of the mean service
    before, found = 0.0, []
    for share in shares:
        up_to = before + share
        a, b = 1.0 - rho * before, 1.0 - rho * up_to
        mean = second / (2.0 * a * b)
        square = (
            third / (3.0 * a**2 * b) + second**2 * up_to / (2.0 * a**2 * b**2) + second**2 * before / (2.0 * a**3 * b)
        )
        found.append(as_result(square * rho / mean**2 - 1.0))
        before = up_to
    return found
