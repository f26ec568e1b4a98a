"""Decide whether a claim holds: our figure against the claimed one, at the usual quantities and over the range of the free one.

A claim "about" a figure agrees where both ranges, widened by a stated share, meet; "at least" and "at most" look at one side. Over the range
of the free quantity the change from wrong to right is sought between neighbours on a grid and then found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby, pairwise

from planner.audit.formulas import Formula, FormulaError
from planner.audit.quantities import Quantity

GRID = 97  # points over the range of the free quantity
HALVINGS = 80
DECADES = 20.0  # ranges wider than this factor are divided evenly in the logarithm


class Verdict(StrEnum):
    """What arithmetic says of a claim."""

    HOLDS = "holds"
    HOLDS_WHEN = "holds when"
    CANNOT_BE = "cannot be"
    MISLABELLED = "mislabelled"
    CONFLICT = "conflict"
    ATTRIBUTION = "attribution only"
    NO_ARITHMETIC = "not a matter of arithmetic"


@dataclass(frozen=True, slots=True)
class Free:
    """The quantity whose range is tried, in SI; `unit` and its `factor` to SI: as the range was written; `words`: the quantity in words."""

    name: str
    start: float
    end: float
    unit: str
    factor: float
    words: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The claimed figure in SI with how it is to be met: `sense` "about", "at least" or "at most", `within` a relative difference."""

    figure: Quantity
    sense: str
    within: float

    def met_by(self, low: float, high: float) -> bool:
        """Tell whether a figure between `low` and `high` meets the claim."""
        spare = self.within if self.sense == "about" else 1e-12
        enough = high >= self.figure.low - spare * abs(self.figure.low)
        little = low <= self.figure.high + spare * abs(self.figure.high)
        return {"about": enough and little, "at least": enough, "at most": little}[self.sense]


@dataclass(frozen=True, slots=True)
class Condition:
    """Where a claim holds: the free quantity from `least` (None: from the start of its range) to `most` (None: to the end), in SI.

    `low` and `high`: the edge over the ends of all other ranges.
    """

    free: Free
    least: float | None
    most: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, where the claim holds in part, the condition."""

    verdict: Verdict
    condition: Condition | None = None


def decide(formula: Formula, claimed: Claimed, bound: str, free: Free | None) -> Decision:
    """Judge a claimed figure by a formula: `bound`: "most" or "least" if nothing passes it, empty for a figure of its own."""
    usual, low, high = formula.interval()
    if free is not None:
        sense = {"most": "at least", "least": "at most"}.get(bound, claimed.sense)
        return _over(formula, replace(claimed, sense=sense), free)
    if bound:
        reached = (
            claimed.figure.low <= high * (1 + 1e-12) if bound == "most" else claimed.figure.high >= low * (1 - 1e-12)
        )
        return Decision(Verdict.HOLDS if reached else Verdict.CANNOT_BE)
    met = claimed.met_by(usual, usual) or (claimed.sense == "about" and claimed.met_by(low, high))
    return Decision(Verdict.HOLDS if met else Verdict.CONFLICT)


def _over(formula: Formula, claimed: Claimed, free: Free) -> Decision:
    """Find where in the range of the free quantity the claim holds."""

    def holds(value: float, others: Mapping[str, float] | None = None) -> bool:
        try:
            found = formula.at({**(others or {}), free.name: value})
        except FormulaError:
            return False
        return claimed.met_by(found, found)

    points = _points(formula, claimed, free)
    found = [holds(point) for point in points]
    if all(found):
        return Decision(Verdict.HOLDS)
    if not any(found):
        return Decision(Verdict.CANNOT_BE)
    first, last = _longest(found)
    least = None if first == 0 else bisected(holds, points[first - 1], points[first])
    most = None if last == len(points) - 1 else bisected(holds, points[last + 1], points[last])
    edge = least if least is not None else most
    assert edge is not None
    low, high = _edge_range(formula, free, holds, found[0], edge)
    return Decision(Verdict.HOLDS_WHEN, Condition(free, least, most, low, high))


def _points(formula: Formula, claimed: Claimed, free: Free) -> list[float]:
    """Return the values that are tried: a grid, the usual value, and where two neighbours lie on both sides of the claimed figure, its crossing."""
    usual = formula.quantities[free.name].value if free.name in formula.quantities else free.start
    points = sorted({*grid(free.start, free.end), *([usual] if free.start <= usual <= free.end else [])})
    middle = (claimed.figure.low + claimed.figure.high) / 2

    def over(value: float) -> bool | None:
        try:
            return formula.at({free.name: value}) >= middle
        except FormulaError:
            return None

    sides = [over(point) for point in points]
    crossings = [
        bisected(lambda value: over(value) is True, *((a, b) if after else (b, a)))
        for a, b, before, after in (
            (*values, *side) for values, side in zip(pairwise(points), pairwise(sides), strict=True)
        )
        if None not in (before, after) and before != after
    ]
    return sorted({*points, *crossings})


def _longest(found: Sequence[bool]) -> tuple[int, int]:
    """Return the first and the last place of the longest run of places where the claim holds, the earliest of equal ones."""
    runs = [(place, place + len(entries) - 1, right) for place, right, entries in _runs(found)]
    first, last, _ = max((run for run in runs if run[2]), key=lambda run: run[1] - run[0])
    return first, last


def _runs(found: Sequence[bool]) -> Iterator[tuple[int, bool, list[bool]]]:
    """Yield runs of equal entries: place, entry, entries."""
    place = 0
    for right, group in groupby(found):
        entries = list(group)
        yield place, right, entries
        place += len(entries)


def _edge_range(
    formula: Formula, free: Free, holds: Callable[[float, Mapping[str, float] | None], bool], first: bool, edge: float
) -> tuple[float, float]:
    """Return the least and largest edge over the ends of all other ranges, within the range of the free quantity."""
    edges = [edge]
    for corner in formula.corners({free.name: edge}):
        others = {name: value for name, value in corner.items() if name != free.name}
        at = [holds(free.start, others), holds(free.end, others)]
        if at[0] == at[1]:
            edges.append(free.end if at[0] == first else free.start)
        else:
            wrong, right = (free.end, free.start) if at[0] else (free.start, free.end)
            edges.append(bisected(lambda value, others=others: holds(value, others), wrong, right))  # type: ignore[misc]
    return min(edges), max(edges)


def grid(start: float, end: float) -> list[float]:
    """Return points from start to end, evenly in the logarithm where the range is wide.

    >>> grid(0.0, 1.0)[:2], round(grid(1.0, 1e4)[48])
    ([0.0, 0.010416666666666666], 100)
    """
    shares = [place / (GRID - 1) for place in range(GRID)]
    if start > 0 and end / start > DECADES:
        points = [start * math.exp(share * math.log(end / start)) for share in shares]
        return [start, *points[1:-1], end]
    return [start + share * (end - start) for share in shares]


def bisected(holds: Callable[[float], bool], wrong: float, right: float) -> float:
    """Return the value next to which the claim begins to hold, on the side where it holds.

    >>> round(bisected(lambda x: x * x >= 2, 0.0, 2.0), 9)
    1.414213562
    """
    for _ in range(HALVINGS):
        middle = (wrong + right) / 2
        if middle in (wrong, right):
            break
        if holds(middle):
            right = middle
        else:
            wrong = middle
    return right
