"""Check a plan's lines: the traffic on each in every slot, the capacity rented, and the cost.

Reads the plan's rows and the figures of `planner.resolve.resolver`; shares nothing with `planner.formulate.lines`, `planner.interpret.lines` or the solver.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from catalog.units import YEAR_S
from planner.messages import Message
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.lines import CONTROL, TELEMETRY, WEIGHTS, LineFacts, LineNetwork
from planner.verify.findings import RELATIVE_TOL, Report
from planner.verify.max_flow import max_flow
from planner.verify.points.exchange import Flow
from planner.verify.timing import TIME_TOL_S

Line = tuple[str, str]
"""Its name, "a - b", and its type."""
Streams = dict[tuple[str, str, str, int], float]
"""Share by workload, traffic, site and window."""
Trees = dict[tuple[str, int], dict[tuple[str, str], float]]
"""By workload and window: the share of the weights on each edge."""
PLACEMENT_COLUMNS = {"workload", "traffic", "from", "to", "kind", "windows", "share"}
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
    """Check the sections `lines` and `placements`. `costs` by (component, site or line, type, "") and `by_workload` follow from the rows."""

    def __init__(self, problem: ResolvedSpec, network: LineNetwork, document: Mapping[str, Any], report: Report):
        self.problem, self.document, self.report = problem, document, report
        self.network, self.calendar = network, problem.calendar
        self.lines: dict[Line, LineFacts] = {(line.name, line.kind): line for line in self.network.lines}
        self.serving = {w.name: w for w in problem.serving}
        self.bought = {site.region for site in problem.sites if site.api is not None}  # without weights of ours
        self.load: dict[tuple[Line, str], list[float]] = defaultdict(
            lambda: [0.0] * self.calendar.slots
        )  # (line, from) -> bytes/s
        self.reserved: dict[tuple[Line, str], list[float]] = defaultdict(lambda: [0.0] * self.calendar.slots)
        self.carried: dict[Line, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
        self.paid: dict[Line, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.costs: dict[tuple[str, str, str, str], float] = defaultdict(float)
        self.by_workload: dict[str, float] = defaultdict(float)
        self.copies: set[str] = set()  # sites with a copy of some workload

    def run(self, hosts: Mapping[str, set[str]], flows: Sequence[Flow] = ()) -> None:
        """Check all lines; `hosts`: sites at which each workload has pools at work; `flows`: what pools at two sites send each other."""
        self.hosts = hosts
        self._add_requests()
        for flow in flows:
            self._add_flow(flow)
        self._check_placements()
        self._check_rented()

    # -- traffic ---------------------------------------------------------------------------------------------------

    def _add_requests(self) -> None:
        """Put the traffic of the requests on the lines of their routes."""
        for i, row in enumerate(self.document["routes"]):
            workload, t = self.serving[row["workload"]], row["slot"]
            way = self.network.carrier(workload.name, row["origin"], row["site"], row["line"])
            if way is None:
                continue  # found where routes are checked
            if float(self.calendar.edges_s[int(self.calendar.window[t])]) < way.ready_s - TIME_TOL_S:
                self.report.say(f"routes[{i}].line", "verify.line_not_ready", line=row["line"], slot=str(t))
            rate = row["tokens_per_s"] / workload.spec.lengths.output
            out, back = (
                tokens * self.problem.bytes_per_token * rate
                for tokens in (workload.spec.lengths.output, workload.spec.prompt_tokens)
            )
            seconds, discount = float(self.calendar.seconds[t]), float(self.calendar.discount[t])
            for start, end, line in self.hops(way.hops, way.kind):
                self.load[line, start][t] += out
                self.load[line, end][t] += back
                self.carried[line][workload.name, "requests"] += (out + back) * seconds
                self.paid[line]["requests"] += out * seconds * discount * self.lines[line].price_per_byte

    def _add_flow(self, flow: Flow) -> None:
        """Put on the lines between the sites of a point what its pools send each other."""
        for start, end, line in self.hops(tuple(flow.nodes), flow.kind):
            for origin, sent, kept in zip((start, end), flow.sent, flow.kept, strict=True):
                for t, (rate, held) in enumerate(zip(sent, kept, strict=True)):
                    seconds, discount = float(self.calendar.seconds[t]), float(self.calendar.discount[t])
                    self.load[line, origin][t] += rate
                    self.reserved[line, origin][t] += held - rate
                    self.carried[line][flow.workload, flow.traffic] += rate * seconds
                    self.paid[line][flow.traffic] += rate * seconds * discount * self.lines[line].price_per_byte

    def hops(self, nodes: tuple[str, ...], kind: str) -> Iterator[tuple[str, str, Line]]:
        """Yield (from, to, line) of each hop along a path of regions."""
        for start, end in pairwise(nodes):
            yield (
                start,
                end,
                next((name, kind) for name in (f"{start} - {end}", f"{end} - {start}") if (name, kind) in self.lines),
            )

    def _check_placements(self) -> None:
        """Check every row of `placements`, put its traffic on the lines, and test the delivery to each site."""
        streams: Streams = defaultdict(float)
        trees: Trees = defaultdict(lambda: defaultdict(float))
        for i, row in enumerate(self.document["placements"]):
            self._check_placement(f"placements[{i}]", row, streams, trees)
        self._check_delivery(streams, trees)

    def _check_placement(self, path: str, row: Mapping[str, Any], streams: Streams, trees: Trees) -> None:
        workload, traffic, windows = self.serving[row["workload"]], row["traffic"], row["windows"]
        if set(row) != PLACEMENT_COLUMNS or not 0 < row["share"] <= 1 + RELATIVE_TOL:
            self.report.say(path, "verify.no_share_of_traffic")
        known = all(type(w) is int and 0 <= w < self.calendar.windows for w in windows)
        if not windows or sorted(set(windows)) != windows or not known:
            self.report.say(f"{path}.windows", "verify.phases_once")
        found = self._path_of(workload, row)
        for w in windows:
            if traffic == WEIGHTS:
                trees[workload.name, w][row["from"], row["to"]] += row["share"]
            elif traffic in (CONTROL, TELEMETRY):
                streams[workload.name, traffic, row["to"], w] += row["share"]
        if found is None:
            words = Message.of("verify.line_between", first=row["from"], second=row["to"], traffic=traffic).text()
            self.report.say(path, "verify.line_not_on_offer", kind=row["kind"], words=words)
            return
        nodes, ready_s = found
        if min((float(self.calendar.edges_s[w]) for w in windows), default=0.0) < ready_s - TIME_TOL_S:
            self.report.say(f"{path}.windows", "verify.line_ready_after", kind=row["kind"], time=f"{ready_s:g}")
        self._send(row, workload, nodes)

    def _path_of(self, workload: ServingFacts, row: Mapping[str, Any]) -> tuple[tuple[str, ...], float] | None:
        """Return the regions that the traffic of a placement passes, and when its lines are ready; None where the spec offers none."""
        if row["traffic"] == WEIGHTS:
            for hop in self.network.hops[workload.name]:
                line = self.network.lines[hop.line]
                if (hop.source, hop.target, line.kind) == (row["from"], row["to"], row["kind"]):
                    return (row["from"], row["to"]), line.ready_s
            return None
        if row["traffic"] not in (CONTROL, TELEMETRY) or row["from"] != workload.weights_from:
            return None
        found = self.network.stream(workload.name, row["traffic"], row["to"], row["kind"])
        return None if found is None else (found.hops, found.ready_s)

    def _send(self, row: Mapping[str, Any], workload: ServingFacts, nodes: tuple[str, ...]) -> None:
        """Put the traffic of a placement on the lines that it passes."""
        traffic, name = row["traffic"], workload.name
        rate = row["share"] * self.network.rates[name, traffic]
        mean = rate
        if traffic == WEIGHTS:
            mean = row["share"] * workload.weights_bytes * workload.spec.weight_updates_per_year / YEAR_S
        for start, end, line in self.hops(nodes, row["kind"]):
            for t in range(self.calendar.slots):
                if int(self.calendar.window[t]) in row["windows"]:
                    seconds, discount = float(self.calendar.seconds[t]), float(self.calendar.discount[t])
                    self.load[line, end if traffic == TELEMETRY else start][t] += rate
                    self.carried[line][name, traffic] += mean * seconds
                    price = mean * seconds * discount * self.lines[line].price_per_byte
                    self.paid[line][traffic] += price
                    if price:  # traffic without a price of its own is no component of the costs
                        self.costs[traffic, row["to"], row["kind"], ""] += price
                    self.by_workload[name] += price

    def _check_delivery(self, streams: Streams, trees: Trees) -> None:
        """Check that each site with a copy of a workload, which relays keep in every phase, receives all weights and streams, and no other any."""
        for workload in self.serving.values():
            name, source = workload.name, workload.weights_from
            relays = {start for (of, _), tree in trees.items() if of == name for start, _ in tree} - {source}
            placed = self.hosts[name] - self.bought - {source} | relays
            self.copies |= placed
            for w in range(self.calendar.windows):
                tree = trees.get((name, w), {})
                path = f"placements weights of {name} phase {w}"
                if stray := {end for _, end in tree} - placed:
                    self.report.say(path, "verify.stray_sites", names=", ".join(sorted(stray)))
                for site in placed if workload.spec.weight_updates_per_year > 0 else ():
                    reached = max_flow(source, site, tree)
                    if reached < 1 - RELATIVE_TOL:
                        self.report.say(path, "verify.reached_only", share=f"{reached:.6g}", site=site)
                for traffic in (CONTROL, TELEMETRY):
                    self._check_streams(name, traffic, w, placed, streams)

    def _check_streams(self, name: str, traffic: str, window: int, placed: set[str], streams: Streams) -> None:
        """Check that control or telemetry of a workload is sent in full for the sites that need it."""
        needed = placed if self.network.rates[name, traffic] > 0 else set()
        sent = {site for (w, kind, site, at) in streams if (w, kind, at) == (name, traffic, window)}
        for site in needed | sent:
            share, expected = streams.get((name, traffic, site, window), 0.0), int(site in needed)
            if abs(share - expected) > RELATIVE_TOL:
                path = f"placements {traffic} of {name} phase {window}"
                self.report.say(path, "verify.share_sent", share=f"{share:.9g}", site=site, expected=str(expected))

    # -- rent ------------------------------------------------------------------------------------------------------

    def _check_rented(self) -> None:
        """Check the row of each line that carries traffic or is reserved for the failure of a zone."""
        surviving = [w.name for w in self.serving.values() if w.spec.spread is not None and w.spec.spread.survive]
        seen: set[Line] = set()
        for i, row in enumerate(self.document["lines"]):
            key = (row["line"], row["kind"])
            facts = self.lines.get(key)
            if facts is None or key in seen or (key not in self.carried and not surviving) or set(row) != COLUMNS:
                self.report.say(f"lines[{i}]", "verify.idle_line")
                continue
            seen.add(key)
            rent = self._check_line(f"lines[{i}]", key, facts, row)
            if rent:
                self._charge(key, rent, surviving)
        if missing := {key for key in self.carried if key not in seen}:
            names = ", ".join("/".join(key) for key in sorted(missing))
            self.report.say("lines", "verify.unlisted_line", names=names)

    def _check_line(self, path: str, key: Line, facts: LineFacts, row: Mapping[str, Any]) -> float:
        """Compare a line's capacity, peak and cost with its row, and return its rent."""
        report, counted = self.report, math.isfinite(facts.unit_bytes_per_s)
        if counted and (type(row["units"]) is not int or row["units"] < 0):
            report.say(f"{path}.units", "verify.whole_units", given=repr(row["units"]))
        if not counted and row["units"] is not None:
            report.say(f"{path}.units", "verify.not_rented_by_units")
        peak = max(self.load[key, end][t] for end in facts.ends for t in range(self.calendar.slots))
        capacity = row["units"] * facts.unit_bytes_per_s if counted else None
        rent: float = row["units"] * facts.unit_price_per_s * self._worth(facts) if counted else 0.0
        traffic = sorted(self.carried[key].items())
        computed = {
            "capacity_bytes_per_s": capacity,
            "ready_s": facts.ready_s,
            "peak_bytes_per_s": peak,
            "use": peak / capacity if capacity else None,
            "cost": {"units": rent} | dict(self.paid[key]),
            "traffic": [{"workload": name, "traffic": kind, "bytes": size} for (name, kind), size in traffic],
        }
        report.equal(path, {column: row[column] for column in computed}, computed)
        at = self.load[key, row["busiest_from"]][row["busiest_slot"]] if row["busiest_from"] in facts.ends else -1.0
        if abs(at - peak) > RELATIVE_TOL * peak:
            report.say(f"{path}.busiest_slot", "verify.bytes_then", at=f"{at:.9g}", peak=f"{peak:.9g}")
        if capacity is not None:
            kept = max(
                load + more
                for end in facts.ends
                for load, more in zip(self.load[key, end], self.reserved[key, end], strict=True)
            )
            report.at_most(
                path, kept, capacity, Message.of("verify.bytes_on_line", kind=row["kind"], line=row["line"]).text()
            )
        return rent

    def _worth(self, facts: LineFacts) -> float:
        """Compute the present worth of one unit per second from when the line is ready [s]."""
        calendar = self.calendar
        return sum(
            float(s * d)
            for s, d, w in zip(calendar.seconds, calendar.discount, calendar.window, strict=True)
            if float(calendar.edges_s[int(w)]) >= facts.ready_s - TIME_TOL_S
        )

    def _charge(self, key: Line, rent: float, surviving: list[str]) -> None:
        """Split the rent of a line over the workloads by their bytes; without traffic, over those that must survive a failure."""
        self.costs["lines", *key, ""] += rent
        mine: dict[str, float] = defaultdict(float)
        for (name, _), size in self.carried[key].items():
            mine[name] += size
        shares = mine or dict.fromkeys(surviving, 1.0)
        for name, size in shares.items():
            self.by_workload[name] += rent * size / sum(shares.values())

    def limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield (path, name, units rented, limit) of every line whose units are limited."""
        for row in self.document["lines"]:
            facts = self.lines.get((row["line"], row["kind"]))
            if facts is not None and math.isfinite(facts.most) and row["units"]:
                yield (
                    f"{facts.path}.units",
                    Message.of("limit.line_units", kind=facts.kind, line=facts.name).text(),
                    float(row["units"]),
                    facts.most,
                )
