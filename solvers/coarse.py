"""Which slots a large program is first solved on: the largest demands alone, the rest merged with what is like them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvers.data import Ints
from solvers.hourwise import NOTHING, Slotwise

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
    for least, each in ((12, 2), (36, 8)):
        clusters = max(least, each * kinds, windows)
        if clusters * 2 <= view.slots:
            label = fcluster(linkage(features, "ward"), clusters, "maxclust")
            result.append(np.unique(label, return_inverse=True)[1].astype(np.int64))
    return [*result, np.arange(view.slots)]
