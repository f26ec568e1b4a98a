"""Prices at their low, typical or high figure, as the block `prices` of a spec asks for: those of the catalog, and those that the spec states.

A price without the figure that is asked for keeps its typical one, and is told to do so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from catalog.figures import Figure
from catalog.records import Record
from catalog.units import is_money, show
from planner.spec.changes import scaled
from planner.spec.model import PlanSpec
from planner.spec.prices import PriceLevels
from planner.spec.quantities import EnergyPrice, PeakPrice, TokenPrice, offer_price

TYPICAL = "typical"
OF_KIND = {"fabrics": "fabric", "tariffs": "electricity", "wan": "egress", "lines": "lines"}
OF_FIGURE = {"electricity_price": "electricity", "price_profile": "electricity", "construction_cost": "facility"}
OF_DEFAULT = {"facility_cost": "facility", "internet_egress_price": "egress", "china_electricity_price": "electricity"}
STATED = {  # place of a price that the spec states: (way to obtain, how it is read); an offer says both itself
    "offers.price": ("", None), "sites.colocation": ("colocation", PeakPrice), "sites.electricity_price": ("electricity", EnergyPrice),
    "apis.input": ("api", TokenPrice), "apis.output": ("api", TokenPrice),
}  # fmt: skip
PER = {
    "price": "/s",
    "colocation": "/W s",
    "electricity_price": "/J",
    "input": "/token",
    "output": "/token",
}  # units of prices that are stated, but of what is bought
_PLACE = re.compile(r"(\w+)\[(\d+)\]\.(\w+)")

Scope = tuple[tuple[str, str, str], ...]
Wrong = Callable[[str, str], None]


def way_of(record: Record, name: str) -> str | None:
    """Under which key of `prices` a figure of a record falls; None for what is no price of a plan."""
    if not is_money(record.figures[name].unit):
        return None
    if record.kind == "offers":
        return record.words("how")
    if record.kind == "regions":
        return OF_FIGURE.get(name)
    return OF_DEFAULT.get(record.name) if record.kind == "defaults" else OF_KIND.get(record.kind)


def at_level(figure: Figure, level: str) -> Figure:
    """The figure at its low or high; as it is where it has none."""
    number = None if level == TYPICAL else figure.low if level == "low" else figure.high
    if number is None or number == figure.number:
        return figure
    return replace(
        figure,
        value=number,
        printed=scaled(figure.printed, number / figure.number) if figure.number else show(number, figure.unit),
    )


def told(figure: Figure, level: str) -> str:
    """Which figure counts, in words."""
    if (figure.low if level == "low" else figure.high) is None:
        return f"no {level} figure is known: the typical one is taken"
    return f"the {level} figure; the typical one is {figure.printed}"


def scope_of(record: Record, way: str) -> Scope:
    """The cost lines that are computed from a price."""
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


def stated_level(prices: PriceLevels | None, path: str, way: str) -> str:
    """What the plan says of the figure of a stated price, beside the user's note; empty for a typical one that was asked for."""
    level = TYPICAL if prices is None else prices.of(way)
    if level == TYPICAL:
        return ""
    known = prices.ranges.get(path)
    return (
        f"; the {level} figure"
        if known is not None and getattr(known, level) is not None
        else f"; no {level} figure is stated: this one is taken"
    )


def at_stated_levels(spec: PlanSpec, wrong: Wrong) -> PlanSpec:
    """The spec with the prices of `prices.ranges` at the figures that count. What cannot be read goes to `wrong`."""
    if spec.prices is None:
        return spec
    for path, known in spec.prices.ranges.items():
        place = _PLACE.fullmatch(path)
        where, key = f"prices.ranges.{path}", f"{place[1]}.{place[3]}" if place else ""
        if key not in STATED:
            wrong(
                where,
                'expected the place of a price such as "offers[0].price", "apis[0].output", "sites[0].colocation" or "sites[0].electricity_price"; ranges of the catalog\'s prices stand under "overrides"',
            )
            continue
        blocks, i, name = list(getattr(spec, place[1]) or ()), int(place[2]), place[3]
        if i >= len(blocks) or getattr(blocks[i], name) is None:
            wrong(where, "the spec states no price there; state one, or remove the range")
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
                wrong(f"{where}.{level}", error.errors()[0]["msg"].removeprefix("Value error, "))
                continue
            except ValueError as error:
                wrong(f"{where}.{level}", str(error))
                continue
            if amount[1] != typical[1] or (amount[0] > typical[0] if level == "low" else amount[0] < typical[0]):
                wrong(
                    f"{where}.{level}",
                    f"expected {'at most' if level == 'low' else 'at least'} the price at {path}, in {typical[1]}",
                )
            levels[level] = text if key == "offers.price" else amount
        if (level := spec.prices.of(way)) in levels:
            blocks[i] = blocks[i].model_copy(update={name: levels[level]})
            spec = spec.model_copy(update={place[1]: blocks})
    return spec


def stated_ranges(spec: PlanSpec) -> Iterator[tuple[str, Figure]]:
    """(path, figure) of each price that the spec states with a low or a high, in its own currency."""
    for path, known in () if spec.prices is None else spec.prices.ranges.items():
        block, name, way = _stated_at(spec, path)
        number, currency = block.amount() if name == "price" else getattr(block, name)
        low, high = (
            None if text is None else amount_of(path, {"how": way}, text)[0] for text in (known.low, known.high)
        )
        unit = currency + ("" if way == "buy" else PER[name])
        yield path, Figure(number, unit, (), None, "user", "stated", low=low, high=high)


def at_times(spec: PlanSpec, path: str, times: float) -> PlanSpec:
    """The spec with the price stated at a place so many times as high, and no ranges."""
    block, name, way = _stated_at(spec, path)
    number, currency = block.amount() if name == "price" else getattr(block, name)
    price = (
        f"{number * times:.15g} {currency}{'' if way == 'buy' else PER[name]}"
        if name == "price"
        else (number * times, currency)
    )
    place = _PLACE.fullmatch(path)
    blocks = list(getattr(spec, place[1]))
    blocks[int(place[2])] = block.model_copy(update={name: price})
    return spec.model_copy(update={place[1]: blocks, "prices": spec.prices.model_copy(update={"ranges": {}})})


def _stated_at(spec: PlanSpec, path: str) -> tuple[Any, str, str]:
    """(block, key, way to obtain) of the place of a price."""
    place = _PLACE.fullmatch(path)
    block = getattr(spec, place[1])[int(place[2])]
    return block, place[3], STATED[f"{place[1]}.{place[3]}"][0] or block.how


def amount_of(path: str, block: Mapping[str, Any], text: str) -> tuple[float, str]:
    """(amount, currency) of a price as the spec writes it at a place in a block. Raises ValueError."""
    place = _PLACE.fullmatch(path)
    kind = STATED[f"{place[1]}.{place[3]}"][1]
    return offer_price(text, block["how"] == "buy") if kind is None else TypeAdapter(kind).validate_python(text)
