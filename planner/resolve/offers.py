"""Resolve the offers: the ways to obtain a system, with their prices at each site and how they change with time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.facts.clouds import cloud_bought
from planner.messages import Message
from planner.problem.facts import OfferFacts, PhaseFacts, SiteFacts
from planner.resolve.context import ResolveContext
from planner.resolve.facility import assured
from planner.resolve.money.catalog_offers import catalog_offers
from planner.resolve.money.hourly import with_hourly_terms
from planner.resolve.phases import offer_in_time
from planner.resolve.stack.components import price_of_parts
from planner.resolve.systems import EARLY_EXIT, early_exit_fee, least_prices, least_term_s, price_example
from planner.spec.offers import Offer

SOFTWARE = "software"  # what the price of an offer may include


def resolve_offers(
    context: ResolveContext, sites: Sequence[SiteFacts], phases: tuple[PhaseFacts, ...]
) -> list[OfferFacts]:
    """Resolve the spec's offers; without any, take all ways but the spot market to obtain a system that a site names."""
    if context.spec.offers is None:
        return catalog_offers(context, sites)
    offers = []
    for i, offer in enumerate(context.spec.offers):
        path = f"offers[{i}]"
        system = context.find("systems", offer.system, f"{path}.system")
        regions = context.find_all("regions", offer.regions or [], f"{path}.regions")
        if system is None or regions is None:
            continue
        if offer.how == "buy" and (rents_only := cloud_bought(f"{path}.how", system)) is not None:
            context.add_fact(rents_only)
            continue
        allowed = {region.name for region in regions}
        here = [site for site in sites if not allowed or site.region in allowed]
        prices = _prices(context, offer, path, system.name, here)
        supply = math.inf if offer.supply is None else offer.supply
        _book_terms(context, offer, path, system.name)
        term_s = _term_s(context, offer, path, system.name, here)
        facts = OfferFacts(
            path, system.name, offer.how, prices, supply, offer.least or 1, assured=assured(offer),
            term_s=term_s, exit_fee=_exit_fee(context, offer, path, system.name, term_s), with_software=SOFTWARE in offer.includes,
        )  # fmt: skip
        facts = with_hourly_terms(context, facts, offer)
        offers.append(offer_in_time(context, facts, offer, phases))
    return offers


def _prices(
    context: ResolveContext, offer: Offer, path: str, system: str, here: Sequence[SiteFacts]
) -> dict[str, float]:
    """Return the price at each site where the offer holds: the one that it states, else the catalog's least."""
    if offer.components is not None:
        parts = price_of_parts(context, offer.components, system, f"{path}.components")
        return {} if parts is None else {site.region: parts for site in here}
    amount = offer.amount()
    if amount is None or offer.price is None:
        prices = least_prices(context, system, offer.how, here)
        if not prices and here:
            context.add_problem(
                f"{path}.price",
                Message.of(
                    "resolve.offer_price_unknown",
                    way=offer.how,
                    system=system,
                    example=price_example(context, system, offer.how),
                ).text(),
            )
        return prices
    price = context.convert(amount, path=f"{path}.price")
    context.assume_price(f"{path}.price", offer.how, offer.price, "", _scope(offer, system), note=offer.note)
    return {site.region: price for site in here}


def _book_terms(context: ResolveContext, offer: Offer, path: str, system: str) -> None:
    """Book the terms of a spot offer and the prices by year and by phase as assumptions."""
    scope = _scope(offer, system)
    for term in sorted(offer.model_fields_set & {"interruption_interval", "restart", "headroom"}):
        unit = "1" if term == "headroom" else "s"
        context.assume_stated(f"{path}.{term}", getattr(offer, term), unit, scope, note=offer.note)
    if offer.price_change_per_year:
        where = f"{path}.price_change_per_year"
        context.assume_stated(where, offer.price_change_per_year, "1", scope, note=offer.note)
    for phase, price in offer.price_by_phase.items():
        context.assume_price(f"{path}.price_by_phase.{phase}", offer.how, price, "", scope, note=offer.note)


def _term_s(context: ResolveContext, offer: Offer, path: str, system: str, here: Sequence[SiteFacts]) -> float:
    """Return the least time for which systems are rented [s]: stated, or that of the catalog's price; 0 where there is none."""
    if offer.term is not None:
        context.assume_stated(f"{path}.term", offer.term, "s", note=offer.note)
        return offer.term
    return least_term_s(context, system, offer.how, here, f"{path}.term") if offer.price is None else 0.0


def _exit_fee(context: ResolveContext, offer: Offer, path: str, system: str, term_s: float) -> float:
    """Return the share of the rent for the rest of a term that is due on leaving; 0 where there is no term."""
    if term_s <= 0.0 or offer.exit_fee is None:
        return early_exit_fee(context, path, system, term_s)
    context.assume_stated(f"{path}.exit_fee", offer.exit_fee, "1", (EARLY_EXIT, "*", system), note=offer.note)
    return offer.exit_fee


def _scope(offer: Offer, system: str) -> tuple[str, str, str]:
    """Return the cost lines that an offer's price enters."""
    return "systems" if offer.how == "buy" else "rent", "*", system
