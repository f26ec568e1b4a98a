"""The data of the program by slot, and closed forms for what a slot costs at given prices.

Sites, systems, designs and placements of jobs are first-stage decisions. Each slot decides flows and replicas, and for which share of it
jobs run. Prices of a slot: alpha_{k,t} of a system of fleet option k, sigma_{r,t} of a watt at site r, beta_{q,t} of a request/s of pool
q, delta_{w,o,t} of a request/s of demand. Not here: the Lagrangian bound at such prices (`lagrangian_bound.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.model.dominance import undominated

VALUE_TOL = 1e-12
"""Smallest value or coefficient told apart from 0; divisors are raised to it."""
JOB_DONE_TOL = 1e-9
"""Share of a job that may be left when it counts as done."""
ParallelMap: TypeAlias = Callable[..., Iterable[Any]]
"""A function called like `map` that may make several calls at once."""
ALL_SLOTS = slice(None)
SLOT_CHUNK = 48
"""Slots evaluated together: arrays over all slots do not fit the cache."""


def by_slot_chunks(
    of: Callable[[slice], tuple[Floats, ...]], slots: int, parallel_map: ParallelMap = map
) -> tuple[Floats, ...]:
    """Evaluate `of` on chunks of slots and join the arrays [., T] that it returns."""
    found = parallel_map(
        of, [slice(first, min(first + SLOT_CHUNK, slots)) for first in range(0, max(slots, 1), SLOT_CHUNK)]
    )
    return tuple(np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))


def reduce_by_group(ufunc: np.ufunc, values: Floats, of: Ints) -> tuple[Ints, Floats]:
    """Reduce the rows of `values` [., T] that have the same number in `of`; returns these numbers and [groups, T]."""
    order = np.argsort(of, kind="stable")
    groups, first = np.unique(of[order], return_index=True)
    return groups, ufunc.reduceat(values[order], first, axis=0) if len(groups) else values


@dataclass(frozen=True, slots=True)
class SlotView:
    """The data of a program by slot, with the costs of one functional; in a merged view each slot stands for several.

    Shapes: R sites, K fleet options, U holdings, P points, Q pools, A arcs, D demands (workload, origin), J jobs, T slots, V windows.
    """

    data: PlanData
    point_cost: Floats  # [P, T] per replica over the slot
    arc_cost: Floats  # [A, T]
    demand: Floats  # [D, T]
    job_seconds: Floats  # [J, T] in which the job may run
    seconds: Floats  # [T]
    window: Ints  # [T]
    serving: Ints  # serving points that are not dominated in all slots
    training: Ints  # points at which a job can finish
    dominated: Bools  # [P, T]
    use_point: Ints
    use_option: Ints
    use_systems: Floats
    site: Ints  # [P]
    arc_demand: Ints  # [A] demand of each arc

    @classmethod
    def of(cls, data: PlanData, functional: str, able: Ints) -> SlotView:
        """Return the view of all slots; `able`: points at which a job can finish in time."""
        zero = np.zeros((len(data.point_pool), data.slots))
        origins = max(data.demand.shape[1], 1)
        undominated_slots = undominated(data)
        keep = undominated_slots.any(axis=1) & (data.point_capacity > 0)
        return cls(
            data=data,
            point_cost=data.point_cost.get(functional, zero),
            arc_cost=data.arc_cost.get(functional, np.zeros((len(data.arc_site), data.slots))),
            demand=data.demand.reshape(-1, data.slots),
            job_seconds=data.job_window_mask * data.slot_hours_s if len(data.job_work) else np.zeros((0, data.slots)),
            seconds=data.slot_hours_s,
            window=data.slot_window,
            serving=np.flatnonzero((data.point_pool >= 0) & keep),
            training=able,
            dominated=~undominated_slots,
            use_point=data.point_uses[:, 0],
            use_option=data.point_uses[:, 1],
            use_systems=data.point_uses_systems,
            site=data.point_site(),
            arc_demand=data.arc_workload * origins + data.arc_origin,
        )

    @property
    def slots(self) -> int:
        return len(self.seconds)

    @property
    def reachable(self) -> Floats:
        """[J, T]: share of each slot for which a job may run."""
        return self.job_seconds / self.seconds

    def merged(self, group: Ints) -> SlotView:
        """Merge slots by `group` [T], each of one window: costs and times add up, demand is averaged."""
        into = np.zeros((self.slots, int(group.max()) + 1))
        into[np.arange(self.slots), group] = 1.0
        window = np.zeros(into.shape[1], dtype=np.int64)
        window[group] = self.window
        return replace(
            self, point_cost=self.point_cost @ into, arc_cost=self.arc_cost @ into, demand=self.demand @ into / into.sum(axis=0),
            job_seconds=self.job_seconds @ into, seconds=self.seconds @ into, window=window, dominated=(~self.dominated @ into) == 0,
        )  # fmt: skip

    def raise_alpha(self, beta: Floats, sigma: Floats, alpha: Floats, parallel_map: ParallelMap = map) -> Floats:
        """Raise alpha [K, T] until no replica has a negative reduced cost:  sum uses alpha >= capacity beta - cost - power sigma."""
        return by_slot_chunks(
            lambda at: (self._raise_alpha(beta[:, at], sigma[:, at], alpha[:, at], at),), self.slots, parallel_map
        )[0]

    def _raise_alpha(self, beta: Floats, sigma: Floats, alpha: Floats, at: slice) -> Floats:
        """Raise alpha in a chunk of slots, for points that use one fleet option first, then for the others."""
        data, raised = self.data, alpha.copy()
        for several in (False, True):
            points = self.serving[
                (np.bincount(self.use_point, minlength=len(data.point_pool))[self.serving] > 1) == several
            ]
            if not len(points):
                continue
            earns = data.point_capacity[points, None] * beta[data.point_pool[points]] - self.point_cost[points, at]
            earns -= data.point_power_w[points, None] * sigma[self.site[points]]
            mine = np.flatnonzero(np.isin(self.use_point, points))
            place = np.searchsorted(points, self.use_point[mine])
            width = np.bincount(place, weights=self.use_systems[mine], minlength=len(points))
            uses = sparse.csr_array(
                (self.use_systems[mine], (place, self.use_option[mine])), shape=(len(points), len(raised))
            )
            short = np.maximum(earns - uses @ raised, 0.0) / np.maximum(width, VALUE_TOL)[:, None]
            fleet_options, largest = reduce_by_group(np.maximum, short[place], self.use_option[mine])
            raised[fleet_options] += largest
        return raised

    def raise_alpha_of_absent(self, absent: Bools, beta: Floats, sigma: Floats, alpha: Floats) -> Floats:
        """Raise alpha [K, T] of `absent` [K, T] systems until no replica that needs any of them has a negative reduced cost.

        The other prices stay: those systems are present and priced.
        """
        data, raised = self.data, alpha.copy()
        mine = np.flatnonzero(np.isin(self.use_point, self.serving))
        place, option, uses = (
            np.searchsorted(self.serving, self.use_point[mine]),
            self.use_option[mine],
            self.use_systems[mine],
        )
        earns = (
            data.point_capacity[self.serving, None] * beta[data.point_pool[self.serving]]
            - self.point_cost[self.serving]
        )
        earns -= data.point_power_w[self.serving, None] * sigma[self.site[self.serving]]
        np.add.at(earns, place, -uses[:, None] * alpha[option])
        width = np.zeros_like(earns)
        np.add.at(width, place, uses[:, None] * absent[option])
        short = np.divide(np.maximum(earns, 0.0), width, out=np.zeros_like(earns), where=width > 0)
        largest = np.zeros_like(raised)
        np.maximum.at(largest, option, short[place])
        return np.where(absent, raised + largest, raised)

    def running_price(self, points: Ints, alpha: Floats, sigma: Floats, at: Ints | slice = ALL_SLOTS) -> Floats:
        """Return what a job takes at these prices if it runs for all that it may of a slot [points, T or slots `at`]."""
        data, sites = self.data, self.site[points]
        order = np.argsort(points, kind="stable")
        mine = np.flatnonzero(np.isin(self.use_point, points))
        place, (fleet_options, option) = (
            order[np.searchsorted(points[order], self.use_point[mine])],
            np.unique(self.use_option[mine], return_inverse=True),
        )
        uses = sparse.csr_array((self.use_systems[mine], (place, option)), shape=(len(points), len(fleet_options)))
        price: Floats = (
            np.asarray(uses @ alpha[fleet_options][:, at]) + data.point_power_w[points, None] * sigma[:, at][sites]
        )
        price += self.point_cost[points][:, at]
        price *= self.reachable[:, at][data.point_job[points]]
        return price

    def least_job_cost(self, points: Ints, alpha: Floats, sigma: Floats, parallel_map: ParallelMap = map) -> Floats:
        """Return the least cost of each point's job at these prices, in the cheapest slots first; infinite if it cannot finish."""
        job = self.data.point_job[points]

        def of(j: int) -> Floats:
            mine, at = points[job == j], np.flatnonzero(self.job_seconds[j] > 0)
            price, work = (
                self.running_price(mine, alpha, sigma, at),
                self.job_seconds[j, at] * self.data.point_capacity[mine, None],
            )
            each = price / work
            order = np.argsort(each, axis=1)
            work = np.take_along_axis(work, order, 1)
            done = np.cumsum(work, axis=1)
            share = np.clip(self.data.job_work[j] - (done - work), 0.0, work)
            found = np.einsum("pt,pt->p", np.take_along_axis(each, order, 1), share)
            return np.where(done[:, -1] >= self.data.job_work[j] * (1 - JOB_DONE_TOL), found, np.inf)

        cost, jobs = np.full(len(points), np.inf), np.unique(job)
        for j, found in zip(jobs, parallel_map(of, jobs), strict=True):
            cost[job == j] = found
        return cost
