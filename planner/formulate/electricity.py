"""The meters of a problem as arrays of the joint program, and the months over which a peak is charged.

Not here: what stands at a meter (`planner.problem.electricity`) and what is done with the arrays (`solvers.model.electricity`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catalog.units import HOUR_S, MONTH_S, YEAR_S
from models.economics import discount_factor
from planner.formulate.functionals import CAPITAL, CARBON, COST, ENERGY
from planner.problem.calendar import HOURS_PER_YEAR, Calendar
from planner.problem.electricity import peak_name
from planner.problem.facts import Problem
from solvers.model.electricity_data import Chronology, MeterData


def meter_arrays(problem: Problem) -> dict[str, Any]:
    """Fields of `PlanData` for electricity as a decision, requests that may wait and jobs that are pre-empted; none where there is nothing of these."""
    calendar = problem.calendar
    waits = np.array([int(w.spec.demand.deferral // HOUR_S) for w in problem.serving], dtype=np.int64)
    meters = _meters(problem) if any(site.electricity for site in problem.sites) else None
    if meters is None and not waits.any() and not any(job.spec.preemption for job in problem.training):
        return {}
    return {
        "meters": meters,
        "wait_slots": waits if waits.any() else None,
        "order": Chronology(next=np.asarray(calendar.next, dtype=np.int64), step_s=calendar.step_s),
    }


def _meters(problem: Problem) -> MeterData:
    calendar = problem.calendar
    site_of = [r for r, site in enumerate(problem.sites) if site.electricity is not None]
    sites = [problem.sites[r] for r in site_of]
    weight, seconds = calendar.seconds * calendar.discount, calendar.seconds
    peaks = [
        (m, slots, worth * site.electricity.demand_charge)
        for m, site in enumerate(sites)
        if site.electricity.demand_charge
        for _, slots, worth in charged_peaks(calendar, site.electricity.timezone)
    ]
    contracts = [(m, c) for m, site in enumerate(sites) for c in site.electricity.contracts]
    batteries = [(m, site.electricity.storage) for m, site in enumerate(sites) if site.electricity.storage is not None]
    share = np.array([c.share[calendar.hour] for _, c in contracts]).reshape(-1, calendar.slots)
    price = np.array([c.price_per_j for _, c in contracts])
    produced = np.array([c.pays_produced for _, c in contracts], dtype=bool)
    ints = lambda values: np.array(list(values), dtype=np.int64)
    floats = lambda values: np.array(list(values), dtype=float)
    return MeterData(
        meter_site=ints(site_of),
        grid_upper_w=floats(site.electricity.connection_w for site in sites),
        grid_cost={
            COST: np.array([site.price_per_j[calendar.hour] * weight for site in sites]),
            CARBON: np.array([site.carbon_kg_per_j[calendar.hour] * seconds for site in sites]),
            ENERGY: np.tile(seconds, (len(sites), 1)),
        },
        peak_meter=ints(m for m, _, _ in peaks),
        peak_slot=np.array([slots for _, slots, _ in peaks], dtype=bool).reshape(-1, calendar.slots),
        peak_cost={COST: floats(cost for _, _, cost in peaks)},
        contract_meter=ints(m for m, _ in contracts),
        contract_least_w=floats(c.least_w for _, c in contracts),
        contract_upper_w=floats(c.upper_w for _, c in contracts),
        contract_share=share,
        contract_cost={COST: np.where(produced, price * (share @ weight), 0.0)},
        taken_cost={
            COST: np.where(produced, 0.0, price)[:, None] * weight,
            CARBON: floats(c.carbon_kg_per_j for _, c in contracts)[:, None] * seconds,
            ENERGY: np.tile(seconds, (len(contracts), 1)),
        },
        battery_meter=ints(m for m, _ in batteries),
        battery_least_j=floats(b.least_j for _, b in batteries),
        battery_upper_j=floats(b.upper_j for _, b in batteries),
        battery_least_w=floats(b.least_w for _, b in batteries),
        battery_upper_w=floats(b.upper_w for _, b in batteries),
        battery_efficiency=floats(b.efficiency for _, b in batteries),
        battery_energy_cost={
            COST: floats(b.worth_per_j for _, b in batteries),
            CAPITAL: floats(b.capital_per_j for _, b in batteries),
        },
        battery_power_cost={
            COST: floats(b.worth_per_w for _, b in batteries),
            CAPITAL: floats(b.capital_per_w for _, b in batteries),
        },
    )


def charged_peaks(calendar: Calendar, timezone: str) -> list[tuple[str, np.ndarray, float]]:
    """(name, slots among which the largest counts [slot], present worth of a unit per second of the months that it is charged for [s]).

    Each month counts for a twelfth of a year, one that the horizon cuts for its part in it. A month by local time, in each year of the horizon. Months with the same slots are charged for the same peak: of one
    typical day all months of a window are alike, and on typical days a month has those that stand for one of its days.
    """
    month_of, found = calendar.months(timezone), {}
    names: dict[bytes, list[int]] = {}
    pieces = _month_pieces(calendar, timezone)
    years = round(calendar.horizon_s / YEAR_S)
    for year in range(years):
        for month, begin, end, part in pieces:
            start, stop = year * YEAR_S + begin, year * YEAR_S + end
            touched = (calendar.edges_s[:-1] < stop - 1e-6) & (calendar.edges_s[1:] > start + 1e-6)
            slots = month_of[:, month] & touched[calendar.window]
            key = slots.tobytes()
            worth = MONTH_S * part * float(discount_factor(calendar.discount_rate, year + 1.0))
            found[key] = (slots, found[key][1] + worth if key in found else worth)
            names.setdefault(key, []).append(month + 1)
    return [
        (peak_name(names[key], calendar.window[slots], calendar.windows), slots, worth)
        for key, (slots, worth) in found.items()
    ]


def _month_pieces(calendar: Calendar, timezone: str) -> list[tuple[int, float, float, float]]:
    """(month, begin, end [s from the start of the year], part of the month) by local time; the year may cut a month in two."""
    local = calendar.local_months(timezone)
    first = np.flatnonzero(np.r_[True, local[1:] != local[:-1]])
    last = np.r_[first[1:], HOURS_PER_YEAR]
    hours = np.bincount(local, minlength=12)
    return [(int(local[i]), i * HOUR_S, j * HOUR_S, float((j - i) / hours[local[i]])) for i, j in zip(first, last)]
