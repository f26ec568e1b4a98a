"""Program data and terms of electricity: the meters of sites, and the months over which a peak is charged.

Not here: what stands at a meter (`planner.problem.electricity`), and its rows and columns (`solvers.model.electricity`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from catalog.units import HOUR_S, MONTH_S, YEAR_S
from models.arrays import Bools, Floats, Ints
from planner.formulate.costs import Rates
from planner.formulate.functionals import Functionals
from planner.money import components
from planner.money.components import CONTRACT, GRID, PEAK, POWER, STORE, TAKEN
from planner.money.terms import CARBON, COST, ENERGY, AnyTerms, Dated, Dates, Flowing, Place
from planner.problem.calendar import HOURS_PER_YEAR, Calendar
from planner.problem.electricity import ContractFacts, ElectricityFacts, peak_name, slot_prices
from planner.problem.facts import PhaseFacts, ResolvedSpec, SiteFacts
from solvers.model.block_data.electricity import Chronology, MeterData


def metered_sites(problem: ResolvedSpec) -> list[tuple[int, SiteFacts, ElectricityFacts]]:
    """List (position, site, electricity) of the sites whose electricity is a decision."""
    return [(r, site, site.electricity) for r, site in enumerate(problem.sites) if site.electricity is not None]


def meter_arrays(problem: ResolvedSpec, costs: Functionals) -> dict[str, Any]:
    """Build the fields of `PlanData` for electricity as a decision, requests that may wait and pre-empted jobs.

    All three need the order of slots; there are no fields where the problem has none of them.
    """
    calendar = problem.calendar
    waits = np.array([int(w.spec.demand.deferral // HOUR_S) for w in problem.serving], dtype=np.int64)
    meters = _meters(problem, costs) if metered_sites(problem) else None
    if meters is None and not waits.any() and not any(job.spec.preemption for job in problem.training):
        return {}
    return {
        "meters": meters,
        "wait_slots": waits if waits.any() else None,
        "order": Chronology(next=np.asarray(calendar.next, dtype=np.int64), step_s=calendar.step_s),
    }


def _meters(problem: ResolvedSpec, costs: Functionals) -> MeterData:
    """Build the data of meters, peaks, contracts and batteries."""
    calendar, metered = problem.calendar, metered_sites(problem)
    peaks = [
        (m, slots)
        for m, (_, _, facts) in enumerate(metered)
        if facts.demand_charge
        for _, slots, _ in charged_peaks(calendar, facts.timezone)
    ]
    contracts = [(m, contract) for m, (_, _, facts) in enumerate(metered) for contract in facts.contracts]
    batteries = [(m, facts.storage) for m, (_, _, facts) in enumerate(metered) if facts.storage is not None]
    return MeterData(
        meter_site=_ints(r for r, _, _ in metered),
        grid_upper_w=_floats(facts.connection_w for _, _, facts in metered),
        grid_cost=costs.of(GRID, len(metered), calendar.slots),
        peak_meter=_ints(m for m, _ in peaks),
        peak_slot=np.array([slots for _, slots in peaks], dtype=bool).reshape(-1, calendar.slots),
        peak_grid=np.array([metered[m][2].purchases_peak for m, _ in peaks], dtype=bool),
        peak_cost=costs.of(PEAK, len(peaks)),
        contract_meter=_ints(m for m, _ in contracts),
        contract_least_w=_floats(c.least_w for _, c in contracts),
        contract_upper_w=_floats(c.upper_w for _, c in contracts),
        contract_share=np.where(_financial(contracts)[:, None], 0.0, _shares(calendar, [c for _, c in contracts])),
        contract_passes=np.array([c.passes_connection for _, c in contracts], dtype=bool),
        contract_cost=costs.of(CONTRACT, len(contracts)),
        taken_cost=costs.of(TAKEN, len(contracts), calendar.slots),
        battery_meter=_ints(m for m, _ in batteries),
        battery_least_j=_floats(b.least_j for _, b in batteries),
        battery_upper_j=_floats(b.upper_j for _, b in batteries),
        battery_least_w=_floats(b.least_w for _, b in batteries),
        battery_upper_w=_floats(b.upper_w for _, b in batteries),
        battery_efficiency=_floats(b.efficiency for _, b in batteries),
        battery_energy_cost=costs.of(STORE, len(batteries)),
        battery_power_cost=costs.of(POWER, len(batteries)),
    )


def _financial(contracts: Sequence[tuple[int, ContractFacts]]) -> Bools:
    """Tell for each contract whether nothing of its plant is taken."""
    return np.array([c.is_financial for _, c in contracts], dtype=bool)


def meter_terms(problem: ResolvedSpec, rates: Rates) -> list[AnyTerms]:
    """Build the terms of one watt from the grid, of peaks, contracts and batteries; none where no electricity is a decision."""
    if not metered_sites(problem):
        return []
    return [*_grid_terms(problem, rates), *_contract_terms(problem, rates), *_battery_terms(problem, rates.dates)]


def _grid_terms(problem: ResolvedSpec, rates: Rates) -> list[AnyTerms]:
    """Build the terms of power from the grid in each slot, and of the largest power in the months for which it is charged.

    A month that a phase cuts is charged for its part in that phase.
    """
    metered, calendar = metered_sites(problem), problem.calendar
    at, places = np.arange(len(metered)), _places(site for _, site, _ in metered)
    site = _ints(r for r, _, _ in metered)
    common: dict[str, Any] = {"decision": GRID, "at": at, "places": places, "dates": rates.dates}
    common |= {"per_unit": np.ones(len(metered)), "follows": site}
    charged = [(m, facts) for m, (_, _, facts) in enumerate(metered) if facts.demand_charge]
    rises = problem.economics.escalation.electricity
    peaks = [(m, facts, s) for m, facts in charged for _, _, s in charged_peaks(calendar, facts.timezone, None, rises)]
    paid = [
        [
            paid_s * facts.demand_charge
            for _, facts in charged
            for _, _, paid_s in charged_peaks(calendar, facts.timezone, p, rises)
        ]
        for p in problem.phases
    ]
    return [
        Flowing(component=components.ENERGY.key, profile=rates.cost_per_w, **common),
        Flowing(component=components.ENERGY.carbon, functional=CARBON, profile=rates.carbon_per_w, **common),
        Flowing(
            component=components.ENERGY.key,
            functional=ENERGY,
            **common | {"profile": rates.seconds[None, :], "follows": np.zeros_like(site)},
        ),
        Dated(
            component=components.DEMAND_CHARGE.key,
            decision=PEAK,
            at=np.arange(len(peaks)),
            dates=rates.dates,
            places=_places(metered[m][1] for m, _, _ in peaks),
            worth=_floats(worth_s * facts.demand_charge for _, facts, worth_s in peaks),
            paid=np.array(paid, dtype=float).reshape(len(problem.phases), len(peaks)).T,
        ),
    ]


def _contract_terms(problem: ResolvedSpec, rates: Rates) -> list[AnyTerms]:
    """Build the terms of contracts: per watt of capacity where the output of the plant is paid, else per watt taken.

    Output that is not taken earns the market's price, of a financial contract all output: capacity costs share (price - market), and energy that is
    taken forgoes the market. Delivery and levies are due on energy that passes the connection.
    """
    found = [(site, contract) for _, site, facts in metered_sites(problem) for contract in facts.contracts]
    contracts, places = [c for _, c in found], _places(site for site, _ in found)
    produced = np.array([c.pays_produced for c in contracts], dtype=bool)
    price, carbon = _floats(c.price_per_j for c in contracts), _floats(c.carbon_kg_per_j for c in contracts)
    delivered = _floats(c.delivered_per_j for c in contracts)
    risen = problem.calendar.risen(problem.economics.escalation.electricity)
    every, slots = np.ones(len(contracts), dtype=bool), np.zeros(len(contracts), dtype=np.int64)
    last = problem.calendar.windows - 1

    def taken(name: str, rows: Bools, per_unit: Floats, profile: Floats, functional: str = COST) -> Flowing:
        return Flowing(
            component=name,
            decision=TAKEN,
            at=np.flatnonzero(rows),
            dates=rates.dates,
            per_unit=per_unit[rows],
            places=tuple(places[c] for c in np.flatnonzero(rows).tolist()),
            profile=profile,
            follows=slots[rows],
            functional=functional,
        )

    at = np.flatnonzero(produced)
    return [
        Flowing(
            component=components.PPA.key,
            decision=CONTRACT,
            at=at,
            places=tuple(places[c] for c in at.tolist()),
            dates=rates.dates,
            per_unit=price[at],
            profile=_shares(problem.calendar, contracts) * rates.worth,
            follows=at,
            windows=np.tile([0, last], (len(at), 1)),
        ),
        *(
            _market_terms(problem, rates, contracts, places)
            if any(c.market_per_j is not None for c in contracts)
            else ()
        ),
        taken(components.PPA.key, ~produced, price, rates.worth[None, :]),
        *(
            [taken(components.PPA.key, delivered > 0, delivered, (rates.worth * risen)[None, :])]
            if delivered.any()
            else []
        ),
        taken(components.PPA.carbon, every, carbon, rates.seconds[None, :], functional=CARBON),
        taken(components.PPA.key, every, np.ones(len(contracts)), rates.seconds[None, :], functional=ENERGY),
    ]


def _market_terms(
    problem: ResolvedSpec, rates: Rates, contracts: Sequence[ContractFacts], places: tuple[Place, ...]
) -> list[AnyTerms]:
    """Build the terms of contracts that are settled in a market: all output earns its price, and energy that is taken forgoes the price."""
    sold = [c for c, contract in enumerate(contracts) if contract.market_per_j is not None]
    at, here = np.array(sold), tuple(places[c] for c in sold)
    calendar, money = problem.calendar, problem.economics
    market = rates.worth * np.array(
        [slot_prices(c.market_per_j, calendar, money) for c in contracts if c.market_per_j is not None]
    )
    share = _shares(problem.calendar, [contracts[c] for c in sold])
    common: dict[str, Any] = {"component": components.PPA.key, "at": at, "places": here, "dates": rates.dates}
    common |= {"follows": np.arange(len(sold))}
    last = calendar.windows - 1
    return [
        Flowing(
            decision=CONTRACT,
            per_unit=-np.ones(len(sold)),
            profile=share * market,
            windows=np.tile([0, last], (len(sold), 1)),
            **common,
        ),
        Flowing(decision=TAKEN, per_unit=np.ones(len(sold)), profile=market, **common),
    ]


def _battery_terms(problem: ResolvedSpec, dates: Dates) -> list[AnyTerms]:
    """Build the terms of the size of batteries, which are paid when they are bought, and again after each life."""
    found = [(site, facts.storage) for _, site, facts in metered_sites(problem) if facts.storage is not None]
    places, horizon_s = _places(site for site, _ in found), float(problem.calendar.edges_s[-1])
    times = np.array(
        [[bought_in(phase, b.life_years, horizon_s) for phase in problem.phases] for _, b in found], dtype=float
    ).reshape(len(found), len(problem.phases))

    def size(decision: str, worth: Floats, capital: Floats) -> Dated:
        return Dated(
            component=components.BATTERY.key,
            decision=decision,
            at=np.arange(len(found)),
            places=places,
            dates=dates,
            worth=worth,
            capital=capital,
            phase=np.zeros(len(found), dtype=np.int64),
            paid=times * capital[:, None],
        )

    return [
        size(STORE, _floats(b.worth_per_j for _, b in found), _floats(b.capital_per_j for _, b in found)),
        size(POWER, _floats(b.worth_per_w for _, b in found), _floats(b.capital_per_w for _, b in found)),
    ]


def _shares(calendar: Calendar, contracts: Sequence[ContractFacts]) -> Floats:
    """Return the output over capacity of each contract in each slot [C, T]."""
    return np.array([c.share[calendar.hour] for c in contracts], dtype=float).reshape(-1, calendar.slots)


def _places(sites: Iterable[SiteFacts]) -> tuple[Place, ...]:
    return tuple((site.region, "", "") for site in sites)


def bought_in(phase: PhaseFacts, life_years: float, horizon_s: float) -> int:
    """Count how often something that stands from the start is bought in a phase: at first, and after each life."""
    times = np.arange(math.ceil(horizon_s / (life_years * YEAR_S) - 1e-9)) * life_years * YEAR_S
    return int(((times >= phase.start_s - 1e-6) & (times < phase.end_s - 1e-6)).sum())


def charged_peaks(
    calendar: Calendar, timezone: str, phase: PhaseFacts | None = None, escalation: float = 0.0
) -> list[tuple[str, Bools, float]]:
    """List (name, slots [T] among which the largest counts, present worth [s] of the months for which it is charged).

    With a `phase`: the seconds of these months that lie in it, undiscounted. The charge rises by `escalation` at the end of each year.

    Each month of local time, in each year of the horizon, counts for a twelfth of a year; one that the horizon cuts, for
    its part. Months with the same slots share one peak: on one typical day all months of a window are alike, and with
    several typical days a month has those that stand for one of its days.
    """
    month_of, found = calendar.months(timezone), dict[bytes, tuple[Bools, float]]()
    names: dict[bytes, list[int]] = {}
    pieces = _month_pieces(calendar, timezone)
    years = round(calendar.horizon_s / YEAR_S)
    for year in range(years):
        for month, begin, end, part in pieces:
            start, stop = year * YEAR_S + begin, year * YEAR_S + end
            touched = (calendar.edges_s[:-1] < stop - 1e-6) & (calendar.edges_s[1:] > start + 1e-6)
            slots = month_of[:, month] & touched[calendar.window]
            key = slots.tobytes()
            worth_s = MONTH_S * part * (1.0 + escalation) ** year
            if phase is None:
                worth_s *= calendar.worth_between(start, stop)
            else:
                worth_s *= max(min(stop, phase.end_s) - max(start, phase.start_s), 0.0) / (stop - start)
            found[key] = (slots, found[key][1] + worth_s if key in found else worth_s)
            names.setdefault(key, []).append(month + 1)
    return [
        (peak_name(names[key], calendar.window[slots], calendar.windows), slots, worth_s)
        for key, (slots, worth_s) in found.items()
    ]


def _month_pieces(calendar: Calendar, timezone: str) -> list[tuple[int, float, float, float]]:
    """List (month, begin, end [s from the start of the year], part of the month) by local time; the year may cut a month in two."""
    local = calendar.local_months(timezone)
    first = np.flatnonzero(np.r_[True, local[1:] != local[:-1]])
    last = np.r_[first[1:], HOURS_PER_YEAR]
    hours = np.bincount(local, minlength=12)
    return [
        (int(local[i]), float(i * HOUR_S), float(j * HOUR_S), float((j - i) / hours[local[i]]))
        for i, j in zip(first, last, strict=True)
    ]


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=float)
