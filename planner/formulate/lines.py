"""Program data of rented lines: channels, streams and hops of weights by position, with their rates and costs.

Not here: which ways there are (`planner.resolve.routes.lines`), and the rows and columns (`solvers.model.lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Bools, Ints, sum_of
from planner.formulate.costs import Rates
from planner.formulate.functionals import Functionals
from planner.money import components
from planner.money.components import LINE, SEND, STREAM
from planner.money.terms import AnyTerms, Flowing
from planner.problem.facts import ResolvedSpec
from planner.problem.lines import STREAMS, WEIGHTS, Carrier, LineNetwork
from solvers.model.block_data.lines import SOURCE, LineData


@dataclass(frozen=True, slots=True)
class Stages:
    """Groups of windows in which the same lines are ready."""

    of_window: Ints  # [V] the stage of each window
    begins_s: tuple[float, ...]  # when each stage begins [s]


def stages(problem: ResolvedSpec) -> Stages:
    """Group the windows by the ready times of lines that fall inside the horizon."""
    calendar = problem.calendar
    ready = sorted({line.ready_s for line in network_of(problem).lines} - {0.0})
    starts = calendar.edges_s[:-1]
    number = np.array([sum(start >= time - 1e-6 for time in ready) for start in starts], dtype=np.int64)
    kept = sorted(set(number.tolist()))
    of_window = np.array([kept.index(n) for n in number], dtype=np.int64)
    begins_s = tuple(float(starts[of_window == g].min()) for g in range(len(kept)))
    return Stages(of_window, begins_s)


def network_of(problem: ResolvedSpec) -> LineNetwork:
    """Return the lines of a problem that has some; raises ValueError otherwise."""
    if problem.lines is None:
        raise ValueError("the problem has no lines")
    return problem.lines


def line_data(
    problem: ResolvedSpec,
    arcs: Sequence[tuple[int, int, int, int]],
    arc_kinds: Sequence[str],
    origins: Sequence[str],
    costs: Functionals,
) -> LineData | None:
    """Build the data of the lines block; None where the spec leaves lines out.

    Channel 2 l runs from the first to the second end of line l, channel 2 l + 1 the other way.
    """
    if problem.lines is None:
        return None
    when, lines = stages(problem), problem.lines.lines
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    return LineData(
        line_capacity=np.array([line.unit_bytes_per_s for line in lines], dtype=float),
        line_upper=np.array([line.most for line in lines], dtype=float),
        line_usable=usable_windows(problem),
        line_cost=costs.of(LINE, len(lines)),
        channel_line=np.repeat(np.arange(len(lines)), 2),
        window_stage=when.of_window,
        needs_weights=_needs_weights(problem, site_of),
        way_cost=costs.of(STREAM, len(listed_ways(problem, when))),
        send_cost=costs.of(SEND, len(listed_sends(problem, when)[1])),
        **_requests(problem, arcs, arc_kinds, origins),
        **_streams(problem, site_of, when),
        **_hops(problem, site_of, when),
    )


def line_terms(problem: ResolvedSpec, rates: Rates) -> list[AnyTerms]:
    """Build the terms of one unit of each line, of each stream on a way, and of each set of weights on a hop; none without lines."""
    if problem.lines is None:
        return []
    network, when, usable = problem.lines, stages(problem), usable_windows(problem)
    lines, names = network.lines, [workload.name for workload in problem.serving]
    rented = [i for i, line in enumerate(lines) if line.unit_price_per_s and usable[i].any()]
    streams, (hops, sends) = listed_streams(problem), listed_sends(problem, when)
    ways = [
        (x, streams[i], g, way, network.rates[names[streams[i][0]], streams[i][1]] * way.price_per_byte)
        for x, (i, g, way) in enumerate(listed_ways(problem, when))
    ]
    sent = [(y, hops[h], g, line, update_price(problem, hops[h][0], line)) for y, (h, g, line, _) in enumerate(sends)]

    def flowing(name: str, decision: str, at: Iterable[int], per_unit: Iterable[float], **labels: Any) -> Flowing:
        rows = _ints(at)
        windows = np.array(labels.pop("windows"), dtype=np.int64).reshape(-1, 2)
        return Flowing(
            component=name,
            decision=decision,
            at=rows,
            dates=rates.dates,
            per_unit=np.array(list(per_unit), dtype=float),
            profile=rates.worth[None, :],
            follows=np.zeros_like(rows),
            windows=windows,
            **labels,
        )

    spans = [_span(when.of_window == g) for g in range(len(when.begins_s))]
    found: list[AnyTerms] = [
        flowing(
            components.LINES.key,
            LINE,
            rented,
            (lines[i].unit_price_per_s for i in rented),
            places=tuple((lines[i].name, lines[i].kind, "") for i in rented),
            windows=[_span(usable[i]) for i in rented],
        )
    ]
    for kind in STREAMS:
        mine = [way for way in ways if way[1][1] == kind and way[4]]
        found.append(
            flowing(
                kind,
                STREAM,
                (x for x, *_ in mine),
                (price for *_, price in mine),
                windows=[spans[g] for _, _, g, _, _ in mine],
                places=tuple((site, way.kind, "") for _, (_, _, site), _, way, _ in mine),
                workload=tuple(names[w] for _, (w, _, _), *_ in mine),
            )
        )
    paid = [part for part in sent if part[4]]
    weights = flowing(
        components.WEIGHTS.key,
        SEND,
        (y for y, *_ in paid),
        (price for *_, price in paid),
        windows=[spans[g] for _, _, g, _, _ in paid],
        places=tuple((target, lines[line].kind, "") for _, (_, _, target), _, line, _ in paid),
        workload=tuple(names[w] for _, (w, _, _), *_ in paid),
    )
    return [*found, weights]


def _span(windows: Bools) -> tuple[int, int]:
    """Return the first and the last of the marked windows, which follow each other."""
    marked = np.flatnonzero(windows)
    return int(marked[0]), int(marked[-1])


def shares_of_price(network: LineNetwork, uses: Sequence[tuple[int, int]]) -> dict[int, float]:
    """Split the payment for bytes on a way over its lines by their prices per byte; empty where all lines are free."""
    price = [(line, network.lines[line].price_per_byte) for line, _ in uses]
    total = sum_of(part for _, part in price)
    return {line: part / total for line, part in price} if total else {}


def usable_windows(problem: ResolvedSpec) -> Bools:
    """Mark the windows [L, V] in which each line is ready."""
    lines, starts = network_of(problem).lines, problem.calendar.edges_s[:-1]
    return np.array([starts >= line.ready_s - 1e-6 for line in lines], dtype=bool).reshape(len(lines), len(starts))


def _requests(
    problem: ResolvedSpec, arcs: Sequence[tuple[int, int, int, int]], arc_kinds: Sequence[str], origins: Sequence[str]
) -> dict[str, Any]:
    """Build the fields of request traffic: answers along their route, prompts against it."""
    rows: list[tuple[int, int]] = []
    sizes: list[float] = []
    for a, ((w, o, r, _), kind) in enumerate(zip(arcs, arc_kinds, strict=True)):
        workload = problem.serving[w]
        way = problem.routes(workload.name, origins[o], problem.sites[r].region)[kind]
        assert isinstance(way, Carrier)
        for line, side in way.uses:
            rows += [(a, 2 * line + side), (a, 2 * line + 1 - side)]
            sizes += [problem.egress_bytes(workload), problem.prompt_bytes(workload)]
    return {"arc_uses": _pairs(rows), "arc_uses_bytes": np.array(sizes, dtype=float)}


def listed_streams(problem: ResolvedSpec) -> list[tuple[int, str, str]]:
    """List (workload, traffic, site) of every stream: one from or to the source of each workload, for each other site."""
    network = network_of(problem)
    return [
        (w, kind, site.region)
        for w, workload in enumerate(problem.serving)
        for kind in STREAMS
        for site in problem.sites
        if (workload.name, kind, site.region) in network.streams and site.region != workload.weights_from
        and network.rates[workload.name, kind] > 0
    ]  # fmt: skip


def listed_ways(problem: ResolvedSpec, when: Stages) -> list[tuple[int, int, Carrier]]:
    """List (stream, stage, way) of every way to send a stream."""
    streams = network_of(problem).streams
    return [
        (i, g, way)
        for i, (w, kind, site) in enumerate(listed_streams(problem))
        for g, begins in enumerate(when.begins_s)
        for way in streams[problem.serving[w].name, kind, site]
        if way.ready_s <= begins + 1e-6
    ]


def stream_side(traffic: str, side: int) -> int:
    """Return the side of a line that a stream takes: control leaves the source as its way does, telemetry comes back."""
    return side if traffic == "control" else 1 - side


def _streams(problem: ResolvedSpec, site_of: Mapping[str, int], when: Stages) -> dict[str, Any]:
    """Build the fields of streams and of their ways in each stage."""
    streams, ways = listed_streams(problem), listed_ways(problem, when)
    rows: list[tuple[int, int]] = []
    rates: list[float] = []
    for x, (i, _, way) in enumerate(ways):
        w, kind, _ = streams[i]
        rows += [(x, 2 * line + stream_side(kind, side)) for line, side in way.uses]
        rates += [network_of(problem).rates[problem.serving[w].name, kind]] * len(way.uses)
    return {
        "stream_workload": _ints(w for w, _, _ in streams),
        "stream_site": _ints(site_of[site] for _, _, site in streams),
        "way_stream": _ints(i for i, _, _ in ways),
        "way_stage": _ints(g for _, g, _ in ways),
        "way_uses": _pairs(rows),
        "way_uses_rate": np.array(rates, dtype=float),
    }


def _needs_weights(problem: ResolvedSpec, site_of: Mapping[str, int]) -> Bools:
    """Mark (workload, site) [W, R] where weights must be brought from elsewhere."""
    needs = np.zeros((len(problem.serving), len(site_of)), dtype=bool)
    for w, workload in enumerate(problem.serving):
        for name, _, site in network_of(problem).streams:
            needs[w, site_of[site]] |= (
                name == workload.name and site != workload.weights_from and workload.spec.weight_updates_per_year > 0
            )
    return needs


def listed_sends(
    problem: ResolvedSpec, when: Stages
) -> tuple[list[tuple[int, str, str]], list[tuple[int, int, int, int]]]:
    """List hops (workload, from, to), and ways (hop, stage, line, side) to send weights over each."""
    network = network_of(problem)
    places: dict[tuple[int, str, str], int] = {}
    sends: list[tuple[int, int, int, int]] = []
    for w, workload in enumerate(problem.serving):
        for hop in network.hops[workload.name] if workload.spec.weight_updates_per_year > 0 else ():
            h = places.setdefault((w, hop.source, hop.target), len(places))
            ready = network.lines[hop.line].ready_s
            sends += [(h, g, hop.line, hop.side) for g, begins in enumerate(when.begins_s) if ready <= begins + 1e-6]
    return list(places), sends


def update_price(problem: ResolvedSpec, w: int, line: int) -> float:
    """Price all updates of a workload's weights over a line, per second of the time in which they are sent there."""
    workload = problem.serving[w]
    sent: float = workload.weights_bytes * workload.spec.weight_updates_per_year / YEAR_S
    return sent * network_of(problem).lines[line].price_per_byte


def _hops(problem: ResolvedSpec, site_of: Mapping[str, int], when: Stages) -> dict[str, Any]:
    """Build the fields of hops of weights and of the ways to send weights over them."""
    hops, sends = listed_sends(problem, when)
    home = [problem.serving[w].weights_from for w, _, _ in hops]
    rates = network_of(problem).rates
    return {
        "hop_workload": _ints(w for w, _, _ in hops),
        "hop_from": _ints(
            SOURCE if source == first else site_of[source] for (_, source, _), first in zip(hops, home, strict=True)
        ),
        "hop_to": _ints(site_of[target] for _, _, target in hops),
        "send_hop": _ints(h for h, _, _, _ in sends),
        "send_stage": _ints(g for _, g, _, _ in sends),
        "send_channel": _ints(2 * line + side for _, _, line, side in sends),
        "send_rate": np.array([rates[problem.serving[hops[h][0]].name, WEIGHTS] for h, _, _, _ in sends], dtype=float),
    }


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _pairs(rows: Sequence[tuple[int, int]]) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
