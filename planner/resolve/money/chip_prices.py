"""Write the prices of offers that are stated per chip as prices per system, before anything reads them."""

from __future__ import annotations

from catalog.errors import UnknownName
from catalog.lookup import Catalog
from catalog.units import HOUR_S
from planner.problem.price_levels import PricePlace
from planner.spec.model import PlanSpec
from planner.spec.offers import Offer
from planner.spec.quantities import of_a_chip, offer_price


def per_system(spec: PlanSpec, catalog: Catalog) -> PlanSpec:
    """Multiply each price per chip of the offers, and of their `prices.ranges`, by the chips of the system; other specs stay as they are."""
    if spec.offers is None:
        return spec
    offers = [_offer(offer, catalog) for offer in spec.offers]
    changed: dict[str, object] = {"offers": offers} if offers != spec.offers else {}
    if spec.prices is not None:
        ranges = dict(spec.prices.ranges)
        for path, known in ranges.items():
            place = PricePlace.of(path)
            if place is not None and place.blocks == "offers" and place.position < len(offers):
                offer = offers[place.position]
                ends = {end: _text(text, offer, catalog) for end in ("low", "high") if (text := getattr(known, end))}
                ranges[path] = known.model_copy(update=ends)
        if ranges != spec.prices.ranges:
            changed["prices"] = spec.prices.model_copy(update={"ranges": ranges})
    return spec.model_copy(update=changed) if changed else spec


def _offer(offer: Offer, catalog: Catalog) -> Offer:
    phases = {name: _text(price, offer, catalog) for name, price in offer.price_by_phase.items()}
    price = offer.price and _text(offer.price, offer, catalog)
    if price == offer.price and phases == offer.price_by_phase:
        return offer
    return offer.model_copy(update={"price": price, "price_by_phase": phases})


def _text(price: str, offer: Offer, catalog: Catalog) -> str:
    """Write a price per chip as that of the system; any other text as it is.

    A system that the catalog does not know counts as one chip: its name is refused elsewhere.
    """
    if not of_a_chip(price):
        return price
    try:
        figure = catalog.get("systems", offer.system).get("chips")
    except UnknownName:
        figure = None
    bought = offer.how == "buy"
    amount, currency = offer_price(price, bought, 1.0 if figure is None else figure.number)
    return f"{amount:.12g} {currency}" if bought else f"{amount * HOUR_S:.12g} {currency}/h"
