"""Which slots a large program is first solved on: slots merged with what is like them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.data import Floats, Ints, PlanData
from solvers.hourwise import NOTHING, Slotwise

LEAST = 20  # merged slots; 12 take half the time and give a first bound 0.8 % lower, 26 take longer for no better one after ten rounds
FEWEST, COLUMNS = 3, 80_000  # where so many slots make a larger program, fewer are taken, but for these
APART = 5.0  # how much more it counts whether a job may run than how much demand there is, when slots are merged
HERE = 4  # points of a job at a site that the merged program may choose among


def few(view: Slotwise, places: int) -> int:
    """Merged slots of a linear program solved in one piece, where jobs choose among so many `places`."""
    kinds = len(np.unique(view.reachable.T, axis=0))
    most = max(FEWEST, COLUMNS // max(len(view.serving) + len(view.arc_demand) + places, 1))
    return min(max(LEAST, 2 * kinds), most)


def grouping(view: Slotwise, clusters: int) -> Ints:
    """Group of each slot, about so many in all. Slots in which other jobs may run stay apart as long as there are groups
    enough: a job that is spread over a merged slot would seem to leave room that is not there in any of its hours."""
    from scipy.cluster.hierarchy import fcluster, linkage

    mean = np.maximum(view.demand.mean(axis=1, keepdims=True), NOTHING)
    # slots of different windows never meet
    features = np.hstack([(view.demand / mean).T, APART * view.reachable.T, 1e3 * view.window[:, None]])
    clusters = max(clusters, len(np.unique(view.window)))
    if clusters * 2 > view.slots:
        return np.arange(view.slots)
    return np.unique(fcluster(linkage(features, "ward"), clusters, "maxclust"), return_inverse=True)[1].astype(np.int64)


def cheap_places(view: Slotwise, cost: Floats) -> Ints:
    """The cheapest points of each job at each site; `cost` [training]."""
    job, site = view.data.point_job[view.training], view.site[view.training]
    order = np.lexsort((cost, site, job))
    order = order[np.isfinite(cost[order])]
    key = job[order] * view.data.sites + site[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=np.int64)
    rank = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return np.sort(view.training[order[rank < HERE]])


def merged(data: PlanData, group: Ints) -> PlanData:
    """The question on fewer slots: costs and times add up, demand is the mean, a job may run where it may in most of the time,
    or where it may at all if that left it less time than it has."""
    into = np.zeros((data.slots, int(group.max()) + 1))
    into[np.arange(data.slots), group] = 1.0
    count, window = into.sum(axis=0), np.zeros(into.shape[1], dtype=np.int64)
    window[group] = data.slot_window
    mask, seconds = np.zeros((0, len(count)), dtype=bool), data.slot_hours_s @ into
    if len(data.job_work):
        mostly = (data.job_window_mask @ into) > 0.5 * count
        less = mostly @ seconds < data.job_window_mask @ data.slot_hours_s
        mask = np.where(less[:, None], (data.job_window_mask @ into) > 0, mostly)
    return replace(
        data, slot_window=window, slot_hours_s=seconds, demand=data.demand @ into / count,
        point_cost={name: values @ into for name, values in data.point_cost.items()},
        arc_cost={name: values @ into for name, values in data.arc_cost.items()},
        job_window_mask=mask,
    )  # fmt: skip
