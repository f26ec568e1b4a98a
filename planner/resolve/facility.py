"""Resolve the halls of sites, what systems need of them, what cools systems, and the assurances of a place.

The racks of a system are looked up only where a hall states a limit, so that no other plan lists them. A stated power usage effectiveness
(PUE) is that of all systems of a site. The PUE of a hall that nobody stated is that of large halls in its climate, by what cools a system: it
follows from place and design, not from which operator publishes figures there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from catalog.errors import MissingFigure
from catalog.records import Record
from planner.errors import words_of
from planner.facts import Fact
from planner.messages import Message, enumerated, listed
from planner.problem.facility import AIR, LIQUID, OPEN, Assured, Effectiveness, HallFacts, RackFacts
from planner.problem.facts import OfferFacts, SiteFacts, SystemFacts
from planner.resolve.context import ResolveContext
from planner.resolve.ledger import Ledger
from planner.spec.facility import COOLING, Assurance, Hall
from planner.spec.sites import Site

NODE_FORMS = ("node", "node part", "cloud node", "edge")  # forms of systems that share a rack with others
RACK_FORMS = ("rack",)  # sold as one rack
MOST_NAMED = 2  # sites whose PUE a note names one by one
FIGURES = {AIR: "pue_air", LIQUID: "pue_liquid"}  # figures of a climate, by cooling of a system


def hall_facts(hall: Hall) -> HallFacts:
    """Resolve the limits of a site's hall."""
    return HallFacts(
        positions=math.inf if hall.rack_positions is None else float(hall.rack_positions),
        rack_w=math.inf if hall.rack_power is None else hall.rack_power,
        cooling=COOLING if hall.cooling is None else tuple(kind for kind in COOLING if kind in hall.cooling),
    )


def assured(block: Assurance) -> Assured:
    """Resolve the assurances of a place."""
    return Assured(block.sole_tenant, tuple(dict.fromkeys(block.audit)))


def with_racks(
    context: ResolveContext,
    systems: Mapping[str, SystemFacts],
    offers: Iterable[OfferFacts],
    sites: Sequence[SiteFacts],
) -> dict[str, SystemFacts]:
    """Add the racks of each system that can be bought for a site whose hall states a limit; one with a missing figure adds a problem."""
    limited = {site.region for site in sites if site.hall != OPEN}
    wanted = {offer.system: offer.path for offer in offers if offer.how == "buy" and limited & set(offer.prices)}
    found = dict(systems)
    for name in wanted.keys() & systems.keys():
        try:
            rack = rack_facts(context.catalog.get("systems", name), systems[name].power_w, context.ledger)
        except MissingFigure as error:
            context.add_problem(f"{wanted[name]}.system", words_of(error))
            continue
        found[name] = replace(systems[name], rack=rack)
    return found


def rack_facts(record: Record, power_w: float, ledger: Ledger) -> RackFacts:
    """Resolve the racks and the cooling of a system. Raises MissingFigure for the racks of one larger than a rack."""
    name, form = record.name, record.words("form")
    rack_w = ledger.optional("systems", name, "rack_power_w")
    stated = ledger.optional("systems", name, "racks")
    if stated is not None and stated < 1:
        in_rack, racks = max(math.floor(1 / stated), 1), 1
    elif stated is not None or form in RACK_FORMS:
        in_rack, racks = 1, math.ceil(stated or 1.0)
    elif form in NODE_FORMS:
        in_rack, racks = max(_nodes_in_rack(name, power_w, rack_w, ledger), 1), 1
    else:
        in_rack, racks = 1, math.ceil(ledger.value("systems", name, "racks"))
    shared = in_rack > 1 or form in NODE_FORMS
    least_w = power_w if shared else max(rack_w or 0.0, power_w / racks)
    return RackFacts(_cooling(record, least_w, ledger), least_w, racks, in_rack)


def _nodes_in_rack(name: str, power_w: float, rack_w: float | None, ledger: Ledger) -> int:
    """Count the nodes that a rack has room for: as the vendor fills it, else the catalog's default, an assumption."""
    if rack_w is not None:
        return round(rack_w / power_w)
    reason = Message.of("resolve.rack_nodes_unpublished").text()
    return int(ledger.default("rack_nodes", f"systems/{name}/racks", reason))


# -- cooling -----------------------------------------------------------------------------------------------------------


def effectiveness(context: ResolveContext, site: Site, region: Record, path: str) -> Effectiveness:
    """Return the PUE of a site: stated by the site or for its region, else that of its climate; the catalog's default without a climate.

    Figures of a climate are booked by `with_cooling`, where the systems are known.
    """
    ledger = context.ledger
    stated = site.pue if site.pue is not None else ledger.optional("regions", region.name, "pue")
    if stated is None and not _goes_by_climate(ledger, region):
        reason = Message.of("resolve.pue_unpublished").text()
        stated = ledger.default("pue_default", f"{path}.pue", reason, ("energy", region.name, "*"))
    if stated is not None:
        return Effectiveness(stated, stated)
    climate = ledger.catalog.get("climates", region.words("climate"))
    return Effectiveness(*(climate.value(FIGURES[kind]) for kind in (AIR, LIQUID)))


def with_cooling(
    context: ResolveContext,
    systems: Mapping[str, SystemFacts],
    offers: Sequence[OfferFacts],
    sites: Iterable[SiteFacts],
) -> dict[str, SystemFacts]:
    """Add what cools each system, book the PUE of each site by climate, and say it in a note.

    Where no cooling is published, a system that is bought has that of racks of its power, an assumption; a rented one stands in air.
    """
    open_sites = [site for site in sites if _is_open(context, site)]
    found = {name: replace(system, cooling=_published(context, system)) for name, system in systems.items()}
    bought = {o.system for o in offers if o.how == "buy" and any(site.region in o.prices for site in open_sites)}
    for name, system in found.items():
        if not system.cooling:
            found[name] = replace(system, cooling=_assumed(context, system) if name in bought else (AIR,))
    booked = {site.region: pues for site in open_sites if (pues := _booked(context, site, found, offers))}
    if booked:
        context.add_fact(Fact("sites", _told(context, booked)))
    return found


def _told(context: ResolveContext, booked: Mapping[str, Mapping[str, float]]) -> Message:
    """Say the PUE of each site by cooling, or the range of more than `MOST_NAMED` sites; the assumptions have each figure."""
    if len(booked) > MOST_NAMED:
        every = [pue for pues in booked.values() for pue in pues.values()]
        return Message.of("cooling.pues", count=len(booked), low=min(every), high=max(every))
    sites = []
    for region, pues in booked.items():
        climate = context.catalog.get("regions", region).words("climate")
        each = enumerated([Message.of(f"cooling.site_{kind}", pue=pue).text() for kind, pue in pues.items()])
        sites.append(Message.of("cooling.site", region=region, climate=climate, pues=each).text())
    return Message.of("cooling.pue", sites=listed(sites))


def _is_open(context: ResolveContext, site: SiteFacts) -> bool:
    """Tell whether the PUE of a site follows from climate and cooling."""
    stated = next(given for i, given in enumerate(context.spec.sites) if site.path == f"sites[{i}]")
    region = context.catalog.get("regions", site.region)
    return stated.pue is None and region.get("pue") is None and _goes_by_climate(context.ledger, region)


def _goes_by_climate(ledger: Ledger, region: Record) -> bool:
    """Tell whether the climate of a region is known, and no default for all halls is stated in its place."""
    usual = ledger.catalog.get("defaults", "pue_default").figure("value")
    return bool(region.words("climate")) and usual.kind != "override"


def _published(context: ResolveContext, system: SystemFacts) -> tuple[str, ...]:
    """Return the kinds of cooling of which a system needs one, as published; empty where nothing is published."""
    words = context.catalog.get("systems", system.name).words("cooling")
    return tuple(kind for kind in COOLING if kind in words)


def _assumed(context: ResolveContext, system: SystemFacts) -> tuple[str, ...]:
    """Return the cooling of a system of which none is published: that of its racks."""
    if system.rack is not None:
        return system.rack.cooling
    record = context.catalog.get("systems", system.name)
    return _cooling(
        record, context.ledger.optional("systems", record.name, "rack_power_w") or system.power_w, context.ledger
    )


def _cooling(record: Record, least_w: float, ledger: Ledger) -> tuple[str, ...]:
    """Return the kinds of cooling of which the system needs one; where none is published, that of racks of its power, an assumption."""
    if words := record.words("cooling"):
        return tuple(kind for kind in COOLING if kind in words)
    most = ledger.value("defaults", "air_cooled_rack_power", "value")
    cooling = AIR if least_w <= most else LIQUID
    reason = Message.of("resolve.cooling_unpublished", power=f"{most / 1000.0:g}").text()
    ledger.assume(f"systems/{record.name}/cooling", cooling, "-", reason)
    return (cooling,)


def _booked(
    context: ResolveContext, site: SiteFacts, systems: Mapping[str, SystemFacts], offers: Sequence[OfferFacts]
) -> dict[str, float]:
    """Book the PUE of each kind of cooling that a system on offer at the site has; return the PUE of own systems by cooling.

    A rent holds what a provider pays for energy, so that the PUE of rented systems counts for energy and carbon alone.
    """
    ledger, climate = context.ledger, context.catalog.get("regions", site.region).words("climate")
    cooled: dict[str, set[str]] = {}
    own: set[str] = set()
    found: dict[str, float] = {}
    for offer in offers:
        allowed = not site.systems or offer.system in site.systems
        if allowed and site.region in offer.prices and offer.system in systems:
            kind = (site.hall if offer.how == "buy" else OPEN).cools(systems[offer.system].cooling)
            cooled.setdefault(kind, set()).add(offer.system)
            own |= {kind} if offer.how == "buy" else set()
    for kind in sorted(cooled):
        figure = ledger.figure("climates", climate, FIGURES[kind])
        reason = Message.of(f"cooling.{kind}", climate=climate).text()
        scope = [("energy", site.region, name) for name in sorted(cooled[kind])]
        ledger.assume(f"{site.path}.pue.{kind}", figure.printed, figure.unit, reason, *scope)
        if kind in own:
            found[kind] = figure.number
    return found
