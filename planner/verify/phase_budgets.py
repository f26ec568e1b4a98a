"""Add up the payments of each phase from the plan document, undiscounted: a budget limits nominal payments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catalog.units import YEAR_S
from planner.problem.facts import ResolvedSpec
from planner.verify.checked_plan import CheckedPlan
from planner.verify.electricity import ElectricityCheck
from planner.verify.findings import Report
from planner.verify.fleet.economics import building_per_year, levies_of, licences_of, yearly_of
from planner.verify.fleet.holdings import Holding
from planner.verify.fleet.hourly import paid_in
from planner.verify.fleet.options import CheckedOption, tokens_price
from planner.verify.fleet.relays import paid_for_loads
from planner.verify.lines import LineCheck
from planner.verify.points.reinforcement import slots_per_s
from planner.verify.timing import TIME_TOL_S, paid_yearly, risen, risen_by_slot


def payments(plan: CheckedPlan) -> list[float]:
    """Add up the payments of each phase."""
    return [_PhasePayments(plan, p).total() for p in range(len(plan.problem.phases))]


class _PhasePayments:
    """Add up the payments of one phase."""

    def __init__(self, plan: CheckedPlan, p: int):
        self.plan, self.problem, self.calendar, self.p = plan, plan.problem, plan.problem.calendar, p
        phase, rises = plan.problem.phases[p], plan.problem.economics.escalation
        self.risen = risen_by_slot(self.calendar, rises.electricity)
        self.rent_risen = risen_by_slot(self.calendar, rises.rent)
        self.edges = [float(edge) for edge in self.calendar.edges_s]
        self.inside = [phase.start_s - TIME_TOL_S <= edge < phase.end_s - TIME_TOL_S for edge in self.edges[:-1]]
        self.slots = [
            (t, window, float(self.calendar.seconds[t]))
            for t in range(self.calendar.slots)
            if self.inside[window := int(self.calendar.window[t])]
        ]

    def total(self) -> float:
        """Add up all payments."""
        used = self._fleet() + self._points() + self._requests() + self._sites()
        return used + self._loads() + self._lines() + self._porting() + self._meters()

    def _fleet(self) -> float:
        """Add the cost of the systems held: purchase, buildings, halls and idle power, or rent."""
        plan, total = self.plan, 0.0
        for row, holding, option in zip(plan.document["fleet"], plan.holdings, plan.options_by_row, strict=True):
            if option.owned:
                total += row["count"] * self._owned(option, holding)
            elif row["how"] != "api":
                licences = licences_of(self.problem.economics, option) / YEAR_S
                for t, w, s in self.slots:
                    if w in holding.windows:
                        n, started = paid_in(plan, row, t)
                        total += ((n + started) * holding.rent_in(w) + n * licences) * s
                total += row["count"] * holding.owed * self.inside[holding.windows[-1]]
        return total

    def _owned(self, option: CheckedOption, holding: Holding) -> float:
        """Add up the payments for one system of our own."""
        money = self.problem.economics
        spans = [(self.edges[w] / YEAR_S, self.edges[w + 1] / YEAR_S) for w in holding.windows if self.inside[w]]

        def years(escalation: float = 0.0) -> float:
            """Count the years held in the phase, each for what its price has risen to."""
            return sum(paid_yearly(0.0, money.years, begin, end, escalation=escalation) for begin, end in spans)

        upkeep = yearly = 0.0
        if not self.plan.annuities:
            upkeep = money.maintenance * years(money.escalation.maintenance)
            each = yearly_of(money, option) | levies_of(money, holding.price + option.fabric_capital)
            yearly = each.pop("staff", 0.0) * years(money.escalation.staff) + sum(each.values()) * years()
        building = option.facility_capital * building_per_year(money) * years()
        hall_per_s = option.nameplate_w * option.site.hall_per_w_s
        return (
            holding.capital(option) * (holding.phase == self.p)
            + (holding.price + option.fabric_capital) * upkeep
            + yearly
            + building
            + sum(
                s * (hall_per_s * self.rent_risen[t] + option.idle_at_meter_w * self._idle_price(option, t))
                for t, w, s in self.slots
                if w in holding.windows
            )
        )

    def _price(self, option: CheckedOption, t: int) -> float:
        """Price a joule at the meter in a slot."""
        return sum(option.drawn_per_j(int(self.calendar.hour[t]), self.risen[t]).values())

    def _idle_price(self, option: CheckedOption, t: int) -> float:
        """Return the price of the energy of idle systems beside the bill of a meter [1/J]: they earn nothing."""
        return self._price(option, t) + option.unearned_per_j(int(self.calendar.hour[t]), self.risen[t])

    def _points(self) -> float:
        """Add the energy that replicas on our own systems draw above idle, and the environment slots of jobs at work."""
        slots = sum(
            replicas[t] * slots_per_s(self.plan.training.get(self.plan.points[name][1].workload)) * s
            for name, replicas in self.plan.active.items()
            for t, _, s in self.slots
        )
        return slots + sum(
            replicas[t] * extra * option.pue * self._price(option, t) * s
            for name, replicas in self.plan.active.items()
            for option, extra in self.plan.points[name][1].extra
            if option.owned
            for t, _, s in self.slots
        )

    def _loads(self) -> float:
        """Add the loads of weights."""
        inside = [0.0] * self.calendar.slots
        for t, _, s in self.slots:
            inside[t] = s
        return sum(sum(paid) for _, paid in paid_for_loads(self.plan, inside))

    def _requests(self) -> float:
        """Add egress and the tokens of APIs."""
        total, lasts = 0.0, {t: s for t, _, s in self.slots}
        for row in self.plan.document["routes"]:
            if row["slot"] in lasts:
                workload, site = self.plan.serving[row["workload"]], self.plan.sites[row["site"]]
                route = self.problem.routes(workload.name, row["origin"], row["site"])[row.get("line", "")]
                begin_s = self.edges[int(self.calendar.window[row["slot"]])]
                each = self.problem.egress_bytes(workload) * route.price_per_byte
                each += tokens_price(site, workload, begin_s)
                total += row["tokens_per_s"] / workload.spec.lengths.output * each * lasts[row["slot"]]
        return total

    def _sites(self) -> float:
        """Add the fixed cost and the crew of the sites in use."""
        total = 0.0
        for component, region, _, how in self.plan.sums.lines:
            if component in ("site", "staff") and not how:
                site = self.plan.sites[region]
                for _, w, s in self.slots:
                    if self.edges[w] >= site.from_s - TIME_TOL_S:
                        crew = site.crew_per_s * risen(self.problem.economics.escalation.staff, self.edges[w])
                        total += (site.fixed_cost_per_s if component == "site" else crew) * s
        return total

    def _lines(self) -> float:
        """Add the rent of lines and their traffic, or else the copies of weights, evenly over time."""
        if self.plan.lines is not None:
            again = LineCheck(self._masked(), self.plan.lines.network, self.plan.document, Report())
            again.run(self.plan.lines.hosts)
            return sum(again.costs.values())
        length = [self.edges[w + 1] - self.edges[w] for w in range(self.calendar.windows)]
        worth = sum(s * float(self.calendar.window_worth[w]) for w, s in enumerate(length))
        return (
            self._component("weights") / worth * sum(s for s, inside in zip(length, self.inside, strict=True) if inside)
        )

    def _masked(self) -> ResolvedSpec:
        """Return the problem with a discount factor of 1 in the phase and 0 outside."""
        factors = np.array([float(self.inside[int(w)]) for w in self.calendar.window])
        return replace(self.problem, calendar=replace(self.calendar, discount=factors))

    def _meters(self) -> float:
        """Add what meters, contracts and batteries cost in the phase."""
        if self.plan.electricity is None:
            return 0.0
        again = ElectricityCheck(self._masked(), self.plan.document, Report(), self.problem.phases[self.p])
        again.run({key: hour["own_power_w"] for key, hour in self.plan.hours.items()})
        return sum(again.costs.values())

    def _porting(self) -> float:
        """Add the cost of ports, which is paid at the start."""
        return self._component("porting") if self.p == 0 else 0.0

    def _component(self, name: str) -> float:
        return sum(amount for (component, *_), amount in self.plan.sums.lines.items() if component == name)
