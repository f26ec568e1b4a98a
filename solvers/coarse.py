"""Which slots a large program is first solved on: slots merged with what is like them."""

from __future__ import annotations

import numpy as np

from solvers.data import Floats, Ints
from solvers.hourwise import NOTHING, Slotwise

APART = 5.0  # how much more it counts whether a job may run than how much demand there is, when slots are merged
MOST, HERE = 600, (2, 16)  # points of jobs that merged slots choose among, about, and of each job at a site, at least and at most


def grouping(view: Slotwise, clusters: int) -> Ints:
    """Group of each slot, about so many in all. Slots in which other jobs may run stay apart as long as there are groups enough: a job that is
    spread over a merged slot would seem to leave room that is not there in any of its hours."""
    from scipy.cluster.hierarchy import fcluster, linkage

    mean = np.maximum(view.demand.mean(axis=1, keepdims=True), NOTHING)
    # slots of different windows never meet
    features = np.hstack([(view.demand / mean).T, APART * view.reachable.T, 1e3 * view.window[:, None]])
    clusters = max(clusters, len(np.unique(view.window)))
    if clusters * 2 > view.slots:
        return np.arange(view.slots)
    return np.unique(fcluster(linkage(features, "ward"), clusters, "maxclust"), return_inverse=True)[1].astype(np.int64)


def groups_for(view: Slotwise, least: int) -> int:
    """Groups, at least so many, in which slots with other jobs need not meet."""
    return max(least, 2 * len(np.unique(view.reachable.T, axis=0)))


def cheap_places(view: Slotwise, cost: Floats) -> Ints:
    """The cheapest points of each job at each site, fewer where there are many sites and jobs; `cost` [training]."""
    job, site = view.data.point_job[view.training], view.site[view.training]
    order = np.lexsort((cost, site, job))
    order = order[np.isfinite(cost[order])]
    key = job[order] * view.data.sites + site[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=np.int64)
    rank = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return np.sort(view.training[order[rank < np.clip(MOST // max(len(first), 1), *HERE)]])
