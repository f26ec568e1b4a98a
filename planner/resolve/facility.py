"""Resolve the halls of sites, what systems need of them, and the assurances of a place.

The needs of a system are looked up only where a hall states a limit, so that no other plan lists them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from catalog.errors import MissingFigure
from catalog.records import Record
from planner.errors import words_of
from planner.messages import Message
from planner.problem.facility import AIR, LIQUID, OPEN, Assured, HallFacts, RackFacts
from planner.problem.facts import OfferFacts, SiteFacts, SystemFacts
from planner.resolve.context import ResolveContext
from planner.resolve.ledger import Ledger
from planner.spec.facility import COOLING, Assurance, Hall

NODE_FORMS = ("node", "node part", "cloud node", "edge")  # forms of systems that share a rack with others
RACK_FORMS = ("rack",)  # sold as one rack


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


def _cooling(record: Record, least_w: float, ledger: Ledger) -> tuple[str, ...]:
    """Return the kinds of cooling of which the system needs one; where none is published, that of racks of its power, an assumption."""
    if words := record.words("cooling"):
        return tuple(kind for kind in COOLING if kind in words)
    most = ledger.value("defaults", "air_cooled_rack_power", "value")
    cooling = AIR if least_w <= most else LIQUID
    reason = Message.of("resolve.cooling_unpublished", power=f"{most / 1000.0:g}").text()
    ledger.assume(f"systems/{record.name}/cooling", cooling, "-", reason)
    return (cooling,)
