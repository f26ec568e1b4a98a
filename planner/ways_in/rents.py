"""Guess the rent of a cloud's instance: the catalog's price on demand of the instance, else of others with its chip."""

from __future__ import annotations

from statistics import median

from catalog.lookup import Catalog
from catalog.records import Record
from catalog.units import HOUR_S
from planner.ways_in.accelerators import CLOUDS

DIGITS = 4


def is_cloud_instance(system: str) -> bool:
    """Tell an instance of a cloud, which is rented, from a server, which may be owned."""
    return system.startswith(CLOUDS)


def usual_rent(system: str, region: str, catalog: Catalog) -> str:
    """Return the rent on demand of one instance: in the region, else the median of all regions, else the median per chip of others with its chip.

    Empty where the catalog has no rent of the chip.
    """
    offers = [offer for offer in catalog.records("offers") if offer.words("how") == "on_demand" and offer.get("price")]
    own = [offer for offer in offers if offer.words("system") == system]
    here = [offer for offer in own if offer.words("region") == region]
    if found := here or own:
        return _written(median(_hourly(offer) for offer in found), found[0])
    record = catalog.get("systems", system)
    alike = [offer for offer in offers if _chip(offer, catalog) == record.words("chip") and _unit(offer) == "USD"]
    if not alike:
        return ""
    each = [_hourly(offer) / catalog.get("systems", offer.words("system")).value("chips") for offer in alike]
    return _written(median(each) * record.value("chips"), alike[0])


def _hourly(offer: Record) -> float:
    return offer.figure("price").number * HOUR_S


def _unit(offer: Record) -> str:
    return offer.figure("price").unit[:3]


def _chip(offer: Record, catalog: Catalog) -> str:
    return catalog.get("systems", offer.words("system")).words("chip")


def _written(price: float, offer: Record) -> str:
    return f"{price:.{DIGITS}g} {_unit(offer)}/h"
