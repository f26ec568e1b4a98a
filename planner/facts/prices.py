"""Compare the price of an offer with what the catalog knows of the same system and way to obtain, per chip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress

from catalog.errors import UnknownName
from catalog.exchange import usd_of_one
from catalog.lookup import Catalog
from catalog.records import Record
from catalog.units import show
from planner.facts import Fact
from planner.facts.ranges import Known, known_of
from planner.messages import Message

BUY = "buy"
RENTED = ("on_demand", "reserved")  # ways to rent by the time
TOKEN_PRICES = Known(0.0, 600e-6, "list price of OpenAI's o1-pro, March 2025: 600 USD for a million output tokens")


def market(catalog: Catalog, system: Record, how: str) -> Known | None:
    """Return what one chip of a system costs by a way to obtain [USD, or USD/s], from the offers of the catalog.

    Offers of the system itself, else of systems with the same chip; for a rent without any, offers of the other ways to rent it.
    """
    chip = system.words("chip")
    offers = []
    for record in catalog.records("offers"):
        with suppress(UnknownName):  # a figure of the user's may name another system for an offer
            offers.append((record, catalog.get("systems", record.words("system"))))
    of_chip = [(record, of) for record, of in offers if chip and of.words("chip") == chip]
    choices: Sequence[tuple[str, Iterable[tuple[Record, Record]]]] = (
        (f"offers of {system.name}, {how}", [pair for pair in offers if pair[1].name == system.name and pair[0].words("how") == how]),
        (f"offers of {chip}, {how}", [pair for pair in of_chip if pair[0].words("how") == how]),
        (f"offers of {chip}, rented", [pair for pair in of_chip if BUY not in (how, pair[0].words("how"))]),
    )  # fmt: skip
    for place, pairs in choices:
        priced = [
            (figure, usd / of.value("chips"))
            for record, of in pairs
            if (figure := record.get("price")) is not None and (usd := usd_of_one(catalog, figure)) is not None
        ]
        found = known_of([figure for figure, _ in priced], place, [scale for _, scale in priced])
        if found is not None:
            return found
    return None


def landlord_rents(catalog: Catalog, chip: str) -> list[float]:
    """List what each landlord of the catalog asks for one chip [USD/s], its cheapest offer on demand or reserved, in rising order.

    Who rents a fleet takes the cheapest region and server of a landlord.
    """
    cheapest: dict[str, float] = {}
    for record in catalog.records("offers"):
        price = record.get("price")
        if record.words("how") not in RENTED or price is None or not price.unit.startswith("USD/"):
            continue
        system = catalog.get("systems", record.words("system"))
        chips = system.get("chips")
        if chips is not None and system.words("chip") == chip:
            landlord = record.words("provider")
            cheapest[landlord] = min(price.number / chips.number, cheapest.get(landlord, math.inf))
    return sorted(cheapest.values())


def stated_price(path: str, price: tuple[float, str], how: str, system: str, chips: float, known: Known | None) -> Fact:
    """Echo the price of an offer per chip with the range that is known, or name the price that lies beyond the range.

    `price`: (amount, currency) of one system [currency, or currency/s]; `known`: per chip in the same currency.
    """
    amount, currency = price
    whole, unit = (currency, f"{currency}/chip") if how == BUY else (f"{currency}/s", f"{currency}/chip s")
    told = {"price": show(amount, whole), "system": system, "per_chip": show(amount / chips, unit)}
    if known is None:
        return Fact(path, Message.of("price.stated_alone", **told))
    told |= {"least": show(known.least, unit), "most": show(known.most, unit)}
    if known.holds(amount / chips):
        one = told["least"] == told["most"]
        return Fact(path, Message.of("price.stated_at" if one else "price.stated", **told))
    if chips > 1 and known.holds(amount):
        return Fact(path, Message.of("price.of_a_chip", **told, meant=show(amount, unit)), known.source)
    return Fact(path, Message.of("price.beyond", **told), known.source)


def worth_more_than_new(path: str, worth: float, new: float, currency: str) -> Fact | None:
    """Name a used system that is worth more than a new one: for less, its buyer would get a new one.

    Source: arithmetic. Both amounts in the same currency.
    """
    if new <= 0.0 or worth <= new:
        return None
    return Fact(
        path,
        Message.of("price.worth_more_than_new", worth=show(worth, currency), new=show(new, currency)),
        "arithmetic",
    )
