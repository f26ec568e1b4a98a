"""Rented lines of a plan, reduced to the need: their loads and plan rows.

`planner.verify.lines` adds up the same amounts again from the plan document, without this code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Floats, sum_of
from planner.candidates.points import Exchange, WeightExchange
from planner.formulate.formulation import Formulation
from planner.formulate.lines import (
    Stages,
    listed_sends,
    listed_streams,
    listed_ways,
    network_of,
    shares_of_price,
    stages,
    stream_side,
)
from planner.money.components import LINE, REPLICA, REQUEST, SEND, STREAM
from planner.money.terms import COST, by_position
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.limit_labels import LimitLabel, line_units
from planner.problem.lines import ROLLOUTS, WEIGHTS, Carrier

REQUESTS = "requests"
Amounts = Callable[[str, str], Floats]  # functional, decision -> amount by position
SHARE_TOL = 1e-7  # shares below this are rounding


@dataclass(frozen=True, slots=True)
class Sent:
    """A share of a stream, or of the weights, that travels over lines in one stage."""

    workload: int
    traffic: str
    source: str
    target: str
    kind: str
    stage: int
    share: float
    uses: tuple[tuple[int, int], ...]  # (line, side)
    rate: float  # bytes/s while it is sent
    bytes: float  # in the stage
    decision: str  # the share is a part of this decision, at the position `at`
    at: int


class LineDecisions:
    """`units` of each line, traffic `sent` besides requests, and the `load` [line, side, slot] in bytes/s."""

    def __init__(
        self,
        problem: ResolvedSpec,
        form: Formulation,
        values: Mapping[str, Floats],
        flow: Floats,
        used_sites: Mapping[str, set[str]],
        active: Floats,
    ):
        self.problem, self.form, self.flow, self.active = problem, form, flow, active
        self.network, self.when = network_of(problem), stages(problem)
        seconds = problem.calendar.seconds
        self.stage_of_slot = self.when.of_window[problem.calendar.window]
        stages_count = len(self.when.begins_s)
        self.stage_seconds = np.bincount(self.stage_of_slot, weights=seconds, minlength=stages_count).astype(np.float64)
        sends = list(_weights(problem, form, self.when, values, self.stage_seconds))
        placed = [
            _with_relays(w, workload.weights_from, used_sites[workload.name], sends)
            for w, workload in enumerate(problem.serving)
        ]
        self.copies: set[str] = set().union(*placed)  # sites with a copy of weights
        sends = [sent for sent in sends if sent.target in placed[sent.workload]]
        self.sent = [
            sent
            for sent in _streams(problem, self.when, values, self.stage_seconds)
            if sent.target in placed[sent.workload]
        ] + sends
        self.carried: dict[tuple[int, str, str], float] = defaultdict(float)  # (line, workload, traffic) -> bytes
        self.load = np.zeros((len(self.network.lines), 2, problem.calendar.slots))
        self._requests()
        self._others()
        kept = self._exchanged()
        peak = np.maximum((self.load + kept).max(axis=(1, 2), initial=0.0), self._reserved())
        capacity = np.array([line.unit_bytes_per_s for line in self.network.lines])
        needed = np.where(np.isfinite(capacity), np.ceil(peak / capacity - 1e-7), 0)
        self.outlasting = [w.name for w in problem.serving if w.spec.spread is not None and w.spec.spread.survive]
        rented = np.rint(values["unit"]).astype(int)  # with some for the failure of a zone, where that is asked for
        self.units = rented if self.outlasting else np.minimum(rented, needed).astype(int)

    def _requests(self) -> None:
        """Add prompts and answers to loads and bytes."""
        problem = self.problem
        for a, workload, way in self._carried_requests():
            answer, prompt = problem.egress_bytes(workload), problem.prompt_bytes(workload)
            for line, side in way.uses:
                self.load[line, side] += answer * self.flow[a]
                self.load[line, 1 - side] += prompt * self.flow[a]
                self.carried[line, workload.name, REQUESTS] += (answer + prompt) * float(
                    self.flow[a] @ problem.calendar.seconds
                )

    def _carried_requests(self) -> Iterator[tuple[int, ServingFacts, Carrier]]:
        """Yield (arc, workload, way) of the arcs in use."""
        for a, ((w, o, r, _), kind) in enumerate(zip(self.form.arcs, self.form.arc_kinds, strict=True)):
            if self.flow[a].any():
                workload = self.problem.serving[w]
                way = self.problem.routes(workload.name, self.form.origins[o], self.problem.sites[r].region)[kind]
                assert isinstance(way, Carrier)
                yield a, workload, way

    def _others(self) -> None:
        """Add streams and weights to loads and bytes."""
        for sent in self.sent:
            for line, side in sent.uses:
                self.load[line, side] += sent.rate * (self.stage_of_slot == sent.stage)
                self.carried[line, self.problem.serving[sent.workload].name, sent.traffic] += sent.bytes

    def _exchanged(self) -> Floats:
        """Add what pools at two sites send each other to loads and bytes; return what they keep of a line beyond it [line, side, slot]."""
        more = np.zeros_like(self.load)
        for p, exchange in self._exchanges():
            active, point = self.active[p], self.form.points[p]
            seconds = float(active @ self.problem.calendar.seconds)
            sent, kept = exchange.sent(point.capacity), exchange.kept(point.capacity)
            for line, side in exchange.way.uses:
                for way, rate, whole in zip((side, 1 - side), sent, kept, strict=True):
                    self.load[line, way] += rate * active
                    more[line, way] += (whole - rate) * active
                self.carried[line, point.workload.name, exchange.traffic] += sum_of(sent) * seconds
        return more

    def _reserved(self) -> Floats:
        """[line]: the most that a job reserves of a line each way, however short it is at work [byte/s]."""
        most = np.zeros(len(self.network.lines))
        for p, exchange in self._exchanges():
            if exchange.traffic == ROLLOUTS:
                for line, _ in exchange.way.uses:
                    most[line] = max(most[line], *exchange.kept(self.form.points[p].capacity))
        return most

    def _exchanges(self) -> Iterator[tuple[int, Exchange | WeightExchange]]:
        """Yield the points at work with pools at two sites."""
        for p, point in enumerate(self.form.points):
            if point.exchange is not None and self.active[p].any():
                yield p, point.exchange

    # -- amounts ---------------------------------------------------------------------------------------------------

    def taken(self) -> dict[str, Floats]:
        """Return the units of each line, and the share of each stream and of each set of weights on each way."""
        assert self.form.data.lines is not None
        data = self.form.data.lines
        found = {
            LINE: self.units.astype(float),
            STREAM: np.zeros(len(data.way_stream)),
            SEND: np.zeros(len(data.send_hop)),
        }
        for sent in self.sent:
            found[sent.decision][sent.at] += sent.share
        return found

    def shares(self, line: int) -> dict[str, float]:
        """Return the shares of the workloads in a line, by the bytes that they send over it."""
        mine = self._by_workload(line)
        return {name: carried / sum_of(mine.values()) for name, carried in mine.items()}

    def _paid(self, amounts: Amounts) -> dict[tuple[int, str], float]:
        """Add up the payments for bytes by line and traffic; no line is paid for tokens that an API sells."""
        paid: dict[tuple[int, str], float] = defaultdict(float)
        of_arcs = by_position((term for term in self.form.terms if term.for_bytes), REQUEST, {REQUEST: self.flow})
        for a, _, way in self._carried_requests():
            share = shares_of_price(self.network, way.uses)
            for line, _ in way.uses:
                paid[line, REQUESTS] += of_arcs[a] * share.get(line, 0.0)
        of_points = by_position((term for term in self.form.terms if term.for_bytes), REPLICA, {REPLICA: self.active})
        for p, exchange in self._exchanges():
            share = shares_of_price(self.network, exchange.way.uses)
            for line, _ in exchange.way.uses:
                paid[line, exchange.traffic] += of_points[p] * share.get(line, 0.0)
        for sent in self.sent:
            share = shares_of_price(self.network, sent.uses)
            for line, _ in sent.uses:
                paid[line, sent.traffic] += amounts(COST, sent.decision)[sent.at] * share.get(line, 0.0)
        return paid

    def _by_workload(self, line: int) -> dict[str, float]:
        """Add up the bytes that each workload sends over a line; equal shares of those that must survive a failure if none."""
        result: dict[str, float] = defaultdict(float)
        for (number, name, _), carried in self.carried.items():
            if number == line:
                result[name] += carried
        return dict(result) or dict.fromkeys(self.outlasting, 1.0)

    # -- tables ----------------------------------------------------------------------------------------------------

    def lines(self, amounts: Amounts) -> list[dict[str, Any]]:
        """Build one row for each line that is rented or used; `amounts`: of a functional, by decision and position."""
        rows, paid, unit_cost = [], self._paid(amounts), amounts(COST, LINE)
        for i, line in enumerate(self.network.lines):
            carried = {(name, kind): size for (number, name, kind), size in self.carried.items() if number == i}
            if not carried and not self.units[i]:
                continue
            counted = math.isfinite(line.unit_bytes_per_s)
            side, slot = np.unravel_index(self.load[i].argmax(), self.load[i].shape)
            peak = float(self.load[i, side, slot])
            capacity = float(self.units[i] * line.unit_bytes_per_s) if counted else None
            rows.append({
                "line": line.name,
                "kind": line.kind,
                "units": int(self.units[i]) if counted else None,
                "capacity_bytes_per_s": capacity,
                "ready_s": line.ready_s,
                "busiest_slot": int(slot),
                "busiest_from": line.ends[side],
                "peak_bytes_per_s": peak,
                "use": peak / capacity if capacity else None,
                "cost": {"units": float(unit_cost[i])} | {kind: float(cost) for (number, kind), cost in sorted(paid.items()) if number == i},
                "traffic": [{"workload": name, "traffic": kind, "bytes": size} for (name, kind), size in sorted(carried.items())],
            })  # fmt: skip
        return rows

    def placements(self) -> list[dict[str, Any]]:
        """Build one row for each stream and share of weights: the line it takes, and in which windows."""
        phases: dict[tuple[str, str, str, str, str, float], list[int]] = defaultdict(list)
        for sent in self.sent:
            key = (
                self.problem.serving[sent.workload].name,
                sent.traffic,
                sent.source,
                sent.target,
                sent.kind,
                sent.share,
            )
            phases[key] += [int(v) for v in np.flatnonzero(self.when.of_window == sent.stage)]
        return [
            {
                "workload": name,
                "traffic": traffic,
                "from": source,
                "to": target,
                "kind": kind,
                "windows": sorted(when),
                "share": share,
            }
            for (name, traffic, source, target, kind, share), when in phases.items()
        ]

    def busy_units(self) -> Iterator[tuple[LimitLabel, float, float]]:
        """Yield (key, units, most) of each rented line of which the spec offers a limited number."""
        for i, line in enumerate(self.network.lines):
            if math.isfinite(line.most) and self.units[i]:
                yield line_units(line), float(self.units[i]), line.most


def _streams(
    problem: ResolvedSpec, when: Stages, values: Mapping[str, Floats], stage_seconds: Floats
) -> Iterator[Sent]:
    """Yield the shares of each stream, scaled to add up to one."""
    streams, ways, share = listed_streams(problem), listed_ways(problem, when), values["way"]
    total: dict[tuple[int, int], float] = defaultdict(float)
    for x, (i, g, _) in enumerate(ways):
        total[i, g] += share[x] if share[x] > SHARE_TOL else 0.0
    for x, (i, g, way) in enumerate(ways):
        if share[x] <= SHARE_TOL:
            continue
        (w, kind, site), part = streams[i], float(share[x] / total[i, g])
        rate = part * network_of(problem).rates[problem.serving[w].name, kind]
        uses = tuple((line, stream_side(kind, side)) for line, side in way.uses)
        yield Sent(
            w,
            kind,
            problem.serving[w].weights_from,
            site,
            way.kind,
            g,
            part,
            uses,
            rate,
            rate * float(stage_seconds[g]),
            STREAM,
            x,
        )


def _weights(
    problem: ResolvedSpec, form: Formulation, when: Stages, values: Mapping[str, Floats], stage_seconds: Floats
) -> Iterator[Sent]:
    """Yield the weights sent over each hop, reduced to the need of the sites behind it."""
    hops, sends = listed_sends(problem, when)
    network, data = network_of(problem), form.data.lines
    if not sends or data is None:
        return
    needed = values["pass"].max(axis=(0, 1))  # [hop, stage]
    offered = np.zeros_like(needed)
    np.add.at(offered, (data.send_hop, data.send_stage), values["send"])
    for y, (h, g, line, side) in enumerate(sends):
        part = float(values["send"][y] * min(needed[h, g] / max(offered[h, g], 1e-30), 1.0))
        if part <= SHARE_TOL:
            continue
        w, source, target = hops[h]
        name, workload = problem.serving[w].name, problem.serving[w]
        part = min(part, 1.0)
        size = part * workload.weights_bytes * workload.spec.weight_updates_per_year * float(stage_seconds[g]) / YEAR_S
        rate = part * network.rates[name, WEIGHTS]
        kind = network.lines[line].kind
        yield Sent(w, WEIGHTS, source, target, kind, g, part, ((line, side),), rate, size, SEND, y)


def _with_relays(w: int, home: str, used: set[str], sends: list[Sent]) -> set[str]:
    """Find the sites that must hold a workload: those that serve, and those that pass its weights on to them."""
    placed: set[str] = set()
    grown = used - {home}
    while grown != placed:
        placed = set(grown)
        grown = placed | {
            sent.source for sent in sends if sent.workload == w and sent.target in placed and sent.source != home
        }
    return placed
