"""Add up a plan's costs, carbon and energy from its rows, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from catalog.units import YEAR_S
from planner.problem.facts import SystemFacts
from planner.problem.lines import NO_TREE
from planner.problem.porting import PortingFacts
from planner.verify.checked_plan import CheckedPlan, LineKey, Sums
from planner.verify.fleet.economics import levies_of, licences_of, yearly_of
from planner.verify.fleet.holdings import Holding
from planner.verify.fleet.hourly import paid_in
from planner.verify.fleet.options import CheckedOption, key_of, site_worth
from planner.verify.fleet.relays import paid_for_loads
from planner.verify.points.reinforcement import slots_per_s
from planner.verify.timing import risen_by_slot

Place = tuple[str, str, str]
"""Site, system, how it is obtained."""
Slot = tuple[int, int, int, float, float]
"""Slot, window, hour of the period, seconds, discount factor."""


def add_up(plan: CheckedPlan) -> Sums:
    """Add up every cost, every kilogram and every joule of the plan, hour by hour."""
    return _Adder(plan).sums()


def _ports(facts: PortingFacts, systems: Sequence[SystemFacts]) -> bool:
    """Tell whether pools on some systems need a port: chips of its family, or chips of two vendors between which caches are exchanged."""
    if facts.exchange:
        return len({system.vendor for system in systems}) > 1
    return facts.family in {system.family for system in systems}


class _Adder:
    """Add the amounts part by part; `use` holds the system-seconds at work by workload and place, by which costs are split."""

    def __init__(self, plan: CheckedPlan):
        self.plan, self.problem = plan, plan.problem
        calendar = plan.problem.calendar
        self.slots: list[Slot] = [
            (t, int(calendar.window[t]), int(calendar.hour[t]), float(calendar.seconds[t]), float(calendar.discount[t]))
            for t in range(calendar.slots)
        ]
        rises = plan.problem.economics.escalation
        self.risen, self.rent_risen = risen_by_slot(calendar, rises.electricity), risen_by_slot(calendar, rises.rent)
        self.names = [w.name for w in (*plan.problem.serving, *plan.problem.training)]
        self.lines: dict[LineKey, float] = defaultdict(float)
        self.carbon: dict[LineKey, float] = defaultdict(float)
        self.use: dict[tuple[str, Place], float] = defaultdict(float)
        self.by_workload: dict[str, float] = {}
        self.energy_j = 0.0

    def sums(self) -> Sums:
        """Add up the cost of systems, split it over the workloads, then add the amounts of sites and workloads."""
        self._fleet()
        self._points()
        self.by_workload = self._split(self.lines)
        at_site = {
            site: self._split({key: v for key, v in self.lines.items() if key[1] == site})
            for site in {row["site"] for row in self.plan.document["fleet"]}
        }
        self._sites(at_site)
        self._meters(at_site)
        self._environments()
        self._loads()
        self._traffic()
        self._weights()
        self._porting()
        return Sums(dict(self.lines), dict(self.carbon), self.by_workload, self.energy_j)

    def _fleet(self) -> None:
        """Add the cost and the idle energy of the systems held."""
        money = self.problem.economics
        for row, holding in zip(self.plan.document["fleet"], self.plan.holdings, strict=True):
            if row["how"] == "api":
                continue  # its tokens are paid, which is in the traffic
            option, n = self.plan.fleet_options[key_of(row)], row["count"]
            place = row["site"], row["system"], row["how"]
            if option.owned:
                paid = holding.charged
                self.lines["systems", *place] += n * holding.price * paid.of_system
                self.lines["fabric", *place] += n * option.fabric_capital * paid.price
                if not self.plan.annuities:
                    self.lines["maintenance", *place] += n * (holding.price + option.fabric_capital) * paid.upkeep
                    self._owning(option, place, n, holding)
                self.lines["facility", *place] += n * option.facility_capital * paid.building
            if holding.owed:
                left = float(self.problem.calendar.edges_s[holding.windows[-1] + 1]) / YEAR_S
                self.lines["early exit", *place] += n * holding.owed * (1 + money.discount_rate) ** -left
            for slot in self.slots:
                t, window, hour, seconds, discount = slot
                if window not in holding.windows:
                    continue
                n, started_s = paid_in(self.plan, row, t)
                self._energy(option, place, n * option.idle_at_meter_w, slot)
                if unearned := option.unearned_per_j(hour, self.risen[t]):
                    self.lines["energy", *place] += n * option.idle_at_meter_w * unearned * seconds * discount
                if option.system.embodied_kg:
                    self.carbon["embodied", *place] += (
                        n * option.system.embodied_kg * seconds / option.offer.life_s(money)
                    )
                if not option.owned:
                    self.lines["rent", *place] += (n + started_s) * holding.rent_in(window) * seconds * discount
                    if licences := licences_of(money, option):
                        self.lines["software", *place] += n * licences / YEAR_S * seconds * discount
                elif option.site.hall_per_w_s:
                    rent_per_s = option.nameplate_w * option.site.hall_per_w_s
                    self.lines["colocation", *place] += n * rent_per_s * self.rent_risen[t] * seconds * discount

    def _owning(self, option: CheckedOption, place: Place, n: int, holding: Holding) -> None:
        """Add spare parts, staff, software and levies of bought systems."""
        money, paid = self.problem.economics, holding.charged
        if parts := holding.parts * holding.price * paid.of_system:
            self.lines["spare parts", *place] += n * parts
        yearly = yearly_of(money, option) | levies_of(money, holding.price + option.fabric_capital)
        for component, amount in yearly.items():
            self.lines[component, *place] += n * amount * (paid.staffed if component == "staff" else paid.every_year)

    def _points(self) -> None:
        """Add the energy of active replicas above idle."""
        for name, replicas in self.plan.active.items():
            row, computed = self.plan.points[name]
            for pool, systems, (option, extra) in zip(row["pools"], computed.systems, computed.extra, strict=True):
                place = option.site.region, pool["system"], pool["how"]
                for slot in self.slots:
                    t, _, _, seconds, _ = slot
                    self._energy(option, place, replicas[t] * extra * option.pue, slot)
                    self.use[computed.workload, place] += replicas[t] * systems * seconds

    def _environments(self) -> None:
        """Add the environment slots that jobs of reinforcement hold while they are at work."""
        for name, replicas in self.plan.active.items():
            row, computed = self.plan.points[name]
            rate = slots_per_s(self.plan.training.get(computed.workload))
            amount = sum(rate * replicas[t] * seconds * discount for t, _, _, seconds, discount in self.slots)
            if amount:
                self.lines["environments", row["site"], "", ""] += amount
                self.by_workload[computed.workload] += amount

    def _loads(self) -> None:
        """Add the loads of weights."""
        for loads, paid in paid_for_loads(self.plan, [seconds * discount for _, _, _, seconds, discount in self.slots]):
            if any(loads.count):
                self.lines["relays", loads.key[0], loads.key[1], loads.key[2]] += sum(paid)
                self.by_workload[loads.workload] += sum(paid)

    def _energy(self, option: CheckedOption, place: Place, watts: float, slot: Slot) -> None:
        """Add the energy that a place draws in a slot; a site with a meter of its own is settled as a whole."""
        t, _, hour, seconds, discount = slot
        joules = watts * seconds
        for component, price in option.drawn_per_j(hour, self.risen[t]).items():
            self.lines[component, *place] += joules * price * discount
        if option.owned and option.site.electricity is not None:
            return
        self.energy_j += joules
        self.carbon["operation", *place] += joules * float(option.site.carbon_kg_per_j[hour])

    def _sites(self, at_site: Mapping[str, Mapping[str, float]]) -> None:
        """Add the fixed cost and the crew of each site that holds systems."""
        for site in self.problem.sites:
            if site.region in at_site:
                for component, amount in site_worth(self.problem, site).items():
                    self.lines[component, site.region, "", ""] += amount
                    self._charge(amount, at_site[site.region])

    def _meters(self, at_site: Mapping[str, Mapping[str, float]]) -> None:
        """Add the amounts of the meters, where electricity is a decision."""
        electricity = self.plan.electricity
        if electricity is None:
            return
        for (component, region), amount in electricity.costs.items():
            self.lines[component, region, "", ""] += amount
            self._charge(amount, at_site.get(region, {}))
        for (component, region), amount in electricity.carbon.items():
            self.carbon[component, region, "", ""] += amount
        self.energy_j += electricity.drawn_j

    def _traffic(self) -> None:
        """Add the cost of requests: egress, or the tokens of an API."""
        bought = {site.region for site in self.problem.sites if site.api is not None}
        for name, sites in self.plan.traffic.items():
            for (site, line), amount in sites.items():
                if amount:
                    self.lines["api" if site in bought else "egress", site, line, ""] += amount
                    self.by_workload[name] += amount

    def _weights(self) -> None:
        """Add the cost of sending the weights to every site that serves a workload."""
        for workload in self.problem.serving:
            tree = self.problem.trees.get(workload.name, NO_TREE)
            rows = [self.plan.points[name][0] for name in self.plan.points_of(workload.name)]
            hosts = {pool.get("site", row["site"]) for row in rows for pool in row["pools"]}
            for edge in {edge for site in hosts for edge in tree.edges_above.get(site, ())}:
                self.lines["weights", tree.edges[edge][1], "", ""] += tree.edge_cost[edge]
                self.by_workload[workload.name] += tree.edge_cost[edge]

    def _porting(self) -> None:
        """Add the cost of each port to a chip family that is used or stands by, split evenly over the workloads that use it."""
        rows = [(computed.workload, row) for row, computed in self.plan.points.values()]
        rows += [(row["workload"], row) for row in (self.plan.document.get("robustness") or {}).get("standing_by", ())]
        for facts in self.problem.porting:
            users = {
                name
                for name, row in rows
                if _ports(facts, [self.problem.systems[pool["system"]] for pool in row["pools"]])
            } & set(facts.workloads)
            for name in users:
                self.lines["porting", "", facts.label, ""] = facts.cost
                self.by_workload[name] += facts.cost / len(users)

    def _charge(self, amount: float, shares: Mapping[str, float]) -> None:
        """Split an amount over the workloads in proportion to their shares, evenly where there are none."""
        total = sum(shares.values())
        for name in self.names:
            self.by_workload[name] += amount * (shares[name] / total if total else 1 / len(self.names))

    def _split(self, lines: Mapping[LineKey, float]) -> dict[str, float]:
        """Split each line over the workloads by the system-seconds that they keep at work in its place."""
        result = dict.fromkeys(self.names, 0.0)
        for (_, *where), amount in lines.items():
            place = where[0], where[1], where[2]
            busy = {name: self.use.get((name, place), 0.0) for name in self.names}
            total = sum(busy.values())
            for name in self.names:
                result[name] += amount * (busy[name] / total if total else 1 / len(self.names))
        return result
