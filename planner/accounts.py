"""Adds up what a decision costs, emits and draws, by component, place and workload; and how far each limit is used.

`planner.verify` adds the same amounts up again from the plan document, without this code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.formulate import COST, Formulation, slot_rates
from planner.line_accounts import LINES, LineDecisions
from planner.line_facts import STREAMS
from planner.lots import Lot
from planner.meter_accounts import METER_LINES, MeterDecisions
from planner.networks import fabric_row
from planner.problem import NO_TREE, Problem
from planner.spread import limit_values, spread_rows

Line = tuple[str, str, str, str]  # component, site, system, how
Place = tuple[str, str, str]  # site, system, how
TRAFFIC = ("egress", "weights", LINES, *STREAMS)  # each belongs to a workload of its own


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the solver chose: `count` per holding, `active` replicas [point, slot], `flow` requests/s [arc, slot]."""

    problem: Problem
    form: Formulation
    count: np.ndarray
    active: np.ndarray
    flow: np.ndarray
    used: tuple[int, ...]  # points at work in any slot
    opened: np.ndarray  # [site]
    lines: LineDecisions | None = None  # None where there is no choice of lines
    meters: MeterDecisions | None = None  # None where no site's electricity is a decision

    def spread(self) -> list[dict[str, Any]]:
        return spread_rows(self.problem, self.form.arcs, self.flow)

    def held(self) -> Iterator[tuple[int, int, Any, np.ndarray]]:
        """(holding, count, lot, mask of its slots) of everything obtained."""
        calendar = self.problem.calendar
        for u, (k, window) in enumerate(self.form.holdings):
            if self.count[u]:
                mask = np.ones(calendar.slots, bool) if window < 0 else calendar.window == window
                yield u, int(self.count[u]), self.form.lots[k], mask

    def site_power_w(self, owned_only: bool) -> np.ndarray:
        """[site, slot] power at the meter [W]; with `owned_only` what counts against a site's limit."""
        place = {site.region: r for r, site in enumerate(self.problem.sites)}
        power = np.zeros((len(place), self.problem.calendar.slots))
        for _, count, lot, mask in self.held():
            if lot.owned or not owned_only:
                power[place[lot.site.region], mask] += count * lot.idle_it_w * lot.site.pue
        for p in self.used:
            for use in self.form.points[p].uses:
                if use.lot.owned or not owned_only:
                    power[place[use.lot.site.region]] += use.extra_it_w * use.lot.site.pue * self.active[p]
        return power


class Accounts:
    """`lines`: present value by (component, site, system, how); `carbon`: kg by the same; `energy_j` at the meter."""

    def __init__(self, decided: Decisions):
        self.decided = decided
        self.lines: dict[Line, float] = defaultdict(float)
        self.carbon: dict[Line, float] = defaultdict(float)
        self.by_name: dict[str, float] = defaultdict(float)  # what a workload alone causes: egress, weights
        self.system_seconds: dict[tuple[str, Place], float] = defaultdict(float)
        self.energy_j = 0.0
        self._rates = slot_rates(decided.problem)
        self._place = {site.region: r for r, site in enumerate(decided.problem.sites)}
        self._book_holdings()
        self._book_activity()
        self._book_traffic()
        if decided.meters is not None:
            for book, amounts in ((self.lines, decided.meters.costs()), (self.carbon, decided.meters.carbon())):
                for line, amount in amounts:
                    book[line] += amount
            self.energy_j += decided.meters.drawn_j

    def by_component(self) -> dict[str, float]:
        result: dict[str, float] = defaultdict(float)
        for (component, *_), amount in self.lines.items():
            result[component] += amount
        return dict(sorted(result.items()))

    def by_workload(self) -> dict[str, float]:
        """Cost of each workload: its own traffic, and its share of every lot by the system-seconds it keeps at work.

        A site's fixed cost, and its electricity where that is a decision, follow the shares of all that stands there.
        """
        problem = self.decided.problem
        names = [w.name for w in (*problem.serving, *problem.training)]
        result = {name: self.by_name[name] for name in names}
        at_site: dict[tuple[str, str], float] = defaultdict(float)
        for (component, *place), amount in self.lines.items():
            if component in TRAFFIC or _of_the_site(component, place[1]):
                continue
            used = {name: self.system_seconds[name, tuple(place)] for name in names}
            total = sum(used.values())
            for name in names:
                part = amount * (used[name] / total if total else 1 / len(names))
                result[name] += part
                at_site[place[0], name] += part
        for (component, site, system, _), amount in self.lines.items():
            if _of_the_site(component, system):
                total = sum(at_site[site, name] for name in names)
                for name in names:
                    result[name] += amount * (at_site[site, name] / total if total else 1 / len(names))
        return result

    def _book_holdings(self) -> None:
        problem, rates = self.decided.problem, self._rates
        calendar, money = problem.calendar, problem.economics
        life_s = money.system_life_years * calendar.horizon_s / money.years
        for _, count, lot, held in self.decided.held():
            where = (lot.site.region, lot.system.name, lot.offer.how)
            r, idle_w, seconds = self._place[lot.site.region], count * lot.idle_it_w * lot.site.pue, calendar.seconds[held]
            if lot.owned:
                self.lines["systems", *where] += count * lot.capital * money.capital_share
                self.lines["fabric", *where] += count * lot.fabric_capital * money.capital_share
                self.lines["facility", *where] += count * lot.facility_capital * money.facility_share
            else:
                self.lines["rent", *where] += count * lot.rent_per_s * float(seconds @ calendar.discount[held])
            if not (lot.owned and rates.metered[r]):
                if lot.owned:
                    self.lines["energy", *where] += idle_w * float(rates.cost_per_w[r, held].sum())
                self.carbon["operation", *where] += idle_w * float(rates.carbon_per_w[r, held].sum())
                self.energy_j += idle_w * float(seconds.sum())
            if lot.system.embodied_kg:
                self.carbon["embodied", *where] += count * lot.system.embodied_kg * float(seconds.sum()) / life_s
        worth = float(calendar.seconds @ calendar.discount)
        for site, opened in zip(problem.sites, self.decided.opened):
            if site.fixed_cost_per_s and opened:
                self.lines["site", site.region, "", ""] += site.fixed_cost_per_s * worth

    def _book_activity(self) -> None:
        for p in self.decided.used:
            point, active = self.decided.form.points[p], self.decided.active[p]
            for use in point.uses:
                lot = use.lot
                where = (lot.site.region, lot.system.name, lot.offer.how)
                r, watts = self._place[lot.site.region], use.extra_it_w * lot.site.pue * active
                if not (lot.owned and self._rates.metered[r]):
                    if lot.owned:
                        self.lines["energy", *where] += float(watts @ self._rates.cost_per_w[r])
                    self.carbon["operation", *where] += float(watts @ self._rates.carbon_per_w[r])
                    self.energy_j += float(watts @ self._rates.seconds)
                self.system_seconds[point.workload.name, where] += use.systems * float(active @ self._rates.seconds)

    def _book_traffic(self) -> None:
        problem, form = self.decided.problem, self.decided.form
        for a, (w, _, r, _) in enumerate(form.arcs):
            if cost := float(form.data.arc_cost[COST][a] @ self.decided.flow[a]):
                self.lines["egress", problem.sites[r].region, form.arc_kinds[a], ""] += cost
                self.by_name[problem.serving[w].name] += cost
        for workload in problem.serving:
            tree = problem.trees.get(workload.name, NO_TREE)
            hosts = {form.points[p].site for p in self.decided.used if form.points[p].workload is workload}
            for edge in sorted({edge for site in hosts for edge in tree.edges_above.get(site, ())}):
                self.lines["weights", tree.edges[edge][1], "", ""] += tree.edge_cost[edge]
                self.by_name[workload.name] += tree.edge_cost[edge]
        for line, name, amount in self.decided.lines.costs() if self.decided.lines else ():
            self.lines[line] += amount
            self.by_name[name] += amount


def _of_the_site(component: str, system: str) -> bool:
    return component == "site" or (component in METER_LINES and not system)


def fabric_rows(decided: Decisions) -> list[dict[str, Any]]:
    """The networks between our own systems, in whole parts, and what the systems' shares of them come to."""
    counts: dict[tuple[str, str, str, int], int] = defaultdict(int)
    lots: dict[tuple[str, str, str, int], Lot] = {}
    for _, count, lot, _ in decided.held():
        if lot.plant is not None:
            key = (lot.site.region, lot.system.name, lot.fabric, lot.plant.systems)
            counts[key] += count
            lots[key] = lot
    return [
        {"site": site, "system": system, "design": design, "size": size, "systems": count}
        | fabric_row(lot.plant, count, count * lot.fabric_capital, lot.site.network)
        for (site, system, design, size), count in counts.items()
        for lot in (lots[site, system, design, size],)
    ]


def limit_rows(decided: Decisions, accounts: Accounts, slo: Sequence[tuple[str, str, float, float]]) -> list[dict[str, Any]]:
    """Every limit of the question with how far it is used; `value` <= `limit` throughout."""
    problem, form = decided.problem, decided.form
    calendar = problem.calendar
    rows: list[tuple[str, str, float, float, str]] = []
    own = decided.site_power_w(owned_only=True)
    for r, site in enumerate(problem.sites):
        if math.isfinite(site.power_limit_w):
            rows.append((f"{site.path}.power", f"power in {site.region}", float(own[r].max()), site.power_limit_w, "W"))
    for m, site in enumerate(decided.meters.sites if decided.meters else ()):
        if math.isfinite(site.meter.connection_w):
            rows.append((f"{site.meter.path}.connection", f"connection of {site.region}", float(decided.meters.grid[m].max()), site.meter.connection_w, "W"))
    for offer in problem.offers:
        if math.isfinite(offer.supply):
            taken = np.zeros(calendar.slots)
            for _, count, lot, held in decided.held():
                taken[held] += count if lot.offer is offer else 0
            rows.append((f"{offer.path}.supply", f"supply of {offer.system} ({offer.how})", float(taken.max()), offer.supply, "system"))
    for _, count, lot, _ in decided.held():
        if math.isfinite(lot.largest):
            rows.append((f"{lot.site.path}.fabrics", f"size of one {lot.fabric} network of {lot.system.name} in {lot.site.region}", float(count), lot.largest, "system"))
    capital = sum(count * (lot.capital + lot.fabric_capital) for _, count, lot, _ in decided.held())
    capital += decided.meters.capital if decided.meters else 0.0
    for path, name, value, limit, unit in (
        ("limits.budget", "present value of all costs", sum(accounts.lines.values()), problem.budget, problem.spec.currency),
        ("limits.capital", "purchase price of systems and fabric", capital, problem.capital, problem.spec.currency),
        ("limits.carbon", "carbon", sum(accounts.carbon.values()), problem.carbon_kg, "kg"),
    ):
        if math.isfinite(limit):
            rows.append((path, name, float(value), limit, unit))
    for path, name, used, most in decided.lines.busy_units() if decided.lines else ():
        rows.append((path, name, used, most, "line"))
    rows += [(*row, "1") for row in limit_values(problem, decided.spread())]
    for job in problem.training:
        busy = sum(float(decided.active[p] @ calendar.seconds) for p in decided.used if form.points[p].workload is job)
        rows.append((f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline", busy, job.spec.deadline - job.spec.start, "s"))
    rows += [(path, name, value, limit, "s") for path, name, value, limit in slo]
    return [
        {"path": path, "name": name, "value": value, "limit": limit, "unit": unit, "slack": limit - value, "marginal_value": None, "marginal_unit": None}
        for path, name, value, limit, unit in rows
    ]
