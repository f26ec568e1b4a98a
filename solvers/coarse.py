"""Which slots a large program is first solved on: the largest demands alone, the rest merged with what is like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvers.data import Ints, PlanData
from solvers.hourwise import NOTHING, Slotwise

LEAST = 20
APART = 5.0  # how much more it counts whether a job may run than how much demand there is, when slots are merged


def groupings(view: Slotwise) -> Sequence[Ints]:
    """Slots merged ever less, the last time not at all. Slots in which other jobs may run stay apart as long as there are groups
    enough: a job that is spread over a merged slot would seem to leave room that is not there in any of its hours."""
    from scipy.cluster.hierarchy import fcluster, linkage

    mean = np.maximum(view.demand.mean(axis=1, keepdims=True), NOTHING)
    # slots of different windows never meet
    features = np.hstack([(view.demand / mean).T, APART * view.reachable.T, 1e3 * view.window[:, None]])
    windows, kinds = len(np.unique(view.window)), len(np.unique(view.reachable.T, axis=0))
    result = []
    for least, each in ((LEAST, 2), (36, 8)):
        clusters = max(least, each * kinds, windows)
        if clusters * 2 <= view.slots:
            label = fcluster(linkage(features, "ward"), clusters, "maxclust")
            result.append(np.unique(label, return_inverse=True)[1].astype(np.int64))
    return [*result, np.arange(view.slots)]


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


def restricted(data: PlanData, lots: np.ndarray, points: np.ndarray) -> PlanData:
    """The question with some lots and points only; index sets stay as they are."""
    inside = points.copy()
    inside[data.point_uses[~lots[data.point_uses[:, 1]], 0]] = False
    return replace(data, point_capacity=np.where(inside, data.point_capacity, 0.0), holding_upper=np.where(lots[data.holding_lot], data.holding_upper, 0.0))
