"""What a system costs at each site by the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catalog.records import Record
from planner.problem.facts import SiteFacts
from planner.problem.provenance import Ledger

Money = Callable[[float, str], float]


def least_prices(ledger: Ledger, system: str, how: str, sites: Sequence[SiteFacts], convert: Money) -> dict[str, float]:
    """The least published price of the system at each site where it is offered, each at the figure that counts."""

    def price(record: Record) -> float:
        figure = ledger.priced(record).figure("price")
        return convert(figure.number, figure.unit[:3])

    records = [r for r in ledger.catalog.records("offers") if r.text["system"] == system and r.text["how"] == how]
    prices = {}
    for site in sites:
        fits = [r for r in records if r.words("region") in ("", site.region) and r.words("zone") in ("", *site.zones)]
        if fits:
            record = min(fits, key=price)
            figure = ledger.figure("offers", record.name, "price")
            prices[site.region] = convert(figure.number, figure.unit[:3])
    return prices
