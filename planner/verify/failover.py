"""Check failover: workloads that must survive the failure of a zone are served elsewhere, on the systems and lines held."""

from __future__ import annotations

import math
from collections import defaultdict

from planner.messages import Message
from planner.problem.calendar import BUSIEST_TOL
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.findings import RELATIVE_TOL, close
from planner.verify.fleet.options import HeldKey, key_at
from planner.verify.lines import LineCheck
from planner.verify.power import power_at
from planner.verify.timing import TIME_TOL_S


class FailoverCheck:
    """Check the section `failures`: the failure of each zone in the busiest slots."""

    def __init__(self, plan: CheckedPlan):
        self.plan, self.problem, self.document = plan, plan.problem, plan.document
        self.zone_of = {site.region: site.fails_with for site in self.problem.sites}
        self.must = {w.name: w for w in self.problem.serving if w.spec.spread is not None and w.spec.spread.survive}

    def run(self) -> None:
        """Check that every zone fails once in each of the busiest slots, and each of these failures."""
        stated = {(row["zone"], row["slot"]) for row in self.document["failures"]}
        if len(stated) < len(self.document["failures"]):
            self.plan.say("failures", "verify.zone_and_slot_twice")
        slots = self._busiest_slots()
        if stated != {(zone, t) for zone in self.zone_of.values() for t in slots}:
            self.plan.say("failures", "verify.zones_at_busiest_hours")
            return
        for i, row in enumerate(self.document["failures"]):
            path = f"failures[{i}]"
            asked = self._check_routes(path, row)
            self._check_replicas(path, row, asked)
            self._check_systems(path, row)
            if self.plan.lines is not None:
                self._check_lines(path, row, self.plan.lines)

    def _busiest_slots(self) -> set[int]:
        """Find the first slot with most requests, of each workload and window."""
        calendar, found = self.problem.calendar, set()
        for workload in self.must.values():
            total = [float(rate) for rate in workload.requests_by_slot(calendar).sum(axis=0)]
            for w in range(calendar.windows):
                here = [t for t in range(calendar.slots) if int(calendar.window[t]) == w]
                most = max(total[t] for t in here)
                found.add(next(t for t in here if total[t] >= most * (1 - BUSIEST_TOL)))
        return found

    def _check_routes(self, path: str, row: Row) -> dict[str, float]:
        """Check that the routes of a failure serve all demand, and return the requests/s that each pool is sent."""
        plan, t, problem = self.plan, row["slot"], self.problem
        served: dict[tuple[str, str], float] = defaultdict(float)
        asked: dict[str, float] = defaultdict(float)
        for i, route in enumerate(row["routes"]):
            rtt_s = self._round_trip(route, row["zone"], t)
            if rtt_s is None:
                plan.say(f"{path}.routes[{i}]", "verify.failover_route")
                continue
            requests = route["tokens_per_s"] / self.must[route["workload"]].spec.lengths.output
            served[self.must[route["workload"]].asked, route["origin"]] += requests
            asked[route["pool"]] += requests
            plan.round_trips[route["pool"]].append(rtt_s)
        for name, workload in {workload.asked: workload for workload in self.must.values()}.items():
            rates = workload.requests_by_slot(problem.calendar)
            for o, origin in enumerate(workload.spec.origins):
                wanted = float(rates[o][t]) * plan.demand_factor(name)
                got = served[name, origin.region]
                if not close(got, wanted):
                    words = Message.of(
                        "verify.serves_requests_from",
                        done=f"{got:.9g}",
                        asked=f"{wanted:.9g}",
                        workload=name,
                        origin=origin.region,
                    ).text()
                    plan.tell(path, words)
        return asked

    def _round_trip(self, route: Row, zone: str, t: int) -> float | None:
        """Return the round trip of a route that may be used while a zone fails; None for any other."""
        workload, calendar = self.must.get(route["workload"]), self.problem.calendar
        if workload is None or route["tokens_per_s"] <= 0 or self.zone_of[route["site"]] == zone:
            return None
        if not route["pool"].startswith(f"{route['workload']}/{route['site']}/"):
            return None
        known = self.problem.routes(workload.name, route["origin"], route["site"])
        found = known.get(route.get("line", ""))
        begins = float(calendar.edges_s[int(calendar.window[t])])
        if found is None or getattr(found, "ready_s", 0.0) > begins + TIME_TOL_S:
            return None
        return found.rtt_s

    def _check_replicas(self, path: str, row: Row, asked: dict[str, float]) -> None:
        """Compare the capacity of the replicas at work with the requests that each pool is sent."""
        able: dict[str, float] = defaultdict(float)
        for name, replicas in row["active"].items():
            point, computed = self.plan.points[name]
            if replicas < 0 or computed.workload not in self.must or self.zone_of[point["site"]] == row["zone"]:
                self.plan.say(f"{path}.active.{name}", "verify.failover_replicas")
            able[point["pool"]] += replicas * computed.capacity
        for pool in sorted({*asked, *able}):
            self.plan.equal(f"{path}, replicas of {pool} [request/s]", able[pool], asked.get(pool, 0.0))

    def _check_systems(self, path: str, row: Row) -> None:
        """Compare the systems and the power in use outside the zone with the holdings and the power limits."""
        plan, t, zone = self.plan, row["slot"], row["zone"]
        window = int(self.problem.calendar.window[t])
        running = dict(row["active"])
        for name, replicas in plan.active.items():
            point, computed = plan.points[name]
            if computed.workload not in self.must and self.zone_of[point["site"]] != zone:
                running[name] = replicas[t]
        busy: dict[HeldKey, float] = defaultdict(float)
        power: dict[str, float] = defaultdict(float)
        for name, replicas in running.items():
            point, computed = plan.points[name]
            for pool, systems, (option, extra) in zip(point["pools"], computed.systems, computed.extra, strict=True):
                busy[key_at(point["site"], pool)] += replicas * systems
                power[point["site"]] += replicas * extra * option.pue if option.owned else 0.0
        for key, counts in plan.held.items():
            option = plan.fleet_options[key]
            if option.owned:
                power[option.site.region] += counts[window] * option.idle_at_meter_w
        for key, systems in busy.items():
            plan.at_most(
                path,
                systems,
                plan.held[key][window],
                Message.of("verify.systems_at_work", place="/".join(map(str, key[:3]))).text(),
            )
        for site in self.problem.sites:
            _, name, most = power_at(self.problem, site, window)
            if math.isfinite(most) and site.fails_with != zone:
                plan.at_most(path, power[site.region], most, name)

    def _check_lines(self, path: str, row: Row, lines: LineCheck) -> None:
        """Compare the load of each line with the units rented: subtract the requests that move, add the requests of the failure."""
        t, zone = row["slot"], row["zone"]
        load = {key: rates[t] for key, rates in lines.load.items()}
        moved = [
            (-1.0, route)
            for route in self.document["routes"]
            if route["slot"] == t and (route["workload"] in self.must or self.zone_of[route["site"]] == zone)
        ]
        for sign, route in [*moved, *((1.0, route) for route in row["routes"])]:
            workload = lines.serving[route["workload"]]
            found = lines.network.carrier(workload.name, route["origin"], route["site"], route["line"])
            if found is None:
                raise ValueError(
                    Message.of(
                        "verify.no_line_from", path=path, line=repr(route["line"]), origin=route["origin"]
                    ).text()
                )
            rate = route["tokens_per_s"] / workload.spec.lengths.output * self.problem.bytes_per_token * sign
            for start, end, line in lines.hops(found.hops, found.kind):
                load[line, start] = load.get((line, start), 0.0) + rate * workload.spec.lengths.output
                load[line, end] = load.get((line, end), 0.0) + rate * workload.spec.prompt_tokens
        units = {(r["line"], r["kind"]): r["units"] for r in self.document["lines"]}
        for (line, start), rate in load.items():
            unit = lines.lines[line].unit_bytes_per_s
            if math.isfinite(unit):
                room = units.get(line, 0) * unit
                if rate > room * (1 + RELATIVE_TOL) + RELATIVE_TOL * unit:
                    words = Message.of(
                        "verify.line_overloaded",
                        kind=line[1],
                        line=line[0],
                        start=start,
                        rate=f"{rate:.9g}",
                        room=f"{room:.9g}",
                    ).text()
                    self.plan.tell(path, words)
