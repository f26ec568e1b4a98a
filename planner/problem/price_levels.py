"""Move prices to their low, typical or high figure, as the block `prices` of a spec asks: prices of the catalog, and of the spec.

A price without the requested figure keeps its typical one, and the plan says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from catalog.figures import Figure
from catalog.records import Record
from catalog.units import is_money, show
from planner.errors import words_of
from planner.messages import Message
from planner.spec.base import first_of
from planner.spec.changes import scaled
from planner.spec.model import PlanSpec
from planner.spec.prices import PriceLevels
from planner.spec.quantities import EnergyPrice, PeakPrice, TokenPrice, offer_price

TYPICAL = "typical"
OF_KIND = {"fabrics": "fabric", "tariffs": "electricity", "wan": "egress", "lines": "lines"}
OF_FIGURE = {
    "electricity_price": "electricity",
    "price_profile": "electricity",
    "electricity_delivery": "electricity",
    "electricity_levies": "electricity",
    "construction_cost": "facility",
}
OF_DEFAULT = {
    "facility_cost": "facility",
    "internet_egress_price": "egress",
    "china_electricity_price": "electricity",
    "staff_per_power": "staff",
    "staff_per_system": "staff",
    "staff_beside_crew": "staff",
    "software_per_chip": "software",
    "software_per_system": "software",
}
STATED: dict[str, tuple[str, Any]] = {  # place of a price that the spec states: (way to obtain, how it is read); an offer says both itself
    "offers.price": ("", None), "sites.colocation": ("colocation", PeakPrice), "sites.electricity_price": ("electricity", EnergyPrice), "sites.delivery": ("electricity", EnergyPrice),
    "apis.input": ("api", TokenPrice), "apis.output": ("api", TokenPrice),
}  # fmt: skip
PER = {
    "price": "/s",
    "colocation": "/W s",
    "electricity_price": "/J",
    "delivery": "/J",
    "input": "/token",
    "output": "/token",
}  # units of prices that are stated, but of what is bought
_PLACE = re.compile(r"(\w+)\[(\d+)\]\.(\w+)")


@dataclass(frozen=True, slots=True)
class PricePlace:
    """The place of a price in a spec, such as "offers[0].price": the list, the position in it, and the key."""

    blocks: str
    position: int
    key: str

    @classmethod
    def of(cls, path: str) -> PricePlace | None:
        """Read a path; None where it does not have the form of one."""
        found = _PLACE.fullmatch(path)
        return None if found is None else cls(found[1], int(found[2]), found[3])

    @classmethod
    def known(cls, path: str) -> PricePlace:
        """Read the path of a stated price. Raises ValueError where it is none."""
        place = cls.of(path)
        if place is None or place.kind not in STATED:
            raise ValueError(Message.of("spec.no_place_of_price", path=path).text())
        return place

    @property
    def kind(self) -> str:
        """Its key in `STATED`."""
        return f"{self.blocks}.{self.key}"


Scope = tuple[tuple[str, str, str], ...]
Report = Callable[[str, str], None]  # path, message


def way_of(record: Record, name: str) -> str | None:
    """Return the key of `prices` that applies to a figure of a record; None for figures other than prices of a plan."""
    if not is_money(record.figures[name].unit):
        return None
    if record.kind == "offers":
        return record.words("how")
    if record.kind == "regions":
        return OF_FIGURE.get(name)
    return OF_DEFAULT.get(record.name) if record.kind == "defaults" else OF_KIND.get(record.kind)


def at_level(figure: Figure, level: str) -> Figure:
    """Return the figure at its low or high; unchanged where it has none."""
    number = None if level == TYPICAL else figure.low if level == "low" else figure.high
    if number is None or number == figure.number:
        return figure
    return replace(
        figure,
        value=number,
        printed=scaled(figure.printed, number / figure.number) if figure.number else show(number, figure.unit),
    )


def level_message(figure: Figure, level: str) -> Message:
    """State the level (low, typical, high) at which a price counts."""
    if (figure.low if level == "low" else figure.high) is None:
        return Message.of("price_level.unknown", level=level)
    return Message.of("price_level.known", level=level, typical=str(figure.printed))


def level_note(figure: Figure, level: str, source: str = "") -> str:
    """State in words the level (low, typical, high) at which a price counts, with its `source` where it is the user's."""
    words = level_message(figure, level).text()
    return Message.of("price_level.with_source", words=words, source=source).text() if source else words


def scope_of(record: Record, way: str) -> Scope:
    """List the cost lines that are computed from a price."""
    if record.kind == "offers":
        return (("systems" if way == "buy" else "rent", "*", record.words("system")),)
    region = record.name if record.kind == "regions" else "*"
    components = {
        "electricity": ("energy", "demand charge"),
        "egress": ("egress", "weights"),
        "lines": ("lines", "egress", "weights"),
    }
    return tuple((component, region, "*") for component in components.get(way, (way,)))


# -- prices that the spec states ---------------------------------------------------------------------------------------


def with_level(reason: str, prices: PriceLevels | None, path: str, way: str) -> str:
    """Add to a reason the level of a price that the spec states; nothing at the typical level."""
    level = TYPICAL if prices is None else prices.of(way)
    if level == TYPICAL:
        return reason
    known = None if prices is None else prices.ranges.get(path)
    is_stated = known is not None and getattr(known, level) is not None
    return Message.of(f"price_level.{'stated' if is_stated else 'not_stated'}", reason=reason, level=level).text()


def at_stated_levels(spec: PlanSpec, report: Report) -> PlanSpec:
    """Move the prices of `prices.ranges` to the figures that count; `report(path, message)` takes ranges that cannot be read."""
    if spec.prices is None:
        return spec
    for path, known in spec.prices.ranges.items():
        place, where = PricePlace.of(path), f"prices.ranges.{path}"
        if place is None or place.kind not in STATED:
            report(
                where,
                Message.of("price_level.expected_place").text(),
            )
            continue
        key, blocks, i, name = place.kind, list(getattr(spec, place.blocks) or ()), place.position, place.key
        if i >= len(blocks) or getattr(blocks[i], name) is None:
            report(where, Message.of("price_level.no_price_there").text())
            continue
        way, typical = (
            STATED[key][0] or blocks[i].how,
            blocks[i].amount() if key == "offers.price" else getattr(blocks[i], name),
        )
        levels: dict[str, Any] = {}
        for level in ("low", "high"):
            if (text := getattr(known, level)) is None:
                continue
            try:
                amount = amount_of(path, {"how": way}, text)
            except ValidationError as error:
                report(f"{where}.{level}", first_of(error))
                continue
            except ValueError as error:
                report(f"{where}.{level}", words_of(error))
                continue
            if amount[1] != typical[1] or (amount[0] > typical[0] if level == "low" else amount[0] < typical[0]):
                report(
                    f"{where}.{level}",
                    Message.of(
                        f"price_level.{'at_most' if level == 'low' else 'at_least'}", path=path, unit=typical[1]
                    ).text(),
                )
            levels[level] = text if key == "offers.price" else amount
        if (level := spec.prices.of(way)) in levels:
            blocks[i] = blocks[i].model_copy(update={name: levels[level]})
            spec = spec.model_copy(update={place.blocks: blocks})
    return spec


def stated_ranges(spec: PlanSpec) -> Iterator[tuple[str, Figure]]:
    """Yield (path, figure) of each price that the spec states with a low or a high, in its own currency."""
    for path, known in () if spec.prices is None else spec.prices.ranges.items():
        block, name, way = _stated_at(spec, path)
        number, currency = block.amount() if name == "price" else getattr(block, name)
        low, high = (
            None if text is None else amount_of(path, {"how": way}, text)[0] for text in (known.low, known.high)
        )
        unit = currency + ("" if way == "buy" else PER[name])
        yield path, Figure(number, unit, (), None, "user", "stated", low=low, high=high)


def at_times(spec: PlanSpec, path: str, times: float) -> PlanSpec:
    """Multiply the price stated at a place by `times`, and drop the ranges."""
    block, name, way = _stated_at(spec, path)
    number, currency = block.amount() if name == "price" else getattr(block, name)
    price = (
        f"{number * times:.15g} {currency}{'' if way == 'buy' else PER[name]}"
        if name == "price"
        else (number * times, currency)
    )
    place = PricePlace.known(path)
    blocks = list(getattr(spec, place.blocks))
    blocks[place.position] = block.model_copy(update={name: price})
    levels = None if spec.prices is None else spec.prices.model_copy(update={"ranges": {}})
    return spec.model_copy(update={place.blocks: blocks, "prices": levels})


def _stated_at(spec: PlanSpec, path: str) -> tuple[Any, str, str]:
    """Return (block, key, way to obtain) of the place of a price."""
    place = PricePlace.known(path)
    block = getattr(spec, place.blocks)[place.position]
    return block, place.key, STATED[place.kind][0] or block.how


def amount_of(path: str, block: Mapping[str, Any], text: str, chips: float | None = None) -> tuple[float, str]:
    """Read (amount, currency) of a price as the spec writes it at a place in a block; `chips` of a system, for one per chip. Raises ValueError."""
    kind = STATED[PricePlace.known(path).kind][1]
    return offer_price(text, block["how"] == "buy", chips) if kind is None else TypeAdapter(kind).validate_python(text)
