"""The re-check of what a plan says of time: when each system of the fleet comes and goes, at what price, and the table of phases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from catalog.units import DAY_S, MILLION, YEAR_S
from planner.problem.facts import OfferFacts
from planner.verify.terms import SECOND, InTime, annuity, paid_yearly

if TYPE_CHECKING:
    from planner.verify.amounts import Amounts
    from planner.verify.fleet import CheckedOption


class PhaseCheck:
    """The table of phases, added up again from the rest of the plan."""

    def __init__(self, check: Amounts):
        self.check, self.problem, self.document = check, check.problem, check.document

    def run(self) -> None:
        stated = self.document["phases"]
        if [row["name"] for row in stated] != [phase.name for phase in self.problem.phases]:
            self.check.say("phases", "must be those of the spec, in their order")
            return
        from planner.verify.phase_budgets import payments

        cost, tokens, paid = self._costs(), self.check.tokens, payments(self.check)
        calendar = self.problem.calendar
        for p, (row, phase) in enumerate(zip(stated, self.problem.phases, strict=True)):
            edges = calendar.edges_s
            inside = [w for w in range(calendar.windows) if phase.start_s - SECOND <= edges[w] < phase.end_s - SECOND]
            slots = [t for t in range(calendar.slots) if int(calendar.window[t]) in inside]
            bought = [
                (fleet["count"] * (when.price + option.fabric_capital), when, option)
                for fleet, when, option in self._fleet()
                if option.owned and when.phase == p
            ]
            spent = sum(cost[w] for w in inside)
            worth = sum(
                float(calendar.seconds[t] * calendar.discount[t]) * sum(rate[t] for rate in tokens.values())
                for t in slots
            )
            computed = {
                "start": self._day(phase.start_s), "end": self._day(phase.end_s), "windows": dict(enumerate((inside[0], inside[-1]))),
                "capital": sum(amount for amount, _, _ in bought),
                "paid": paid[p] if paid is not None else None,
                "residual": sum(amount * self._left(when, option.offer) for amount, when, option in bought),
                "chips": max((sum(fleet["count"] * option.system.chips for fleet, when, option in self._fleet() if w in when.windows) for w in inside), default=0),
                "cost": spent,
                "tokens": {name: sum(float(calendar.seconds[t]) * tokens[name][t] for t in slots) for name in row["tokens"]},
                "cost_per_million_tokens": spent / worth * MILLION if worth else None,
            }  # fmt: skip
            self.check.equal(
                f"phases[{p}]",
                {**{key: row[key] for key in computed}, "windows": dict(enumerate(row["windows"]))},
                computed,
            )
            self._pools(f"phases[{p}].pools", row["pools"], slots)

    def _fleet(self) -> list[tuple[Mapping[str, Any], InTime, CheckedOption]]:
        return list(zip(self.document["fleet"], self.check.times, self.check.options_by_row, strict=True))

    def _day(self, moment_s: float) -> str:
        return (self.problem.calendar.start + timedelta(days=int(moment_s // DAY_S))).isoformat()

    def _left(self, when: InTime, offer: OfferFacts) -> float:
        """Annuities after the horizon, at their worth at its end."""
        money, edges = self.problem.economics, self.problem.calendar.edges_s
        if when.windows[-1] + 1 < self.problem.calendar.windows:
            return 0.0
        life = offer.life_s(money) / YEAR_S
        rest = max(life - float(edges[-1] - edges[when.windows[0]]) / YEAR_S, 0.0)
        yearly = annuity(money.discount_rate, life)
        return (
            yearly * rest
            if money.discount_rate == 0
            else yearly * (1 - (1 + money.discount_rate) ** -rest) / money.discount_rate
        )

    def _costs(self) -> list[float]:
        """Present value by window; what has no date of its own is spread over time."""
        problem, check = self.problem, self.check
        calendar, money = problem.calendar, problem.economics
        from planner.verify.fleet import tokens_price

        cost: dict[int, float] = defaultdict(float)
        years = [float(edge) / YEAR_S for edge in calendar.edges_s]
        weight = [float(s * d) for s, d in zip(calendar.seconds, calendar.discount)]
        for row, when, option in self._fleet():
            life = option.offer.life_s(money) / YEAR_S
            yearly = (when.price + option.fabric_capital) * annuity(
                money.discount_rate, life
            ) + option.facility_capital * annuity(money.discount_rate, money.facility_life_years)
            for w in when.windows if option.owned else ():
                cost[w] += row["count"] * yearly * paid_yearly(money.discount_rate, money.years, years[w], years[w + 1])
            for t in range(calendar.slots):
                if int(calendar.window[t]) in when.windows:
                    cost[int(calendar.window[t])] += (
                        row["count"]
                        * (option.nameplate_w * option.site.hall_per_w_s if option.owned else when.price)
                        * weight[t]
                    )
                    cost[int(calendar.window[t])] += self._energy(option, row["count"] * option.idle_it_w, t, weight[t])
        for name, replicas in check.active.items():
            for option, extra in check.points[name][1].extra:
                for t, count in enumerate(replicas):
                    cost[int(calendar.window[t])] += self._energy(option, count * extra, t, weight[t])
        for row in self.document["routes"]:
            workload, t = check.serving[row["workload"]], row["slot"]
            path = problem.routes(workload.name, row["origin"], row["site"])[row.get("line", "")]
            requests = row["tokens_per_s"] / workload.spec.lengths.output
            bought = tokens_price(check.sites[row["site"]], workload, float(calendar.edges_s[calendar.window[t]]))
            cost[int(calendar.window[t])] += (
                requests * weight[t] * (problem.egress_bytes(workload) * path.price_per_byte + bought)
            )
        dated = ("systems", "fabric", "facility", "colocation", "rent", "egress", "api")
        rest = sum(
            amount
            for (component, _, system, _), amount in check.sums.lines.items()
            if component not in dated and not (component == "energy" and system)
        )
        time: dict[int, float] = defaultdict(float)
        for t, value in enumerate(weight):
            time[int(calendar.window[t])] += value
        return [cost[w] + rest * time[w] / sum(weight) for w in range(calendar.windows)]

    def _energy(self, option: CheckedOption, watts: float, t: int, weight: float) -> float:
        if not option.owned or option.site.electricity is not None:
            return 0.0
        return watts * option.site.pue * float(option.site.price_per_j[self.problem.calendar.hour[t]]) * weight

    def _pools(self, path: str, stated: Sequence[Mapping[str, Any]], slots: Sequence[int]) -> None:
        busy: dict[tuple[str, str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for name, replicas in self.check.active.items():
            row, computed = self.check.points[name]
            for pool, systems, (option, _) in zip(row["pools"], computed.systems, computed.extra):
                for t in slots:
                    busy[computed.workload, pool["role"], pool["system"]][t] += (
                        replicas[t] * systems * option.system.chips
                    )
        most = {"/".join(key): max(of.values(), default=0.0) for key, of in busy.items()}
        told = {f"{row['workload']}/{row['role']}/{row['system']}": row["chips"] for row in stated}
        self.check.equal(path, told, {key: value for key, value in most.items() if value > 0})
