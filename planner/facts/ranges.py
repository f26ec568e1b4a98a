"""Compare a figure with the least and the most that is known of it: beyond half the least or twice the most is a note."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from catalog.figures import Figure
from catalog.records import Record
from catalog.units import show
from planner.facts import Fact
from planner.messages import Argument, Message

FACTOR = 2.0  # beyond which a figure is named
MOST_SOURCES = 4  # that one note lists

Ratio = tuple[str, Callable[[Mapping[str, float]], float]]  # SI unit, and the ratio of figures by name


@dataclass(frozen=True, slots=True)
class Known:
    """Least and most that is known of a figure, in SI, and where from; 0 or infinity where one side says nothing."""

    least: float
    most: float
    source: str

    def scaled(self, factor: float) -> Known:
        """Return the same in another unit or currency."""
        return Known(self.least * factor, self.most * factor, self.source)

    def holds(self, value: float) -> bool:
        """Tell whether a value lies within half the least and twice the most. A price of 0 is one that the user has no bill for."""
        return value == 0.0 or self.least / FACTOR <= value <= self.most * FACTOR


def known_of(figures: Iterable[Figure], place: str, scales: Iterable[float] | None = None) -> Known | None:
    """Return the range of figures with their low and high, each times its scale; None without any. `place`: what they are figures of.

    Overridden figures are left out: a user's word is not measured by itself.
    """
    least, most, sources = math.inf, 0.0, dict[str, None]()
    every = list(figures)
    for figure, scale in zip(every, scales or [1.0] * len(every), strict=True):
        if figure.kind == "override":
            continue
        least = min(least, (figure.number if figure.low is None else figure.low) * scale)
        most = max(most, (figure.number if figure.high is None else figure.high) * scale)
        sources |= dict.fromkeys(figure.source)
    return Known(least, most, f"{place}: {listed(sources)}") if sources else None


def listed(sources: Iterable[str]) -> str:
    """Write the ids of sources, the first few of many."""
    ids = list(sources)
    return ", ".join(ids[:MOST_SOURCES]) + (", …" if len(ids) > MOST_SOURCES else "")


def beyond(path: str, code: str, value: float, known: Known | None, unit: str, /, **more: Argument) -> Fact | None:
    """Name a figure beyond its known range; `unit`: in which the figures are shown."""
    if known is None or known.holds(value):
        return None
    shown = {"given": show(value, unit), "least": show(known.least, unit), "most": show(known.most, unit)}
    needed = {name: text for name, text in shown.items() if name in ("given", "most") or known.least > 0.0}
    return Fact(path, Message.of(code, **needed, **more), known.source)


def unlike_others(
    path: str,
    ratios: Mapping[str, Ratio],
    mine: Mapping[str, float],
    others: Iterable[Mapping[str, float]],
    place: str,
    **more: Argument,
) -> Iterator[Fact]:
    """Name each ratio of a record's figures beyond the ratios of other records; `ratios`: by the code of the note. A figure that lacks is no ratio."""
    every = list(others)
    for code, (unit, ratio) in ratios.items():
        value = _ratio(ratio, mine)
        known = [found for figures in every if (found := _ratio(ratio, figures)) is not None]
        if value is not None and known:
            fact = beyond(path, code, value, Known(min(known), max(known), place), unit, **more)
            if fact is not None:
                yield fact


def figures_of(record: Record, prefix: str = "") -> dict[str, float]:
    """Return the figures of a record that are one number, by name."""
    return {
        prefix + name: figure.number for name, figure in record.figures.items() if not isinstance(figure.value, tuple)
    }


def _ratio(ratio: Callable[[Mapping[str, float]], float], figures: Mapping[str, float]) -> float | None:
    try:
        return ratio(figures) or None
    except (KeyError, ZeroDivisionError):
        return None
