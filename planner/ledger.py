"""Keeps book of what a plan rests on: every catalog figure used, and every figure that was assumed."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.errors import MissingFigure
from catalog.figures import Figure
from catalog.lookup import Catalog


@dataclass(frozen=True, slots=True)
class Citation:
    """A catalog figure that was used, under the path by which an override would name it."""

    path: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure that nobody published for this very thing. `scope` names the cost lines computed from it.

    `scope` is a tuple of (component, site, system) patterns; "*" fits anything.
    """

    path: str
    value: float | str
    unit: str
    reason: str
    scope: tuple[tuple[str, str, str], ...] = ()


@dataclass(slots=True)
class Ledger:
    """Hands out figures of one catalog and remembers them."""

    catalog: Catalog
    citations: dict[str, Citation] = field(default_factory=dict)
    assumptions: dict[str, Assumption] = field(default_factory=dict)

    def figure(self, kind: str, name: str, figure: str) -> Figure:
        """The figure, booked. Raises MissingFigure."""
        record = self.catalog.get(kind, name)
        found = record.figure(figure)
        path = f"{kind}/{record.name}/{figure}"
        self.citations.setdefault(path, Citation(path, found))
        if found.kind == "override":
            self.assume(path, found.printed, found.unit, found.note or f"stated in {', '.join(found.source)}")
        return found

    def value(self, kind: str, name: str, figure: str) -> float:
        return self.figure(kind, name, figure).number

    def optional(self, kind: str, name: str, figure: str) -> float | None:
        """The figure's value, or None where the catalog has none."""
        try:
            return self.value(kind, name, figure)
        except MissingFigure:
            return None

    def default(self, name: str, path: str, reason: str, *scope: tuple[str, str, str]) -> float:
        """A default of the catalog (kind `assumed`), booked as an assumption at `path`."""
        figure = self.figure("defaults", name, "value")
        self.assume(path, figure.printed, figure.unit, reason, *scope)
        return figure.value

    def assume(self, path: str, value: float | str, unit: str, reason: str, *scope: tuple[str, str, str]) -> None:
        self.assumptions.setdefault(path, Assumption(path, value, unit, reason, tuple(scope)))
