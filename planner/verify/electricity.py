"""Check a plan's electricity: the balance of every hour at each meter, contracts, batteries and peaks, and their costs.

Reads the rows of the plan's `schedule` and `electricity`; shares no code with `planner.interpret.electricity` but the names of peaks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from catalog.units import HOUR_S, MONTH_S, YEAR_S
from models.arrays import Ints
from planner.messages import Message
from planner.problem.calendar import Calendar
from planner.problem.electricity import ContractFacts, ElectricityFacts, StorageFacts, peak_name
from planner.problem.facts import PhaseFacts, ResolvedSpec, SiteFacts
from planner.verify.findings import RELATIVE_TOL, ROUNDING_TOL, Report
from planner.verify.timing import TIME_TOL_S, paid_yearly, risen, risen_by_slot

OF_A_METER = ("grid_w", "ppa_w", "charge_w", "discharge_w", "stored_j")
HOURS, DAY_HOURS = 8760, 24

Row = Mapping[str, Any]


@dataclass(slots=True)
class _Contract:
    """Energy that is taken of a contract, its discounted cost, and the capacity that the plan states."""

    capacity_w: float
    taken_j: float = 0.0
    produced_j: float = 0.0
    cost: float = 0.0  # discounted: energy that is paid for and its delivery, less sales

    def add(
        self, facts: ContractFacts, hour: int, delivered_w: float, seconds: float, weight: float, risen: float
    ) -> float:
        """Add a slot of `seconds`, `weight` with the discount, `risen` prices of the grid, and return the power that the plan may take in it [W]."""
        output_w = float(facts.share[hour]) * self.capacity_w
        self.taken_j += delivered_w * seconds
        self.produced_j += output_w * seconds
        self.cost += facts.price_per_j * (output_w if facts.pays_produced else delivered_w) * weight
        self.cost += facts.delivered_per_j * delivered_w * weight * risen
        if facts.market_per_j is not None:
            self.cost -= float(facts.market_per_j[hour]) * (output_w - delivered_w) * weight * risen
        return 0.0 if facts.kind == "financial" else output_w


class ElectricityCheck:
    """Check the section `electricity`. `costs` and `carbon` by (component, site), and `drawn_j`, are computed from the rows.

    With a `phase`, `costs` are its payments: energy by the discount factors of the calendar, the rest by its dates.
    """

    def __init__(
        self, problem: ResolvedSpec, document: Mapping[str, Any], report: Report, phase: PhaseFacts | None = None
    ):
        self.phase = phase
        self.problem, self.document, self.report = problem, document, report
        self.sites = [site for site in problem.sites if site.electricity is not None]
        self.costs: dict[tuple[str, str], float] = defaultdict(float)
        self.carbon: dict[tuple[str, str], float] = defaultdict(float)
        self.drawn_j = self.capital = 0.0
        self._table: list[dict[str, Any]] = []
        self._risen = risen_by_slot(problem.calendar, problem.economics.escalation.electricity)

    def run(self, own_w: Mapping[tuple[str, int], float]) -> None:
        """Check every site; `own_w`: power of our own systems by site and slot, as computed from the plan."""
        rows = {(row["site"], row["slot"]): row for row in self.document["schedule"]}
        stated = {(row["site"], row["item"], row["name"]): row for row in self.document["electricity"]}
        if len(stated) < len(self.document["electricity"]):
            self.report.say("electricity", "verify.row_twice")
        for site in self.sites:
            if site.electricity is not None:
                hours = [rows[site.region, t] for t in range(self.problem.calendar.slots)]
                self._check_site(site, site.electricity, hours, stated, own_w)
        computed = {(row["site"], row["item"], row["name"]): row for row in self._table}
        if stated.keys() != computed.keys():
            self.report.say("electricity", "verify.electricity_rows")
            return
        for key, row in computed.items():
            self.report.equal(f"electricity {'/'.join(filter(None, key))}", stated[key], row)

    def _check_site(
        self,
        site: SiteFacts,
        meter: ElectricityFacts,
        rows: Sequence[Row],
        stated: Mapping[tuple[str, str, str], Row],
        own_w: Mapping[tuple[str, int], float],
    ) -> None:
        """Check every slot, then the totals of the meter, the contracts and the battery."""
        contracts = {c.name: _Contract(stated[site.region, "ppa", c.name]["size"]) for c in meter.contracts}
        for t, row in enumerate(rows):
            if not self._check_slot(site, meter, t, row, contracts, own_w[site.region, t]):
                return
        self._add_grid(site, rows, sum(contract.taken_j for contract in contracts.values()))
        self._add_peaks(site, meter, rows)
        for facts in meter.contracts:
            self._add_contract(site, facts, contracts[facts.name], rows)
        if meter.storage is not None:
            self._check_battery(site, meter.storage, rows, stated)

    def _check_slot(
        self,
        site: SiteFacts,
        meter: ElectricityFacts,
        t: int,
        row: Row,
        contracts: Mapping[str, _Contract],
        own_w: float,
    ) -> bool:
        """Check the balance and the limits of one slot; False if the row lacks a field."""
        path, report, calendar = f"schedule {site.region} slot {t}", self.report, self.problem.calendar
        wanted = {
            "grid_w",
            *(["ppa_w"] if meter.contracts else []),
            *(["charge_w", "discharge_w", "stored_j"] if meter.storage else []),
        }
        if {key for key in row if key in OF_A_METER} != wanted or set(row.get("ppa_w", contracts)) != set(contracts):
            report.say(path, "verify.electricity_parts", names=", ".join(sorted(wanted)))
            return False
        charge_w, discharge_w, ppa_w = row.get("charge_w", 0.0), row.get("discharge_w", 0.0), row.get("ppa_w", {})
        terms = [own_w, charge_w, -discharge_w, *(-watts for watts in ppa_w.values())]
        if not abs(row["grid_w"] - sum(terms)) <= ROUNDING_TOL * sum(map(abs, terms)):
            report.say(f"{path}.grid_w", "verify.says", given=repr(row["grid_w"]), found=repr(sum(terms)))
        parts = {"grid_w": row["grid_w"], "charge_w": charge_w, "discharge_w": discharge_w}
        for name, value in (parts | {f"ppa_w.{n}": watts for n, watts in ppa_w.items()}).items():
            if not value >= 0:
                report.say(f"{path}.{name}", "verify.negative", given=repr(value))
        over_grid = sum(ppa_w[facts.name] for facts in meter.contracts if facts.kind == "grid")
        from_grid = Message.of("verify.power_from_grid").text()
        report.at_most(path, row["grid_w"] + over_grid, meter.connection_w, from_grid)
        seconds, weight = float(calendar.seconds[t]), float(calendar.seconds[t] * calendar.discount[t])
        for facts in meter.contracts:
            hour, delivered = int(calendar.hour[t]), ppa_w[facts.name]
            output = contracts[facts.name].add(facts, hour, delivered, seconds, weight, self._risen[t])
            report.at_most(path, delivered, output, Message.of("verify.output_of", name=facts.name).text())
        return True

    def _add_grid(self, site: SiteFacts, rows: Sequence[Row], taken_j: float) -> None:
        """Add purchases from the grid at the price and carbon of each hour."""
        calendar, bought = self.problem.calendar, [row["grid_w"] for row in rows]
        energy_j = [watts * float(s) for watts, s in zip(bought, calendar.seconds, strict=True)]
        prices, carbon = site.price_per_j[calendar.hour] * self._risen, site.carbon_kg_per_j[calendar.hour]
        paid = sum(j * float(p) * float(d) for j, p, d in zip(energy_j, prices, calendar.discount, strict=True))
        emitted = sum(j * float(kg) for j, kg in zip(energy_j, carbon, strict=True))
        self.costs["energy", site.region] += paid
        self.carbon["operation", site.region] += emitted
        self.drawn_j += sum(energy_j) + taken_j
        self._add(site, "grid", "", max(bought), "W", sum(energy_j), paid, emitted)

    def _add_peaks(self, site: SiteFacts, meter: ElectricityFacts, rows: Sequence[Row]) -> None:
        """Add the demand charge of each peak."""
        for name, slots, worth in self._peaks(meter) if meter.demand_charge else ():
            peak = max(_billed_w(meter, rows[t]) for t in slots)
            cost = peak * meter.demand_charge * worth
            self.costs["demand charge", site.region] += cost
            self._add(site, "peak", name, peak, "W", None, cost, None)

    def _add_contract(self, site: SiteFacts, facts: ContractFacts, contract: _Contract, rows: Sequence[Row]) -> None:
        """Add a contract, and check its capacity: the smallest that suffices, where payment is by energy taken."""
        path, size = f"electricity {site.region}/ppa/{facts.name}", contract.capacity_w
        cost, kg = contract.cost, facts.carbon_kg_per_j * contract.taken_j
        self.costs["ppa", site.region] += cost
        self.carbon["ppa", site.region] += kg
        self._check_range(path, size, facts.least_w, facts.upper_w, Message.of("verify.capacity_contracted").text())
        if not facts.pays_produced:
            shares = [float(facts.share[int(hour)]) for hour in self.problem.calendar.hour]
            needed = [row["ppa_w"][facts.name] / share for row, share in zip(rows, shares, strict=True) if share > 0]
            self.report.equal(f"{path}.size", size, max(facts.least_w, *needed) if needed else facts.least_w)
        energy_j = contract.produced_j if facts.kind == "financial" else contract.taken_j
        self._add(site, "ppa", facts.name, size, "W", energy_j, cost, kg)

    def _add(
        self,
        site: SiteFacts,
        item: str,
        name: str,
        size: float,
        unit: str,
        energy_j: float | None,
        cost: float,
        carbon_kg: float | None,
    ) -> None:
        """Add a row to the table that the plan must state."""
        self._table.append(
            {
                "site": site.region,
                "item": item,
                "name": name,
                "size": size,
                "unit": unit,
                "energy_j": energy_j,
                "cost": cost,
                "carbon_kg": carbon_kg,
            }
        )

    def _check_range(self, path: str, value: float, least: float, most: float, what: str) -> None:
        self.report.at_most(path, value, most, what)
        if not value >= least * (1 - RELATIVE_TOL):
            self.report.say(path, "verify.less_than", what=what, value=f"{value:.9g}", least=f"{least:.9g}")

    def _check_battery(
        self, site: SiteFacts, storage: StorageFacts, rows: Sequence[Row], stated: Mapping[tuple[str, str, str], Row]
    ) -> None:
        """Check the levels of a battery through each cycle of slots, its sizes and its cost."""
        calendar, report, path = self.problem.calendar, self.report, f"electricity {site.region}/battery"
        energy_j, power_w = (stated[site.region, "battery", name]["size"] for name in ("energy", "power"))
        most, power = (Message.of(f"verify.{code}").text() for code in ("most_energy_stored", "power_of_battery"))
        self._check_range(f"{path}/energy", energy_j, storage.least_j, storage.upper_j, most)
        self._check_range(f"{path}/power", power_w, storage.least_w, storage.upper_w, power)
        for ring in slot_rings(calendar.next):
            self._check_cycle(site, storage, rows, ring, energy_j, power_w)
        # stored_j is as low as the cycle allows, so the sizes follow from the hours
        needed_j = max(storage.least_j, *(row["stored_j"] for row in rows))
        needed_w = max(storage.least_w, *(row["charge_w"] + row["discharge_w"] for row in rows))
        report.equal(f"{path}/energy.size", energy_j, needed_j)
        report.equal(f"{path}/power.size", power_w, needed_w)
        worth = energy_j * storage.worth_per_j + power_w * storage.worth_per_w
        price = energy_j * storage.capital_per_j + power_w * storage.capital_per_w
        self.costs["battery", site.region] += (
            worth if self.phase is None else price * purchases_in(self.phase, storage, self.problem.calendar.horizon_s)
        )
        self.capital += energy_j * storage.capital_per_j + power_w * storage.capital_per_w
        given_j = sum(row["discharge_w"] * float(s) for row, s in zip(rows, calendar.seconds, strict=True))
        self._add(site, "battery", "energy", energy_j, "J", given_j, energy_j * storage.worth_per_j, None)
        self._add(site, "battery", "power", power_w, "W", None, power_w * storage.worth_per_w, None)

    def _check_cycle(
        self,
        site: SiteFacts,
        storage: StorageFacts,
        rows: Sequence[Row],
        ring: Sequence[int],
        energy_j: float,
        power_w: float,
    ) -> None:
        """Check that a cycle of slots ends at the level at which it began, within the battery's energy and power."""
        report, place, efficiency = self.report, f"schedule {site.region}", storage.efficiency
        level, levels, moved = 0.0, [], 0.0
        for t in ring:
            row, step = rows[t], float(self.problem.calendar.step_s[t])
            used_w = row["charge_w"] + row["discharge_w"]
            report.at_most(f"{place} slot {t}", used_w, power_w, Message.of("verify.power_of_battery").text())
            into, out = efficiency * row["charge_w"], row["discharge_w"] / efficiency
            levels.append(level)
            moved += step * (into + out)
            level += step * (into - out)
        if not abs(level) <= ROUNDING_TOL * len(ring) * moved:
            where = f"{place} slots {ring[0]}-{ring[-1]}"
            report.say(where, "verify.battery_ends_elsewhere", level=f"{level:.9g}")
        low = min(levels)
        for t, value in zip(ring, levels, strict=True):
            report.at_most(f"{place} slot {t}", value - low, energy_j, Message.of("verify.energy_stored").text())
            if not abs(rows[t]["stored_j"] - (value - low)) <= ROUNDING_TOL * (value - low):
                where, stored = f"{place} slot {t}.stored_j", rows[t]["stored_j"]
                report.say(where, "verify.says", given=repr(stored), found=repr(value - low))

    def _peaks(self, meter: ElectricityFacts) -> list[tuple[str, list[int], float]]:
        """List (name, slots, present worth in seconds) of each peak that is paid for, month by month of local time through the horizon."""
        calendar, zone = self.problem.calendar, ZoneInfo(meter.timezone)
        begin = datetime(calendar.start.year, calendar.start.month, calendar.start.day, tzinfo=UTC)
        month = [(begin + timedelta(hours=h)).astimezone(zone).month for h in range(HOURS)]
        stands: dict[int, set[int]] = defaultdict(set)  # hour of the period -> months
        for h in range(HOURS):
            stands[int(calendar.day_of[h // DAY_HOURS]) * DAY_HOURS + h % DAY_HOURS].add(month[h])
        hours_of = {m: month.count(m) for m in set(month)}
        runs, first = [], 0
        for h in range(1, HOURS + 1):
            if h == HOURS or month[h] != month[first]:
                runs.append((month[first], first, h))
                first = h
        charged: dict[tuple[int, ...], tuple[list[int], float]] = {}
        for year in range(round(calendar.horizon_s / YEAR_S)):
            for m, start, end in runs:
                low, high = year * YEAR_S + start * HOUR_S, year * YEAR_S + end * HOUR_S
                lies_in = [
                    min(float(calendar.edges_s[w + 1]), high) - max(float(calendar.edges_s[w]), low) > TIME_TOL_S
                    for w in range(calendar.windows)
                ]
                slots = tuple(
                    t
                    for t in range(calendar.slots)
                    if lies_in[int(calendar.window[t])] and m in stands[int(calendar.hour[t])]
                )
                months, worth = charged.get(slots, ([], 0.0))
                paid = MONTH_S * (end - start) / hours_of[m] * risen(self.problem.economics.escalation.electricity, low)
                if self.phase is None:
                    paid *= _mean_worth(calendar, low, high)
                else:  # the part of the month that lies in the phase
                    paid *= max(min(high, self.phase.end_s) - max(low, self.phase.start_s), 0.0) / (high - low)
                charged[slots] = ([*months, m], worth + paid)
        return [
            (peak_name(months, calendar.window[list(slots)], calendar.windows), list(slots), worth)
            for slots, (months, worth) in charged.items()
        ]


def _mean_worth(calendar: Calendar, begin_s: float, end_s: float) -> float:
    """Return the present worth of one unit paid evenly between two moments."""
    begin, end, years = begin_s / YEAR_S, end_s / YEAR_S, round(calendar.horizon_s / YEAR_S)
    return paid_yearly(calendar.discount_rate, years, begin, end, calendar.payments_per_year) / (end - begin)


def _billed_w(meter: ElectricityFacts, row: Row) -> float:
    """Return the power that counts in peaks: what contracts deliver over the grid, and purchases unless their price holds demand charges."""
    over_grid = sum(row["ppa_w"][facts.name] for facts in meter.contracts if facts.kind == "grid")
    return float(over_grid + (row["grid_w"] if meter.purchases_peak else 0.0))


def purchases_in(phase: PhaseFacts, storage: StorageFacts, horizon_s: float) -> int:
    """Count the purchases of a battery in a phase: at the start, and whenever its life has ended."""
    found, when = 0, 0.0
    while when < horizon_s - TIME_TOL_S:
        found += phase.start_s - TIME_TOL_S <= when < phase.end_s - TIME_TOL_S
        when += storage.life_years * YEAR_S
    return found


def slot_rings(following: Ints) -> Iterator[list[int]]:
    """Yield the cycles of slots, each in the order in which they follow one another: days of a window, or the year."""
    seen: set[int] = set()
    for t in range(len(following)):
        ring = []
        while t not in seen:
            seen.add(t)
            ring.append(t)
            t = int(following[t])
        if ring:
            yield ring
