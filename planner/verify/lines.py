"""The re-check of what a plan says of lines: what travels where, in which hour, on how much capacity, and what that costs.

Reads the plan's rows and the figures of `planner.resolve.resolver`; shares nothing with `planner.formulate.lines`, `planner.interpret.lines` or the solver.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from catalog.units import YEAR_S
from planner.problem.facts import Problem
from planner.problem.lines import CONTROL, TELEMETRY, WEIGHTS, LineFacts
from planner.verify.findings import TOLERANCE, Report

Line = tuple[str, str]  # "a - b", kind
COLUMNS = {
    "line",
    "kind",
    "units",
    "capacity_bytes_per_s",
    "ready_s",
    "busiest_slot",
    "busiest_from",
    "peak_bytes_per_s",
    "use",
    "cost",
    "traffic",
}


class LineCheck:
    """`costs` by (component, site or line, kind, ""); `by_workload`; findings go to `report`."""

    def __init__(self, problem: Problem, document: Mapping[str, Any], report: Report):
        self.problem, self.document, self.report = problem, document, report
        self.network, self.calendar = problem.lines, problem.calendar
        self.lines: dict[Line, LineFacts] = {(line.name, line.kind): line for line in self.network.lines}
        self.serving = {w.name: w for w in problem.serving}
        self.load: dict[tuple[Line, str], list[float]] = defaultdict(
            lambda: [0.0] * self.calendar.slots
        )  # (line, from) -> bytes/s
        self.carried: dict[Line, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
        self.paid: dict[Line, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.costs: dict[tuple[str, str, str, str], float] = defaultdict(float)
        self.by_workload: dict[str, float] = defaultdict(float)
        self.copies: set[str] = set()  # sites with a copy of some workload

    def run(self, hosts: Mapping[str, set[str]]) -> None:
        """`hosts`: sites at which each workload has points at work."""
        self.hosts = hosts
        self._requests()
        self._placements(hosts)
        self._rented()

    # -- what travels ----------------------------------------------------------------------------------------------

    def _requests(self) -> None:
        for i, row in enumerate(self.document["routes"]):
            workload, t = self.serving[row["workload"]], row["slot"]
            way = self.network.carrier(workload.name, row["origin"], row["site"], row["line"])
            if way is None:
                continue  # told where routes are checked
            if float(self.calendar.edges_s[int(self.calendar.window[t])]) < way.ready_s - 1e-6:
                self.report.say(f"routes[{i}].line", f"{row['line']} is not ready in slot {t}")
            rate = row["tokens_per_s"] / workload.spec.lengths.output
            out, back = (
                tokens * self.problem.bytes_per_token * rate
                for tokens in (workload.spec.lengths.output, workload.spec.lengths.input)
            )
            seconds, discount = float(self.calendar.seconds[t]), float(self.calendar.discount[t])
            for start, end, line in self.hops(way.hops, way.kind):
                self.load[line, start][t] += out
                self.load[line, end][t] += back
                self.carried[line][workload.name, "requests"] += (out + back) * seconds
                self.paid[line]["requests"] += out * seconds * discount * self.lines[line].price_per_byte

    def hops(self, nodes: tuple[str, ...], kind: str) -> Iterator[tuple[str, str, Line]]:
        for start, end in pairwise(nodes):
            yield (
                start,
                end,
                next((name, kind) for name in (f"{start} - {end}", f"{end} - {start}") if (name, kind) in self.lines),
            )

    def _placements(self, hosts: Mapping[str, set[str]]) -> None:
        streams: dict[tuple[str, str, str, int], float] = defaultdict(float)
        trees: dict[tuple[str, int], dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
        for i, row in enumerate(self.document["placements"]):
            path, workload, traffic = f"placements[{i}]", self.serving[row["workload"]], row["traffic"]
            if (
                set(row) != {"workload", "traffic", "from", "to", "kind", "phases", "share"}
                or not 0 < row["share"] <= 1 + TOLERANCE
            ):
                self.report.say(path, "is not a share of some traffic on a kind of line")
            phases = row["phases"]
            if (
                not phases
                or sorted(set(phases)) != phases
                or not all(type(v) is int and 0 <= v < self.calendar.windows for v in phases)
            ):
                self.report.say(f"{path}.phases", "must be phases of the plan, each once")
            if traffic == WEIGHTS:
                hops = next((hop for hop in self.network.hops[workload.name] if (hop.source, hop.target) == (row["from"], row["to"])
                             and self.network.lines[hop.line].kind == row["kind"]), None)  # fmt: skip
                way = None if hops is None else ((row["from"], row["to"]), self.network.lines[hops.line].ready_s)
                for v in phases:
                    trees[workload.name, v][row["from"], row["to"]] += row["share"]
            elif traffic in (CONTROL, TELEMETRY):
                found = self.network.stream(workload.name, traffic, row["to"], row["kind"])
                way = None if found is None or row["from"] != workload.weights_from else (found.hops, found.ready_s)
                for v in phases:
                    streams[workload.name, traffic, row["to"], v] += row["share"]
            else:
                way = None
            if way is None:
                self.report.say(
                    path,
                    f"{row['kind']} is not on offer from {row['from']} to {row['to']}, or not safe or available enough for {traffic}",
                )
                continue
            if min((float(self.calendar.edges_s[v]) for v in phases), default=0.0) < way[1] - 1e-6:
                self.report.say(f"{path}.phases", f"{row['kind']} is ready after {way[1]:g} s only")
            self._send(row, workload, way[0])
        self._complete(hosts, streams, trees)

    def _send(self, row: Mapping[str, Any], workload, nodes: tuple[str, ...]) -> None:
        traffic, name = row["traffic"], workload.name
        rate = row["share"] * self.network.rates[name, traffic]
        mean = rate
        if traffic == WEIGHTS:
            mean = row["share"] * workload.weights_bytes * workload.spec.weight_updates_per_year / YEAR_S
        for start, end, line in self.hops(nodes, row["kind"]):
            for t in range(self.calendar.slots):
                if int(self.calendar.window[t]) in row["phases"]:
                    seconds, discount = float(self.calendar.seconds[t]), float(self.calendar.discount[t])
                    self.load[line, end if traffic == TELEMETRY else start][t] += rate
                    self.carried[line][name, traffic] += mean * seconds
                    price = mean * seconds * discount * self.lines[line].price_per_byte
                    self.paid[line][traffic] += price
                    if price:  # what is sent at no price of its own is no component of the costs
                        self.costs[traffic, row["to"], row["kind"], ""] += price
                    self.by_workload[name] += price

    def _complete(self, hosts, streams, trees) -> None:
        """Every place that holds a workload has its streams whole and its weights from the source, and only such places pass them on."""
        for workload in self.serving.values():
            name, home = workload.name, workload.weights_from
            for v in range(self.calendar.windows):
                tree = trees.get((name, v), {})
                placed = hosts[name] - {home} | {start for start, _ in tree if start != home}
                self.copies |= placed
                if stray := {end for _, end in tree} - placed:
                    self.report.say(
                        f"placements weights of {name} phase {v}",
                        f"go to {', '.join(sorted(stray))}, where nothing needs them",
                    )
                for site in placed if workload.spec.weight_updates_per_year > 0 else ():
                    whole = _most_from(home, site, tree)
                    if whole < 1 - TOLERANCE:
                        self.report.say(
                            f"placements weights of {name} phase {v}", f"only {whole:.6g} of them reach {site}"
                        )
                for traffic in (CONTROL, TELEMETRY):
                    asked = placed if self.network.rates[name, traffic] > 0 else set()
                    for site in asked | {s for (w, k, s, at) in streams if (w, k, at) == (name, traffic, v)}:
                        stated = streams.get((name, traffic, site, v), 0.0)
                        if abs(stated - (site in asked)) > TOLERANCE:
                            self.report.say(
                                f"placements {traffic} of {name} phase {v}",
                                f"{stated:.9g} of it is sent for {site}, expected {int(site in asked)}",
                            )

    # -- what is rented --------------------------------------------------------------------------------------------

    def _rented(self) -> None:
        report, seen = self.report, set()
        outlasting = [w.name for w in self.serving.values() if w.spec.spread is not None and w.spec.spread.survive]
        for i, row in enumerate(self.document["lines"]):
            path, key = f"lines[{i}]", (row["line"], row["kind"])
            facts = self.lines.get(key)
            if facts is None or key in seen or (key not in self.carried and not outlasting) or set(row) != COLUMNS:
                report.say(path, "is not on offer, stands twice, or carries nothing")
                continue
            seen.add(key)
            counted = math.isfinite(facts.unit_bytes_per_s)
            if counted and (type(row["units"]) is not int or row["units"] < 0):
                report.say(f"{path}.units", f"expected a whole number of units, got {row['units']!r}")
            busiest = max(
                (self.load[key, end][t], -facts.ends.index(end), -t)
                for end in facts.ends
                for t in range(self.calendar.slots)
            )
            capacity = row["units"] * facts.unit_bytes_per_s if counted else None
            worth = sum(
                float(s * d) for s, d, w in zip(self.calendar.seconds, self.calendar.discount, self.calendar.window, strict=True)
                if float(self.calendar.edges_s[int(w)]) >= facts.ready_s - 1e-6
            )  # fmt: skip
            rent = row["units"] * facts.unit_price_per_s * worth if counted else 0.0
            computed = {
                "capacity_bytes_per_s": capacity, "ready_s": facts.ready_s, "peak_bytes_per_s": busiest[0],
                "use": busiest[0] / capacity if capacity else None,
                "cost": {"units": rent} | dict(self.paid[key]),
                "traffic": [{"workload": name, "traffic": kind, "bytes": size} for (name, kind), size in sorted(self.carried[key].items())],
            }  # fmt: skip
            report.equal(path, {k: row[k] for k in computed}, computed)
            if not counted and row["units"] is not None:
                report.say(f"{path}.units", "this kind of line is not rented by units")
            at = self.load[key, row["busiest_from"]][row["busiest_slot"]] if row["busiest_from"] in facts.ends else -1.0
            if abs(at - busiest[0]) > TOLERANCE * busiest[0]:
                report.say(f"{path}.busiest_slot", f"{at:.9g} bytes/s then, at most {busiest[0]:.9g}")
            if counted:
                report.at_most(path, busiest[0], capacity, f"bytes/s on {row['kind']} {row['line']}")
            if rent:
                self.costs["lines", row["line"], row["kind"], ""] += rent
                mine = defaultdict(float)
                for (name, _), size in self.carried[key].items():
                    mine[name] += size
                mine = mine or dict.fromkeys(outlasting, 1.0)  # rented for the failure of a zone only
                for name, size in mine.items():
                    self.by_workload[name] += rent * size / sum(mine.values())
        if missing := {key for key in self.carried if key not in seen}:
            report.say(
                "lines", f"{', '.join('/'.join(key) for key in sorted(missing))} carries traffic and is not listed"
            )

    def limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        for row in self.document["lines"]:
            facts = self.lines.get((row["line"], row["kind"]))
            if facts is not None and math.isfinite(facts.most) and row["units"]:
                yield f"{facts.path}.units", f"units of {facts.kind} {facts.name}", float(row["units"]), facts.most


def _most_from(home: str, site: str, tree: Mapping[tuple[str, str], float]) -> float:
    """Largest share of the weights that the tree's edges carry from home to a site (Ford and Fulkerson)."""
    left: dict[tuple[str, str], float] = defaultdict(float, tree)
    total = 0.0
    while True:
        before, reached = {home: ""}, [home]
        for node in reached:
            for (start, end), room in list(left.items()):
                if start == node and end not in before and room > 1e-12:
                    before[end] = node
                    reached.append(end)
        if site not in before:
            return total
        path, node = [], site
        while node != home:
            path.append((before[node], node))
            node = before[node]
        room = min(left[edge] for edge in path)
        for start, end in path:
            left[start, end] -= room
            left[end, start] += room
        total += room
