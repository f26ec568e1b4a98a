"""The re-check of a plan's decisions: points, fleet, hours, routes and jobs, each held against the spec and the closed forms.

Amounts are in verify_amounts.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.units import HOUR_S
from planner.problem.fabric_rows import fabric_row, other_designs
from planner.problem.facts import Problem, ServingFacts, exportable, permitted
from planner.verify.electricity import OF_A_METER, slot_rings
from planner.verify.findings import TOLERANCE, Report, close
from planner.verify.fleet import CheckedOption, FleetOptions, tokens_price
from planner.verify.recompute import Evaluated, evaluate_point
from planner.verify.terms import InTime, in_time, lost_share


class Decisions(Report):
    """What the plan decides; `same_figures`: the plan was made with today's catalog."""

    def __init__(self, problem: Problem, document: Mapping[str, Any], same_figures: bool):
        super().__init__()
        self.problem, self.document = problem, document
        self.same_figures = same_figures
        self.fleet_options = FleetOptions(problem)
        self.sites = {site.region: site for site in problem.sites}
        self.serving = {w.name: w for w in problem.serving}
        self.training = {w.name: w for w in problem.training}
        self.points: dict[str, tuple[Mapping[str, Any], Evaluated]] = {}

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
                computed = evaluate_point(
                    self.problem, self.fleet_options, facts, {**point, "tier": None} if known else point
                )
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
                    if pool.get("tenant", "") != self.problem.tenant_of(facts):
                        self.say(
                            path,
                            f"runs on systems held by {pool.get('tenant') or 'all'}, which the spec's sharing forbids",
                        )
                    if pool["role"] != "api" and pool["precision"] not in facts.spec.precision:
                        self.say(path, f"precision {pool['precision']} was not asked for")
        names = [w["name"] for w in self.document["workloads"]]
        if sorted(names) != sorted([*self.serving, *self.training]):
            self.say("workloads", "must be those of the spec, each once")

    def _fleet(self) -> None:
        windows = self.problem.calendar.windows
        self.times: list[InTime] = []
        self.options_by_row: list[CheckedOption] = []
        self.held: dict[tuple, list[float]] = defaultdict(lambda: [0.0] * windows)
        networks: dict[tuple[str, str], dict[tuple, tuple[list[float], float]]] = defaultdict(dict)
        for i, row in enumerate(self.document["fleet"]):
            path, key = f"fleet[{i}]", key_of(row)
            option, phase = self.fleet_options[key], row["phase"]
            if type(row["count"]) is not int or row["count"] < 1:
                self.say(f"{path}.count", f"expected a whole number of systems, got {row['count']!r}")
            if (phase is not None) != (row["how"] in ("on_demand", "spot")):
                self.say(f"{path}.phase", "on-demand and spot systems are held by phase, all others throughout")
            when = in_time(self.problem, option, row)
            self.times.append(when)
            self.options_by_row.append(option)
            for words in when.wrong:
                self.say(path, words)
            if not exportable(option.system, option.site, self.problem.spec.limits):
                self.say(path, f"export control bars {row['system']} from {row['site']}")
            if row["how"] == "buy":
                chosen = networks[row["site"], row["system"]]
                together, charged = chosen.get((row["fabric"], row["fabric_size"]), ([0.0] * windows, 0.0))
                together = [n + row["count"] * (w in when.windows) for w, n in enumerate(together)]
                chosen[row["fabric"], row["fabric_size"]] = together, charged + row["count"] * option.fabric_capital
            for window in when.windows:
                self.held[key][window] += row["count"]
            self.at_most(path, max(self.held[key]), option.largest, f"systems on one {row['fabric']} network")
        for (site, system), chosen in networks.items():
            if len(chosen) > 1:
                self.say(
                    "fleet",
                    f"{system} in {site} stands on several networks: {', '.join(f'{name} for {size}' for name, size in chosen)}",
                )
        self._fabrics(networks)

    def _fabrics(self, networks: Mapping[tuple[str, str], Mapping[tuple, tuple[list[float], float]]]) -> None:
        """The parts of every network, counted again for the systems that the fleet puts on it."""
        computed: dict[tuple, dict[str, Any]] = {}
        for (site, system), chosen in networks.items():
            for (design, size), (together, charged) in chosen.items():
                count = max(together)
                option = next(
                    option
                    for key in self.held
                    if (option := self.fleet_options[key]).owned
                    and key[:2] == (site, system)
                    and key[3:5] == (design, size)
                )
                if option.plant is not None:
                    self.at_most("fleet", count, option.largest, f"{system} on one {design} network in {site}")
                    computed[site, system, design, size] = {
                        "systems": int(count),
                        "instead": other_designs(option.site, option.system, design, int(count)),
                    } | fabric_row(option.plant, int(count), charged, option.site.network)
        stated = {(row["site"], row["system"], row["design"], row["size"]): row for row in self.document["fabrics"]}
        if stated.keys() != computed.keys() or len(stated) < len(self.document["fabrics"]):
            self.say("fabrics", "must be the networks that the fleet stands on, each once")
            return
        for key, parts in computed.items():
            if "instead" not in stated[key]:  # plans of earlier versions do not compare
                del parts["instead"]
            self.equal(f"fabrics {'/'.join(map(str, key[:3]))}", {name: stated[key][name] for name in parts}, parts)

    # -- hours -----------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Every hour's power, energy and prices; no fleet option works more systems than it holds."""
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
        used = {row["site"] for row in self.document["fleet"]} | {
            name for name, site in self.sites.items() if site.electricity is not None
        }
        if seen != {(site, t) for site in used for t in range(calendar.slots)}:
            self.say("schedule", "must have one row for each used site and slot")
        self.hours = {(site, t): row for site in self.sites for t, row in enumerate(self._hours(site))}
        for i, row in enumerate(self.document["schedule"]):
            decided = ("active", *OF_A_METER) if self.sites[row["site"]].electricity is not None else ("active",)
            self.equal(
                f"schedule[{i}]",
                {k: v for k, v in row.items() if k not in decided},
                self.hours[row["site"], row["slot"]],
            )
        self._installed()

    def _hours(self, region: str) -> Iterator[dict[str, Any]]:
        """A row for each slot of a site."""
        calendar, site = self.problem.calendar, self.sites[region]
        held = [
            (counts, self.fleet_options[key])
            for key, counts in self.held.items()
            if self.fleet_options[key].site.region == region
        ]
        at_work = [
            (replicas, self.points[name][1].extra)
            for name, replicas in self.active.items()
            if self.points[name][0]["site"] == region
        ]
        for t in range(calendar.slots):
            phase, hour = int(calendar.window[t]), int(calendar.hour[t])
            every = own = 0.0
            for counts, option in held:
                watts = counts[phase] * option.idle_it_w * site.pue
                every += watts
                own += watts if option.owned else 0.0
            for replicas, extras in at_work:
                for option, extra in extras:
                    every += replicas[t] * extra * site.pue
                    own += replicas[t] * extra * site.pue if option.owned else 0.0
            seconds = float(calendar.seconds[t])
            yield {
                "site": region, "slot": t, "phase": phase, **calendar.when(t), "seconds": seconds,
                "power_w": every, "own_power_w": own, "energy_j": every * seconds,
                "price_per_j": float(site.price_per_j[hour]), "carbon_kg_per_j": float(site.carbon_kg_per_j[hour]),
            }  # fmt: skip

    def _installed(self) -> None:
        calendar = self.problem.calendar
        uses = [
            (key_of(pool | {"site": point["site"]}), systems, replicas)
            for name, replicas in self.active.items()
            for point, computed in (self.points[name],)
            for pool, systems in zip(point["pools"], computed.systems)
        ]
        for t in range(calendar.slots):
            busy: dict[tuple, float] = defaultdict(float)
            for key, systems, replicas in uses:
                busy[key] += replicas[t] * systems
            for key, systems in busy.items():
                self.at_most(
                    f"schedule slot {t}",
                    systems,
                    self.held[key][int(calendar.window[t])],
                    f"systems at work of {'/'.join(key[:3])}",
                )

    def _routes(self) -> None:
        """All demand is served, over permitted paths, by points that keep the limits at the origins they serve."""
        calendar = self.problem.calendar
        served: dict[tuple[str, str, int], float] = defaultdict(float)
        self.asked: dict[tuple[str, int], float] = defaultdict(float)  # (pool, slot) -> requests/s
        self.round_trips: dict[str, list[float]] = defaultdict(list)
        self.traffic: dict[str, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
        self.tokens: dict[str, list[float]] = defaultdict(lambda: [0.0] * calendar.slots)
        for i, row in enumerate(self.document["routes"]):
            workload, t = self.serving[row["workload"]], row["slot"]
            requests = row["tokens_per_s"] / workload.spec.lengths.output
            path = self.problem.routes(workload.name, row["origin"], row["site"]).get(row.get("line", ""))
            if requests <= 0 or path is None or not row["pool"].startswith(f"{row['workload']}/{row['site']}/"):
                self.say(f"routes[{i}]", "is not positive, not permitted, or in another's pool")
                continue
            served[workload.asked, row["origin"], t] += requests
            self.asked[row["pool"], t] += requests
            self.round_trips[row["pool"]].append(path.rtt_s)
            self.tokens[workload.name][t] += row["tokens_per_s"]
            weight = float(calendar.seconds[t] * calendar.discount[t])
            bought = tokens_price(self.sites[row["site"]], workload, float(calendar.edges_s[calendar.window[t]]))
            self.traffic[workload.name][row["site"], row.get("line", "")] += (
                requests * weight * (self.problem.egress_bytes(workload) * path.price_per_byte + bought)
            )
        factor = self._factor()
        for asked_as, workload in {workload.asked: workload for workload in self.serving.values()}.items():
            rates = workload.requests_by_slot(calendar)
            if workload.spec.demand.deferral:
                self._waiting(workload, served, factor.get(asked_as, 1.0))
                continue
            for o, origin in enumerate(workload.spec.origins):
                for t in range(calendar.slots):
                    asked = float(rates[o][t]) * factor.get(asked_as, 1.0)
                    if not close(served[asked_as, origin.region, t], asked):
                        self.say(
                            f"routes {asked_as} from {origin.region} slot {t}",
                            f"serves {served[asked_as, origin.region, t]:.9g} of {asked:.9g} requests/s",
                        )
        capacity: dict[tuple[str, int], float] = defaultdict(float)
        for name, replicas in self.active.items():
            point, computed = self.points[name]
            for t, count in enumerate(replicas if computed.workload in self.serving else ()):
                capacity[point["pool"], t] += count * computed.capacity
        for pool, t in sorted({*self.asked, *(key for key, able in capacity.items() if able)}):
            self.equal(f"schedule slot {t}, replicas of {pool} [request/s]", capacity[pool, t], self.asked[pool, t])

    def _waiting(self, workload: ServingFacts, served: Mapping[tuple[str, str, int], float], factor: float) -> None:
        """All requests are served, none before it comes and none after it has waited as long as it may, first come first served."""
        calendar, hours = self.problem.calendar, int(workload.spec.demand.deferral // HOUR_S)
        rates = workload.requests_by_slot(calendar)
        for o, origin in enumerate(workload.spec.origins):
            for ring in slot_rings(calendar.next):
                steps = [float(calendar.step_s[t]) for t in ring]
                come = [float(rates[o][t]) * factor * s for t, s in zip(ring, steps)]
                gone = [served[workload.asked, origin.region, t] * s for t, s in zip(ring, steps)]
                path = f"routes {workload.name} from {origin.region} slots {ring[0]}-{ring[-1]}"
                if not close(sum(gone), sum(come)):
                    self.say(path, f"serves {sum(gone):.9g} of {sum(come):.9g} requests")
                    continue
                left, level = [], 0.0
                for inward, outward in zip(come, gone):
                    level += inward - outward
                    left.append(level)
                waiting = [value - min(left) for value in left]  # at the end of each slot, at the least
                for i, t in enumerate(ring):
                    patient = sum(come[(i - lag) % len(ring)] for lag in range(hours))
                    if waiting[i] > patient + TOLERANCE * max(come):
                        self.say(f"{path} slot {t}", f"{waiting[i]:.9g} requests wait, {patient:.9g} may")

    def _factor(self) -> dict[str, float]:
        """What the demand of each workload is multiplied by, when throughput is the objective."""
        asked = self.problem.spec.objective
        if asked.maximise is None:
            return {}
        names = [asked.workload] if asked.workload else [workload.asked for workload in self.serving.values()]
        return dict.fromkeys(names, self.document["objective"]["value"])

    def _jobs(self) -> None:
        calendar = self.problem.calendar
        for job in self.training.values():
            mine = [
                (name, replicas) for name, replicas in self.active.items() if self.points[name][1].workload == job.name
            ]
            if len(mine) != 1:
                self.say(f"workloads {job.name}", f"a job runs at one point, not at {len(mine)}")
            allowed = calendar.within(job.spec.start, job.spec.deadline)
            done = 0.0
            for name, replicas in mine:
                lost = lost_share(self.problem, job, self.sites[self.points[name][0]["site"]], replicas)
                for t, share in enumerate(replicas):
                    if share and not allowed[t]:
                        self.say(f"schedule slot {t}", f"{job.name} runs outside its start and deadline")
                    self.at_most(f"schedule slot {t}", share, 1.0, f"width of {job.name}")
                    self.tokens[job.name][t] += (share - lost[t]) * self.points[name][1].capacity
                    done += (share - lost[t]) * self.points[name][1].capacity * float(calendar.seconds[t])
            if not close(done, job.spec.tokens):
                self.say(f"workloads {job.name}", f"trains {done:.9g} of {job.spec.tokens:.9g} tokens by the deadline")


def key_of(row: Mapping[str, Any]) -> tuple:
    """What is held by whom: a key of `FleetOptions`, and the tenant."""
    return (
        row["site"],
        row["system"],
        row["how"],
        row["fabric"],
        row["fabric_size"],
        row["offer"],
        row.get("tenant", ""),
    )
