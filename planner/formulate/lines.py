"""From the ways of traffic to the arrays of the lines block: channels, streams and hops by position, rates and costs.

Not here: which ways there are (`planner.resolve.lines`), and the rows and columns (`solvers.model.lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catalog.units import YEAR_S
from planner.problem.calendar import Calendar
from planner.problem.facts import Problem
from planner.problem.lines import STREAMS, WEIGHTS, Carrier
from solvers.model.line_data import SOURCE, LineData

COST = "cost"


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages are windows in which the same lines are ready: of each window, its stage; of each stage, when it begins and the
    present worth of a second in all its windows."""

    of_window: np.ndarray
    begins_s: tuple[float, ...]
    worth_s: tuple[float, ...]


def stages(problem: Problem) -> Stages:
    """Of all ready times, those that change anything."""
    calendar = problem.calendar
    ready = sorted({line.ready_s for line in problem.lines.lines} - {0.0})
    starts = calendar.edges_s[:-1]
    number = np.array([sum(start >= time - 1e-6 for time in ready) for start in starts], dtype=np.int64)
    kept = sorted(set(number.tolist()))
    of_window = np.array([kept.index(n) for n in number], dtype=np.int64)
    worth = window_worth_s(calendar)
    return Stages(
        of_window,
        tuple(float(starts[of_window == g].min()) for g in range(len(kept))),
        tuple(float(worth[of_window == g].sum()) for g in range(len(kept))),
    )


def window_worth_s(calendar: Calendar) -> np.ndarray:
    """[window]: seconds of it, each at its present worth."""
    return np.bincount(calendar.window, weights=calendar.seconds * calendar.discount, minlength=calendar.windows)


def line_data(
    problem: Problem, arcs: Sequence[tuple[int, int, int, int]], arc_kinds: Sequence[str], origins: Sequence[str]
) -> LineData | None:
    """None where the spec leaves lines out. Channel 2 l runs along the ends of line l, channel 2 l + 1 against them."""
    network = problem.lines
    if network is None:
        return None
    when, lines, starts = stages(problem), network.lines, problem.calendar.edges_s[:-1]
    usable = np.array([starts >= line.ready_s - 1e-6 for line in lines], dtype=bool).reshape(len(lines), len(starts))
    worth = window_worth_s(problem.calendar)
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    return LineData(
        line_capacity=np.array([line.unit_bytes_per_s for line in lines], dtype=float),
        line_upper=np.array([line.most for line in lines], dtype=float),
        line_usable=usable,
        line_cost={COST: np.array([line.unit_price_per_s for line in lines], dtype=float) * (usable @ worth)},
        channel_line=np.repeat(np.arange(len(lines)), 2),
        window_stage=when.of_window,
        needs_weights=_needs_weights(problem, site_of),
        **_requests(problem, arcs, arc_kinds, origins),
        **_streams(problem, site_of, when),
        **_hops(problem, site_of, when),
    )


def _requests(problem: Problem, arcs, arc_kinds, origins) -> dict:
    rows, sizes = [], []
    for a, ((w, o, r, _), kind) in enumerate(zip(arcs, arc_kinds, strict=True)):
        workload = problem.serving[w]
        way = problem.routes(workload.name, origins[o], problem.sites[r].region)[kind]
        for line, side in way.uses:
            rows += [(a, 2 * line + side), (a, 2 * line + 1 - side)]
            sizes += [problem.egress_bytes(workload), problem.prompt_bytes(workload)]
    return {"arc_uses": _pairs(rows), "arc_uses_bytes": np.array(sizes, dtype=float)}


def listed_streams(problem: Problem) -> list[tuple[int, str, str]]:
    """(workload, traffic, site) of every stream: one from or to the source of each workload, wherever it is placed elsewhere."""
    return [
        (w, kind, site.region)
        for w, workload in enumerate(problem.serving)
        for kind in STREAMS
        for site in problem.sites
        if (workload.name, kind, site.region) in problem.lines.streams and site.region != workload.weights_from
        and problem.lines.rates[workload.name, kind] > 0
    ]  # fmt: skip


def listed_ways(problem: Problem, when: Stages) -> list[tuple[int, int, Carrier]]:
    """(stream, stage, way) of every way to send a stream."""
    return [
        (i, g, way)
        for i, (w, kind, site) in enumerate(listed_streams(problem))
        for g, begins in enumerate(when.begins_s)
        for way in problem.lines.streams[problem.serving[w].name, kind, site]
        if way.ready_s <= begins + 1e-6
    ]


def stream_side(traffic: str, side: int) -> int:
    """Control goes the way of its carrier, from the source; telemetry comes back."""
    return side if traffic == "control" else 1 - side


def _streams(problem: Problem, site_of, when: Stages) -> dict:
    streams, ways = listed_streams(problem), listed_ways(problem, when)
    rows, rates, costs = [], [], []
    for x, (i, g, way) in enumerate(ways):
        w, kind, _ = streams[i]
        rate = problem.lines.rates[problem.serving[w].name, kind]
        rows += [(x, 2 * line + stream_side(kind, side)) for line, side in way.uses]
        rates += [rate] * len(way.uses)
        costs.append(rate * way.price_per_byte * when.worth_s[g])
    return {
        "stream_workload": _whole(w for w, _, _ in streams),
        "stream_site": _whole(site_of[site] for _, _, site in streams),
        "way_stream": _whole(i for i, _, _ in ways),
        "way_stage": _whole(g for _, g, _ in ways),
        "way_cost": {COST: np.array(costs, dtype=float)},
        "way_uses": _pairs(rows),
        "way_uses_rate": np.array(rates, dtype=float),
    }


def _needs_weights(problem: Problem, site_of) -> np.ndarray:
    needs = np.zeros((len(problem.serving), len(site_of)), dtype=bool)
    for w, workload in enumerate(problem.serving):
        for name, _, site in problem.lines.streams:
            needs[w, site_of[site]] |= (
                name == workload.name and site != workload.weights_from and workload.spec.weight_updates_per_year > 0
            )
    return needs


def listed_sends(problem: Problem, when: Stages) -> tuple[list[tuple[int, str, str]], list[tuple[int, int, int, int]]]:
    """Hops (workload, from, to), and ways (hop, stage, line, side) to send weights over each."""
    places: dict[tuple[int, str, str], int] = {}
    sends = []
    for w, workload in enumerate(problem.serving):
        for hop in problem.lines.hops[workload.name] if workload.spec.weight_updates_per_year > 0 else ():
            h = places.setdefault((w, hop.source, hop.target), len(places))
            ready = problem.lines.lines[hop.line].ready_s
            sends += [(h, g, hop.line, hop.side) for g, begins in enumerate(when.begins_s) if ready <= begins + 1e-6]
    return list(places), sends


def update_cost(problem: Problem, w: int, line: int, worth_s: float) -> float:
    """Of sending all updates of a stage over a line."""
    workload = problem.serving[w]
    sent = workload.weights_bytes * workload.spec.weight_updates_per_year / YEAR_S
    return sent * worth_s * problem.lines.lines[line].price_per_byte


def _hops(problem: Problem, site_of, when: Stages) -> dict:
    hops, sends = listed_sends(problem, when)
    home = [problem.serving[w].weights_from for w, _, _ in hops]
    return {
        "hop_workload": _whole(w for w, _, _ in hops),
        "hop_from": _whole(SOURCE if source == first else site_of[source] for (_, source, _), first in zip(hops, home)),
        "hop_to": _whole(site_of[target] for _, _, target in hops),
        "send_hop": _whole(h for h, _, _, _ in sends),
        "send_stage": _whole(g for _, g, _, _ in sends),
        "send_channel": _whole(2 * line + side for _, _, line, side in sends),
        "send_rate": np.array(
            [problem.lines.rates[problem.serving[hops[h][0]].name, WEIGHTS] for h, _, _, _ in sends], dtype=float
        ),
        "send_cost": {
            COST: np.array(
                [update_cost(problem, hops[h][0], line, when.worth_s[g]) for h, g, line, _ in sends], dtype=float
            )
        },
    }


def _whole(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


def _pairs(rows) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
