"""Which slots a large program is first solved on: slots merged with what is like them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.data import Ints, PlanData
from solvers.hourwise import NOTHING, Slotwise

LEAST = 20  # merged slots; 12 take half the time and give a first bound 0.8 % lower, 26 take longer for no better one after ten rounds
APART = 5.0  # how much more it counts whether a job may run than how much demand there is, when slots are merged


def grouping(view: Slotwise) -> Ints:
    """Group of each slot. Slots in which other jobs may run stay apart as long as there are groups enough: a job that is spread over
    a merged slot would seem to leave room that is not there in any of its hours."""
    from scipy.cluster.hierarchy import fcluster, linkage

    mean = np.maximum(view.demand.mean(axis=1, keepdims=True), NOTHING)
    # slots of different windows never meet
    features = np.hstack([(view.demand / mean).T, APART * view.reachable.T, 1e3 * view.window[:, None]])
    windows, kinds = len(np.unique(view.window)), len(np.unique(view.reachable.T, axis=0))
    clusters = max(LEAST, 2 * kinds, windows)
    if clusters * 2 > view.slots:
        return np.arange(view.slots)
    return np.unique(fcluster(linkage(features, "ward"), clusters, "maxclust"), return_inverse=True)[1].astype(np.int64)


def merged(data: PlanData, group: Ints) -> PlanData:
    """The question on fewer slots: costs and times add up, demand is the mean, a job may run where it may in most of the time."""
    into = np.zeros((data.slots, int(group.max()) + 1))
    into[np.arange(data.slots), group] = 1.0
    count, window = into.sum(axis=0), np.zeros(into.shape[1], dtype=np.int64)
    window[group] = data.slot_window
    return replace(
        data, slot_window=window, slot_hours_s=data.slot_hours_s @ into, demand=data.demand @ into / count,
        point_cost={name: values @ into for name, values in data.point_cost.items()},
        arc_cost={name: values @ into for name, values in data.arc_cost.items()},
        job_window_mask=(data.job_window_mask @ into) > 0.5 * count if len(data.job_work) else np.zeros((0, len(count)), dtype=bool),
    )  # fmt: skip
