"""Re-checks a plan from its file alone: every used point is evaluated again one by one, every limit and amount added up again.

Reads the plan document and its echoed spec. It shares with the way there the figures (`planner.resolve`) and the closed
forms (`models`), and nothing of the candidates' choice, the formulation, the solver or the accounts. What the plan says of
a point is held against the closed forms; all that follows is added up from what it says, so it must agree to the rounding
of a sum, and a wrong number is found even where it is a small part of a large total.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.document import at
from planner.findings import TOLERANCE, Finding, Report, close
from planner.plan import Plan
from planner.problem import Problem, exportable, permitted
from planner.recheck import Evaluated, Lots, evaluate_point
from planner.resolve import resolve
from planner.spec import parse_spec

OPTIMAL_GAP = 1e-6  # a gap below it is a solver's rounding
STATUS_ROUNDING = 1e-8  # a solver judged its status by its own sum, before the plan was added up
UNANSWERED = ("infeasible", "unbounded", "limit")


def verify_plan(plan: Plan, overlays: Sequence[Path] = ()) -> list[Finding]:
    """Everything that does not hold: closed forms to one part in a million, sums to their rounding; empty when the plan holds.

    When the catalog is not the one that the plan was made with, the figures of the plan's provenance are used.
    Raises SpecError when the plan's spec cannot be read.
    """
    document = plan.document
    problem = resolve(parse_spec(document["spec"]), overlays)
    if not same_catalog(problem, document):
        problem = _with_recorded_figures(document, overlays)
    return findings(problem, document)


def catalog_note(plan: Plan, overlays: Sequence[Path] = ()) -> str:
    """What to tell a user whose catalog is not the plan's; empty when it is."""
    if same_catalog(resolve(parse_spec(plan["spec"]), overlays), plan.document):
        return ""
    return "the plan was made with another catalog: checked on the figures recorded under `provenance`"


def same_catalog(problem: Problem, document: Mapping[str, Any]) -> bool:
    return problem.catalog_digest == document["catalog_digest"]


def findings(problem: Problem, document: Mapping[str, Any]) -> list[Finding]:
    """What in `document` does not hold for `problem`, which is its own spec resolved."""
    check = _Check(problem, document)
    try:
        check.run()
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, ArithmeticError) as error:
        check.say("plan", f"cannot be read through: {type(error).__name__} {error}")
    return check.found


def _with_recorded_figures(document: Mapping[str, Any], overlays: Sequence[Path]) -> Problem:
    """The problem on the figures that the plan recorded, whatever the catalog says today."""
    recorded = {
        row["path"]: {"value": row["value"], "unit": row["unit"], "note": "as recorded in the plan"}
        for row in document["provenance"]
    }
    spec = parse_spec(document["spec"])
    return resolve(spec, overlays, recorded)


class _Check(Report):
    def __init__(self, problem: Problem, document: Mapping[str, Any]):
        super().__init__()
        self.problem, self.document = problem, document
        self.same_figures = same_catalog(problem, document)
        self.lots = Lots(problem)
        self.sites = {site.region: site for site in problem.sites}
        self.serving = {w.name: w for w in problem.serving}
        self.training = {w.name: w for w in problem.training}
        self.points: dict[str, tuple[Mapping[str, Any], Evaluated]] = {}

    def run(self) -> None:
        if self.document["objective"]["value"] is None:
            self._empty()
            return
        self._points()
        self._fleet()
        self._schedule()
        self._routes()
        self._jobs()
        self._amounts()
        self._limits()
        self._objective()

    def _empty(self) -> None:
        document = self.document
        if document["status"] not in UNANSWERED:
            self.say("status", f"{document['status']!r}, but there is no plan")
        for key in ("fleet", "workloads", "routes", "schedule", "costs", "gap"):
            if document[key]:
                self.say(key, "must be empty where there is no plan")
        found = document["diagnosis"]
        if (document["status"] == "infeasible") != isinstance(found, Mapping):
            self.say("diagnosis", "belongs to an infeasible plan, and to no other")
        for i, row in enumerate(found["repair"] if isinstance(found, Mapping) else ()):
            stated = at(document["spec"], row["path"])
            if stated is not None and stated != row["from"]:
                self.say(f"diagnosis.repair[{i}].from", f"says {row['from']!r}, the spec says {stated!r}")

    # -- points and fleet ------------------------------------------------------------------------------------------

    def _points(self) -> None:
        for w, workload in enumerate(self.document["workloads"]):
            facts = self.serving.get(workload["name"]) or self.training.get(workload["name"])
            if facts is None:
                self.say(f"workloads[{w}].name", f"{workload['name']!r} is not in the spec")
                continue
            for i, point in enumerate(workload["points"]):
                path = f"workloads[{w}].points[{i}]"
                known = self.same_figures  # else today's catalog may have seen more chips than that of the plan had
                computed = evaluate_point(self.problem, self.lots, facts, {**point, "tier": None} if known else point)
                if point["id"] in self.points:
                    self.say(f"{path}.id", "stands twice")
                self.points[point["id"]] = point, computed
                stated = {key: point[key] for key in computed.stated} | {"pools": dict(enumerate(point["pools"]))}
                self.equal(path, stated, computed.stated, TOLERANCE)
                if not computed.fits:
                    self.say(path, "does not fit in memory")
                site = self.sites[point["site"]]
                if not permitted(facts, site):
                    self.say(path, f"residency forbids {facts.name} in {site.region}")
                for pool in point["pools"]:
                    if pool["precision"] not in facts.spec.precision:
                        self.say(path, f"precision {pool['precision']} was not asked for")
        names = [w["name"] for w in self.document["workloads"]]
        if sorted(names) != sorted([*self.serving, *self.training]):
            self.say("workloads", "must be those of the spec, each once")

    def _fleet(self) -> None:
        windows = self.problem.calendar.windows
        self.held: dict[tuple, list[float]] = defaultdict(lambda: [0.0] * windows)
        fabrics: dict[tuple[str, str], set[str]] = defaultdict(set)
        for i, row in enumerate(self.document["fleet"]):
            path, key = f"fleet[{i}]", _key(row)
            lot, phase = self.lots[key], row["phase"]
            if type(row["count"]) is not int or row["count"] < 1:
                self.say(f"{path}.count", f"expected a whole number of systems, got {row['count']!r}")
            if (phase is not None) != (row["how"] == "on_demand"):
                self.say(f"{path}.phase", "on-demand systems are held by phase, all others throughout")
            if not exportable(lot.system, lot.site, self.problem.spec.limits):
                self.say(path, f"export control bars {row['system']} from {row['site']}")
            if row["how"] == "buy":
                fabrics[row["site"], row["system"]].add(row["fabric"])
            for window in range(windows) if phase is None else [phase]:
                self.held[key][window] += row["count"]
            self.at_most(path, row["count"], lot.largest, f"systems on one {row['fabric']} network")
        for (site, system), chosen in fabrics.items():
            if len(chosen) > 1:
                self.say("fleet", f"{system} in {site} stands on several fabrics: {', '.join(sorted(chosen))}")

    # -- hours -----------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Every hour's power, energy and prices; no lot works more systems than it holds."""
        calendar = self.problem.calendar
        self.active: dict[str, list[float]] = defaultdict(lambda: [0.0] * calendar.slots)
        seen: set[tuple[str, int]] = set()
        for i, row in enumerate(self.document["schedule"]):
            t = row["slot"]
            if (row["site"], t) in seen or row["site"] not in self.sites or not 0 <= t < calendar.slots:
                self.say(f"schedule[{i}]", "names a site and slot twice, or one that does not exist")
                continue
            seen.add((row["site"], t))
            for name, replicas in row["active"].items():
                if replicas < 0 or self.points[name][0]["site"] != row["site"]:
                    self.say(f"schedule[{i}].active.{name}", "is negative or belongs to another site")
                self.active[name][t] += replicas
        used = {row["site"] for row in self.document["fleet"]}
        if seen != {(site, t) for site in used for t in range(calendar.slots)}:
            self.say("schedule", "must have one row for each used site and slot")
        self.hours = {(site, t): self._hour(site, t) for site in self.sites for t in range(calendar.slots)}
        for i, row in enumerate(self.document["schedule"]):
            self.equal(f"schedule[{i}]", {k: v for k, v in row.items() if k != "active"}, self.hours[row["site"], row["slot"]])
        self._installed()

    def _hour(self, region: str, t: int) -> dict[str, Any]:
        calendar, site = self.problem.calendar, self.sites[region]
        phase, hour = int(calendar.window[t]), int(calendar.hour[t])
        every = own = 0.0
        for key, counts in self.held.items():
            lot = self.lots[key]
            if lot.site.region == region:
                watts = counts[phase] * lot.idle_it_w * site.pue
                every += watts
                own += watts if lot.owned else 0.0
        for name, replicas in self.active.items():
            point, computed = self.points[name]
            if point["site"] == region:
                for lot, extra in computed.extra:
                    every += replicas[t] * extra * site.pue
                    own += replicas[t] * extra * site.pue if lot.owned else 0.0
        seconds = float(calendar.seconds[t])
        return {
            "site": region, "slot": t, "phase": phase, "hour_utc": hour, "seconds": seconds,
            "power_w": every, "own_power_w": own, "energy_j": every * seconds,
            "price_per_j": float(site.price_per_j[hour]), "carbon_kg_per_j": float(site.carbon_kg_per_j[hour]),
        }  # fmt: skip

    def _installed(self) -> None:
        calendar = self.problem.calendar
        for t in range(calendar.slots):
            busy: dict[tuple, float] = defaultdict(float)
            for name, replicas in self.active.items():
                point, computed = self.points[name]
                for pool, systems in zip(point["pools"], computed.systems):
                    busy[_key(pool | {"site": point["site"]})] += replicas[t] * systems
            for key, systems in busy.items():
                self.at_most(f"schedule slot {t}", systems, self.held[key][int(calendar.window[t])], f"systems at work of {'/'.join(key[:3])}")

    def _routes(self) -> None:
        """All demand is served, over permitted paths, by points that keep the limits at the origins they serve."""
        calendar = self.problem.calendar
        served: dict[tuple[str, str, int], float] = defaultdict(float)
        self.asked: dict[tuple[str, int], float] = defaultdict(float)  # (pool, slot) -> requests/s
        self.origins: dict[str, set[str]] = defaultdict(set)
        self.traffic: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.tokens: dict[str, list[float]] = defaultdict(lambda: [0.0] * calendar.slots)
        for i, row in enumerate(self.document["routes"]):
            workload, t = self.serving[row["workload"]], row["slot"]
            requests = row["tokens_per_s"] / workload.spec.lengths.output
            path = self.problem.paths.get((workload.name, row["origin"], row["site"]))
            if requests <= 0 or path is None or not row["pool"].startswith(f"{row['workload']}/{row['site']}/"):
                self.say(f"routes[{i}]", "is not positive, not permitted, or in another's pool")
                continue
            served[row["workload"], row["origin"], t] += requests
            self.asked[row["pool"], t] += requests
            self.origins[row["pool"]].add(row["origin"])
            self.tokens[workload.name][t] += row["tokens_per_s"]
            weight = float(calendar.seconds[t] * calendar.discount[t])
            self.traffic[workload.name][row["site"]] += requests * weight * self.problem.egress_bytes(workload) * path.price_per_byte
        factor = self._factor()
        for workload in self.serving.values():
            for o, origin in enumerate(workload.spec.origins):
                for t in range(calendar.slots):
                    asked = float(workload.requests_per_s[o][calendar.hour[t]]) * factor.get(workload.name, 1.0)
                    if not close(served[workload.name, origin.region, t], asked):
                        self.say(f"routes {workload.name} from {origin.region} slot {t}", f"serves {served[workload.name, origin.region, t]:.9g} of {asked:.9g} requests/s")
        capacity: dict[tuple[str, int], float] = defaultdict(float)
        for name, replicas in self.active.items():
            point, computed = self.points[name]
            for t, count in enumerate(replicas if computed.workload in self.serving else ()):
                capacity[point["pool"], t] += count * computed.capacity
        for pool, t in sorted({*self.asked, *(key for key, able in capacity.items() if able)}):
            self.equal(f"schedule slot {t}, replicas of {pool} [request/s]", capacity[pool, t], self.asked[pool, t])

    def _factor(self) -> dict[str, float]:
        """What the demand of each workload is multiplied by, when throughput is the objective."""
        asked = self.problem.spec.objective
        if asked.maximise is None:
            return {}
        names = [asked.workload] if asked.workload else list(self.serving)
        return dict.fromkeys(names, self.document["objective"]["value"])

    def _jobs(self) -> None:
        calendar = self.problem.calendar
        for job in self.training.values():
            mine = [(name, replicas) for name, replicas in self.active.items() if self.points[name][1].workload == job.name]
            if len(mine) != 1:
                self.say(f"workloads {job.name}", f"a job runs at one point, not at {len(mine)}")
            allowed = calendar.within(job.spec.start, job.spec.deadline)
            done = 0.0
            for name, replicas in mine:
                for t, share in enumerate(replicas):
                    if share and not allowed[t]:
                        self.say(f"schedule slot {t}", f"{job.name} runs outside its start and deadline")
                    self.at_most(f"schedule slot {t}", share, 1.0, f"width of {job.name}")
                    self.tokens[job.name][t] += share * self.points[name][1].capacity
                    done += share * self.points[name][1].capacity * float(calendar.seconds[t])
            if not close(done, job.spec.tokens):
                self.say(f"workloads {job.name}", f"trains {done:.9g} of {job.spec.tokens:.9g} tokens by the deadline")

    # -- amounts ---------------------------------------------------------------------------------------------------

    def _amounts(self) -> None:
        from planner.recheck import add_up

        self.sums = add_up(self.problem, self.lots, self.document["fleet"], self.active, self.points, self.traffic)
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
                "mfu": sum(self.points[n][1].mfu * busy[n] for n in mine) / sum(busy.values()) if mine else None,
            }
            self.equal(f"workloads[{w}]", {key: row[key] for key in computed}, computed)
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
            travel = max(self.problem.paths[computed.workload, origin, point["site"]].rtt_s for origin in self.origins[point["pool"]])
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

    def _limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        problem, calendar = self.problem, self.problem.calendar
        for site in problem.sites:
            if math.isfinite(site.power_limit_w):
                used = max(self.hours[site.region, t]["own_power_w"] for t in range(calendar.slots))
                yield f"{site.path}.power", f"power in {site.region}", used, site.power_limit_w
        for offer in problem.offers:
            if math.isfinite(offer.supply):
                taken = [sum(c[w] for key, c in self.held.items() if self.lots[key].offer is offer) for w in range(calendar.windows)]
                yield f"{offer.path}.supply", f"supply of {offer.system} ({offer.how})", max(taken), offer.supply
        for key, counts in self.held.items():
            lot = self.lots[key]
            if math.isfinite(lot.largest):
                name = f"size of one {lot.fabric} network of {lot.system.name} in {lot.site.region}"
                yield f"{lot.site.path}.fabrics", name, max(counts), lot.largest
        bought = sum(row["count"] * (self.lots[_key(row)].capital + self.lots[_key(row)].fabric_capital) for row in self.document["fleet"])
        for path, name, value, limit in (
            ("limits.budget", "present value of all costs", sum(self.sums.lines.values()), problem.budget),
            ("limits.capital", "purchase price of systems and fabric", bought, problem.capital),
            ("limits.carbon", "carbon", sum(self.sums.carbon.values()), problem.carbon_kg),
        ):
            if math.isfinite(limit):
                yield path, name, value, limit
        for job in problem.training:
            busy = sum(a * float(s) for n, (_, c) in self.points.items() if c.workload == job.name for a, s in zip(self.active[n], calendar.seconds))
            yield f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline", busy, job.spec.deadline - job.spec.start
        for workload in problem.serving:
            for metric, percentile, limit in workload.spec.slo.limits():
                mine = [n for n, (_, c) in self.points.items() if c.workload == workload.name]
                if mine:
                    worst = max(self._at_origin(n, metric, percentile) for n in mine)
                    yield f"{workload.path}.slo.{metric}.{percentile}", f"{metric.upper()} {percentile} of {workload.name}", worst, limit

    def _objective(self) -> None:
        document, asked = self.document, self.problem.spec.objective
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


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    return row["site"], row["system"], row["how"], row["fabric"], row["offer"]
