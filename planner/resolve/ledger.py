"""Record which figures a resolution used, with their sources."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from catalog.errors import MissingFigure
from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.records import Record
from catalog.similar import most_similar
from catalog.units import show
from planner.messages import DEFAULT, Message, texts
from planner.problem.price_levels import TYPICAL, at_level, level_note, scope_of, way_of
from planner.problem.provenance import Assumption, Citation
from planner.spec.prices import PriceLevels


def origin_of(path: str, figure: Figure) -> str:
    """Say where a figure comes from: by its note, a message where the note is the catalog's own, or by its sources."""
    if not figure.note:
        return Message.of("assumed.stated_in", source=", ".join(figure.source)).text()
    code = f"note.{path}"
    return Message.of(code).text() if texts(DEFAULT).get(code) == figure.note else figure.note


@dataclass(slots=True)
class Ledger:
    """Look up figures of one catalog, and record those used and those assumed."""

    catalog: Catalog
    prices: PriceLevels | None = None  # at which of its figures each price counts
    citations: dict[str, Citation] = field(default_factory=dict)
    assumptions: dict[str, Assumption] = field(default_factory=dict)
    compared: set[str] = field(default_factory=set)  # paths of figures that were looked at and lost to others

    def figure(self, kind: str, name: str, figure: str) -> Figure:
        """Return a figure at the price level that counts, and book it. Raises MissingFigure."""
        record = self.catalog.get(kind, name)
        try:
            typical = record.figure(figure)
        except MissingFigure as error:
            raise self._with_similar(error, record) from None
        way, level = self._level(record, figure)
        found = at_level(typical, level)
        path = f"{kind}/{record.name}/{figure}"
        self.citations.setdefault(path, Citation(path, found))
        stated = origin_of(path, found)
        if way is not None and level != TYPICAL:
            self.assume(
                path,
                found.printed,
                found.unit,
                level_note(typical, level, stated if found.kind == "override" else ""),
                *scope_of(record, way),
            )
        elif found.kind == "override":
            self.assume(path, found.printed, found.unit, stated)
        return found

    def _with_similar(self, error: MissingFigure, record: Record) -> MissingFigure:
        """Suggest the figure of the record that is most like the one which lacks it; of a network none, as no shape is a guess at another's."""
        if record.kind == "architectures":
            return error
        other = most_similar(record, self.catalog.records(record.kind), error.figure)
        if other is None:
            return error
        figure = other.figure(error.figure)
        example = (figure.printed or show(figure.number, figure.unit)).removesuffix(" 1")
        return MissingFigure(error.kind, error.name, error.figure, example, other.name)

    def priced(self, record: Record) -> Record:
        """Return the record with its prices at the levels that count, to be compared with others: they are not booked."""
        self.compared.update(f"{record.kind}/{record.name}/{name}" for name in record.figures)
        if self.prices is None or not self.prices.moved:
            return record
        return replace(
            record,
            figures={name: at_level(figure, self._level(record, name)[1]) for name, figure in record.figures.items()},
        )

    def _level(self, record: Record, figure: str) -> tuple[str | None, str]:
        """Return (way to obtain, level) of a figure; the way is None for a figure that is no price."""
        if self.prices is None or (way := way_of(record, figure)) is None:
            return None, TYPICAL
        return way, self.prices.of(way)

    def value(self, kind: str, name: str, figure: str) -> float:
        """Return the value of a figure, and book it. Raises MissingFigure."""
        return self.figure(kind, name, figure).number

    def optional(self, kind: str, name: str, figure: str) -> float | None:
        """Return the value of a figure, booked; None where the catalog has none."""
        return None if self.catalog.get(kind, name).get(figure) is None else self.value(kind, name, figure)

    def default(self, name: str, path: str, reason: str, *scope: tuple[str, str, str]) -> float:
        """Return a default of the catalog (kind `assumed`), booked as an assumption at `path`."""
        figure = self.figure("defaults", name, "value")
        self.assume(path, figure.printed, figure.unit, reason, *scope)
        return figure.number

    def assume(self, path: str, value: float | str, unit: str, reason: str, *scope: tuple[str, str, str]) -> None:
        """Book an assumption; the first one at a path stays."""
        self.assumptions.setdefault(path, Assumption(path, value, unit, reason, tuple(scope)))
