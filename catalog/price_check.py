"""Check the prices of the catalog: prices of electricity without stated contents, and prices that contradict each other.

Not here: whether a price lies in the range of its kind (`catalog.plausibility`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from catalog.contents import INCLUDED, PRICES, SEPARATE, WHOLE, contents_key, contents_of
from catalog.exchange import usd_of_one
from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.records import Record
from catalog.units import is_money

UNSTATED = "contents are not stated"
APART = 1.25  # two figures of one price contradict each other beyond this ratio
KINDS = ("regions", "tariffs", "defaults")


@dataclass(frozen=True, slots=True)
class PriceFault:
    """A fault of a price: its place in the catalog, what it is, the figure as printed, and its date."""

    path: str
    fault: str
    value: str
    date: str


def price_faults(catalog: Catalog) -> list[PriceFault]:
    """List the faults of all prices of a catalog."""
    records = [record for kind in KINDS for record in catalog.records(kind)]
    return [*_unstated(records), *_regions_at_odds(catalog), *_offers_at_odds(catalog)]


def _unstated(records: Iterable[Record]) -> Iterator[PriceFault]:
    """Yield the prices of electricity without a statement of what they hold."""
    for record in records:
        for key in PRICES.get(record.kind, ()):
            if not record.words(contents_key(key)):
                for name in _of_energy(record, key):
                    yield _fault(record, name, UNSTATED)


def _of_energy(record: Record, key: str) -> list[str]:
    """Name the prices per energy of a record that a statement covers."""
    if key:
        return [key] if key in record.figures else []
    if record.kind == "tariffs":
        return [name for name in record.figures if name.startswith("price_")]
    return [
        name
        for name, figure in record.figures.items()
        if is_money(figure.unit) and record.name.endswith("electricity_price")
    ]


def _regions_at_odds(catalog: Catalog) -> Iterator[PriceFault]:
    """Yield the regions of which two figures for the same contents differ: the flat price and the day, and the sum and the average of industry."""
    for region in catalog.records("regions"):
        known = {name: _usd(catalog, region.figures[name]) for name in PRICES["regions"] if name in region.figures}
        sums: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
        for name in ("electricity_price", "price_profile", "electricity_industrial"):
            if name not in known:
                continue
            states = contents_of(region, name)
            sums[tuple(states.values())][name] = known[name]
            on_top = contents_of(region, "electricity_delivery")
            whole = all(INCLUDED in (states[part], on_top[part]) for part in WHOLE)
            if "electricity_delivery" in known and states["delivery"] == SEPARATE and whole:
                sums[tuple(WHOLE.values())][f"{name} with delivery"] = known[name] + known["electricity_delivery"]
        for same in sums.values():
            low, high = min(same, key=same.__getitem__), max(same, key=same.__getitem__)
            if same[high] > APART * same[low]:
                yield _fault(region, low.partition(" ")[0], f"{high} is {same[high] / same[low]:.2f} times {low}")


def _offers_at_odds(catalog: Catalog) -> Iterator[PriceFault]:
    """Yield the cheapest offer of each system, way and region where the dearest asks more by more than a quarter."""
    groups: dict[tuple[str, ...], list[tuple[float, Record]]] = defaultdict(list)
    for offer in catalog.records("offers"):
        if (figure := offer.get("price")) is not None:
            key = *(offer.words(name) for name in ("system", "how", "region", "provider")), str(offer.get("term"))
            groups[key].append((_usd(catalog, figure), offer))
    for listed in groups.values():
        (least, low), (most, high) = min(listed, key=lambda row: row[0]), max(listed, key=lambda row: row[0])
        if most > APART * least:
            yield _fault(low, "price", f"{high.name} asks {most / least:.2f} times as much")


def _usd(catalog: Catalog, figure: Figure) -> float:
    """Return a price in US dollars, at the catalog's rate; the mean of a day."""
    number = fmean(figure.value) if isinstance(figure.value, tuple) else figure.number
    return number * (usd_of_one(catalog, figure) or 1.0)


def _fault(record: Record, name: str, fault: str) -> PriceFault:
    figure = record.figures[name]
    return PriceFault(f"{record.kind}/{record.name}/{name}", fault, figure.printed, figure.date or "")
