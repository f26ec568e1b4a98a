"""Let a few hours stand for all slots of each window: its hardest ones, and the means of groups of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints

HARD, MEANS = 2, 3  # hours of a window: hardest ones, and groups of all
SHORT = 0.1  # share of the horizon below which a window has one of each


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours that stand for slots: the slots and the share of their time of each, and the demand [class, hour]."""

    members: tuple[Ints, ...]
    share: Floats
    demand: Floats

    @property
    def first(self) -> Ints:
        """Return a slot of each hour, for what its slots have in common."""
        return np.array([slots[0] for slots in self.members], dtype=np.int64)

    def total(self, by_slot: Floats) -> Floats:
        """Add up an amount by slot [..., slot] over the time of each hour [..., hour]."""
        return np.stack(
            [by_slot[..., slots].sum(axis=-1) * part for slots, part in zip(self.members, self.share, strict=True)], -1
        )


def hours_of(demand: Floats, window: Ints, masks: Bools, seconds: Floats) -> Hours:
    """Choose the hours; `demand` [class, slot], `masks` [job, slot]: when each job may run."""
    kinds: dict[tuple[int, ...], list[int]] = {}
    for t, w in enumerate(window.tolist()):
        kinds.setdefault((w, *(int(each) for each in masks[:, t])), []).append(t)
    members: list[Ints] = []
    share: list[float] = []
    asked: list[Floats] = []
    for listed in kinds.values():
        slots = np.array(listed, dtype=np.int64)
        mine, width = demand[:, slots], seconds[slots]
        short = width.sum() < SHORT * seconds.sum()
        peaks = _hardest(mine, 1 if short else HARD)
        taken = min(len(peaks) * width.mean() / width.sum(), 1.0) if len(slots) > len(peaks) else 1.0
        for peak in peaks:
            members.append(slots)
            share.append(taken / len(peaks))
            asked.append(peak)
        for group in _alike(mine, 1 if short else MEANS) if taken < 1.0 else ():
            members.append(slots[group])
            share.append(1.0 - taken)
            asked.append(mine[:, group] @ width[group] / width[group].sum())
    return Hours(tuple(members), np.array(share), np.array(asked).T.reshape(len(demand), len(members)))


def _hardest(demand: Floats, most: int) -> list[Floats]:
    """Return the peaks of a few groups of the slots that no other slot exceeds in every class."""
    rows = np.unique(demand.T, axis=0)
    exceeded = [((rows >= row).all(axis=1) & (rows > row).any(axis=1)).any() for row in rows]
    peaks = [row for row, less in zip(rows, exceeded, strict=True) if not less]
    while len(peaks) > most:
        pairs = [(i, j) for i in range(len(peaks)) for j in range(i)]
        i, j = min(
            pairs, key=lambda pair: 2 * np.maximum(peaks[pair[0]], peaks[pair[1]]).sum() - peaks[pair[0]].sum() - peaks[pair[1]].sum()
        )  # fmt: skip
        peaks[j] = np.maximum(peaks[i], peaks[j])
        del peaks[i]
    return peaks


def _alike(demand: Floats, most: int) -> list[Ints]:
    """Join slots in groups of least variance."""
    from scipy.cluster.hierarchy import fcluster, ward

    count = demand.shape[1]
    if count <= most:
        return [np.array([t]) for t in range(count)]
    label = fcluster(ward(demand.T), most, "maxclust") if len(demand) else np.ones(count, dtype=np.int64)
    return [np.flatnonzero(label == each) for each in np.unique(label)]
