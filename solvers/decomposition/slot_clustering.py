"""Choose what a large program is first solved on: clusters of similar slots, and few placements of each job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.slots import VALUE_TOL, SlotView

JOB_WEIGHT = 5.0
"""Weight of whether a job may run in a slot, relative to demand, where slots are clustered."""
JOB_WEIGHT_LARGE = 1.0
"""The same for large programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings:
    """How many placements of each job merged slots choose among."""

    supply_factor: float = 1.5
    """Placements use enough system types to supply this multiple of what all jobs take at least."""
    placements_per_type: int = 2
    """Placements of a job on each further system type."""
    missing_type_cost: float = 9.0
    """Cost that counts for a job without a placement on a system type, as a multiple of its cheapest placement."""
    placements: int = 600
    """Placements of all jobs, about."""
    placements_per_site: tuple[int, int] = (2, 16)
    """Least and most placements of one job at one site."""


PLACEMENTS = PlacementSettings()


def cluster_slots(view: SlotView, clusters: int, job_weight: float = JOB_WEIGHT) -> Ints:
    """Return the cluster of each slot, about a given number in all, by Ward's method.

    Slots with different jobs stay apart if there are enough clusters: a job spread over a merged slot would seem to leave room that none
    of its hours has. With many jobs there are too few, and merging peaks of demand away does more harm.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    mean = np.maximum(view.demand.mean(axis=1, keepdims=True), VALUE_TOL)
    # slots of different windows are never merged
    features = np.hstack([(view.demand / mean).T, job_weight * view.reachable.T, 1e3 * view.window[:, None]])
    clusters = max(clusters, len(np.unique(view.window)))
    if clusters * 2 > view.slots:
        return np.arange(view.slots)
    return np.unique(fcluster(linkage(features, "ward"), clusters, "maxclust"), return_inverse=True)[1].astype(np.int64)


def cluster_count(view: SlotView, minimum: int) -> int:
    """Return a number of clusters, at least `minimum`, that suffices to keep slots with different jobs apart."""
    return max(minimum, 2 * len(np.unique(view.reachable.T, axis=0)))


def cheapest_placements(view: SlotView, cost: Floats) -> Ints:
    """Return the cheapest placements of each job at each site, fewer where there are many sites and jobs; `cost` [training].

    Where the supply of their system types does not suffice for all jobs, placements on further types are added.
    """
    job, site = view.data.point_job[view.training], view.site[view.training]
    first = _cheapest_of_each(job * view.data.sites + site, cost, None)
    near = _cheapest_of_each(
        job * view.data.sites + site,
        cost,
        int(np.clip(PLACEMENTS.placements // max(len(first), 1), *PLACEMENTS.placements_per_site)),
    )
    return np.sort(view.training[np.union1d(near, _placements_of_more_types(view, cost, near))])


def _cheapest_of_each(key: Ints, cost: Floats, count: int | None) -> Ints:
    """Return the positions of the `count` cheapest entries of each key, 1 if not given, without entries of infinite cost."""
    order = np.lexsort((cost, key))
    order = order[np.isfinite(cost[order])]
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=np.int64)
    rank = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return order[rank < (1 if count is None else count)]


def _placements_of_more_types(view: SlotView, cost: Floats, near: Ints) -> Ints:
    """Return placements on as many of the cheapest system types as it takes to supply all jobs at their narrowest, with a margin.

    A system type is what one supply counts. Returned are positions in `view.training`.
    """
    data, points = view.data, view.training
    kinds, jobs = len(data.supply_limit), len(data.job_work)
    of_option = np.full(len(data.option_site), -1)
    of_option[data.holding_option[data.supply_member[:, 1]]] = data.supply_member[:, 0]
    kind, systems = np.full(len(data.point_pool), -1), np.zeros(len(data.point_pool))
    kind[view.use_point] = of_option[view.use_option]
    np.add.at(systems, view.use_point, view.use_systems)
    kind, systems, job = kind[points], systems[points], data.point_job[points]
    if not kinds or not jobs or (kind[near] < 0).any():
        return np.zeros(0, dtype=np.int64)
    narrowest = np.full(jobs, np.inf)
    np.minimum.at(narrowest, job, np.where(np.isfinite(cost), systems, np.inf))
    wanted = PLACEMENTS.supply_factor * narrowest[np.isfinite(narrowest)].sum()
    best, of_kind = np.full(jobs, np.inf), np.full((jobs, kinds), np.inf)
    np.minimum.at(best, job, cost)
    there = kind >= 0
    np.minimum.at(of_kind, (job[there], kind[there]), cost[there])
    dear = np.divide(
        of_kind,
        best[:, None],
        out=np.full_like(of_kind, PLACEMENTS.missing_type_cost),
        where=np.isfinite(of_kind) & (best > 0)[:, None],
    ).mean(axis=0)
    known = np.unique(kind[near])
    order = np.concatenate([known, np.setdiff1d(np.argsort(dear, kind="stable"), known, assume_unique=True)])
    enough = max(int(np.searchsorted(np.cumsum(data.supply_limit[order]), wanted)) + 1, len(known))
    more = np.flatnonzero(np.isin(kind, order[len(known) : enough]))
    return more[_cheapest_of_each(job[more] * kinds + kind[more], cost[more], PLACEMENTS.placements_per_type)]
