"""Compare the sites of a spec, its money and its APIs with known figures: electricity, cooling, halls, rates, prices of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from planner.facts import Fact, sites
from planner.facts.names import alike
from planner.facts.prices import TOKEN_PRICES
from planner.facts.ranges import Known, beyond, known_of
from planner.problem.facts import SiteFacts
from planner.resolve.context import ResolveContext
from planner.spec.electricity import Electricity
from planner.spec.workloads import Serving

Amount = tuple[float, str]


def site_facts(context: ResolveContext, resolved: Sequence[SiteFacts]) -> Iterator[Fact]:
    """Yield conflicts with known figures in the sites of a spec; `resolved`: with their prices by hour."""
    prices, carbon = sites.electricity_prices(context.catalog), sites.carbon_intensities(context.catalog)
    pues = sites.efficiencies(context.catalog)
    plans = context.rate(context.spec.currency)
    by_path = {site.path: site for site in resolved}
    for i, site in enumerate(context.spec.sites):
        path = f"sites[{i}]"
        yield from _some(
            _priced(
                context, f"{path}.electricity_price", "site.electricity_price", site.electricity_price, prices, "J"
            ),
            _priced(context, f"{path}.colocation", "site.hall", site.colocation, sites.HALL, "W s"),
            None if site.pue is None else beyond(f"{path}.pue", "site.pue", site.pue, pues, "1"),
            None if site.power is None else beyond(f"{path}.power", "site.power", site.power, sites.CAMPUS, "W"),
        )
        hours = by_path.get(path)
        if site.hourly is not None and hours is not None and plans is not None:
            mean = float(np.mean(hours.price_per_j))
            known = prices and prices.scaled(plans)
            place = f"{path}.hourly"
            if site.electricity_price is None and site.tariff is None:
                yield from _some(beyond(place, "site.electricity_price", mean, known, f"{context.spec.currency}/J"))
            yield from _some(beyond(place, "site.carbon", float(np.mean(hours.carbon_kg_per_j)), carbon, "kg/J"))
        if site.electricity is not None:
            yield from _electricity(context, f"{path}.electricity", site.electricity, prices, carbon)
    yield from alike(
        (f"sites[{i}].zone", site.zone) for i, site in enumerate(context.spec.sites) if site.zone is not None
    )


def _electricity(
    context: ResolveContext, path: str, bought: Electricity, prices: Known | None, carbon: Known | None
) -> Iterator[Fact]:
    """Compare contracts, demand charge and battery of a site."""
    if isinstance(bought.demand_charge, tuple):
        charges = sites.demand_charges(context.catalog, _rates(context))
        yield from _some(
            _priced(context, f"{path}.demand_charge", "site.demand_charge", bought.demand_charge, charges, "W s")
        )
    for i, contract in enumerate(bought.ppa):
        place = f"{path}.ppa[{i}]"
        yield from _some(
            _priced(context, f"{place}.price", "site.electricity_price", contract.price, prices, "J"),
            beyond(f"{place}.carbon", "site.carbon", contract.carbon, carbon, "kg/J"),
        )
        if contract.profile == "solar" and contract.capacity_factor is not None:
            yield from _some(sites.more_than_daylight(f"{place}.capacity_factor", contract.capacity_factor))
    if bought.battery is not None:
        price = bought.battery.energy_price
        yield from _some(_priced(context, f"{path}.battery.energy_price", "site.battery", price, sites.BATTERY, "J"))
    yield from alike((f"{path}.ppa[{i}].name", contract.name) for i, contract in enumerate(bought.ppa))


def money_facts(context: ResolveContext) -> Iterator[Fact]:
    """Yield conflicts with known figures in discount and exchange rates, and in prices of tokens."""
    spec, defaults = context.spec, {record.name: record for record in context.catalog.records("defaults")}
    rate = known_of([defaults["discount_rate"].figure("value")], "defaults/discount_rate")
    if spec.horizon.discount_rate is not None and rate is not None:
        upper = Known(0.0, rate.most, rate.source)
        yield from _some(beyond("horizon.discount_rate", "money.discount", spec.horizon.discount_rate, upper, "1"))
    for code, stated in spec.exchange.items():
        if (record := defaults.get(f"exchange_{code.lower()}")) is not None:
            known = known_of([record.figure("value")], f"defaults/{record.name}")
            yield from _some(
                beyond(f"exchange.{code}.per_usd", "money.exchange", stated.per_usd, known, "1", currency=code)
            )
    for i, api in enumerate(spec.apis or ()):
        yield from _tokens(context, f"apis[{i}]", api.input, api.output)
    for i, workload in enumerate(spec.workloads):
        if isinstance(workload, Serving) and (sold := workload.selling_price) is not None:
            yield from _tokens(context, f"workloads[{i}].selling_price", sold.input, sold.output)


def name_facts(context: ResolveContext) -> Iterator[Fact]:
    """Yield the names of workloads, phases and APIs, and of own records, that nobody can tell apart."""
    spec = context.spec
    yield from alike((f"workloads[{i}].name", each.name) for i, each in enumerate(spec.workloads))
    yield from alike((f"phases[{i}].name", each.name) for i, each in enumerate(spec.phases or ()))
    yield from alike((f"apis[{i}].name", each.name) for i, each in enumerate(spec.apis or ()))
    for kind, records in spec.catalog.items():
        own = {
            context.catalog.get(kind, entry["name"]).name: f"catalog.{kind}[{i}].name"
            for i, entry in enumerate(records)
        }
        others = [("the catalog", name) for name in context.catalog.names(kind) if name not in own]
        yield from (
            fact
            for fact in alike([*others, *((path, name) for name, path in own.items())])
            if fact.path in own.values()
        )


def _tokens(context: ResolveContext, path: str, *prices: Amount) -> Iterator[Fact]:
    for name, price in zip(("input", "output"), prices, strict=True):
        yield from _some(_priced(context, f"{path}.{name}", "money.tokens", price, TOKEN_PRICES, "token"))


def _priced(
    context: ResolveContext, path: str, code: str, price: Amount | None, known: Known | None, per: str
) -> Fact | None:
    """Compare a stated price with a range in US dollars, in the currency that the price is stated in."""
    rate = None if price is None else context.rate(price[1])
    if price is None or known is None or rate is None:
        return None
    return beyond(path, code, price[0], known.scaled(rate), f"{price[1]}/{per}")


def _rates(context: ResolveContext) -> dict[str, float]:
    """Return the units of every known currency for one US dollar."""
    codes = {
        name.removeprefix("exchange_").upper()
        for name in context.catalog.names("defaults")
        if name.startswith("exchange_")
    }
    return {code: rate for code in {"USD", *codes, *context.spec.exchange} if (rate := context.rate(code)) is not None}


def _some(*facts: Fact | None) -> Iterable[Fact]:
    return [fact for fact in facts if fact is not None]
