"""Say what the rows of a sweep show together: the effect of each path, and where the plan becomes one of another kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from planner.messages import say
from planner.studies.sweeps.rows import KIND
from planner.studies.sweeps.varied import Point, Varied, number_of

Row = Mapping[str, Any]
STEPS = 6  # halvings between two neighbouring values: 1/64 of their distance remains
BINS = 4  # parts of a range that is drawn from, for the means of its effect


@dataclass(frozen=True, slots=True)
class Effect:
    """How the objective moves with one path: means over all rows of each level."""

    path: str
    levels: tuple[tuple[str, float, int], ...]
    """(level, mean of the objective over its rows, number of rows)."""

    @property
    def swing(self) -> float:
        """Return the largest mean less the smallest."""
        means = [mean for _, mean, _ in self.levels]
        return max(means) - min(means)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Two values of a path, all else as in the spec, between which the plan becomes one of another kind."""

    path: str
    below: Any
    above: Any
    kind_below: str
    kind_above: str


def effects(varied: Sequence[Varied], rows: Sequence[Row]) -> list[Effect]:
    """Average the objective over the rows of each value, the path with the largest swing first.

    In a full grid these are the main effects of a factorial design. Values of a drawn range are put into `BINS` equal parts. Rows without
    a plan are left out, and so are paths with one level.
    """
    found = []
    for one in varied:
        by_level: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            if row["value"] is not None:
                by_level[_level(one, row[one.path])].append(row["value"])
        order = [name for name in _levels(one) if name in by_level]
        if len(order) > 1:
            found.append(Effect(one.path, tuple((name, fmean(by_level[name]), len(by_level[name])) for name in order)))
    return sorted(found, key=lambda effect: -effect.swing)


def _level(one: Varied, value: Any) -> str:
    """Name the level of a value: itself if it is one of the path's own, otherwise the part of the range where it lies."""
    if value in one.values or one.ends is None:
        return str(value)
    low, high = one.ends
    share = (number_of(value) - low) / (high - low)
    return _levels_of_range(one)[min(int(share * BINS), BINS - 1)] if 0 <= share <= 1 else str(value)


def _levels(one: Varied) -> list[str]:
    return [*map(str, one.values), *(_levels_of_range(one) if one.ends else ())]


def _levels_of_range(one: Varied) -> list[str]:
    edges = [one.between(part / BINS) for part in range(BINS + 1)]
    return [say("sweep.part", low=str(low), high=str(high)) for low, high in pairwise(edges)]


def thresholds(
    varied: Sequence[Varied], rows: Sequence[Row], kind_at: Callable[[Point], str], base: Point
) -> list[Threshold]:
    """Narrow down by bisection where the kind of plan changes along each range, all other paths at their values in `base`.

    `kind_at` solves at a point. Only neighbouring values between which the kind differs are halved, `STEPS` times; a change and its
    return between two neighbours stays unseen.
    """
    known = {_key(row, varied): row[KIND] for row in rows if row[KIND] is not None}
    found = []
    for one in varied:
        if one.ends is None:
            continue

        def kind(value: Any, path: str = one.path) -> str:
            point = {**base, path: value}
            key = _key(point, varied)
            if key not in known:
                known[key] = kind_at(point)
            return str(known[key])

        count = len(one.values) - 1
        for place, (low, high) in enumerate(pairwise(one.values)):
            if kind(low) != kind(high):
                found.append(_narrowed(one, place / count, (place + 1) / count, kind))
    return found


def _narrowed(one: Varied, low: float, high: float, kind: Callable[[Any], str]) -> Threshold:
    first = kind(one.between(low))
    for _ in range(STEPS):
        middle = (low + high) / 2
        if kind(one.between(middle)) == first:
            low = middle
        else:
            high = middle
    return Threshold(one.path, one.between(low), one.between(high), first, kind(one.between(high)))


def _key(point: Row, varied: Sequence[Varied]) -> tuple[str, ...]:
    return tuple(str(point[one.path]) for one in varied)
