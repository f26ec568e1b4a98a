"""Program data of electricity: the meters of sites, and the months over which a peak is charged.

Not here: what stands at a meter (`planner.problem.electricity`), and its rows and columns (`solvers.model.electricity`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.units import HOUR_S, MONTH_S, YEAR_S
from models.arrays import Bools, Floats, Ints
from models.economics import discount_factor
from planner.formulate.functionals import CAPITAL, CARBON, COST
from planner.problem.calendar import HOURS_PER_YEAR, Calendar
from planner.problem.electricity import ElectricityFacts, peak_name
from planner.problem.facts import PhaseFacts, ResolvedSpec, SiteFacts
from solvers.model.block_data.electricity import Chronology, MeterData


def metered_sites(problem: ResolvedSpec) -> list[tuple[int, SiteFacts, ElectricityFacts]]:
    """List (position, site, electricity) of the sites whose electricity is a decision."""
    return [(r, site, site.electricity) for r, site in enumerate(problem.sites) if site.electricity is not None]


def meter_arrays(problem: ResolvedSpec) -> dict[str, Any]:
    """Build the fields of `PlanData` for electricity as a decision, requests that may wait and pre-empted jobs.

    All three need the order of slots; there are no fields where the problem has none of them.
    """
    calendar = problem.calendar
    waits = np.array([int(w.spec.demand.deferral // HOUR_S) for w in problem.serving], dtype=np.int64)
    meters = _meters(problem) if metered_sites(problem) else None
    if meters is None and not waits.any() and not any(job.spec.preemption for job in problem.training):
        return {}
    return {
        "meters": meters,
        "wait_slots": waits if waits.any() else None,
        "order": Chronology(next=np.asarray(calendar.next, dtype=np.int64), step_s=calendar.step_s),
    }


def _meters(problem: ResolvedSpec) -> MeterData:
    """Build the data of meters, peaks, contracts and batteries."""
    calendar, metered = problem.calendar, metered_sites(problem)
    sites = [site for _, site, _ in metered]
    weight, seconds = calendar.seconds * calendar.discount, calendar.seconds
    peaks = [
        (m, slots, worth_s * facts.demand_charge)
        for m, (_, _, facts) in enumerate(metered)
        if facts.demand_charge
        for _, slots, worth_s in charged_peaks(calendar, facts.timezone)
    ]
    contracts = [(m, contract) for m, (_, _, facts) in enumerate(metered) for contract in facts.contracts]
    batteries = [(m, facts.storage) for m, (_, _, facts) in enumerate(metered) if facts.storage is not None]
    share = np.array([c.share[calendar.hour] for _, c in contracts]).reshape(-1, calendar.slots)
    price = np.array([c.price_per_j for _, c in contracts])
    produced = np.array([c.pays_produced for _, c in contracts], dtype=bool)
    return MeterData(
        meter_site=_ints(r for r, _, _ in metered),
        grid_upper_w=_floats(facts.connection_w for _, _, facts in metered),
        grid_cost={
            COST: np.array([site.price_per_j[calendar.hour] * weight for site in sites]),
            CARBON: np.array([site.carbon_kg_per_j[calendar.hour] * seconds for site in sites]),
        },
        peak_meter=_ints(m for m, _, _ in peaks),
        peak_slot=np.array([slots for _, slots, _ in peaks], dtype=bool).reshape(-1, calendar.slots),
        peak_cost={COST: _floats(cost for _, _, cost in peaks)},
        contract_meter=_ints(m for m, _ in contracts),
        contract_least_w=_floats(c.least_w for _, c in contracts),
        contract_upper_w=_floats(c.upper_w for _, c in contracts),
        contract_share=share,
        contract_cost={COST: np.where(produced, price * (share @ weight), 0.0)},
        taken_cost={
            COST: np.where(produced, 0.0, price)[:, None] * weight,
            CARBON: _floats(c.carbon_kg_per_j for _, c in contracts)[:, None] * seconds,
        },
        battery_meter=_ints(m for m, _ in batteries),
        battery_least_j=_floats(b.least_j for _, b in batteries),
        battery_upper_j=_floats(b.upper_j for _, b in batteries),
        battery_least_w=_floats(b.least_w for _, b in batteries),
        battery_upper_w=_floats(b.upper_w for _, b in batteries),
        battery_efficiency=_floats(b.efficiency for _, b in batteries),
        battery_energy_cost={
            COST: _floats(b.worth_per_j for _, b in batteries),
            CAPITAL: _floats(b.capital_per_j for _, b in batteries),
        },
        battery_power_cost={
            COST: _floats(b.worth_per_w for _, b in batteries),
            CAPITAL: _floats(b.capital_per_w for _, b in batteries),
        },
    )


@dataclass(frozen=True, slots=True)
class MeterPayments:
    """Payments for one unit of each decision at the meters in one phase; index sets as in `MeterData`."""

    grid: Floats  # [M, T]
    peak: Floats  # [N]
    contract: Floats  # [C]
    taken: Floats  # [C, T]
    battery_j: Floats  # [B]
    battery_w: Floats  # [B]


def meter_payments(problem: ResolvedSpec, phase: PhaseFacts, inside: Bools) -> MeterPayments:
    """Compute what one unit of each decision at the meters costs in a phase, undiscounted; `inside` [T]: its slots.

    A month that the phase cuts is charged for its part. A battery is paid when it is bought, and again after each life.
    """
    calendar, metered = problem.calendar, metered_sites(problem)
    seconds = calendar.seconds * inside
    contracts = [contract for _, _, facts in metered for contract in facts.contracts]
    batteries = [facts.storage for _, _, facts in metered if facts.storage is not None]
    share = np.array([c.share[calendar.hour] for c in contracts]).reshape(-1, calendar.slots)
    price = np.array([c.price_per_j for c in contracts], dtype=float)
    produced = np.array([c.pays_produced for c in contracts], dtype=bool)
    horizon_s = float(calendar.edges_s[-1])
    times = [bought_in(phase, b.life_years, horizon_s) for b in batteries]
    return MeterPayments(
        grid=np.array([site.price_per_j[calendar.hour] * seconds for _, site, _ in metered]),
        peak=_floats(
            paid_s * facts.demand_charge
            for _, _, facts in metered
            if facts.demand_charge
            for _, _, paid_s in charged_peaks(calendar, facts.timezone, phase)
        ),
        contract=np.where(produced, price * (share @ seconds), 0.0),
        taken=np.where(produced, 0.0, price)[:, None] * seconds,
        battery_j=_floats(n * b.capital_per_j for n, b in zip(times, batteries, strict=True)),
        battery_w=_floats(n * b.capital_per_w for n, b in zip(times, batteries, strict=True)),
    )


def bought_in(phase: PhaseFacts, life_years: float, horizon_s: float) -> int:
    """Count how often something that stands from the start is bought in a phase: at first, and after each life."""
    times = np.arange(math.ceil(horizon_s / (life_years * YEAR_S) - 1e-9)) * life_years * YEAR_S
    return int(((times >= phase.start_s - 1e-6) & (times < phase.end_s - 1e-6)).sum())


def charged_peaks(calendar: Calendar, timezone: str, phase: PhaseFacts | None = None) -> list[tuple[str, Bools, float]]:
    """List (name, slots [T] among which the largest counts, present worth [s] of the months for which it is charged).

    With a `phase`: the seconds of these months that lie in it, undiscounted.

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
            worth_s = MONTH_S * part
            if phase is None:
                worth_s *= float(discount_factor(calendar.discount_rate, year + 1.0))
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
