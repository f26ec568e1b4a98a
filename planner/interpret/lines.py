"""Rented lines of a plan, reduced to the need: their loads, costs and plan rows.

`planner.verify.lines` adds up the same amounts again from the plan document, without this code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Floats
from planner.formulate.formulation import Formulation
from planner.formulate.lines import (
    Stages,
    listed_sends,
    listed_streams,
    listed_ways,
    network_of,
    stages,
    stream_side,
    update_cost,
    usable_windows,
)
from planner.problem.facts import ResolvedSpec
from planner.problem.limit_labels import LimitLabel, line_units
from planner.problem.lines import WEIGHTS, Carrier, LineNetwork

REQUESTS, LINES = "requests", "lines"
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
    cost: float  # present value in the stage


class LineDecisions:
    """`units` of each line, traffic `sent` besides requests, and the `load` [line, side, slot] in bytes/s."""

    def __init__(
        self,
        problem: ResolvedSpec,
        form: Formulation,
        values: Mapping[str, Floats],
        flow: Floats,
        used_sites: Mapping[str, set[str]],
    ):
        self.problem, self.form, self.flow = problem, form, flow
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
        self.paid: dict[tuple[int, str], float] = defaultdict(float)  # (line, traffic) -> price of bytes
        self.load = np.zeros((len(self.network.lines), 2, problem.calendar.slots))
        self._requests()
        self._others()
        peak = self.load.max(axis=(1, 2), initial=0.0)
        capacity = np.array([line.unit_bytes_per_s for line in self.network.lines])
        needed = np.where(np.isfinite(capacity), np.ceil(peak / capacity - 1e-7), 0)
        self.outlasting = [w.name for w in problem.serving if w.spec.spread is not None and w.spec.spread.survive]
        rented = np.rint(values["unit"]).astype(int)  # with some for the failure of a zone, where that is asked for
        self.units = rented if self.outlasting else np.minimum(rented, needed).astype(int)
        worth = np.bincount(problem.calendar.window, weights=seconds * problem.calendar.discount)
        ready = usable_windows(problem)
        self.unit_cost = np.array(
            [line.unit_price_per_s * float(worth[ready[i]].sum()) for i, line in enumerate(self.network.lines)]
        )

    def _requests(self) -> None:
        """Add prompts and answers to loads, bytes and payments."""
        problem = self.problem
        weight = problem.calendar.seconds * problem.calendar.discount
        for a, ((w, o, r, _), kind) in enumerate(zip(self.form.arcs, self.form.arc_kinds, strict=True)):
            workload = problem.serving[w]
            if not self.flow[a].any():
                continue
            way = problem.routes(workload.name, self.form.origins[o], problem.sites[r].region)[kind]
            answer, prompt = problem.egress_bytes(workload), problem.prompt_bytes(workload)
            assert isinstance(way, Carrier)
            for line, side in way.uses:
                self.load[line, side] += answer * self.flow[a]
                self.load[line, 1 - side] += prompt * self.flow[a]
                self.carried[line, workload.name, REQUESTS] += (answer + prompt) * float(
                    self.flow[a] @ problem.calendar.seconds
                )
                self.paid[line, REQUESTS] += (
                    answer * self.network.lines[line].price_per_byte * float(self.flow[a] @ weight)
                )

    def _others(self) -> None:
        """Add streams and weights to loads, bytes and payments."""
        for sent in self.sent:
            for line, side in sent.uses:
                self.load[line, side] += sent.rate * (self.stage_of_slot == sent.stage)
                self.carried[line, self.problem.serving[sent.workload].name, sent.traffic] += sent.bytes
                price = self.network.lines[line].price_per_byte
                self.paid[line, sent.traffic] += sent.cost * price / _price(self.network, sent)

    # -- amounts ---------------------------------------------------------------------------------------------------

    def costs(self) -> Iterator[tuple[tuple[str, str, str, str], str, float]]:
        """Yield (cost line, workload, present value) of units and of traffic besides requests."""
        for sent in self.sent:
            if sent.cost:
                yield (sent.traffic, sent.target, sent.kind, ""), self.problem.serving[sent.workload].name, sent.cost
        for i, line in enumerate(self.network.lines):
            if self.units[i] and self.unit_cost[i]:
                amount, mine = float(self.units[i] * self.unit_cost[i]), self._by_workload(i)
                for name, carried in mine.items():
                    yield (LINES, line.name, line.kind, ""), name, amount * carried / sum(mine.values())

    def _by_workload(self, line: int) -> dict[str, float]:
        """Add up the bytes that each workload sends over a line; equal shares of those that must survive a failure if none."""
        result: dict[str, float] = defaultdict(float)
        for (number, name, _), carried in self.carried.items():
            if number == line:
                result[name] += carried
        return dict(result) or dict.fromkeys(self.outlasting, 1.0)

    # -- tables ----------------------------------------------------------------------------------------------------

    def lines(self) -> list[dict[str, Any]]:
        """Build one row for each line that is rented or used."""
        rows = []
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
                "cost": {"units": float(self.units[i] * self.unit_cost[i])} | {kind: cost for (number, kind), cost in sorted(self.paid.items()) if number == i},
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
                "phases": sorted(when),
                "share": share,
            }
            for (name, traffic, source, target, kind, share), when in phases.items()
        ]

    def busy_units(self) -> Iterator[tuple[LimitLabel, float, float]]:
        """Yield (key, units, most) of each rented line of which the spec offers only so many."""
        for i, line in enumerate(self.network.lines):
            if math.isfinite(line.most) and self.units[i]:
                yield line_units(line), float(self.units[i]), line.most


def _price(network: LineNetwork, sent: Sent) -> float:
    """Add up the prices per byte of the lines that a share takes; 1 where all are free."""
    return sum(network.lines[line].price_per_byte for line, _ in sent.uses) or 1.0


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
            rate * way.price_per_byte * when.worth_s[g],
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
        yield Sent(w, WEIGHTS, source, target, network.lines[line].kind, g, part, ((line, side),), part * network.rates[name, WEIGHTS], size,
                   part * update_cost(problem, w, line, when.worth_s[g]))  # fmt: skip


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
