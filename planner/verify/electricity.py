"""The re-check of a plan's electricity: every hour's balance at each meter, contracts, batteries, peaks, and what they come to.

Reads the rows of the plan's `schedule` and `electricity`; shares no code with `planner.interpret.electricity` but the names of peaks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from catalog.units import HOUR_S, MONTH_S, YEAR_S
from planner.problem.electricity import peak_name
from planner.problem.facts import Problem, SiteFacts
from planner.verify.findings import ROUNDING, TOLERANCE, Report

OF_A_METER = ("grid_w", "ppa_w", "charge_w", "discharge_w", "stored_j")
HOURS, DAY_HOURS = 8760, 24


class ElectricityCheck:
    """`costs`, `carbon` by (component, site) and `drawn_j` follow from what the rows say; findings go to `report`."""

    def __init__(self, problem: Problem, document: Mapping[str, Any], report: Report):
        self.problem, self.document, self.report = problem, document, report
        self.sites = [site for site in problem.sites if site.electricity is not None]
        self.costs: dict[tuple[str, str], float] = defaultdict(float)
        self.carbon: dict[tuple[str, str], float] = defaultdict(float)
        self.drawn_j = self.capital = 0.0
        self._table: list[dict[str, Any]] = []

    def run(self, own_w: Mapping[tuple[str, int], float]) -> None:
        """`own_w`: what our own systems draw by site and slot, as computed from the plan."""
        rows = {(row["site"], row["slot"]): row for row in self.document["schedule"]}
        stated = {(row["site"], row["item"], row["name"]): row for row in self.document["electricity"]}
        if len(stated) < len(self.document["electricity"]):
            self.report.say("electricity", "a row stands twice")
        for site in self.sites:
            hours = [rows[site.region, t] for t in range(self.problem.calendar.slots)]
            self._site(site, hours, stated, own_w)
        computed = {(row["site"], row["item"], row["name"]): row for row in self._table}
        if stated.keys() != computed.keys():
            self.report.say(
                "electricity", "must list the purchases, peaks, contracts and batteries of the spec, each once"
            )
            return
        for key, row in computed.items():
            self.report.equal(f"electricity {'/'.join(filter(None, key))}", stated[key], row)

    def _site(
        self,
        site: SiteFacts,
        rows: list[Mapping[str, Any]],
        stated: Mapping[tuple, Mapping[str, Any]],
        own_w: Mapping[tuple[str, int], float],
    ) -> None:
        meter, region, calendar, report = site.electricity, site.region, self.problem.calendar, self.report
        wanted = {
            "grid_w",
            *(["ppa_w"] if meter.contracts else []),
            *(["charge_w", "discharge_w", "stored_j"] if meter.storage else []),
        }
        capacity = {c.name: stated[region, "ppa", c.name]["size"] for c in meter.contracts}
        bought = paid = emitted = 0.0
        taken = dict.fromkeys(capacity, 0.0)
        produced = dict.fromkeys(capacity, 0.0)
        for t, row in enumerate(rows):
            path = f"schedule {region} slot {t}"
            if {key for key in row if key in OF_A_METER} != wanted or set(row.get("ppa_w", capacity)) != set(capacity):
                report.say(path, f"must say {', '.join(sorted(wanted))}, with every contract by its name")
                return
            seconds, weight, hour = (
                float(calendar.seconds[t]),
                float(calendar.seconds[t] * calendar.discount[t]),
                int(calendar.hour[t]),
            )
            into, out, delivered = row.get("charge_w", 0.0), row.get("discharge_w", 0.0), row.get("ppa_w", {})
            terms = [own_w[region, t], into, -out, *(-watts for watts in delivered.values())]
            size = sum(map(abs, terms))
            if not abs(row["grid_w"] - sum(terms)) <= ROUNDING * size:
                report.say(f"{path}.grid_w", f"says {row['grid_w']!r}, computed {sum(terms)!r}")
            for name, value in (
                ("grid_w", row["grid_w"]),
                ("charge_w", into),
                ("discharge_w", out),
                *((f"ppa_w.{n}", w) for n, w in delivered.items()),
            ):
                if not value >= 0:
                    report.say(f"{path}.{name}", f"is negative: {value!r}")
            report.at_most(path, row["grid_w"], meter.connection_w, "power from the grid")
            for contract in meter.contracts:
                share = float(contract.share[hour])
                report.at_most(
                    path, delivered[contract.name], share * capacity[contract.name], f"output of {contract.name}"
                )
                taken[contract.name] += delivered[contract.name] * seconds
                produced[contract.name] += (
                    share * capacity[contract.name] if contract.pays_produced else delivered[contract.name]
                ) * weight
            bought += row["grid_w"] * seconds
            paid += row["grid_w"] * float(site.price_per_j[hour]) * weight
            emitted += row["grid_w"] * float(site.carbon_kg_per_j[hour]) * seconds
        self.costs["energy", region] += paid
        self.carbon["operation", region] += emitted
        self.drawn_j += bought + sum(taken.values())
        add = lambda item, name, size, unit, energy, cost, kg: self._table.append(
            {
                "site": region,
                "item": item,
                "name": name,
                "size": size,
                "unit": unit,
                "energy_j": energy,
                "cost": cost,
                "carbon_kg": kg,
            }
        )
        add("grid", "", max(row["grid_w"] for row in rows), "W", bought, paid, emitted)
        for name, slots, worth in self._charged(site) if meter.demand_charge else ():
            peak = max(rows[t]["grid_w"] for t in slots)
            cost = peak * meter.demand_charge * worth
            self.costs["demand charge", region] += cost
            add("peak", name, peak, "W", None, cost, None)
        for contract in meter.contracts:
            name, size = contract.name, capacity[contract.name]
            cost, kg = contract.price_per_j * produced[name], contract.carbon_kg_per_j * taken[name]
            self.costs["ppa", region] += cost
            self.carbon["ppa", region] += kg
            self._within(
                f"electricity {region}/ppa/{name}", size, contract.least_w, contract.upper_w, "capacity contracted"
            )
            if not contract.pays_produced:
                shares = [float(contract.share[int(hour)]) for hour in calendar.hour]
                needed = max((row["ppa_w"][name] / share for row, share in zip(rows, shares) if share > 0), default=0.0)
                report.equal(f"electricity {region}/ppa/{name}.size", size, max(contract.least_w, needed))
            add("ppa", name, size, "W", taken[name], cost, kg)
        if meter.storage is not None:
            self._battery(site, rows, stated, add)

    def _within(self, path: str, value: float, least: float, most: float, what: str) -> None:
        self.report.at_most(path, value, most, what)
        if not value >= least * (1 - TOLERANCE):
            self.report.say(path, f"{what}: {value:.9g} is less than {least:.9g}")

    def _battery(
        self, site: SiteFacts, rows: list[Mapping[str, Any]], stated: Mapping[tuple, Mapping[str, Any]], add
    ) -> None:
        calendar, storage, report, region = self.problem.calendar, site.electricity.storage, self.report, site.region
        energy, power = (stated[region, "battery", name]["size"] for name in ("energy", "power"))
        self._within(
            f"electricity {region}/battery/energy", energy, storage.least_j, storage.upper_j, "energy stored at most"
        )
        self._within(
            f"electricity {region}/battery/power", power, storage.least_w, storage.upper_w, "power of the battery"
        )
        for ring in slot_rings(calendar.next):
            level, levels, moved = 0.0, [], 0.0
            for t in ring:
                row, step = rows[t], float(calendar.step_s[t])
                report.at_most(
                    f"schedule {region} slot {t}", row["charge_w"] + row["discharge_w"], power, "power of the battery"
                )
                levels.append(level)
                moved += step * (storage.efficiency * row["charge_w"] + row["discharge_w"] / storage.efficiency)
                level += step * (storage.efficiency * row["charge_w"] - row["discharge_w"] / storage.efficiency)
            if not abs(level) <= ROUNDING * len(ring) * moved:
                report.say(
                    f"schedule {region} slots {ring[0]}-{ring[-1]}",
                    f"the battery ends {level:.9g} J from where it began",
                )
            low = min(levels)
            for t, value in zip(ring, levels, strict=True):
                report.at_most(f"schedule {region} slot {t}", value - low, energy, "energy stored")
                if not abs(rows[t]["stored_j"] - (value - low)) <= ROUNDING * (value - low):
                    report.say(
                        f"schedule {region} slot {t}.stored_j",
                        f"says {rows[t]['stored_j']!r}, computed {value - low!r}",
                    )
        # stored_j is as low as the cycle allows, so the sizes follow from the hours
        report.equal(
            f"electricity {region}/battery/energy.size",
            energy,
            max(storage.least_j, *(row["stored_j"] for row in rows)),
        )
        report.equal(
            f"electricity {region}/battery/power.size",
            power,
            max(storage.least_w, *(row["charge_w"] + row["discharge_w"] for row in rows)),
        )
        self.costs["battery", region] += energy * storage.worth_per_j + power * storage.worth_per_w
        self.capital += energy * storage.capital_per_j + power * storage.capital_per_w
        given_off = sum(row["discharge_w"] * float(s) for row, s in zip(rows, calendar.seconds))
        add("battery", "energy", energy, "J", given_off, energy * storage.worth_per_j, None)
        add("battery", "power", power, "W", None, power * storage.worth_per_w, None)

    def _charged(self, site: SiteFacts) -> list[tuple[str, list[int], float]]:
        """(name, slots, worth in seconds) of each peak that is paid for, month by month of local time through the horizon."""
        calendar, zone = self.problem.calendar, ZoneInfo(site.electricity.timezone)
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
                    min(float(calendar.edges_s[w + 1]), high) - max(float(calendar.edges_s[w]), low) > 1e-6
                    for w in range(calendar.windows)
                ]
                slots = tuple(
                    t
                    for t in range(calendar.slots)
                    if lies_in[int(calendar.window[t])] and m in stands[int(calendar.hour[t])]
                )
                months, worth = charged.get(slots, ([], 0.0))
                paid = MONTH_S * (end - start) / hours_of[m] * (1 + calendar.discount_rate) ** -(year + 1)
                charged[slots] = ([*months, m], worth + paid)
        return [
            (peak_name(months, calendar.window[list(slots)], calendar.windows), list(slots), worth)
            for slots, (months, worth) in charged.items()
        ]


def slot_rings(following: Sequence[int]) -> Iterator[list[int]]:
    """Slots in the order in which they follow one another: days of a window, or the year."""
    seen: set[int] = set()
    for t in range(len(following)):
        ring = []
        while t not in seen:
            seen.add(t)
            ring.append(t)
            t = int(following[t])
        if ring:
            yield ring
