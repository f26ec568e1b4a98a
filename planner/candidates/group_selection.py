"""Select among groups of prefill and decode workers: by the systems that they occupy per request, and at shares of the whole demand.

Groups come from `planner.candidates.worker_numbers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.candidates.worker_numbers import TIE_TOL, NumbersSearch, Question

# Relative: groups that differ less count as equal. If larger, a smaller group that costs more by so much could make looser limits dearer.
THROUGHPUT_TIE_TOL = 1e-9
LOADS = (1.0, 0.0, 0.5, 0.25, 0.125, 0.0625)
"""Shares of the whole demand at which the group of fewest systems is sought, the most important first; 0: the smallest group."""
BETWEEN = tuple(part / 64 for part in range(1, 64) if part / 64 not in LOADS)
"""Further shares, at which no group is sought: pairs of layouts that may take fewer systems there are counted."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Groups kept of those found, and how many are left out: beyond the most, and corners of the hull besides the three kept."""

    kept: list[int]  # positions among those found
    beyond: int
    corners: int


def fewest_systems(search: NumbersSearch, questions: Sequence[Question], most: int, further: int) -> Selection:
    """Select groups that answer some questions at one round trip.

    First the group of the least capital per request and its neighbours on the hull, `most` in all; then at most `further` that take less at some load.
    """
    found, sides, per_request = search.found, search.sides, questions[0]
    if not found.rate.size:
        return Selection([], 0, 0)
    first, second = (
        systems * workers
        for systems, workers in zip((sides.first[found.prefill], sides.second[found.shape]), found.workers, strict=True)
    )
    rate = np.where(np.isfinite(search.costs(per_request)), found.rate, 0.0)
    hull = RankedGroups.of(first, second, rate).hull()
    kept = hull.fewest_systems(per_request.prices, most)
    corners = max(len(hull.corners) - len(kept), 0)
    beyond, joined = 0, 0
    order = np.lexsort((found.workers[1], found.workers[0], found.shape, found.prefill, found.rate))
    for question in questions[1:]:
        cost = search.costs(question)
        least = cost.min()
        if np.isfinite(least) and least < cost[kept].min(initial=np.inf) * (1 - TIE_TOL):
            if joined == further:
                beyond += 1
                continue
            kept.append(int(order[np.argmax(cost[order] <= least * (1 + TIE_TOL))]))
            joined += 1
    return Selection(kept, beyond, corners)


def open_between(
    search: NumbersSearch, questions: Sequence[Question], groups: Sequence[int], reach: float = 0.0
) -> Bools:
    """Tell [p, s] which pairs of layouts may take fewer systems than the groups kept, at a share of the demand between the shares that the questions ask about.

    Only where groups are sought at shares of the demand (`LOADS`), the largest of which is the whole, and at loads above `reach`, up to which
    the end of every step is known (`planner.candidates.load_steps`).
    """
    found = np.zeros(search.sides.able.shape[1:], dtype=bool)
    whole = max((question.load for question in questions[1:]), default=0.0)
    if groups:
        for share in (share for share in BETWEEN if share * whole > reach):
            found |= search.open_pairs(replace(questions[0], load=share * whole, most_rate=np.inf), groups)
    return found


@dataclass(frozen=True, slots=True)
class RankedGroups:
    """Groups of positive rate by the prefill systems that they occupy per request, then by the decode systems, then by position."""

    positions: Ints  # [group] flat position
    first: Floats  # [group] prefill systems per request
    second: Floats  # [group] decode systems per request
    rate: Floats  # [group] requests/s

    @classmethod
    def of(cls, first: Floats, second: Floats, rate: Floats) -> RankedGroups:
        """Rank groups that occupy `first` and `second` systems, which broadcast to the shape of the rates."""
        able = rate != 0.0
        positions, rate = np.flatnonzero(able), rate[able]
        x, y = (np.broadcast_to(systems, able.shape)[able] / rate for systems in (first, second))
        order = np.lexsort((y, x))
        return cls(positions[order], x[order], y[order], rate[order])

    def hull(self, kept: Bools | slice = slice(None)) -> LowerHull:
        """Build the hull of some of the groups, or of all."""
        x, y = self.first[kept], self.second[kept]
        falling = np.flatnonzero(y < np.minimum.accumulate(np.concatenate([[np.inf], y]))[:-1])
        corners: list[tuple[float, float, int]] = []
        for corner in zip(x[falling].tolist(), y[falling].tolist(), falling.tolist(), strict=True):
            while len(corners) > 1 and _is_not_convex(corners[-2], corners[-1], corner):
                corners.pop()
            corners.append(corner)
        return LowerHull(self.positions[kept], x, y, self.rate[kept], [i for _, _, i in corners])


@dataclass(frozen=True, slots=True)
class LowerHull:
    """Groups in the order of `RankedGroups`, and the corners of the lower left hull of their systems per request.

    A plan mixes groups in any proportion, so that only these corners matter.
    """

    positions: Ints  # [group] flat position
    first: Floats  # [group] prefill systems per request
    second: Floats  # [group] decode systems per request
    rate: Floats  # [group] requests/s
    corners: list[int]  # indices of groups

    def fewest_systems(self, prices: tuple[float, float], most: int) -> list[int]:
        """Select the corner of the least capital per request, and its neighbours, which save systems of the type that is scarce.

        Returns flat positions. Of groups as good as the first the smallest is taken. Looser limits never raise the capital of the first;
        they may raise that of its neighbours, which are other groups then, and the power.
        """
        if not self.positions.size:
            return []
        capital = prices[0] * self.first + prices[1] * self.second
        middle = int(np.argmin(capital[self.corners]))
        as_good = np.flatnonzero(capital <= (1 + THROUGHPUT_TIE_TOL) * capital[self.corners[middle]])
        smallest = self._least(self.rate, as_good)
        kept = [smallest, *(self.corners[i] for i in (middle - 1, middle + 1) if 0 <= i < len(self.corners))][:most]
        return [int(self.positions[i]) for i in kept]

    def _least(self, values: Floats, groups: Ints) -> int:
        """Return the group of the least value among some; of equal ones the first by position."""
        equal = groups[values[groups] == values[groups].min()]
        return int(equal[np.argmin(self.positions[equal])])


def _is_not_convex(a: tuple[float, float, int], b: tuple[float, float, int], c: tuple[float, float, int]) -> bool:
    """Tell whether point b lies on or above the line from a to c; (x, y, index) each."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
