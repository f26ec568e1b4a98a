"""Adds up what a decision costs, emits and draws, by component, place and workload; and how far each limit is used.

`planner.verify.plan` adds the same amounts up again from the plan document, without this code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.candidates.fleet_options import Lot
from planner.formulate.formulation import COST, Formulation, slot_rates
from planner.formulate.phase_budgets import paid_by_phase
from planner.interpret.electricity import METER_LINES, MeterDecisions
from planner.interpret.lines import LINES, LineDecisions
from planner.interpret.storage import storage_used
from planner.problem.fabrics import fabric_row, other_designs
from planner.problem.facts import NO_TREE, Problem
from planner.problem.lines import STREAMS
from planner.problem.phases import API, Term, power_limits, supplies, worth_from
from planner.problem.spread import limit_values, spread_rows
from planner.resolve.porting import needs

Line = tuple[str, str, str, str]  # component, site, system, how
Place = tuple[str, str, str]  # site, system, how
BOUGHT, PORTING = "api", "porting"
TRAFFIC = ("egress", BOUGHT, PORTING, "weights", LINES, *STREAMS)  # each belongs to a workload of its own


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

    def held(self) -> Iterator[tuple[Term, int, Lot, np.ndarray]]:
        """(when and at what price, count, lot, mask of its slots) of everything obtained."""
        for u, (k, term) in enumerate(self.form.holdings):
            if self.count[u]:
                yield term, int(self.count[u]), self.form.lots[k], term.mask(self.problem.calendar)

    def most_held(self) -> dict[int, tuple[Lot, int]]:
        """Lots, by identity, with the most systems that are held of each at once."""
        most: dict[int, tuple[Lot, np.ndarray]] = {}
        for _, count, lot, mask in self.held():
            _, held = most.setdefault(id(lot), (lot, np.zeros(len(mask), dtype=int)))
            held += count * mask
        return {key: (lot, int(held.max())) for key, (lot, held) in most.items()}

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
        self._book_porting()
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
        for term, count, lot, held in self.decided.held():
            if lot.offer.how == API:
                continue
            where = (lot.site.region, lot.system.name, lot.offer.how)
            r, idle_w, seconds = self._place[lot.site.region], count * lot.idle_it_w * lot.site.pue, calendar.seconds[held]
            if lot.owned:
                self.lines["systems", *where] += count * term.price * term.share
                self.lines["fabric", *where] += count * lot.fabric_capital * term.share
                self.lines["facility", *where] += count * lot.facility_capital * term.facility_share
                if lot.hall_per_s:
                    self.lines["colocation", *where] += count * lot.hall_per_s * float(seconds @ calendar.discount[held])
            else:
                self.lines["rent", *where] += count * term.price * float(seconds @ calendar.discount[held])
            if not (lot.owned and rates.metered[r]):
                if lot.owned:
                    self.lines["energy", *where] += idle_w * float(rates.cost_per_w[r, held].sum())
                self.carbon["operation", *where] += idle_w * float(rates.carbon_per_w[r, held].sum())
                self.energy_j += idle_w * float(seconds.sum())
            if lot.system.embodied_kg:
                self.carbon["embodied", *where] += count * lot.system.embodied_kg * float(seconds.sum()) / lot.offer.life_s(money)
        for site, opened in zip(problem.sites, self.decided.opened):
            if site.fixed_cost_per_s and opened:
                self.lines["site", site.region, "", ""] += site.fixed_cost_per_s * worth_from(calendar, site)

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

    def _book_porting(self) -> None:
        for facts in self.decided.problem.porting:
            users = sorted({point.workload.name for p in self.decided.used if needs(facts, point := self.decided.form.points[p])})
            if users:
                self.lines[PORTING, "", facts.label, ""] += facts.cost
            for name in users:
                self.by_name[name] += facts.cost / len(users)

    def _book_traffic(self) -> None:
        problem, form = self.decided.problem, self.decided.form
        for a, (w, _, r, _) in enumerate(form.arcs):
            if cost := float(form.data.arc_cost[COST][a] @ self.decided.flow[a]):
                component = "egress" if problem.sites[r].api is None else BOUGHT
                self.lines[component, problem.sites[r].region, form.arc_kinds[a], ""] += cost
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
    held: dict[tuple[str, str, str, int], np.ndarray] = {}
    charged: dict[tuple[str, str, str, int], float] = defaultdict(float)
    lots: dict[tuple[str, str, str, int], Lot] = {}
    for _, count, lot, mask in decided.held():
        if lot.plant is not None:
            key = (lot.site.region, lot.system.name, lot.fabric, lot.plant.systems)
            held[key] = held.get(key, 0) + count * mask
            charged[key] += count * lot.fabric_capital
            lots[key] = lot
    return [
        {"site": site, "system": system, "design": design, "size": size, "systems": count}
        | fabric_row(lot.plant, count, charged[site, system, design, size], lot.site.network)
        | {"instead": other_designs(lot.site, lot.system, design, count)}
        for (site, system, design, size), counts in held.items()
        for lot, count in ((lots[site, system, design, size], int(counts.max())),)
    ]


def limit_rows(decided: Decisions, accounts: Accounts, slo: Sequence[tuple[str, str, float, float]]) -> list[dict[str, Any]]:
    """Every limit of the question with how far it is used; `value` <= `limit` throughout."""
    problem, form = decided.problem, decided.form
    calendar = problem.calendar
    rows: list[tuple[str, str, float, float, str]] = []
    own = decided.site_power_w(owned_only=True)
    rows += [(limit.path, limit.name, float(own[limit.site, limit.mask(calendar)].max()), limit.most_w, "W") for limit in power_limits(problem)]
    for m, site in enumerate(decided.meters.sites if decided.meters else ()):
        if math.isfinite(site.meter.connection_w):
            rows.append((f"{site.meter.path}.connection", f"connection of {site.region}", float(decided.meters.grid[m].max()), site.meter.connection_w, "W"))
    for supply in supplies(problem):
        taken = np.zeros(calendar.slots)
        for term, count, lot, held in decided.held():
            taken[held] += count if lot.offer is supply.offer and supply.phase in (None, term.phase) else 0
        rows.append((supply.path, supply.name, float(taken.max()), supply.most, "token/s" if supply.offer.how == API else "system"))
    for lot, count in decided.most_held().values():
        if math.isfinite(lot.largest):
            rows.append((f"{lot.site.path}.fabrics", f"size of one {lot.fabric} network of {lot.system.name} in {lot.site.region}", float(count), lot.largest, "system"))
    bought = [(term.phase, count * (term.price + lot.fabric_capital)) for term, count, lot, _ in decided.held() if lot.owned]
    capital = sum(amount for _, amount in bought) + (decided.meters.capital if decided.meters else 0.0)
    for path, name, value, limit, unit in (
        ("limits.budget", "present value of all costs", sum(accounts.lines.values()), problem.budget, problem.spec.currency),
        ("limits.capital", "purchase price of systems and fabric", capital, problem.capital, problem.spec.currency),
        ("limits.carbon", "carbon", sum(accounts.carbon.values()), problem.carbon_kg, "kg"),
        *((f"{phase.path}.capital", f"purchase price in {phase.name}", sum(a for q, a in bought if q == p), phase.capital, problem.spec.currency) for p, phase in enumerate(problem.phases)),
        *((f"{phase.path}.budget", f"payments in {phase.name}", amount, phase.budget, problem.spec.currency) for phase, amount in zip(problem.phases, paid_by_phase(decided, accounts))),
    ):
        if math.isfinite(limit):
            rows.append((path, name, float(value), limit, unit))
    for path, name, used, most in decided.lines.busy_units() if decided.lines else ():
        rows.append((path, name, used, most, "line"))
    rows += [(*row, "1") for row in limit_values(problem, decided.spread())]
    rows += [(*row, "byte/s") for row in storage_used(decided)]
    for job in problem.training:
        busy = sum(float(decided.active[p] @ calendar.seconds) for p in decided.used if form.points[p].workload is job)
        rows.append((f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline", busy, job.spec.deadline - job.spec.start, "s"))
    rows += [(path, name, value, limit, "s") for path, name, value, limit in slo]
    return [
        {"path": path, "name": name, "value": value, "limit": limit, "unit": unit, "slack": limit - value, "marginal_value": None, "marginal_unit": None}
        for path, name, value, limit, unit in rows
    ]
