"""Workers that serve in passes: all that wait when a pass begins go into it together, as far as it has room. One at a time is queues.py."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result
from models.queueing.queues import clumped_wait_probability, delayed_scv, erlang_c, wait_mean_s

_ROUNDS = 4  # rounds of Newton's method, from the left of the root of a concave function


def pass_customers(fixed_s: ArrayLike, each_s: ArrayLike, rate: ArrayLike) -> Result:
    """Solve for the customers of a pass of one worker without limit:  m = v + exp(-v),  v = rate (a + b m).

    Those v that come in during a pass go into the next; where none does, the next begins with one. Shapes: broadcast. Units: fixed time a and
    time per customer b of a pass [s], rate [1/s], result [1]. Valid for rate b < 1.
    Reference: Chaudhry and Templeton, A First Course in Bulk Queues (1983), chapter 3.

    >>> float(pass_customers(1.0, 0.0, 0.0)), round(float(pass_customers(1.0, 0.0, 2.0)), 6)
    (1.0, 2.135335)
    """
    come, grows = np.asarray(rate, float) * fixed_s, np.minimum(np.asarray(rate, float) * each_s, 1.0 - 1e-9)
    shared = come / (1.0 - grows)
    for _ in range(_ROUNDS):
        none = np.exp(-shared)
        shared = shared - (shared * (1.0 - grows) - come - grows * none) / (1.0 - grows + grows * none)
    return as_result(shared + np.exp(-shared))


@dataclass(frozen=True, slots=True)
class PassTimes:
    """What a worker needs for a customer alone on a rank of it, and for one of a full pass; a pass takes fixed time and time per customer."""

    alone_s: Result  # occupancy of the worker by each of as many customers as it has ranks [s]
    full_s: Result  # occupancy of the worker by each customer of a full pass [s]
    fills: Result  # what a customer fills of the longest pass; above one over the ranks it takes several passes [1]
    ranks: Result  # that serve side by side, in step [1]
    most: Result = np.inf  # customers that a worker holds at once [1]

    @property
    def on_rank(self) -> Result:
        """Customers of a full pass on one rank, in a pass as long as it may be [1]; one at least."""
        return np.maximum(1.0 / (np.asarray(self.fills, float) * self.ranks), 1.0)

    @property
    def together(self) -> Result:
        """Customers that a worker serves at a time at most [1]."""
        return np.clip(self.on_rank * self.ranks, self.ranks, np.maximum(self.most, self.ranks))

    @property
    def passes(self) -> Result:
        """Passes that a customer takes [1]; those that share one take one."""
        return np.maximum(np.asarray(self.fills, float) * self.ranks, 1.0)

    def split(self, alone: Result, full: Result) -> tuple[Result, Result]:
        """Split a time per customer into what a pass takes and what each customer on a rank adds:  alone = a + b,  full = a/n + b."""
        n = self.on_rank
        shares = n > 1.0 + 1e-9
        fixed = np.where(shares, np.maximum(alone - full, 0.0) / (1.0 - 1.0 / np.where(shares, n, 2.0)), 0.0)
        fixed = np.minimum(fixed, alone)
        return fixed, alone - fixed

    def at(self, alone: Result, full: Result, customers: Result) -> Result:
        """Interpolate a time per customer between those alone and in a full pass, with a number of customers on a rank:  a/n + b."""
        fixed, each = self.split(alone, full)
        return fixed / customers + each


@dataclass(frozen=True)
class Passes:
    """Workers that share one queue and serve in passes, at a steady rate.

    With d ranks in step, a pass of m customers takes  P(m) = d (a + b max(m/d, 1)) / k,  and each customer k of them. At a rate x of one
    worker, v = x k P come in during the passes of one of them, or one alone where nobody waits:  m = min(v + exp(-v), K),
    and the worker is at work for u = v/m of the time. An arrival that finds all w workers at work waits for the end of a pass, and
    where more wait than the next holds, as for one of c = w K servers of the full rate:

        W = C(w, w u) P (1 + s^2)(1 + g)/(2 w) + [G/G/c at the full rate] - C(c, w v) P (1 + s^2)/(2 c)

    with g up to (w - 1)/(w + 1) where workers end at random, P/(w + 1) apart and not P/(2 w). The last is the part of a service under way that both count: with one customer to a pass, W is the wait of G/G/w. Those that find room
    share their pass with the others that come during it.
    Units: rate [1/s], workers [1], times [s]; scv: of a customer's time, and of the gaps between arrivals [1].
    Reference: Chaudhry and Templeton, A First Course in Bulk Queues (1983), chapter 3; Inoue, Queueing analysis of GPU-based inference
    servers with dynamic batching, Performance Evaluation 147 (2021); for bulk service in equal passes as M/D/c: Crommelin (1932).
    """

    times: PassTimes
    rate: Result
    workers: Result
    service_scv: Result
    arrival_scv: ArrayLike = 1.0

    @cached_property
    def _fixed(self) -> tuple[Result, Result]:
        return self.times.split(self.times.alone_s, self.times.full_s)

    @cached_property
    def _offered(self) -> tuple[Result, Result]:
        """Compute (customers that come in during the passes of one of them, as far as passes hold them; customers of a pass)."""
        (fixed, each), ranks, most = self._fixed, np.asarray(self.times.ranks, float), self.times.together
        of_one = self.rate / self.workers
        apart = of_one * ranks * (fixed + each)
        alone = apart + np.exp(-apart)
        inside = np.where(alone > ranks, pass_customers(ranks * fixed, each, of_one), alone)
        inside = np.where(self.load >= 1.0, most, np.minimum(inside, most))
        come = of_one * (ranks * fixed + each * np.maximum(inside, ranks))
        return np.minimum(come, inside), inside

    @property
    def inside(self) -> Result:
        """Customers of a pass on average [1]."""
        return self._offered[1]

    @cached_property
    def on_rank(self) -> Result:
        """Customers of a pass on a rank that has any [1]."""
        return np.maximum(self.inside / self.times.ranks, 1.0)

    @cached_property
    def utilisation(self) -> Result:
        """Share of the time in which a worker passes anything [1]."""
        come, inside = self._offered
        return come / inside

    @cached_property
    def load(self) -> Result:
        """Share of the rate of full passes that is offered [1]; from 1 on the wait has no end."""
        return self.rate * self.occupancy_full_s / self.workers

    @cached_property
    def occupancy_full_s(self) -> Result:
        """Time of a worker for each customer of a full pass [s]."""
        fixed, each = self._fixed
        return fixed * self.times.ranks / self.times.together + each

    @cached_property
    def occupancy_s(self) -> Result:
        """Time of a worker for each customer of a pass at this rate [s]."""
        fixed, each = self._fixed
        return fixed / self.on_rank + each

    @cached_property
    def pass_s(self) -> Result:
        """Time from one pass to the next of a worker at work [s]."""
        return self.occupancy_s * self.on_rank * self.times.ranks / self.times.passes

    @cached_property
    def _apart(self) -> Result:
        """Share by which passes of several workers are out of step, up to ends at random:  (1 - 1/K) C (w - 1)/(w + 1)  [1]."""
        spread = (1.0 - 1.0 / self.times.together) * self.waits
        return spread * (np.asarray(self.workers, float) - 1.0) / (self.workers + 1.0)

    @cached_property
    def _pass_scv(self) -> Result:
        """Squared coefficient of variation of the time of a pass [1]: by the sizes and, up to a full one, the number of its customers.

        A long pass gathers many for the next, so that swings add up to 1/(1 - r^2) as much, r what a pass grows by the customers of the pass before.
        """
        (_, each), (come, inside) = self._fixed, self._offered
        room = (inside > self.times.ranks) * (1.0 - inside / self.times.together)
        follows = room * np.minimum(self.rate / self.workers * each, 1.0)
        sizes = self.service_scv * (self.times.alone_s / self.occupancy_s) ** 2 / inside
        counts = (each / self.occupancy_s) ** 2 * room * come / inside**2
        return (sizes + counts) / (1.0 - np.minimum(follows, 0.999) ** 2)

    @cached_property
    def waits(self) -> Result:
        """Chance that an arrival finds all workers at work [1]."""
        return erlang_c(self.workers, self.workers * self.utilisation)

    @cached_property
    def boundary_s(self) -> Result:
        """Mean wait for the end of a pass, beside what the queue for a place counts of it [s]."""
        return self._ends[0] - self._ends[1]

    @cached_property
    def _places(self) -> tuple[Result, Result]:
        """Compute (places in the passes of all workers, chance that all are taken) [1]: passes are as long as full ones only as the load nears one."""
        places = self.workers * self.times.together
        if np.all(self.times.together == 1.0):
            return places, self.waits
        come = self.workers * self._offered[0]
        return places, erlang_c(places, come + np.minimum(self.load, 1.0) * (self.load * places - come))

    @cached_property
    def _ends(self) -> tuple[Result, Result]:
        """Compute the mean waits for the end of a pass of (a worker, a place) [s]."""
        places, taken = self._places
        left = 0.5 * self.pass_s * (1.0 + self._pass_scv)
        return self.waits * left * (1.0 + self._apart) / self.workers, taken * left / places

    @cached_property
    def queue_s(self) -> Result:
        """Mean wait for a place at the full rate [s]; infinite from a load of 1 on."""
        places, taken = self._places
        service = self.occupancy_full_s * self.times.together
        return wait_mean_s(self.rate, service, self.service_scv, places, taken, self.arrival_scv)

    def wait(self) -> tuple[Result, Result, Result, Result]:
        """Compute the wait: (mean [s], chance, squared coefficient of variation of those who wait, share of it beyond the pass under way) [1]."""
        mean = self.queue_s + self.boundary_s
        with np.errstate(invalid="ignore"):  # infinite where more is offered than full passes serve
            beyond = np.maximum(self.queue_s - self._ends[1], 0.0) / np.maximum(mean, 1e-300)
        beyond = np.where(np.isfinite(mean), np.minimum(beyond, 1.0), 1.0)
        # Of w ends at random the next is min(w) of uniform times, of squared coefficient of variation w/(w + 2), 1/3 for one worker.
        w = np.asarray(self.workers, float)
        ends = (1.0 - beyond) * (1.0 - 1.0 / self.times.together) * (w / (w + 2.0) - 1.0 / 3.0)
        scv = delayed_scv(beyond, self._pass_scv) + ends
        return mean, clumped_wait_probability(self.waits, self.arrival_scv), scv, beyond

    @cached_property
    def longer_s(self) -> Result:
        """What the time of a customer in its pass is longer than alone, by those that share it [s]."""
        (_, each), (come, _) = self._fixed, self._offered
        met = 1.0 + self.waits * come * (1.0 + self._pass_scv + self._apart)
        on_rank = np.clip(met / self.times.ranks, 1.0, self.times.together / self.times.ranks)
        more: Floats = each * self.times.ranks * (on_rank - 1.0)
        return as_result(more)
