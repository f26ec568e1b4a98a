"""Reduce drawn paths of demand to a tree of paths: at each date they branch by the demand up to that date, and by nothing later.

Groups of draws stand for the draws next to their middle. A path has the demand of its group in the windows that a date has seen, and goes on with the
changes of the groups into which that group branches at later dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from planner.adapt.groups import SPREAD_TOL, chosen, next_to

BRANCHES = (3, 2)  # most branches of the first dates that see something new; later ones have none
LEAST = 1e-12  # factor on demand below which changes are not told apart


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths of demand with their weights; `node` [stage, path]: paths that are alike in the windows before `seen` [stage] have one number."""

    growth: Floats  # [path, workload, window] factor on demand
    weight: Floats  # [path]
    seen: tuple[int, ...]  # windows, in order; the last stage sees all
    node: Ints

    def followed(self, growth: Floats) -> Ints:
        """Return for draws [draw, workload, window] the path that each follows so far, [stage, draw]: at each stage the branch next to it."""
        there = np.ones((len(growth), len(self.weight)), dtype=bool)
        found, before = np.zeros((len(self.seen), len(growth)), dtype=np.int64), 0
        for i, until in enumerate(self.seen):
            known, drawn = changes(self.growth, before, until), changes(growth, before, until)
            distance = ((drawn[:, None, :] - known[None, :, :]) ** 2).sum(axis=2)
            found[i] = np.argmin(np.where(there, distance, np.inf), axis=1)
            there, before = self.node[i][None, :] == self.node[i][found[i]][:, None], until
        return found

    def at(self, windows: int) -> Ints:
        """Number the paths by their demand in the first windows, [path]."""
        stages = [i for i, seen in enumerate(self.seen) if seen <= windows]
        return self.node[stages[-1]] if stages else np.zeros(len(self.weight), dtype=np.int64)

    def stage(self, windows: int) -> int:
        """Return the last stage that sees no more than the first windows, -1 for none."""
        return sum(seen <= windows for seen in self.seen) - 1


def changes(growth: Floats, before: int, until: int) -> Floats:
    """Return the demand of the windows from `before` to `until` over that of the window before them, [draw, workload and window]."""
    part = growth[:, :, before:until]
    if before:
        part = part / np.maximum(growth[:, :, before - 1 : before], LEAST)
    found: Floats = part.reshape(len(growth), -1)
    return found


def branched(growth: Floats, seen: Sequence[int]) -> Paths:
    """Reduce draws [draw, workload, window] to paths; `seen`: windows that lie before each date that knows demand."""
    windows = growth.shape[2]
    stages = sorted({*(int(n) for n in seen if n > 0), windows})
    most, branches, before = [], list(BRANCHES), 0
    for until in stages:
        news = bool((changes(growth, before, until).std(axis=0) > SPREAD_TOL).any())
        most.append(branches.pop(0) if news and branches else 1)
        before = until
    found: list[tuple[Floats, float, tuple[int, ...]]] = []

    def grow(draws: Ints, stem: Floats, weight: float, numbers: tuple[int, ...]) -> None:
        """Branch a group of draws, whose path so far is `stem` [workload, window]."""
        stage, before = len(numbers), stem.shape[1]
        if stage == len(stages):
            found.append((stem, weight, numbers))
            return
        new = changes(growth[draws], before, stages[stage])
        picked, share = chosen(new, most[stage])
        owner = next_to(new, new[picked])
        last = np.maximum(stem[:, -1:], LEAST) if before else 1.0
        for i, each in enumerate(picked):
            further = new[each].reshape(growth.shape[1], stages[stage] - before) * last
            grow(draws[owner == i], np.hstack([stem, further]), weight * float(share[i]), (*numbers, i))

    grow(np.arange(len(growth)), np.zeros((growth.shape[1], 0)), 1.0, ())
    numbers = np.array([each for *_, each in found], dtype=np.int64).T
    node = np.array([np.unique(numbers[: i + 1], axis=1, return_inverse=True)[1].ravel() for i in range(len(stages))])
    return Paths(
        np.array([stem for stem, *_ in found]), np.array([weight for _, weight, _ in found]), tuple(stages), node
    )
