"""The re-check of what a plan does when a zone fails: everything that must go on does, elsewhere, on what is there."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from planner.verify.amounts import Amounts
from planner.verify.decisions import key_of
from planner.verify.findings import TOLERANCE, close
from planner.verify.power import power_at


class FailoverCheck:
    """Reads what `check` has found of points, fleet and hours; findings go to it."""

    def __init__(self, check: Amounts):
        self.check, self.problem, self.document = check, check.problem, check.document
        self.zone_of = {site.region: site.fails_with for site in self.problem.sites}
        self.must = {w.name: w for w in self.problem.serving if w.spec.spread is not None and w.spec.spread.survive}

    def run(self) -> None:
        stated = {(row["zone"], row["slot"]): row for row in self.document["failures"]}
        if len(stated) < len(self.document["failures"]):
            self.check.say("failures", "a zone and slot stand twice")
        slots = self._busiest()
        if set(stated) != {(zone, t) for zone in self.zone_of.values() for t in slots}:
            self.check.say("failures", "must try each zone at the busiest hours")
            return
        for i, row in enumerate(self.document["failures"]):
            self._failure(f"failures[{i}]", row)

    def _busiest(self) -> set[int]:
        """Of each phase and workload, the first hour with most requests."""
        calendar, found = self.problem.calendar, set()
        for workload in self.must.values():
            for v in range(calendar.windows):
                here = [t for t in range(calendar.slots) if int(calendar.window[t]) == v]
                asked = [float(sum(rates[t] for rates in workload.requests_by_slot(calendar))) for t in here]
                found.add(here[next(i for i, rate in enumerate(asked) if rate >= max(asked) * (1 - 1e-12))])
        return found

    def _failure(self, path: str, row: Mapping[str, Any]) -> None:
        check, t, zone, problem = self.check, row["slot"], row["zone"], self.problem
        served: dict[tuple[str, str], float] = defaultdict(float)
        asked: dict[str, float] = defaultdict(float)
        begins = float(problem.calendar.edges_s[int(problem.calendar.window[t])])
        for i, route in enumerate(row["routes"]):
            workload = self.must.get(route["workload"])
            way = (
                None
                if workload is None
                else problem.routes(workload.name, route["origin"], route["site"]).get(route.get("line", ""))
            )
            ready = way is not None and getattr(way, "ready_s", 0.0) <= begins + 1e-6
            rightly = (
                route["pool"].startswith(f"{route['workload']}/{route['site']}/")
                and self.zone_of[route["site"]] != zone
            )
            if not ready or not rightly or route["tokens_per_s"] <= 0:
                check.say(
                    f"{path}.routes[{i}]",
                    "is not positive, not permitted, not ready, in another's pool, or in the zone that fails",
                )
                continue
            requests = route["tokens_per_s"] / workload.spec.lengths.output
            served[workload.name, route["origin"]] += requests
            asked[route["pool"]] += requests
            check.round_trips[route["pool"]].append(way.rtt_s)
        factor = check._factor()
        for workload in self.must.values():
            for o, origin in enumerate(workload.spec.origins):
                wanted = float(workload.requests_by_slot(problem.calendar)[o][t]) * factor.get(workload.name, 1.0)
                if not close(served[workload.name, origin.region], wanted):
                    check.say(
                        path,
                        f"serves {served[workload.name, origin.region]:.9g} of {wanted:.9g} requests/s of {workload.name} from {origin.region}",
                    )
        able: dict[str, float] = defaultdict(float)
        for name, replicas in row["active"].items():
            point, computed = check.points[name]
            if replicas < 0 or computed.workload not in self.must or self.zone_of[point["site"]] == zone:
                check.say(
                    f"{path}.active.{name}", "is negative, in the zone that fails, or of a workload that need not go on"
                )
            able[point["pool"]] += replicas * computed.capacity
        for pool in sorted({*asked, *able}):
            check.equal(f"{path}, replicas of {pool} [request/s]", able[pool], asked[pool])
        self._systems(path, row)
        if check.lines is not None:
            self._lines(path, row)

    def _systems(self, path: str, row: Mapping[str, Any]) -> None:
        check, t, zone = self.check, row["slot"], row["zone"]
        window = int(self.problem.calendar.window[t])
        running = dict(row["active"])
        for name, replicas in check.active.items():
            point, computed = check.points[name]
            if computed.workload not in self.must and self.zone_of[point["site"]] != zone:
                running[name] = replicas[t]
        busy: dict[tuple, float] = defaultdict(float)
        power: dict[str, float] = defaultdict(float)
        for name, replicas in running.items():
            point, computed = check.points[name]
            for pool, systems, (option, extra) in zip(point["pools"], computed.systems, computed.extra):
                busy[key_of(pool | {"site": point["site"]})] += replicas * systems
                power[point["site"]] += replicas * extra * option.site.pue if option.owned else 0.0
        for key, counts in check.held.items():
            option = check.fleet_options[key]
            if option.owned:
                power[option.site.region] += counts[window] * option.idle_it_w * option.site.pue
        for key, systems in busy.items():
            check.at_most(path, systems, check.held[key][window], f"systems at work of {'/'.join(map(str, key[:3]))}")
        for site in self.problem.sites:
            _, name, most = power_at(self.problem, site, window)
            if math.isfinite(most) and site.fails_with != zone:
                check.at_most(path, power[site.region], most, name)

    def _lines(self, path: str, row: Mapping[str, Any]) -> None:
        """Lines as they are rented, without the requests of all that fails or moves, with those of the way around."""
        lines, t, zone = self.check.lines, row["slot"], row["zone"]
        load: dict[tuple, float] = defaultdict(float)
        for key, rates in lines.load.items():
            load[key] = rates[t]
        moved = [
            (-1.0, r)
            for r in self.document["routes"]
            if r["slot"] == t and (r["workload"] in self.must or self.zone_of[r["site"]] == zone)
        ]
        for sign, route in [*moved, *((1.0, r) for r in row["routes"])]:
            workload = lines.serving[route["workload"]]
            way = lines.network.carrier(workload.name, route["origin"], route["site"], route["line"])
            rate = route["tokens_per_s"] / workload.spec.lengths.output * self.problem.bytes_per_token * sign
            for start, end, line in lines.hops(way.hops, way.kind):
                load[line, start] += rate * workload.spec.lengths.output
                load[line, end] += rate * workload.spec.lengths.input
        units = {(r["line"], r["kind"]): r["units"] for r in self.document["lines"]}
        for (line, start), rate in load.items():
            facts = lines.lines[line]
            if math.isfinite(facts.unit_bytes_per_s):
                room = units.get(line, 0) * facts.unit_bytes_per_s
                if rate > room * (1 + TOLERANCE) + TOLERANCE * facts.unit_bytes_per_s:
                    self.check.say(
                        path, f"{line[1]} {line[0]} from {start} would carry {rate:.9g} bytes/s on {room:.9g}"
                    )
