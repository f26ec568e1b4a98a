"""Put together what a price of electricity contains: no part counts twice, none that is separate is dropped, and what nobody knows is named.

The contents of a catalog price stand in its record (`catalog.contents`), the contents of a user's price in `contents` of the site. Prices by hour:
`planner.resolve.electricity_prices`.
"""

from __future__ import annotations

from catalog.contents import INCLUDED, PARTS, SEPARATE, UNKNOWN, WHOLE, contents_of, written
from catalog.figures import Figure
from catalog.records import Record
from planner.errors import Issue, SpecError
from planner.facts import Fact
from planner.messages import Message
from planner.problem.electricity import GRID_CONTRACT, PriceContents
from planner.resolve.context import ResolveContext
from planner.spec.sites import Site

MARKET = {part: INCLUDED if part == "energy" else SEPARATE for part in PARTS}
"""Contents of a user's prices by hour, unless the site states others: energy at a market's price."""


def user_contents(site: Site) -> dict[str, str]:
    """Return the contents of a price that a user states: all that is paid, but for the charges that the site states apart."""
    apart = {"delivery": site.delivery is not None, "demand": stated_demand(site, "")[0] is not None}
    return {part: SEPARATE if apart.get(part) else INCLUDED for part in PARTS}


def charges(context: ResolveContext, site: Site, region: Record, path: str, price: dict[str, str]) -> PriceContents:
    """Resolve the charges on top of a price with these contents, and book the contents of the sum. Raises SpecError for a part that would count twice."""
    of_user = {} if site.contents is None else site.contents.states()
    held = price | of_user
    delivery, also = _delivery(context, site, region, path, held)
    levies, of_levies = _levies(context, site, region, path, held, also)
    found = {part: _state(part, held, also | of_levies) for part in PARTS}
    demand, place = stated_demand(site, path)
    if demand is not None and held["demand"] != INCLUDED:
        found["demand"] = SEPARATE
    per_j, average = _industrial(context, region, found)
    reason = Message.of("electricity.contents").text()
    context.ledger.assume(f"{path}.contents", written(found), "", reason)
    paid_by_peak = held["demand"] != INCLUDED and "demand" not in also
    if demand is not None and not paid_by_peak:
        passing = site.electricity is not None and any(each.kind == GRID_CONTRACT for each in site.electricity.ppa)
        code = "demand_on_contracts" if passing else "demand_counted"
        context.add_fact(Fact(place, Message.of(f"electricity.{code}", site=region.name)))
    return PriceContents(
        tuple(found.items()),
        demand_by_peak=paid_by_peak,
        delivered_per_j=delivery + levies,
        industrial_per_j=per_j,
        industrial_source=average,
    )


def _state(part: str, held: dict[str, str], also: set[str]) -> str:
    """Return the state of a part of the sum: a separate part without a figure is unknown."""
    if held[part] == INCLUDED:
        return INCLUDED
    return SEPARATE if part in also else UNKNOWN


def stated_demand(site: Site, path: str) -> tuple[tuple[float, str] | str | None, str]:
    """Return (demand charge as the spec states it, None without one; its place in the spec)."""
    if site.electricity is not None and site.electricity.demand_charge is not None:
        return site.electricity.demand_charge, f"{path}.electricity.demand_charge"
    return None if site.contents is None else site.contents.amount("demand"), f"{path}.contents.demand"


def _delivery(
    context: ResolveContext, site: Site, region: Record, path: str, held: dict[str, str]
) -> tuple[float, set[str]]:
    """Return (charge [currency/J], parts that it covers): stated, or the region's where the price leaves it out."""
    scope = ("energy", region.name, "*")
    stated = site.delivery if site.contents is None else site.delivery or site.contents.amount("delivery")
    if stated is not None:
        place = f"{path}.delivery" if site.delivery is not None else f"{path}.contents.delivery"
        if held["delivery"] == INCLUDED:
            raise SpecError([Issue(place, Message.of("electricity.delivery_twice", site=region.name).text())])
        amount, currency = stated
        context.assume_price(place, "electricity", amount, f"{currency}/J", scope)
        return context.convert(stated), {"delivery", *_meant_too(site, held)}
    if held["delivery"] != SEPARATE or region.get("electricity_delivery") is None:
        return 0.0, set()
    figure = context.ledger.figure("regions", region.name, "electricity_delivery")
    also = {part for part, state in contents_of(region, "electricity_delivery").items() if state == INCLUDED}
    if twice := [part for part in PARTS if part in also and held[part] == INCLUDED]:
        message = Message.of("electricity.part_twice", parts=" and ".join(twice), site=region.name).text()
        raise SpecError([Issue(f"{path}.contents", message)])
    reason = Message.of("resolve.added_to_market_price", source=figure.note).text()
    context.ledger.assume(f"{path}.delivery", figure.printed, figure.unit, reason, scope)
    return context.price(figure), also


def _meant_too(site: Site, held: dict[str, str]) -> set[str]:
    """Return what a stated delivery charge covers beside delivery: all that has no figure of its own, and is not said to be unknown."""
    of_user = {} if site.contents is None else site.contents.states()
    figures = set() if site.contents is None else {part for part in of_user if site.contents.amount(part) is not None}
    apart = figures | ({"demand"} if stated_demand(site, "")[0] is not None else set())
    return {part for part in ("demand", "levies") if held[part] != INCLUDED and of_user.get(part) != UNKNOWN} - apart


def _levies(
    context: ResolveContext, site: Site, region: Record, path: str, held: dict[str, str], also: set[str]
) -> tuple[float, set[str]]:
    """Return (charge [currency/J], parts that it covers) of levies: stated, or the region's where nothing else contains them."""
    scope, place = ("energy", region.name, "*"), f"{path}.contents.levies"
    stated = None if site.contents is None else site.contents.amount("levies")
    if stated is not None:
        if "levies" in also:
            message = Message.of("electricity.part_twice", parts="levies", site=region.name).text()
            raise SpecError([Issue(place, message)])
        context.assume_price(place, "electricity", stated[0], f"{stated[1]}/J", scope)
        return context.convert(stated), {"levies"}
    if held["levies"] != SEPARATE or "levies" in also or region.get("electricity_levies") is None:
        return 0.0, set()
    figure = context.ledger.figure("regions", region.name, "electricity_levies")
    reason = Message.of("resolve.added_to_market_price", source=figure.note).text()
    context.ledger.assume(place, figure.printed, figure.unit, reason, scope)
    return context.price(figure), {"levies"}


def _industrial(context: ResolveContext, region: Record, found: dict[str, str]) -> tuple[float, str]:
    """Return (what industry pays there on average, all in [currency/J], its source); (0, "") where nothing is unknown."""
    if UNKNOWN not in found.values():
        return 0.0, ""
    kind, name, key = _average(region)
    figure = context.ledger.figure(kind, name, key)
    return context.price(figure), _source(context, figure)


def _average(region: Record) -> tuple[str, str, str]:
    """Name the record of the best average: the region's, its price where all is in it, the nation's, or the world's."""
    if region.get("electricity_industrial") is not None:
        return "regions", region.name, "electricity_industrial"
    if region.get("electricity_price") is not None and contents_of(region, "electricity_price") == WHOLE:
        return "regions", region.name, "electricity_price"
    national = region.words("export_zone") == "CN"
    return "defaults", "china_electricity_price" if national else "industrial_electricity_price", "value"


def _source(context: ResolveContext, figure: Figure) -> str:
    """Name a figure with its price, date and note, for a sentence."""
    return ", ".join(filter(None, (figure.printed, figure.date, figure.note)))
