"""A record: one thing (a chip, a region, an offer …) with its names, text and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog import units
from catalog.errors import MissingFigure
from catalog.figures import Figure
from catalog.plausibility import range_of
from catalog.schemas import SCHEMAS

Text = str | bool | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """Hold one catalog record; `claimed` keeps figures of an announcement apart from the maker's `figures`.
    An `announced_only` record is of a product that nobody sells: it has no figures until a user states them."""

    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    text: Mapping[str, Text] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    claimed: Mapping[str, Figure] = field(default_factory=dict)
    announced_only: bool = False

    def get(self, figure: str) -> Figure | None:
        """Get the figure, or None where the record has none."""
        return self.figures.get(figure)

    def figure(self, figure: str) -> Figure:
        """Get the figure; MissingFigure says how to state it where the record has none."""
        found = self.figures.get(figure)
        if found is None:
            spec = SCHEMAS[self.kind].figures.get(figure)
            raise MissingFigure(self.kind, self.name, figure, _example(figure, spec.units[0]) if spec else "1")
        return found

    def value(self, figure: str) -> float:
        """Get the figure's number in SI."""
        return self.figure(figure).number

    def series(self, figure: str) -> tuple[float, ...]:
        """Get the figure's values over the day in SI."""
        value = self.figure(figure).value
        return value if isinstance(value, tuple) else (value,)

    def words(self, key: str) -> str:
        """Get a text that is one string, "" where the record has none."""
        value = self.text.get(key, "")
        return value if isinstance(value, str) else str(value)


def _example(figure: str, unit: str) -> str:
    allowed = range_of(figure, unit)
    return "64" if allowed and allowed.whole and unit == "1" else units.example(unit)
