"""Resolve a site's electricity: connection, demand charge, contracts, batteries."""

from __future__ import annotations

import math
from datetime import date

import numpy as np

from catalog.records import Record
from catalog.units import YEAR_S
from models.arrays import Floats
from models.economics import horizon_share
from models.energy.solar import sine_of_elevation, with_mean
from planner.errors import Issue, SpecError, words_of
from planner.facts.series import another_year
from planner.messages import Message
from planner.problem.economics import Economics
from planner.problem.electricity import (
    FINANCIAL,
    GRID_CONTRACT,
    ContractFacts,
    ElectricityFacts,
    PriceContents,
    StorageFacts,
)
from planner.resolve.context import NOT_STATED, ResolveContext
from planner.resolve.money.contents import stated_demand
from planner.spec.electricity import Battery, PowerPurchase, Profile
from planner.spec.series import at_instants
from planner.spec.sites import Site


def electricity_facts(
    context: ResolveContext, site: Site, region: Record, path: str, money: Economics, contents: PriceContents
) -> ElectricityFacts | None:
    """Resolve the `electricity` block of a site, its series read and its prices converted; None without a block.

    `contents`: of the site's price, which has no demand charge beside it where it holds demand already.
    """
    block = site.electricity
    if block is None:
        return None
    path = f"{path}.electricity"
    contracts = tuple(_contract(context, c, region, f"{path}.ppa[{i}]", contents) for i, c in enumerate(block.ppa))
    due = contents.demand_by_peak or any(contract.passes_connection for contract in contracts)
    demand_charge = _demand_charge(context, site, region, path.rpartition(".")[0])
    return ElectricityFacts(
        path=path,
        timezone=region.words("timezone"),
        connection_w=math.inf if block.connection is None else block.connection,
        demand_charge=demand_charge if due else 0.0,
        contracts=contracts,
        purchases_peak=contents.demand_by_peak,
        storage=None if block.battery is None else _storage(context, block.battery, region, f"{path}.battery", money),
    )


def _demand_charge(context: ResolveContext, site: Site, region: Record, path: str) -> float:
    """Resolve the demand charge [currency per watt and second of a month]: stated, or that of the site's tariff."""
    charge, where = stated_demand(site, path)
    if charge is None:
        return 0.0
    if isinstance(charge, str):
        if site.tariff is None:
            message = Message.of("resolve.tariff_missing").text()
            raise SpecError([Issue(where, message)])
        return context.price(context.ledger.figure("tariffs", site.tariff, "demand_charge"))
    amount, currency = charge
    context.assume_price(where, "electricity", amount, f"{currency}/W s", ("demand charge", region.name, "*"))
    return context.convert((amount, currency))


def _contract(
    context: ResolveContext, contract: PowerPurchase, region: Record, path: str, contents: PriceContents
) -> ContractFacts:
    """Resolve a power purchase agreement. Raises SpecError for one that is settled in a market where the site's price is none."""
    amount, currency = contract.price
    context.assume_price(f"{path}.price", "electricity", amount, f"{currency}/J", ("ppa", region.name, "*"))
    return ContractFacts(
        path=path,
        name=contract.name,
        least_w=contract.least or 0.0,
        upper_w=contract.capacity,
        price_per_j=context.convert((amount, currency)),
        pays_produced=contract.pays == "produced",
        share=_share(context, contract, region, path),
        carbon_kg_per_j=contract.carbon,
        kind=contract.kind,
        delivered_per_j=contents.delivered_per_j if contract.kind == GRID_CONTRACT else 0.0,
        market_per_j=_settled(context, contract, path, contents),
    )


def _settled(context: ResolveContext, contract: PowerPurchase, path: str, contents: PriceContents) -> Floats | None:
    """Return what a joule that is not taken is worth in each hour: the market's price, less the fee and never below 0 where it is sold."""
    if contract.kind != FINANCIAL and contract.sale_fee is None:
        return None
    place = f"{path}.kind" if contract.kind == FINANCIAL else f"{path}.sale_fee"
    market = contents.market_per_j
    if market is None:
        raise SpecError([Issue(place, Message.of("electricity.no_market", name=contract.name).text())])
    if contract.sale_fee is None:
        return market
    amount, currency = contract.sale_fee
    context.assume_price(place, "electricity", amount, f"{currency}/J")
    return np.maximum(market - context.convert(contract.sale_fee), 0.0)


def _share(context: ResolveContext, contract: PowerPurchase, region: Record, path: str) -> Floats:
    """Compute the output of a plant over its capacity in each hour of the period."""
    profile, clock, ledger = contract.profile, context.clock, context.ledger
    if isinstance(profile, Profile):
        return _read(context, profile, region.words("timezone"), path)
    if profile == "flat":
        return np.full(clock.hours, 1.0 if contract.capacity_factor is None else contract.capacity_factor)
    mean, scope = contract.capacity_factor, ("ppa", region.name, "*")
    if mean is None:
        mean = ledger.default("solar_capacity_factor", f"{path}.capacity_factor", NOT_STATED, scope)
    latitude, longitude = (ledger.value("regions", region.name, name) for name in ("latitude", "longitude"))
    reason = Message.of("resolve.clear_sky").text()
    ledger.assume(f"{path}.profile", "solar", "", reason, scope)
    instants = clock.instants()
    days = np.array([moment.timetuple().tm_yday for moment in instants])
    hours = np.array([moment.hour + 0.5 for moment in instants])
    return clock.fold(with_mean(sine_of_elevation(latitude, longitude, days, hours), mean), region.words("timezone"))


def _read(context: ResolveContext, profile: Profile, timezone: str, path: str) -> Floats:
    """Read the output of a plant from a column of a series. Raises SpecError for a file that does not hold it."""
    given, clock = context.spec.series.get(profile.file), context.clock

    def wrong(message: str) -> SpecError:
        return SpecError([Issue(f"{path}.profile", message)])

    if given is None:
        raise wrong(Message.of("resolve.hourly_file_missing", file=profile.file).text())
    if profile.column not in given.columns:
        raise wrong(Message.of("resolve.column_missing", file=profile.file, column=profile.column).text())
    first = date.fromisoformat(given.start[:10])
    if (note := another_year(f"{path}.profile", profile.file, first, clock.start)) is not None:
        context.add_fact(note)
    try:
        share = at_instants(given.start, given.columns[profile.column], clock.instants(), profile.fill is not None)
    except ValueError as error:
        raise wrong(
            Message.of("spec.in_column", file=profile.file, column=profile.column, error=words_of(error)).text()
        ) from None
    if share.min() < 0 or share.max() > 1:
        raise wrong(Message.of("resolve.output_shares_expected", file=profile.file, column=profile.column).text())
    return clock.fold(share, timezone)


def _storage(context: ResolveContext, battery: Battery, region: Record, path: str, money: Economics) -> StorageFacts:
    """Resolve a battery: its sizes, and its prices as present values of the annuities over the horizon."""
    ledger, scope = context.ledger, ("battery", region.name, "*")
    for name, stated, unit in (("energy_price", battery.energy_price, "J"), ("power_price", battery.power_price, "W")):
        if stated is not None:
            context.assume_stated(f"{path}.{name}", stated[0], f"{stated[1]}/{unit}", scope)
    life_years = money.system_life_years if battery.life is None else battery.life / YEAR_S
    if battery.life is None:
        ledger.assume(f"{path}.life", life_years, "year", Message.of("resolve.life_as_systems").text(), scope)
    if "round_trip" not in battery.model_fields_set:
        ledger.assume(f"{path}.round_trip", battery.round_trip, "1", NOT_STATED)
    share = float(horizon_share(money.discount_rate, life_years, money.years))
    given = battery.sizing == "given"
    per_j = context.convert(battery.energy_price)
    per_w = 0.0 if battery.power_price is None else context.convert(battery.power_price)
    return StorageFacts(
        path=path,
        least_j=battery.energy if given else 0.0,
        upper_j=battery.energy,
        least_w=battery.power if given else 0.0,
        upper_w=battery.power,
        worth_per_j=per_j * share,
        worth_per_w=per_w * share,
        capital_per_j=per_j,
        capital_per_w=per_w,
        efficiency=math.sqrt(battery.round_trip),
        life_years=life_years,
    )
