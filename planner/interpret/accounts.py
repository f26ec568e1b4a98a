"""Add up the cost, carbon and energy of decisions by component, place and workload.

`planner.verify` adds up the same amounts again from the plan document, without this code.
"""

from __future__ import annotations

from collections import defaultdict

from models.energy.carbon import embodied_carbon_kg
from planner.formulate.costs import slot_rates
from planner.formulate.functionals import COST
from planner.formulate.porting import needs
from planner.interpret.decisions import Decisions
from planner.interpret.electricity import ELECTRICITY_LINES
from planner.interpret.lines import LINES
from planner.money.components import ENVIRONMENTS
from planner.problem.lines import NO_TREE, STREAMS
from planner.problem.phases import API, worth_from
from planner.problem.reinforcement import environments_per_s

Line = tuple[str, str, str, str]  # component, site, system, how
Place = tuple[str, str, str]  # site, system, how
BOUGHT, PORTING = "api", "porting"
TRAFFIC = (
    "egress",
    BOUGHT,
    PORTING,
    ENVIRONMENTS.key,
    "weights",
    LINES,
    *STREAMS,
)  # components that one workload causes alone


class Accounts:
    """Accounts of a plan: costs as present values in the spec's currency, carbon [kg], and energy at the meter [J]."""

    def __init__(self, decided: Decisions):
        self.decided = decided
        self.cost_lines: dict[Line, float] = defaultdict(float)
        self.carbon_lines: dict[Line, float] = defaultdict(float)
        self.by_name: dict[str, float] = defaultdict(float)  # cost of TRAFFIC, by workload
        self.system_seconds: dict[tuple[str, Place], float] = defaultdict(float)
        self.energy_j = 0.0
        self._rates = slot_rates(decided.problem)
        self._place = {site.region: r for r, site in enumerate(decided.problem.sites)}
        self._book_holdings()
        self._book_activity()
        self._book_environments()
        self._book_traffic()
        self._book_porting()
        if decided.electricity is not None:
            for book, amounts in (
                (self.cost_lines, decided.electricity.costs()),
                (self.carbon_lines, decided.electricity.carbon()),
            ):
                for line, amount in amounts:
                    book[line] += amount
            self.energy_j += decided.electricity.drawn_j

    def by_component(self) -> dict[str, float]:
        """Add up the costs of each component."""
        result: dict[str, float] = defaultdict(float)
        for (component, *_), amount in self.cost_lines.items():
            result[component] += amount
        return dict(sorted(result.items()))

    def by_workload(self) -> dict[str, float]:
        """Share all costs out: traffic to the workload that causes it, systems by the system-seconds that each keeps at work.

        A site's fixed cost, and its electricity where that is a decision, follow the shares of the systems there.
        """
        problem = self.decided.problem
        names = [w.name for w in (*problem.serving, *problem.training)]
        result = {name: self.by_name[name] for name in names}
        at_site: dict[tuple[str, str], float] = defaultdict(float)
        for (component, *parts), amount in self.cost_lines.items():
            place = (parts[0], parts[1], parts[2])
            if component in TRAFFIC or _is_of_site(component, place[1]):
                continue
            used = {name: self.system_seconds[name, place] for name in names}
            total = sum(used.values())
            for name in names:
                part = amount * (used[name] / total if total else 1 / len(names))
                result[name] += part
                at_site[place[0], name] += part
        for (component, site, system, _), amount in self.cost_lines.items():
            if _is_of_site(component, system):
                total = sum(at_site[site, name] for name in names)
                for name in names:
                    result[name] += amount * (at_site[site, name] / total if total else 1 / len(names))
        return result

    def _book_holdings(self) -> None:
        """Add capital, rent, building, idle energy and carbon of the holdings, and the fixed costs of sites."""
        problem, rates = self.decided.problem, self._rates
        calendar, money = problem.calendar, problem.economics
        for term, count, option, held in self.decided.held():
            if option.offer.how == API:
                continue
            where = (option.site.region, option.system.name, option.offer.how)
            r, idle_w, seconds = (
                self._place[option.site.region],
                count * option.idle_at_meter_w,
                calendar.seconds[held],
            )
            if option.owned:
                charged, capital = term.charges, term.price + option.fabric_capital
                self.cost_lines["systems", *where] += count * term.price * charged.system
                self.cost_lines["fabric", *where] += count * option.fabric_capital * (charged.share - charged.upkeep)
                self.cost_lines["maintenance", *where] += count * capital * charged.upkeep
                self.cost_lines["facility", *where] += count * option.facility_capital * charged.facility
                for component, amount in (
                    ("spare parts", term.price * charged.spare_parts),
                    ("staff", option.staff_per_year * charged.per_year),
                    ("software", option.software_per_year * charged.per_year),
                ):
                    if amount:
                        self.cost_lines[component, *where] += count * amount
                if option.hall_per_s:
                    self.cost_lines["colocation", *where] += (
                        count * option.hall_per_s * float(seconds @ calendar.discount[held])
                    )
            else:
                self.cost_lines["rent", *where] += count * term.price * float(seconds @ calendar.discount[held])
                if term.owed_worth_s:
                    self.cost_lines["early exit", *where] += count * term.price * term.owed_worth_s
            idle_cost = idle_w * float(rates.idle_cost_per_w[r, held].sum())
            if option.owned and (idle_cost or not rates.metered[r]):
                self.cost_lines["energy", *where] += idle_cost
            if not (option.owned and rates.metered[r]):
                self.carbon_lines["operation", *where] += idle_w * float(rates.carbon_per_w[r, held].sum())
                self.energy_j += idle_w * float(seconds.sum())
            if option.system.embodied_kg:
                made_kg, life_s = count * option.system.embodied_kg, option.offer.life_s(money)
                self.carbon_lines["embodied", *where] += float(embodied_carbon_kg(made_kg, seconds.sum(), life_s))
        for site, opened in zip(problem.sites, self.decided.opened, strict=True):
            if site.fixed_cost_per_s and opened:
                self.cost_lines["site", site.region, "", ""] += site.fixed_cost_per_s * worth_from(calendar, site)

    def _book_activity(self) -> None:
        """Add the energy above idle of the points at work, and their system-seconds."""
        for p in self.decided.used:
            point, active = self.decided.form.points[p], self.decided.active[p]
            for use in point.uses if active.any() else ():  # what stands by for a failure draws nothing
                option = use.option
                where = (option.site.region, option.system.name, option.offer.how)
                r, watts = self._place[option.site.region], use.extra_it_w * option.site.pue * active
                if not (option.owned and self._rates.metered[r]):
                    if option.owned:
                        self.cost_lines["energy", *where] += float(watts @ self._rates.cost_per_w[r])
                    self.carbon_lines["operation", *where] += float(watts @ self._rates.carbon_per_w[r])
                    self.energy_j += float(watts @ self._rates.seconds)
                self.system_seconds[point.workload.name, where] += use.systems * float(active @ self._rates.seconds)

    def _book_environments(self) -> None:
        """Add the environment slots of reinforcement, for the time that it is at work."""
        calendar = self.decided.problem.calendar
        for p in self.decided.used:
            point, active = self.decided.form.points[p], self.decided.active[p]
            if (rate := environments_per_s(point.workload)) and active.any():
                amount = rate * float(active @ (calendar.seconds * calendar.discount))
                self.cost_lines[ENVIRONMENTS.key, point.site, "", ""] += amount
                self.by_name[point.workload.name] += amount

    def _book_porting(self) -> None:
        """Add the cost of the ports that active and standby points need, shared by the workloads that use them."""
        form = self.decided.form
        points = [*(form.points[p] for p in self.decided.used), *form.standing]
        for facts in self.decided.problem.porting:
            users = sorted({point.workload.name for point in points if needs(facts, point)})
            if users:
                self.cost_lines[PORTING, "", facts.label, ""] += facts.cost
            for name in users:
                self.by_name[name] += facts.cost / len(users)

    def _book_traffic(self) -> None:
        """Add egress, tokens of APIs, updates of weights and rented lines."""
        problem, form = self.decided.problem, self.decided.form
        for a, (w, _, r, _) in enumerate(form.arcs):
            if cost := float(form.data.arc_cost[COST][a] @ self.decided.flow[a]):
                component = "egress" if problem.sites[r].api is None else BOUGHT
                self.cost_lines[component, problem.sites[r].region, form.arc_kinds[a], ""] += cost
                self.by_name[problem.serving[w].name] += cost
        for workload in problem.serving:
            tree = problem.trees.get(workload.name, NO_TREE)
            hosts = {form.points[p].site for p in self.decided.used if form.points[p].workload is workload}
            for edge in sorted({edge for site in hosts for edge in tree.edges_above.get(site, ())}):
                self.cost_lines["weights", tree.edges[edge][1], "", ""] += tree.edge_cost[edge]
                self.by_name[workload.name] += tree.edge_cost[edge]
        for line, name, amount in self.decided.lines.costs() if self.decided.lines else ():
            self.cost_lines[line] += amount
            self.by_name[name] += amount


def _is_of_site(component: str, system: str) -> bool:
    """Tell whether a cost belongs to a site as a whole, not to one system."""
    return component == "site" or (component in ELECTRICITY_LINES and not system)
