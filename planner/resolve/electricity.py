"""Resolve a site's electricity: connection, demand charge, contracts, batteries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from catalog.records import Record
from catalog.units import YEAR_S
from models.economics import horizon_share
from models.energy.solar import sine_of_elevation, with_mean
from planner.errors import Problem, SpecError
from planner.problem.calendar import Clock
from planner.problem.electricity import ContractFacts, ElectricityFacts, StorageFacts
from planner.problem.price_levels import stated_level
from planner.resolve.ledger import Ledger
from planner.spec.electricity import TARIFF, Battery, Electricity, PowerPurchase, Profile, Series
from planner.spec.series import at_instants

Money = Callable[[float, str], float]


def electricity_facts(
    block: Electricity | None, region: Record, ledger: Ledger, convert: Money, path: str, clock: Clock, series: Mapping[str, Series],
    rate: float, years: int, life_years: float, tariff: str | None = None,
) -> ElectricityFacts | None:  # fmt: skip
    """The block with its series read and its prices converted; None without a block."""
    if block is None:
        return None
    path = f"{path}.electricity"
    charge = block.demand_charge
    if charge == TARIFF:
        if tariff is None:
            raise SpecError(
                [
                    Problem(
                        f"{path}.demand_charge",
                        'the site has no "tariff"; name one, or state an amount such as "15 USD/kW-month"',
                    )
                ]
            )
        figure = ledger.figure("tariffs", tariff, "demand_charge")
        charge = figure.number, figure.unit[:3]
    elif charge is not None:
        amount, currency = charge
        ledger.assume(
            f"{path}.demand_charge",
            amount,
            f"{currency}/W s",
            "stated in the spec" + stated_level(ledger.prices, f"{path}.demand_charge", "electricity"),
            ("demand charge", region.name, "*"),
        )
    contracts = [
        _contract(c, region, ledger, convert, f"{path}.ppa[{i}]", clock, series) for i, c in enumerate(block.ppa)
    ]
    storage = (
        None
        if block.battery is None
        else _storage(block.battery, region, ledger, convert, f"{path}.battery", rate, years, life_years)
    )
    return ElectricityFacts(
        path=path,
        timezone=region.text["timezone"],
        connection_w=math.inf if block.connection is None else block.connection,
        demand_charge=0.0 if charge is None else convert(*charge),
        contracts=tuple(contracts),
        storage=storage,
    )


def _contract(
    contract: PowerPurchase,
    region: Record,
    ledger: Ledger,
    convert: Money,
    path: str,
    clock: Clock,
    series: Mapping[str, Series],
) -> ContractFacts:
    amount, currency = contract.price
    ledger.assume(
        f"{path}.price",
        amount,
        f"{currency}/J",
        "stated in the spec" + stated_level(ledger.prices, f"{path}.price", "electricity"),
        ("ppa", region.name, "*"),
    )
    return ContractFacts(
        path=path,
        name=contract.name,
        least_w=contract.least or 0.0,
        upper_w=contract.capacity,
        price_per_j=convert(amount, currency),
        pays_produced=contract.pays == "produced",
        share=_share(contract, region, ledger, path, clock, series),
        carbon_kg_per_j=contract.carbon,
    )


def _share(
    contract: PowerPurchase, region: Record, ledger: Ledger, path: str, clock: Clock, series: Mapping[str, Series]
) -> np.ndarray:
    profile = contract.profile
    if isinstance(profile, Profile):
        return _read(profile, path, clock, series)
    if profile == "flat":
        return np.full(clock.hours, 1.0 if contract.capacity_factor is None else contract.capacity_factor)
    mean = contract.capacity_factor
    if mean is None:
        mean = ledger.default(
            "solar_capacity_factor", f"{path}.capacity_factor", "not stated in the spec", ("ppa", region.name, "*")
        )
    latitude, longitude = (ledger.value("regions", region.name, name) for name in ("latitude", "longitude"))
    ledger.assume(
        f"{path}.profile",
        "solar",
        "",
        "height of the sun in a clear sky: no weather, so no dark days",
        ("ppa", region.name, "*"),
    )
    instants = clock.instants()
    days, hours = (np.array(list(values)) for values in zip(*((m.timetuple().tm_yday, m.hour + 0.5) for m in instants)))
    return clock.fold(with_mean(sine_of_elevation(latitude, longitude, days, hours), mean))


def _read(profile: Profile, path: str, clock: Clock, series: Mapping[str, Series]) -> np.ndarray:
    given = series.get(profile.file)
    wrong = lambda message: SpecError([Problem(f"{path}.profile", message)])
    if given is None:
        raise wrong(
            f'"{profile.file}" lies neither beside the spec nor in a folder given by --hourly; add --hourly DIR'
        )
    if profile.column not in given.columns:
        raise wrong(f'{profile.file} has no column "{profile.column}"; it has {", ".join(given.columns)}')
    try:
        share = at_instants(given.start, given.columns[profile.column], clock.instants(), profile.fill is not None)
    except ValueError as error:
        raise wrong(f"{profile.file}, {profile.column}: {error}") from None
    if share.min() < 0 or share.max() > 1:
        raise wrong(f"{profile.file}, {profile.column}: expected outputs over capacity, from 0 to 1")
    return clock.fold(share)


def _storage(
    battery: Battery,
    region: Record,
    ledger: Ledger,
    convert: Money,
    path: str,
    rate: float,
    years: int,
    life_years: float,
) -> StorageFacts:
    for name in ("energy_price", "power_price"):
        if (stated := getattr(battery, name)) is not None:
            ledger.assume(
                f"{path}.{name}",
                stated[0],
                f"{stated[1]}/{'J' if name == 'energy_price' else 'W'}",
                "stated in the spec",
                ("battery", region.name, "*"),
            )
    if battery.life is None:
        ledger.assume(
            f"{path}.life",
            life_years,
            "year",
            "not stated in the spec: as long as the systems",
            ("battery", region.name, "*"),
        )
    if "round_trip" not in battery.model_fields_set:
        ledger.assume(f"{path}.round_trip", battery.round_trip, "1", "not stated in the spec")
    share = float(horizon_share(rate, life_years if battery.life is None else battery.life / YEAR_S, years))
    given = battery.sizing == "given"
    per_j = convert(*battery.energy_price)
    per_w = 0.0 if battery.power_price is None else convert(*battery.power_price)
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
    )
