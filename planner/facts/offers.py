"""Compare the offers of the catalog with each other and with today: rents of newer chips below older ones, and figures that are old."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from catalog.dates import age_months
from catalog.exchange import usd_of_one
from catalog.lookup import Catalog
from catalog.records import Record
from catalog.schemas import SCHEMAS
from catalog.units import is_money, show
from planner.facts import Fact
from planner.facts.prices import BUY
from planner.facts.ranges import listed
from planner.messages import Message

OLD_MONTHS = 18
STRENGTHS = ("bf16_flop_per_s", "hbm_bytes", "hbm_bytes_per_s")


@dataclass(frozen=True, slots=True)
class Rent:
    """What an offer asks for one chip [USD/s]."""

    offer: Record
    chip: Record
    per_chip: float

    @property
    def seller(self) -> tuple[str, ...]:
        """Who may be compared: chips of one vendor, one way to rent, and one provider in one of its regions; the market is one provider."""
        words = self.offer.words
        provider = words("provider") if words("region") else ""
        return (self.chip.words("vendor"), words("how"), words("zone"), provider, words("provider_region"))

    def should_cost_more_than(self, other: Rent) -> bool:
        """Tell whether the chip came out in a later year, and is nowhere weaker: rate of 16 bit, memory, bandwidth."""
        if not self.chip.words("year") > other.chip.words("year"):
            return False
        pairs = [(self.chip.get(name), other.chip.get(name)) for name in STRENGTHS]
        return all(mine is not None and old is not None and mine.number >= old.number for mine, old in pairs)


@lru_cache(maxsize=4)
def below_older(catalog: Catalog) -> dict[str, tuple[Rent, Rent]]:
    """Find each rent below the rent of an older chip of the same vendor that is nowhere stronger: (rent, dearest of these), by name of the offer.

    Source: the offers of the catalog themselves. Such a pair is rare in a market, so that one of the two figures is likely to be of another year.
    """
    sellers: dict[tuple[str, ...], list[Rent]] = defaultdict(list)
    for rent in _rents(catalog):
        sellers[rent.seller].append(rent)
    found = {}
    for rents in sellers.values():
        for rent in rents:
            older = [other for other in rents if rent.should_cost_more_than(other) and rent.per_chip < other.per_chip]
            if older:
                found[rent.offer.name] = rent, max(older, key=lambda other: other.per_chip)
    return found


def rent_below_older(path: str, rent: Rent, older: Rent) -> Fact:
    """Name a rent that lies below the rent of an older and weaker chip."""
    price, other = rent.offer.figure("price"), older.offer.figure("price")
    message = Message.of(
        "market.below_older", offer=rent.offer.name, per_chip=show(rent.per_chip, "USD/chip s"), date=price.date or "?",
        older=older.offer.name, older_per_chip=show(older.per_chip, "USD/chip s"), older_date=other.date or "?",
    )  # fmt: skip
    return Fact(path, message, listed(other.source))


def old_prices(catalog: Catalog, now: str) -> Iterator[tuple[str, int | None]]:
    """Yield (path, age in months, None without a date) of each price of the catalog that is older than a year and a half, or undated."""
    for kind in SCHEMAS:
        for record in catalog.records(kind):
            for name, figure in record.figures.items():
                age = age_months(figure.date, now)
                if is_money(figure.unit) and (age is None or age > OLD_MONTHS):
                    yield f"{kind}/{record.name}/{name}", age


def _rents(catalog: Catalog) -> Iterator[Rent]:
    for offer in catalog.records("offers"):
        price = offer.get("price")
        if price is not None and offer.words("how") != BUY and (usd := usd_of_one(catalog, price)) is not None:
            system = catalog.get("systems", offer.words("system"))
            yield Rent(offer, catalog.get("chips", system.words("chip")), price.number * usd / system.value("chips"))
