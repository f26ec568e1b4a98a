"""Which slots a large program is first solved on: slots merged with what is like them."""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.slots import NOTHING, SlotView

APART, APART_LARGE = (
    5.0,
    1.0,
)  # how much more it counts whether a job may run than how much demand there is, when slots are merged, also where questions are large
SUPPLIED, OF_A_KIND = (
    1.5,
    2,
)  # of what jobs take at their narrowest, that their kinds of systems are to be supplied for, and points of a job and kind beyond those
DEAR = 9.0  # times its cheapest point, that a job counts as costing where there is none
MOST, HERE = (
    600,
    (2, 16),
)  # points of jobs that merged slots choose among, about, and of each job at a site, at least and at most


def cluster_slots(view: SlotView, clusters: int, apart: float = APART) -> Ints:
    """Group of each slot, about so many in all. Slots in which other jobs may run stay apart as long as there are groups enough: a job that is
    spread over a merged slot would seem to leave room that is not there in any of its hours. With many jobs there are not, and peaks of demand
    that are merged away would leave more."""
    from scipy.cluster.hierarchy import fcluster, linkage

    mean = np.maximum(view.demand.mean(axis=1, keepdims=True), NOTHING)
    # slots of different windows never meet
    features = np.hstack([(view.demand / mean).T, apart * view.reachable.T, 1e3 * view.window[:, None]])
    clusters = max(clusters, len(np.unique(view.window)))
    if clusters * 2 > view.slots:
        return np.arange(view.slots)
    return np.unique(fcluster(linkage(features, "ward"), clusters, "maxclust"), return_inverse=True)[1].astype(np.int64)


def cluster_count(view: SlotView, minimum: int) -> int:
    """Groups, at least so many, in which slots with other jobs need not meet."""
    return max(minimum, 2 * len(np.unique(view.reachable.T, axis=0)))


def cheapest_placements(view: SlotView, cost: Floats) -> Ints:
    """The cheapest points of each job at each site, fewer where there are many sites and jobs; `cost` [training]. Where their kinds of systems are not
    supplied for all jobs, points of more kinds."""
    job, site = view.data.point_job[view.training], view.site[view.training]
    first = _cheapest_of_each(job * view.data.sites + site, cost, None)
    near = _cheapest_of_each(job * view.data.sites + site, cost, int(np.clip(MOST // max(len(first), 1), *HERE)))
    return np.sort(view.training[np.union1d(near, _placements_of_more_types(view, cost, near))])


def _cheapest_of_each(key: Ints, cost: Floats, count: int | None) -> Ints:
    """So many of each key, 1 where it is not said, that cost least and can be had."""
    order = np.lexsort((cost, key))
    order = order[np.isfinite(cost[order])]
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=np.int64)
    rank = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return order[rank < (1 if count is None else count)]


def _placements_of_more_types(view: SlotView, cost: Floats, near: Ints) -> Ints:
    """Points of the kinds that are cheapest for the jobs, as many kinds as are supplied for all jobs at their narrowest, and more; a kind is what a
    supply counts."""
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
    wanted = SUPPLIED * narrowest[np.isfinite(narrowest)].sum()
    best, of_kind = np.full(jobs, np.inf), np.full((jobs, kinds), np.inf)
    np.minimum.at(best, job, cost)
    there = kind >= 0
    np.minimum.at(of_kind, (job[there], kind[there]), cost[there])
    dear = np.divide(
        of_kind, best[:, None], out=np.full_like(of_kind, DEAR), where=np.isfinite(of_kind) & (best > 0)[:, None]
    ).mean(axis=0)
    known = np.unique(kind[near])
    order = np.concatenate([known, np.setdiff1d(np.argsort(dear, kind="stable"), known, assume_unique=True)])
    enough = max(int(np.searchsorted(np.cumsum(data.supply_limit[order]), wanted)) + 1, len(known))
    more = np.flatnonzero(np.isin(kind, order[len(known) : enough]))
    return more[_cheapest_of_each(job[more] * kinds + kind[more], cost[more], OF_A_KIND)]
