"""Check the table of phases: dates, capital, payments, cost and tokens of each, added up from the rest of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from catalog.units import DAY_S, MILLION, YEAR_S
from planner.problem.facts import OfferFacts, PhaseFacts
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.economics import (
    building_per_year,
    levies_of,
    licences_of,
    residual_share,
    worth_of_years,
    yearly_of,
)
from planner.verify.fleet.holdings import Holding
from planner.verify.fleet.hourly import paid_in
from planner.verify.fleet.options import CheckedOption, tokens_price
from planner.verify.fleet.relays import paid_for_loads
from planner.verify.phase_budgets import payments
from planner.verify.points.reinforcement import slots_per_s
from planner.verify.timing import TIME_TOL_S, annuity, risen_by_slot

DATED = ("egress", "api", "environments")
"""Components whose payments have dates, beside all that is paid for a row of the fleet."""


class PhaseCheck:
    """Check the section `phases`."""

    def __init__(self, plan: CheckedPlan):
        self.plan, self.problem, self.document = plan, plan.problem, plan.document
        self.calendar, self.money = plan.problem.calendar, plan.problem.economics
        self.risen = risen_by_slot(self.calendar, self.money.escalation.electricity)

    def run(self) -> None:
        """Compare each row with its phase."""
        stated = self.document["phases"]
        if [row["name"] for row in stated] != [phase.name for phase in self.problem.phases]:
            self.plan.say("phases", "verify.phases_in_order")
            return
        cost, paid = self._cost_by_window(), payments(self.plan)
        for p, (row, phase) in enumerate(zip(stated, self.problem.phases, strict=True)):
            computed = self._row(p, phase, cost, paid[p])
            stated_row = {**{key: row[key] for key in computed}, "windows": dict(enumerate(row["windows"]))}
            self.plan.equal(f"phases[{p}]", stated_row, computed)
            self._check_pools(f"phases[{p}].pools", row["pools"], self._slots(phase))

    def _windows(self, phase: PhaseFacts) -> list[int]:
        edges = self.calendar.edges_s
        return [
            w for w in range(self.calendar.windows) if phase.start_s - TIME_TOL_S <= edges[w] < phase.end_s - TIME_TOL_S
        ]

    def _slots(self, phase: PhaseFacts) -> list[int]:
        inside = set(self._windows(phase))
        return [t for t in range(self.calendar.slots) if int(self.calendar.window[t]) in inside]

    def _row(self, p: int, phase: PhaseFacts, cost: Sequence[float], paid: float | None) -> dict[str, Any]:
        """Compute the row of a phase."""
        inside, slots, tokens = self._windows(phase), self._slots(phase), self.plan.tokens
        seconds, discount = self.calendar.seconds, self.calendar.discount
        bought = [
            (row["count"] * holding.capital(option), holding, option)
            for row, holding, option in self._fleet()
            if option.owned and holding.phase == p
        ]
        chips = [
            sum(row["count"] * option.system.chips for row, holding, option in self._fleet() if w in holding.windows)
            for w in inside
        ]
        spent = sum(cost[w] for w in inside)
        worth = sum(float(seconds[t] * discount[t]) * sum(rate[t] for rate in tokens.values()) for t in slots)
        return {
            "start": self._day(phase.start_s),
            "end": self._day(phase.end_s),
            "windows": {0: inside[0], 1: inside[-1]},
            "capital": sum(amount for amount, _, _ in bought),
            "paid": paid,
            "residual": sum(amount * self._residual_share(holding, option.offer) for amount, holding, option in bought),
            "chips": max(chips, default=0),
            "cost": spent,
            "tokens": {
                name: sum(float(seconds[t]) * tokens[name][t] for t in slots)
                for name in (*self.plan.serving, *self.plan.training)
            },
            "cost_per_million_tokens": spent / worth * MILLION if worth else None,
        }

    def _fleet(self) -> Iterator[tuple[Row, Holding, CheckedOption]]:
        yield from zip(self.document["fleet"], self.plan.holdings, self.plan.options_by_row, strict=True)

    def _day(self, moment_s: float) -> str:
        return (self.calendar.start + timedelta(days=int(moment_s // DAY_S))).isoformat()

    def _residual_share(self, holding: Holding, offer: OfferFacts) -> float:
        """Compute the share of a purchase price that is left at the end of the horizon; by annuities, the worth of those still to come."""
        rate, edges = self.money.discount_rate, self.calendar.edges_s
        if holding.windows[-1] + 1 < self.calendar.windows:
            return 0.0
        age = float(edges[-1] - edges[holding.windows[0]]) / YEAR_S
        if not self.plan.annuities:
            return residual_share(self.money, offer.system, age)
        life = offer.life_s(self.money) / YEAR_S
        rest = max(life - age, 0.0)
        yearly = annuity(rate, life)
        return yearly * rest if rate == 0 else yearly * (1 - (1 + rate) ** -rest) / rate

    def _cost_by_window(self) -> list[float]:
        """Compute the present value by window; components without dates are spread over time."""
        cost: dict[int, float] = defaultdict(float)
        weight = [float(s * d) for s, d in zip(self.calendar.seconds, self.calendar.discount, strict=True)]
        window = [int(w) for w in self.calendar.window]
        self._add_systems(cost, weight)
        for name, replicas in self.plan.active.items():
            slots = slots_per_s(self.plan.training.get(self.plan.points[name][1].workload))
            for t, count in enumerate(replicas if slots else ()):
                cost[window[t]] += slots * count * weight[t]
            for option, extra in self.plan.points[name][1].extra:
                for t, count in enumerate(replicas):
                    cost[window[t]] += self._energy(option, count * extra * option.pue, t, weight[t])
        self._add_requests(cost, weight)
        for _, paid in paid_for_loads(self.plan, weight):
            for t, amount in enumerate(paid):
                cost[window[t]] += amount
        rest = sum(
            amount
            for (component, _, _, how), amount in self.plan.sums.lines.items()
            if component not in DATED and not how
        )
        time: dict[int, float] = defaultdict(float)
        for t, value in enumerate(weight):
            time[window[t]] += value
        return [cost[w] + rest * time[w] / sum(weight) for w in range(self.calendar.windows)]

    def _add_systems(self, cost: dict[int, float], weight: Sequence[float]) -> None:
        """Add hall rent or rent, idle energy, and purchases in equal yearly payments over the time held, of every fleet row."""
        rate, years = self.money.discount_rate, [float(edge) / YEAR_S for edge in self.calendar.edges_s]
        rises = self.money.escalation
        rent_risen = risen_by_slot(self.calendar, rises.rent)
        for row, holding, option in self._fleet():
            worth, staffed, kept_up = (
                {w: worth_of_years(self.money, years[w], years[w + 1], escalation) for w in holding.windows}
                for escalation in (0.0, rises.staff, rises.maintenance)
            )
            paid = holding.charged
            each = holding.price * paid.of_system * (1 + holding.parts) + option.fabric_capital * paid.price
            upkeep = (holding.price + option.fabric_capital) * paid.upkeep / sum(kept_up.values())
            yearly, staff = each / sum(worth.values()), 0.0
            if not self.plan.annuities:
                others = yearly_of(self.money, option)
                staff = others.pop("staff", 0.0)
                yearly += sum(others.values())
                yearly += sum(levies_of(self.money, holding.price + option.fabric_capital).values())
            yearly += option.facility_capital * building_per_year(self.money)
            for w in holding.windows if option.owned else ():
                cost[w] += row["count"] * (yearly * worth[w] + staff * staffed[w] + upkeep * kept_up[w])
            if holding.owed:
                left = years[holding.windows[-1] + 1]
                cost[holding.windows[-1]] += row["count"] * holding.owed * (1 + rate) ** -left
            licences = licences_of(self.money, option) / YEAR_S
            hall_per_s = option.nameplate_w * option.site.hall_per_w_s
            for t in range(self.calendar.slots):
                w = int(self.calendar.window[t])
                if w in holding.windows:
                    n, started = paid_in(self.plan, row, t)
                    per_s = hall_per_s * rent_risen[t] if option.owned else holding.rent_in(w) + licences
                    cost[w] += (n * per_s + started * holding.price) * weight[t]
                    idle_w = n * option.idle_at_meter_w
                    cost[w] += self._energy(option, idle_w, t, weight[t])
                    cost[w] += idle_w * option.unearned_per_j(int(self.calendar.hour[t]), self.risen[t]) * weight[t]

    def _add_requests(self, cost: dict[int, float], weight: Sequence[float]) -> None:
        """Add egress and the tokens of APIs."""
        for row in self.document["routes"]:
            workload, t = self.plan.serving[row["workload"]], row["slot"]
            w = int(self.calendar.window[t])
            route = self.problem.routes(workload.name, row["origin"], row["site"])[row.get("line", "")]
            bought = tokens_price(self.plan.sites[row["site"]], workload, float(self.calendar.edges_s[w]))
            each = self.problem.egress_bytes(workload) * route.price_per_byte + bought
            cost[w] += row["tokens_per_s"] / workload.spec.lengths.output * weight[t] * each

    def _energy(self, option: CheckedOption, watts: float, t: int, weight: float) -> float:
        """Price the energy drawn in a slot."""
        return watts * sum(option.drawn_per_j(int(self.calendar.hour[t]), self.risen[t]).values()) * weight

    def _check_pools(self, path: str, stated: Sequence[Row], slots: Sequence[int]) -> None:
        """Compare the most chips that each workload keeps at work in a phase, by role and system."""
        busy: dict[tuple[str, str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for name, replicas in self.plan.active.items():
            row, computed = self.plan.points[name]
            for pool, systems, (option, _) in zip(row["pools"], computed.systems, computed.extra, strict=True):
                for t in slots:
                    at_work = replicas[t] * systems * option.system.chips
                    busy[computed.workload, pool["role"], pool["system"]][t] += at_work
        most = {"/".join(key): max(of.values(), default=0.0) for key, of in busy.items()}
        stated_chips = {f"{row['workload']}/{row['role']}/{row['system']}": row["chips"] for row in stated}
        if len(stated_chips) < len(stated):
            self.plan.say(path, "verify.row_twice")
        self.plan.equal(path, stated_chips, {key: value for key, value in most.items() if value > 0})
