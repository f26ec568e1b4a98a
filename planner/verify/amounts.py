"""The re-check of a plan's amounts: every cost, kilogram and joule added up again, limits, latencies, objective and gap.

Decisions are in verify_decisions.py.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from planner.plan import BY_THE_BOUND
from planner.problem.facts import FLEET, PhaseFacts
from planner.verify.decisions import Decisions
from planner.verify.findings import TOLERANCE
from planner.verify.fleet import worth_of
from planner.verify.phase_budgets import payments
from planner.verify.power import power_values
from planner.verify.sums import add_up
from planner.verify.terms import InTime

OPTIMAL_GAP = 1e-6  # a gap below it is a solver's rounding
STATUS_ROUNDING = 1e-8  # a solver judged its status by its own sum, before the plan was added up


class Amounts(Decisions):
    """What follows from the decisions."""

    # -- amounts ---------------------------------------------------------------------------------------------------

    def _amounts(self) -> None:
        self.sums = add_up(self.problem, self.lots, self.document["fleet"], self.active, self.points, self.traffic, self.electricity, self.times)
        if self.lines is not None:
            self.sums.lines.update(self.lines.costs)
            for name, amount in self.lines.by_workload.items():
                self.sums.by_workload[name] += amount
            self._copies()
        for name, computed in (("cost_lines", self.sums.lines), ("carbon_lines", self.sums.carbon)):
            stated = {(row["component"], row["site"], row["system"], row["how"]): row["amount"] for row in self.document[name]}
            if len(stated) < len(self.document[name]):
                self.say(name, "a line stands twice")
            for key in sorted({*stated, *computed}):
                self.equal(f"{name} {'/'.join(filter(None, key))}", stated.get(key, 0.0), computed.get(key, 0.0))
        components: dict[str, float] = defaultdict(float)
        for (component, *_), amount in self.sums.lines.items():
            components[component] += amount
        self.equal("costs", self.document["costs"], components)
        self.equal("totals", self.document["totals"], self._totals())
        self._workload_rows()

    def _copies(self) -> None:
        """A site where only a copy of weights is kept has its fixed cost too, which belongs to all alike."""
        names = [*self.serving, *self.training]
        for region in self.lines.copies - {row["site"] for row in self.document["fleet"]}:
            amount = self.sites[region].fixed_cost_per_s * worth_of(self.problem, self.sites[region])
            if amount:
                self.sums.lines["site", region, "", ""] = amount
                for name in names:
                    self.sums.by_workload[name] += amount / len(names)

    def _totals(self) -> dict[str, float]:
        calendar = self.problem.calendar
        chips = [sum(counts[w] * self.lots[key].system.chips for key, counts in self.held.items()) for w in range(calendar.windows)]
        served = sum(float(s) * rate for name in self.serving for s, rate in zip(calendar.seconds, self.tokens[name]))
        power: dict[int, float] = defaultdict(float)
        for site in {key[0] for key in self.held}:
            for t in range(calendar.slots):
                power[t] += self.hours[site, t]["power_w"]
        return {
            "cost": sum(self.sums.lines.values()), "carbon_kg": sum(self.sums.carbon.values()), "energy_j": self.sums.energy_j,
            "tokens": served + sum(job.spec.tokens for job in self.problem.training),
            "chips": int(max(chips, default=0)), "peak_power_w": max(power.values(), default=0.0),
        }  # fmt: skip

    def _workload_rows(self) -> None:
        calendar = self.problem.calendar
        for w, row in enumerate(self.document["workloads"]):
            name = row["name"]
            mine = [n for n, (_, computed) in self.points.items() if computed.workload == name]
            seconds = [float(s) for s in calendar.seconds]
            tokens = sum(s * rate for s, rate in zip(seconds, self.tokens[name]))
            worth = sum(s * float(d) * rate for s, d, rate in zip(seconds, calendar.discount, self.tokens[name]))
            busy = {n: self.points[n][1].chips * sum(a * s for a, s in zip(self.active[n], seconds)) for n in mine}
            peak = max((sum(self.points[n][1].chips * self.active[n][t] for n in mine) for t in range(calendar.slots)), default=0.0)
            computed = {
                "tokens": tokens,
                "cost": self.sums.by_workload[name],
                "cost_per_million_tokens": self.sums.by_workload[name] / worth * 1e6 if worth else None,
                "utilisation": sum(busy.values()) / sum(seconds) / peak if peak else None,
                "mfu": sum(self.points[n][1].mfu * busy[n] for n in mine) / sum(busy.values()) if any(busy.values()) else None,
            }
            if "hfu" in row or (name not in self.serving and any("hfu" in point for point in row["points"])):
                computed["hfu"] = sum(self.points[n][1].hfu * busy[n] for n in mine) / sum(busy.values()) if any(busy.values()) else None
            if name in self.serving and (sold_at := self.serving[name].sold_at) is not None:
                computed |= {"revenue": worth * sold_at, "margin": worth * sold_at - self.sums.by_workload[name]}
            self.equal(f"workloads[{w}]", {key: row.get(key) for key in computed}, computed)
            for i, point in enumerate(row["points"]):
                self.equal(f"workloads[{w}].points[{i}].peak_replicas", point["peak_replicas"], max(self.active[point["id"]]))
            self._slo(w, row)

    def _slo(self, w: int, row: Mapping[str, Any]) -> None:
        facts = self.serving.get(row["name"])
        wanted = facts.spec.slo.limits() if facts else []
        if [(r["metric"], r["percentile"]) for r in row["slo"]] != [(m, p) for m, p, _ in wanted]:
            self.say(f"workloads[{w}].slo", "must list the limits of the spec in their order")
            return
        for i, (metric, percentile, limit) in enumerate(wanted):
            worst = max((self._at_origin(name, metric, percentile) for name, (_, c) in self.points.items() if c.workload == row["name"]), default=None)
            path, stated = f"workloads[{w}].slo[{i}]", row["slo"][i]
            self.equal(path, {key: stated[key] for key in ("limit_s", "predicted_s")}, {"limit_s": limit, "predicted_s": worst})
            if worst is not None:
                self.equal(f"{path}.slack_s", stated["slack_s"], stated["limit_s"] - stated["predicted_s"])
                self.at_most(path, worst, limit, f"{metric} {percentile}")
            elif stated["slack_s"] is not None:
                self.say(f"{path}.slack_s", "must be null where nothing is served")

    def _at_origin(self, name: str, metric: str, percentile: str) -> float:
        """Worst latency over the origins that the point's pool serves."""
        point, computed = self.points[name]
        travel = 0.0
        if metric != "tpot":
            travel = max(self.round_trips[point["pool"]])
        return computed.latency[f"{metric}.{percentile}"] + travel

    # -- limits and objective --------------------------------------------------------------------------------------

    def _limits(self) -> None:
        computed = sorted(self._limit_values())
        stated = sorted(self.document["limits"], key=lambda row: (row["path"], row["name"], row["value"]))
        if [(path, name) for path, name, _, _ in computed] != [(row["path"], row["name"]) for row in stated]:
            self.say("limits", "must be those of the spec that the plan meets, each once")
            return
        for (path, name, value, limit), row in zip(computed, stated):
            self.equal(f"limits {path}", {k: row[k] for k in ("value", "limit")}, {"value": value, "limit": limit})
            self.equal(f"limits {path}.slack", row["slack"], row["limit"] - row["value"])
            self.at_most(f"limits {path}", value, limit, name)
        self._prices_of_the_bound()

    def _prices_of_the_bound(self) -> None:
        """What the bound says of limits holds for this plan too: what they leave over at their prices comes to no more than lies between the two."""
        value, bound, divisible = self.document["objective"]["value"], self.document["bound"], self.document.get("bound_divisible")
        rows = [row for row in self.document["limits"] if BY_THE_BOUND in row.get("note", "") and row["marginal_value_divisible"] is not None]
        for row in rows:
            if not row["marginal_value_divisible"] < 0:
                self.say(f"limits {row['path']}.marginal_value_divisible", f"more of a limit cannot make the least cost larger: {row['marginal_value_divisible']!r}")
        if rows and divisible is None:
            self.say("bound_divisible", "must tell what the prices of the limits prove by themselves")
        if divisible is not None and (bound is None or divisible > bound + TOLERANCE * abs(bound)):
            self.say("bound_divisible", f"must not lie above the bound {bound!r}, which counts choices as whole: {divisible!r}")
        if rows and divisible is not None:
            left = sum(max(row["slack"], 0.0) * -row["marginal_value_divisible"] for row in rows)
            if left > value - divisible + TOLERANCE * abs(value):
                self.say("limits", f"what they leave over is worth {left:.9g} by the bound, which is only {value - divisible:.9g} away")

    def _limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        problem, calendar = self.problem, self.problem.calendar
        yield from power_values(self)
        for site in problem.sites:
            if site.meter is not None and math.isfinite(site.meter.connection_w):
                bought = max(row["grid_w"] for row in self.document["schedule"] if row["site"] == site.region)
                yield f"{site.meter.path}.connection", f"connection of {site.region}", bought, site.meter.connection_w
        for offer in problem.offers:
            if math.isfinite(offer.supply):
                taken = [sum(c[w] for key, c in self.held.items() if self.lots[key].offer is offer) for w in range(calendar.windows)]
                yield f"{offer.path}.supply", f"supply of {offer.system} ({offer.how})", max(taken), offer.supply
            for phase, most in zip(problem.phases, offer.phase_supply):
                rows = [(row["count"], when.windows) for row, when in self._obtained_in(phase) if row["offer"] == offer.path]
                taken = [sum(n for n, windows in rows if w in windows) for w in range(calendar.windows)]
                if math.isfinite(most):
                    yield f"{offer.path}.supply_by_phase.{phase.name}", f"supply of {offer.system} ({offer.how}) in {phase.name}", max(taken), most
        for key, counts in self.held.items():
            lot = self.lots[key]
            if math.isfinite(lot.largest):
                name = f"size of one {lot.fabric} network of {lot.system.name} in {lot.site.region}"
                yield f"{lot.site.path}.fabrics", name, max(counts), lot.largest
        prices = [row["count"] * (when.price + lot.fabric_capital) if lot.owned else 0.0 for row, when, lot in zip(self.document["fleet"], self.times, self.fleet_lots)]
        bought = sum(prices)
        bought += self.electricity.capital if self.electricity else 0.0
        for path, name, value, limit in (
            ("limits.budget", "present value of all costs", sum(self.sums.lines.values()), problem.budget),
            ("limits.capital", "purchase price of systems and fabric", bought, problem.capital),
            ("limits.carbon", "carbon", sum(self.sums.carbon.values()), problem.carbon_kg),
            *((f"{phase.path}.budget", f"payments in {phase.name}", paid, phase.budget) for phase, paid in zip(problem.phases, payments(self) or ())),
            *((f"{phase.path}.capital", f"purchase price in {phase.name}", sum(n for n, when in zip(prices, self.times) if when.phase == p), phase.capital) for p, phase in enumerate(problem.phases)),
        ):
            if math.isfinite(limit):
                yield path, name, value, limit
        if self.lines is not None:
            yield from self.lines.limit_values()
        if self.spread is not None:
            yield from self.spread.limit_values()
        yield from self.interruptions.limit_values()
        for job in problem.training:
            busy = sum(a * float(s) for n, (_, c) in self.points.items() if c.workload == job.name for a, s in zip(self.active[n], calendar.seconds))
            yield f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline", busy, job.spec.deadline - job.spec.start
        for workload in problem.serving:
            for metric, percentile, limit in workload.spec.slo.limits():
                mine = [n for n, (_, c) in self.points.items() if c.workload == workload.name]
                if mine:
                    worst = max(self._at_origin(n, metric, percentile) for n in mine)
                    yield f"{workload.path}.slo.{metric}.{percentile}", f"{metric.upper()} {percentile} of {workload.name}", worst, limit

    def _obtained_in(self, phase: PhaseFacts) -> list[tuple[Mapping[str, Any], InTime]]:
        position = self.problem.phases.index(phase)
        return [(row, when) for row, when in zip(self.document["fleet"], self.times) if when.phase == position]

    def _objective(self) -> None:
        document, asked = self.document, self.problem.spec.objective
        bound_of = self.problem.bound_of if self.problem.spec.robust is None else FLEET
        if document["bound_of"] != bound_of:
            self.say("bound_of", f"says {document['bound_of']!r}, the program is the {bound_of} one")
        value, bound, gap = document["objective"]["value"], document["bound"], document["gap"]
        if document["objective"]["sense"] != ("min" if asked.minimise else "max"):
            self.say("objective.sense", f"is not what the spec asks for: {document['objective']['sense']!r}")
        if asked.minimise:
            self.equal("objective.value", value, sum((self.sums.lines if asked.minimise == "cost" else self.sums.carbon).values()))
        if bound is None:
            if gap is not None or document["status"] != "limit":
                self.say("gap", "a gap, or a status that claims one, without a bound")
            return
        self.equal("gap", gap, abs(value - bound) / max(abs(value), 1e-9))
        beyond = bound - value if asked.minimise else value - bound
        if beyond > TOLERANCE * abs(value):
            self.say("bound", f"{bound!r} contradicts the plan's own {value!r}")
        allowed = {_status(gap + side * STATUS_ROUNDING, self.problem.spec.solver.gap) for side in (-1, 0, 1)}
        if document["status"] not in allowed:
            self.say("status", f"{document['status']!r} with a gap of {gap:.3g}, where {self.problem.spec.solver.gap:g} was asked")


def _status(gap: float, asked: float) -> str:
    return "optimal" if gap <= OPTIMAL_GAP else "within_gap" if gap <= asked else "limit"
