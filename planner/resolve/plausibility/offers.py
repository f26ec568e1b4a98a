"""Compare offers, and systems that are owned or rented already, with known figures: prices per chip, the same entry twice, releases, ages, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from catalog.errors import UnknownName
from catalog.records import Record
from catalog.units import YEAR_S
from planner.facts import Fact, holdings
from planner.facts.exports import CHINA, UNKNOWN, export_status, unknown_status
from planner.facts.offers import below_older, rent_below_older
from planner.facts.prices import BUY, market, stated_price, worth_more_than_new
from planner.facts.ranges import Known, beyond
from planner.problem.facts import OfferFacts, SiteFacts
from planner.resolve.context import ResolveContext
from planner.spec.offers import Offer
from planner.spec.quantities import offer_price
from planner.spec.stack.components import Components

RESERVED = "reserved"
YIELDS = Known(0.2, 1.0, "20 to 40 % of the dies of Huawei's Ascend 910 (Financial Times, February 2025)")


def offer_facts(context: ResolveContext) -> Iterator[Fact]:
    """Yield conflicts with known figures in the offers of a spec, and an echo of each stated price."""
    first: dict[object, str] = {}
    for i, offer in enumerate(context.spec.offers or ()):
        path, system = f"offers[{i}]", _system(context, offer.system)
        if system is None:
            continue
        chips = system.get("chips")
        if chips is not None:
            yield from _prices(context, path, offer, system, chips.number)
            if offer.supply is not None and offer.how != "spot":
                yield from _some(
                    beyond(f"{path}.supply", "offer.supply", offer.supply * chips.number, holdings.MADE, "chip")
                )
        if offer.term is not None:
            yield from _some(beyond(f"{path}.term", "offer.term", offer.term, holdings.TERMS, "s"))
        end = context.spec.horizon.start + timedelta(days=365 * context.spec.horizon.years)
        yield from _some(holdings.before_release(path, end, system.name, _year(context, system)))
        if offer.components is not None:
            yield from _yields(f"{path}.components", offer.components)
        twin = first.setdefault(_terms(context, offer, system), path)
        if twin != path:
            yield holdings.twice(path, "offer.twice", twin)


def catalog_price_facts(context: ResolveContext) -> Iterator[Fact]:
    """Name each rent of the catalog that the plan rests on and that lies below the rent of an older chip."""
    doubtful = below_older(context.catalog)
    for path in context.ledger.citations:
        kind, _, rest = path.partition("/")
        name, _, figure = rest.rpartition("/")
        if kind == "offers" and figure == "price" and name in doubtful:
            yield rent_below_older(path, *doubtful[name])


def export_facts(context: ResolveContext, sites: Sequence[SiteFacts], offers: Sequence[OfferFacts]) -> Iterator[Fact]:
    """Note each offered system that may stand in China because no known rule bars it, where its status is unknown."""
    china = [site.region for site in sites if site.export_zone == CHINA]
    for offer in offers if context.spec.limits.export_control else ():
        system = _system(context, offer.system)
        regions = [region for region in china if region in offer.prices]
        if system is None or not regions:
            continue
        chip = context.catalog.get("chips", system.words("chip"))
        if export_status(chip) == UNKNOWN:
            yield unknown_status(offer.path, system.name, regions[0], chip)


def owned_facts(context: ResolveContext) -> Iterator[Fact]:
    """Yield conflicts with known figures in the systems that are owned."""
    life = context.catalog.get("defaults", "system_life_s").value("value") / YEAR_S
    first: dict[object, str] = {}
    for i, entry in enumerate(context.spec.owned):
        path, system = f"owned[{i}]", _system(context, entry.system)
        if system is None:
            continue
        age, year = entry.age / YEAR_S, _year(context, system)
        old = holdings.older_than_its_kind(f"{path}.age", age, context.spec.horizon.start, system.name, year)
        yield from _some(old or holdings.beyond_its_life(f"{path}.age", age, system.name, life))
        chips, rate = system.get("chips"), None if entry.price is None else context.rate(entry.price[1])
        if entry.price is not None and chips is not None and rate is not None:
            known = market(context.catalog, system, BUY)
            fact = stated_price(
                f"{path}.price", entry.price, BUY, system.name, chips.number, known and known.scaled(rate)
            )
            yield from _some(None if fact.is_echo else fact)
            for name in ("resale", "book_value"):
                worth = getattr(entry, name)
                if worth is not None and worth[1] == entry.price[1]:
                    yield from _some(worth_more_than_new(f"{path}.{name}", worth[0], entry.price[0], worth[1]))
        if chips is not None:
            yield from _some(beyond(f"{path}.count", "offer.supply", entry.count * chips.number, holdings.MADE, "chip"))
        twin = first.setdefault((system.name, entry.model_copy(update={"system": ""}).model_dump_json()), path)
        if twin != path:
            yield holdings.twice(path, "owned.twice", twin)


def rented_facts(context: ResolveContext) -> Iterator[Fact]:
    """Yield an echo of the price of each entry of rented systems, or its conflict with known rents, and entries that stand there twice."""
    first: dict[object, str] = {}
    for i, entry in enumerate(context.spec.rented):
        path, system = f"rented[{i}]", _system(context, entry.system)
        chips = None if system is None else system.get("chips")
        if system is None or chips is None:
            continue
        known = market(context.catalog, system, RESERVED)
        for name in ("price", "extension_price"):
            text = getattr(entry, name)
            price = None if text is None else offer_price(text, False, chips.number)
            if price is not None and (rate := context.rate(price[1])) is not None:
                scaled = known and known.scaled(rate)
                yield stated_price(f"{path}.{name}", price, RESERVED, system.name, chips.number, scaled)
        twin = first.setdefault((system.name, entry.model_copy(update={"system": ""}).model_dump_json()), path)
        if twin != path:
            yield holdings.twice(path, "owned.twice", twin)


def _prices(context: ResolveContext, path: str, offer: Offer, system: Record, chips: float) -> Iterator[Fact]:
    """Compare every price of an offer with the market, or echo it."""
    known = market(context.catalog, system, offer.how)
    stated = {} if offer.price is None else {f"{path}.price": offer.price}
    stated |= {f"{path}.price_by_phase.{phase}": price for phase, price in offer.price_by_phase.items()}
    for place, text in stated.items():
        price = offer_price(text, offer.how == BUY)
        rate = context.rate(price[1])
        if rate is not None:
            yield stated_price(place, price, offer.how, system.name, chips, known and known.scaled(rate))


def _yields(path: str, parts: Components) -> Iterator[Fact]:
    for name in ("die_yield", "hbm_yield", "package_yield"):
        share = getattr(parts, name)
        if share is not None:
            yield from _some(beyond(f"{path}.{name}", "component.yield", share, YIELDS, "1"))


def _terms(context: ResolveContext, offer: Offer, system: Record) -> object:
    """Return what makes two offers the same: all that they state but the note, names and prices in one spelling."""
    regions = None if offer.regions is None else tuple(sorted(_region(context, name) for name in offer.regions))
    price = (
        None
        if offer.price is None
        else tuple(f"{part:.9g}" if isinstance(part, float) else part for part in offer.amount() or ())
    )
    plain = {"system": "", "regions": None, "price": None, "note": ""}
    return system.name, regions, price, offer.model_copy(update=plain).model_dump_json()


def _region(context: ResolveContext, name: str) -> str:
    try:
        return context.catalog.get("regions", name).name
    except UnknownName:
        return name


def _system(context: ResolveContext, name: str) -> Record | None:
    """Look up a system; None for a name that is refused elsewhere."""
    try:
        return context.catalog.get("systems", name)
    except UnknownName:
        return None


def _year(context: ResolveContext, system: Record) -> int | None:
    chip = system.words("chip")
    return holdings.release_year(system, context.catalog.get("chips", chip) if chip else None)


def _some(fact: Fact | None) -> Iterator[Fact]:
    if fact is not None:
        yield fact
