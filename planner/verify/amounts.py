"""Recompute a plan's amounts: every cost, kilogram and joule added up again, latencies, objective and gap.

Decisions are checked in `planner.verify.decisions`, limits in `planner.verify.limits`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from planner.problem.facts import FLEET
from planner.verify.decisions import Decisions
from planner.verify.findings import TOLERANCE
from planner.verify.fleet import worth_of
from planner.verify.sums import add_up

OPTIMAL_GAP = 1e-6  # a gap below it is a solver's rounding
STATUS_ROUNDING = 1e-8  # a solver judged its status by its own sum, before the plan was added up


class Amounts(Decisions):
    """What follows from the decisions."""

    # -- amounts ---------------------------------------------------------------------------------------------------

    def _amounts(self) -> None:
        self.sums = add_up(
            self.problem,
            self.fleet_options,
            self.document["fleet"],
            self.active,
            self.points,
            self.traffic,
            self.electricity,
            self.times,
        )
        if self.lines is not None:
            self.sums.lines.update(self.lines.costs)
            for name, amount in self.lines.by_workload.items():
                self.sums.by_workload[name] += amount
            self._copies()
        for name, computed in (("cost_lines", self.sums.lines), ("carbon_lines", self.sums.carbon)):
            stated = {
                (row["component"], row["site"], row["system"], row["how"]): row["amount"] for row in self.document[name]
            }
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
        chips = [
            sum(counts[w] * self.fleet_options[key].system.chips for key, counts in self.held.items())
            for w in range(calendar.windows)
        ]
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
            peak = max(
                (sum(self.points[n][1].chips * self.active[n][t] for n in mine) for t in range(calendar.slots)),
                default=0.0,
            )
            computed = {
                "tokens": tokens,
                "cost": self.sums.by_workload[name],
                "cost_per_million_tokens": self.sums.by_workload[name] / worth * 1e6 if worth else None,
                "utilisation": sum(busy.values()) / sum(seconds) / peak if peak else None,
                "mfu": sum(self.points[n][1].mfu * busy[n] for n in mine) / sum(busy.values())
                if any(busy.values())
                else None,
            }
            if "hfu" in row or (name not in self.serving and any("hfu" in point for point in row["points"])):
                computed["hfu"] = (
                    sum(self.points[n][1].hfu * busy[n] for n in mine) / sum(busy.values())
                    if any(busy.values())
                    else None
                )
            if name in self.serving and (sold_at := self.serving[name].sold_at) is not None:
                computed |= {"revenue": worth * sold_at, "margin": worth * sold_at - self.sums.by_workload[name]}
            self.equal(f"workloads[{w}]", {key: row.get(key) for key in computed}, computed)
            for i, point in enumerate(row["points"]):
                self.equal(
                    f"workloads[{w}].points[{i}].peak_replicas", point["peak_replicas"], max(self.active[point["id"]])
                )
            self._slo(w, row)

    def _slo(self, w: int, row: Mapping[str, Any]) -> None:
        facts = self.serving.get(row["name"])
        wanted = facts.spec.slo.limits() if facts else []
        if [(r["metric"], r["percentile"]) for r in row["slo"]] != [(m, p) for m, p, _ in wanted]:
            self.say(f"workloads[{w}].slo", "must list the limits of the spec in their order")
            return
        for i, (metric, percentile, limit) in enumerate(wanted):
            worst = max(
                (
                    self._at_origin(name, metric, percentile)
                    for name, (_, c) in self.points.items()
                    if c.workload == row["name"]
                ),
                default=None,
            )
            path, stated = f"workloads[{w}].slo[{i}]", row["slo"][i]
            self.equal(
                path, {key: stated[key] for key in ("limit_s", "predicted_s")}, {"limit_s": limit, "predicted_s": worst}
            )
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

    # -- objective --------------------------------------------------------------------------------------------------

    def _objective(self) -> None:
        document, asked = self.document, self.problem.spec.objective
        bound_of = self.problem.bound_of if self.problem.spec.robust is None else FLEET
        if document["bound_of"] != bound_of:
            self.say("bound_of", f"says {document['bound_of']!r}, the program is the {bound_of} one")
        value, bound, gap = document["objective"]["value"], document["bound"], document["gap"]
        if document["objective"]["sense"] != ("min" if asked.minimise else "max"):
            self.say("objective.sense", f"is not what the spec asks for: {document['objective']['sense']!r}")
        if asked.minimise:
            self.equal(
                "objective.value",
                value,
                sum((self.sums.lines if asked.minimise == "cost" else self.sums.carbon).values()),
            )
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
            self.say(
                "status",
                f"{document['status']!r} with a gap of {gap:.3g}, where {self.problem.spec.solver.gap:g} was asked",
            )


def _status(gap: float, asked: float) -> str:
    return "optimal" if gap <= OPTIMAL_GAP else "within_gap" if gap <= asked else "limit"
