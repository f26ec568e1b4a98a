"""Program data of rented lines: channels, streams and hops of weights by position, with their rates and costs.

Not here: which ways there are (`planner.resolve.routes.lines`), and the rows and columns (`solvers.model.lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Bools, Floats, Ints
from planner.formulate.functionals import COST
from planner.problem.calendar import Calendar
from planner.problem.facts import ResolvedSpec
from planner.problem.lines import STREAMS, WEIGHTS, Carrier, LineNetwork
from solvers.model.block_data.lines import SOURCE, LineData


@dataclass(frozen=True, slots=True)
class Stages:
    """Groups of windows in which the same lines are ready."""

    of_window: Ints  # [V] the stage of each window
    begins_s: tuple[float, ...]  # when each stage begins [s]
    worth_s: tuple[float, ...]  # seconds of each stage, at their present worth


def stages(problem: ResolvedSpec) -> Stages:
    """Group the windows by the ready times of lines that fall inside the horizon."""
    calendar = problem.calendar
    ready = sorted({line.ready_s for line in network_of(problem).lines} - {0.0})
    starts = calendar.edges_s[:-1]
    number = np.array([sum(start >= time - 1e-6 for time in ready) for start in starts], dtype=np.int64)
    kept = sorted(set(number.tolist()))
    of_window = np.array([kept.index(n) for n in number], dtype=np.int64)
    begins_s = tuple(float(starts[of_window == g].min()) for g in range(len(kept)))
    return Stages(of_window, begins_s, _totals(of_window, window_worth_s(calendar)))


def stage_totals(when: Stages, by_window: Floats) -> tuple[float, ...]:
    """Add up an amount of each window [V] over the windows of each stage."""
    return _totals(when.of_window, by_window)


def _totals(of_window: Ints, by_window: Floats) -> tuple[float, ...]:
    return tuple(float(by_window[of_window == g].sum()) for g in range(int(of_window.max()) + 1))


def window_worth_s(calendar: Calendar) -> Floats:
    """Sum the seconds of each window [V], each at its present worth."""
    weights = calendar.seconds * calendar.discount
    return np.bincount(calendar.window, weights=weights, minlength=calendar.windows).astype(np.float64)


def network_of(problem: ResolvedSpec) -> LineNetwork:
    """Return the lines of a problem that has some; raises ValueError otherwise."""
    if problem.lines is None:
        raise ValueError("the problem has no lines")
    return problem.lines


def line_data(
    problem: ResolvedSpec, arcs: Sequence[tuple[int, int, int, int]], arc_kinds: Sequence[str], origins: Sequence[str]
) -> LineData | None:
    """Build the data of the lines block; None where the spec leaves lines out.

    Channel 2 l runs from the first to the second end of line l, channel 2 l + 1 the other way.
    """
    if problem.lines is None:
        return None
    when, lines = stages(problem), problem.lines.lines
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    costs = line_costs(problem, window_worth_s(problem.calendar))
    return LineData(
        line_capacity=np.array([line.unit_bytes_per_s for line in lines], dtype=float),
        line_upper=np.array([line.most for line in lines], dtype=float),
        line_usable=usable_windows(problem),
        line_cost={COST: costs.line},
        channel_line=np.repeat(np.arange(len(lines)), 2),
        window_stage=when.of_window,
        needs_weights=_needs_weights(problem, site_of),
        way_cost={COST: costs.way},
        send_cost={COST: costs.send},
        **_requests(problem, arcs, arc_kinds, origins),
        **_streams(problem, site_of, when),
        **_hops(problem, site_of, when),
    )


@dataclass(frozen=True, slots=True)
class LineCosts:
    """Costs per unit of each line, per stream on a way, and per set of weights on a hop, in each stage."""

    line: Floats  # [L]
    way: Floats  # [X]
    send: Floats  # [Y]


def line_costs(problem: ResolvedSpec, by_window: Floats) -> LineCosts:
    """Compute the costs for payments that count `by_window` [V]: by present worth, or the seconds in one phase."""
    network, when = network_of(problem), stages(problem)
    by_stage = stage_totals(when, by_window)
    streams, (hops, sends) = listed_streams(problem), listed_sends(problem, when)
    unit_price = np.array([line.unit_price_per_s for line in network.lines], dtype=float)
    way = []
    for i, g, carrier in listed_ways(problem, when):
        w, kind, _ = streams[i]
        way.append(network.rates[problem.serving[w].name, kind] * carrier.price_per_byte * by_stage[g])
    send = [update_cost(problem, hops[h][0], line, by_stage[g]) for h, g, line, _ in sends]
    return LineCosts(
        line=unit_price * (usable_windows(problem) @ by_window),
        way=np.array(way, dtype=float),
        send=np.array(send, dtype=float),
    )


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


def update_cost(problem: ResolvedSpec, w: int, line: int, worth_s: float) -> float:
    """Compute the cost of sending all updates of a workload's weights over a line, in a stage of `worth_s` seconds."""
    workload = problem.serving[w]
    sent: float = workload.weights_bytes * workload.spec.weight_updates_per_year / YEAR_S
    return sent * worth_s * network_of(problem).lines[line].price_per_byte


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
