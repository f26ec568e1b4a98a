"""Resolve the systems that are owned already, as offers of them at what they are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from catalog.units import YEAR_S
from planner.facts.clouds import cloud_owned
from planner.messages import Message
from planner.problem.economics import Economics
from planner.problem.facts import OfferFacts, PhaseFacts, SiteFacts
from planner.problem.owned import OwnedFacts
from planner.resolve.context import ResolveContext
from planner.resolve.systems import least_prices
from planner.spec.economics import OwnedSystems


def resolve_owned(
    context: ResolveContext, sites: Sequence[SiteFacts], phases: Sequence[PhaseFacts]
) -> list[OfferFacts]:
    """Resolve each entry of `owned` as an offer at its price when new; what it is worth is added by `with_worth`."""
    found = []
    for i, entry in enumerate(context.spec.owned):
        path = f"owned[{i}]"
        system = context.find("systems", entry.system, f"{path}.system")
        region = context.find("regions", entry.region, f"{path}.region")
        if system is None or region is None:
            continue
        if (rents_only := cloud_owned(f"{path}.system", system)) is not None:
            context.add_fact(rents_only)
            continue
        home = next((site for site in sites if site.region == region.name), None)
        if home is None:
            context.add_problem(f"{path}.region", Message.of("resolve.not_a_site").text())
            continue
        if entry.topology is not None and entry.topology not in home.topologies:
            context.add_problem(
                f"{path}.topology", Message.of("resolve.not_a_topology", names=", ".join(home.topologies)).text()
            )
            continue
        here = [site for site in sites if site is home or entry.movable]
        found.append(_offer(context, path, entry, system.name, home, here, phases))
    return found


def _offer(
    context: ResolveContext, path: str, entry: OwnedSystems, system: str, home: SiteFacts, here: Sequence[SiteFacts],
    phases: Sequence[PhaseFacts],
) -> OfferFacts:  # fmt: skip
    """Resolve one entry."""
    scope = "systems", "*", system
    if entry.price is None:
        known = least_prices(context, system, "buy", [home])
        if not known:
            context.add_problem(f"{path}.price", Message.of("resolve.owned_price_unknown", system=system).text())
        price = known.get(home.region, 0.0)
    else:
        price = context.convert(entry.price, path=f"{path}.price")
        context.assume_stated(f"{path}.price", *entry.price, scope)
    move = entry.move_cost
    if move is None:
        reason = Message.of("resolve.move_cost").text()
        move = context.ledger.default("relocation_fraction", f"{path}.move_cost", reason, scope)
    else:
        context.assume_stated(f"{path}.move_cost", move, "1", scope)
    context.assume_stated(f"{path}.age", entry.age, "s", scope)
    worth = None if entry.resale is None else context.convert(entry.resale, path=f"{path}.resale")
    leased = entry.lease_end is not None
    if entry.lease_end is not None:
        context.assume_stated(f"{path}.lease_end", entry.lease_end, "s", scope)
    if entry.move_time:
        context.assume_stated(f"{path}.move_time", entry.move_time, "s", scope)
    if entry.resale is not None:
        context.assume_stated(f"{path}.resale", *entry.resale, scope)
    book = None if entry.book_value is None else context.convert(entry.book_value, path=f"{path}.book_value")
    share = 0.0 if leased else -1.0 if worth is None or not price else worth / price
    until_s = math.inf if entry.lease_end is None else entry.lease_end
    facts = OwnedFacts(
        home.region, entry.age / YEAR_S, share, move, entry.topology or "", book, entry.move_time, until_s
    )
    supply = (math.inf, *(0.0 for _ in phases[1:])) if phases else ()  # all are there at the start
    prices = {site.region: price for site in here}
    return OfferFacts(path, system, "buy", prices, float(entry.count), phase_supply=supply, owned=facts)


def with_worth(offers: Sequence[OfferFacts], money: Economics) -> list[OfferFacts]:
    """Add what owned systems are worth by their age where the spec does not state it."""
    return [
        offer
        if offer.owned is None or offer.owned.worth >= 0
        else replace(offer, owned=replace(offer.owned, worth=money.residual_of(offer.system).at(offer.owned.age_years)))
        for offer in offers
    ]
