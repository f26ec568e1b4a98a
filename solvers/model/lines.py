"""The lines block: which lines to rent between places, and what travels on each.

The rows `arriving`, `sent` and `relayed` make `send` a point of the branching polytope over the places that hold the weights: a mixture
of trees from the source (Edmonds, J. Res. NBS 71B, 1967), each of which carries its share of the file. An arc carries nothing while a
line that it takes is not ready (`solvers.model.routing.arc_most`), and routes and sends exist for ready lines only.

Sets
    l               lines, with a channel c in each direction
    g               stages, runs of windows in which the same lines are ready; g(t) the stage of a slot
    a               arcs
    i               streams (workload w, site r)
    x               routes of a stream in a stage
    h               hops (w, from, to) of weights between places
    y               sends of weights over a hop in a stage
    t               slots
Data
    cap_l           bytes/s of a unit in each direction
    most_l          most units: what all traffic at once would need, and the limit of the line
    cost_l          cost of a unit; cost_x of a route and cost_y of a send likewise, for each functional
    bytes_{a,c}     bytes of a request on a channel
    rate_{x,c}      bytes/s of a stream on a channel
    rate_{p,c}      bytes/s that a replica, or a job at full width, with pools at two sites takes of a channel
    rate_y          bytes/s while the weights of an update travel
Variables
    unit_l          integer in [0, most_l], units rented, from when the line is ready to the end; absent where capacity is not counted
    way_x           in [0, 1], share of a stream that takes a route
    send_y          in [0, 1], share of the weights sent over a hop on a line
    pass_{w,r,h,g}  in [0, 1], share of the weights for host r that travels over hop h
Objective
    sum_l cost_l unit_l + sum_x cost_x way_x + sum_y cost_y send_y, for each functional.
Constraints
    line            sum_a bytes_{a,c} f_{a,t} + sum_x rate_{x,c} way_x + sum_y rate_y send_y + sum_p rate_{p,c} x_{p,t} <= cap_l unit_l
                    for each c of l, t; routes and sends of stage g(t); v_{p,t} of a job in place of x_{p,t}
    reserved        sum_{p of j} rate_{p,c} y_p <= cap_l unit_l
                    for each job j and c of l: a job at work in a part of a slot needs the whole rate then
    streamed        sum_{x of i in g} way_x = host_{w,r}    for each i, g
    arriving        sum_{h into q} pass_{w,r,h,g} - sum_{h from q} pass_{w,r,h,g} = host_{w,r} if q = r, else 0    for each w, r, place q, g
    sent            pass_{w,r,h,g} <= sum_{y of h in g} send_y    for each w, r, h, g
    relayed         sum_{y of h in g} send_y <= host_{w,from(h)}    for each h, g; a place relays only what it holds
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.block_data.exchange import ExchangeData
from solvers.model.block_data.lines import SOURCE, LineData
from solvers.model.data import PlanData
from solvers.model.routing import pool_most
from solvers.program import Program


def most_units(data: PlanData, lines: LineData, most: Floats) -> Floats:
    """[L]: upper bound on units: those that carry all traffic of the line at once; `most` [A, T]: requests/s that an arc can carry."""
    channels, stage = len(lines.channel_line), lines.window_stage[data.slot_window]
    load = np.zeros((channels, data.slots))
    np.add.at(load, lines.arc_uses[:, 1], lines.arc_uses_bytes[:, None] * most[lines.arc_uses[:, 0]])
    steady = np.zeros((channels, lines.stages))
    np.add.at(steady, (lines.way_uses[:, 1], lines.way_stage[lines.way_uses[:, 0]]), lines.way_uses_rate)
    np.add.at(steady, (lines.send_channel, lines.send_stage), lines.send_rate)
    if data.exchange is not None:
        load += _most_exchanged(data, data.exchange, channels, most)
    peak = (load + steady[:, stage]).max(axis=1, initial=0.0)
    needed = np.zeros(len(lines.line_capacity))
    np.maximum.at(needed, lines.channel_line, peak)
    units = np.divide(needed, lines.line_capacity, out=np.zeros_like(needed), where=lines.line_capacity > 0)
    return np.minimum(np.ceil(units * (1 - 1e-12)), np.floor(lines.line_upper))


def _most_exchanged(data: PlanData, exchange: ExchangeData, channels: int, most: Floats) -> Floats:
    """[C, T]: upper bound on what points with pools at two sites take of each channel: of each pool, the point that takes most per request; of each job, the one that takes most."""
    point, channel = exchange.uses.T
    each, of_jobs = np.zeros((data.pools, channels)), np.zeros((len(data.job_work), channels))
    capacity, serves = data.point_capacity[point], data.point_pool[point] >= 0
    sent = np.divide(exchange.uses_rate, capacity, out=np.zeros(len(point)), where=capacity > 0)
    np.maximum.at(each, (data.point_pool[point[serves]], channel[serves]), sent[serves])
    np.maximum.at(of_jobs, (data.point_job[point[~serves]], channel[~serves]), exchange.uses_rate[~serves])
    found: Floats = each.T @ pool_most(data, most) + of_jobs.sum(axis=0)[:, None]
    return found


def add_lines(program: Program, data: PlanData, most: Floats) -> None:
    """Add the block, after routing and schedule; `most` [A, T]: requests/s that an arc can carry."""
    lines = data.lines
    if lines is None:
        return
    counted, upper = np.isfinite(lines.line_capacity), most_units(data, lines, most)
    program.add_columns(
        "unit",
        upper.shape,
        upper=np.where(counted, upper, 0.0),
        integer=True,
        cost=lines.line_cost,
        where=counted & (upper > 0),
    )
    program.add_columns("way", lines.way_stream.shape, upper=1.0, cost=lines.way_cost, where=True)
    program.add_columns("send", lines.send_hop.shape, upper=1.0, cost=lines.send_cost, where=True)
    _add_streams(program, lines)
    _add_weights(program, data, lines)
    _add_line_rows(program, data, lines)
    if data.exchange is not None:
        _add_reserved_rows(program, data, lines, data.exchange)


def _add_streams(program: Program, lines: LineData) -> None:
    streams, stages = len(lines.stream_workload), lines.stages
    host = program.columns["host"][lines.stream_workload, lines.stream_site]
    stream, stage = (part.ravel() for part in np.meshgrid(np.arange(streams), np.arange(stages), indexing="ij"))
    program.add_rows(
        "streamed",
        0.0,
        0.0,
        np.concatenate([lines.way_stream * stages + lines.way_stage, np.arange(len(stream))]),
        np.concatenate([program.columns["way"], host[stream]]),
        np.repeat([1.0, -1.0], [len(lines.way_stream), len(stream)]),
        index=np.column_stack([lines.stream_workload[stream], lines.stream_site[stream], stream, stage]),
    )


def _add_weights(program: Program, data: PlanData, lines: LineData) -> None:
    host, send = program.columns["host"], program.columns["send"]
    workloads, sites, stages, hops = data.demand.shape[0], data.sites, lines.stages, len(lines.hop_workload)
    needs = lines.needs_weights if lines.needs_weights.size else np.zeros((workloads, sites), dtype=bool)
    needs = needs & (host >= 0)
    workload, origin, to = lines.hop_workload, lines.hop_from, lines.hop_to
    offered = np.zeros((hops, stages), dtype=bool)
    offered[lines.send_hop, lines.send_stage] = True

    mine = workload[None, :] == np.arange(workloads)[:, None]  # [W, H]
    carries = needs[:, :, None] & mine[:, None, :] & (origin[None, :] != np.arange(sites)[:, None])[None]
    passed = program.add_columns(
        "pass", (workloads, sites, hops, stages), upper=1.0, where=carries[..., None] & offered
    )

    w, r, h, g = np.nonzero(passed >= 0)
    target = np.flatnonzero(needs)
    base = np.full(workloads * sites, -1)
    base[target] = np.arange(len(target))

    def row(w: Ints, r: Ints, q: Ints, g: Ints) -> Ints:
        number: Ints = (base[w * sites + r] * sites + q) * stages + g
        return number

    leaving = origin[h] != SOURCE
    target_of, stage = (part.ravel() for part in np.meshgrid(target, np.arange(stages), indexing="ij"))
    tw, tr = np.divmod(target_of, sites)
    t, q, g_of = (part.ravel() for part in np.meshgrid(target, np.arange(sites), np.arange(stages), indexing="ij"))
    program.add_rows(
        "arriving",
        0.0,
        0.0,
        np.concatenate([row(w, r, to[h], g), row(w, r, origin[h], g)[leaving], row(tw, tr, tr, stage)]),
        np.concatenate([passed[w, r, h, g], passed[w, r, h, g][leaving], host[tw, tr]]),
        np.repeat([1.0, -1.0, -1.0], [len(h), int(leaving.sum()), len(tw)]),
        index=np.column_stack([t // sites, t % sites, q, g_of]),
    )

    order = lines.send_hop * stages + lines.send_stage
    by_order = np.argsort(order, kind="stable")
    first = np.searchsorted(order[by_order], np.arange(hops * stages + 1))
    key = h * stages + g
    many = first[key + 1] - first[key]  # sends of the hop and stage of each share
    sent = np.repeat(np.arange(len(h)), many)
    place = np.arange(len(sent)) - np.repeat(np.cumsum(many) - many, many)
    program.add_rows(
        "sent",
        -np.inf,
        0.0,
        np.concatenate([np.arange(len(h)), sent]),
        np.concatenate([passed[w, r, h, g], send[by_order[first[key[sent]] + place]]]),
        np.repeat([1.0, -1.0], [len(h), len(sent)]),
        index=np.column_stack([w, r, h, g]),
    )

    relay, at = np.nonzero(offered & (origin != SOURCE)[:, None])
    row_of = np.full((hops, stages), -1)
    row_of[relay, at] = np.arange(len(relay))
    through = np.flatnonzero(row_of[lines.send_hop, lines.send_stage] >= 0)
    program.add_rows(
        "relayed",
        -np.inf,
        0.0,
        np.concatenate([row_of[lines.send_hop[through], lines.send_stage[through]], np.arange(len(relay))]),
        np.concatenate([send[through], host[workload[relay], origin[relay]]]),
        np.repeat([1.0, -1.0], [len(through), len(relay)]),
        index=np.column_stack([relay, at]),
    )


def _add_line_rows(program: Program, data: PlanData, lines: LineData) -> None:
    """Add the rows `line`."""
    flow, unit, stage = program.columns["f"], program.columns["unit"], lines.window_stage[data.slot_window]
    counted = np.isfinite(lines.line_capacity)[lines.channel_line]  # [C]
    arc, channel = lines.arc_uses[counted[lines.arc_uses[:, 1]]].T
    size = lines.arc_uses_bytes[counted[lines.arc_uses[:, 1]]]
    use, slot = np.nonzero(flow[arc] >= 0)
    entries = [(channel[use], slot, flow[arc[use], slot], size[use])]
    for column, of_channel, of_stage, rate in lines.steady_uses(program.columns["way"], program.columns["send"]):
        there, slot = np.nonzero((of_stage[:, None] == stage[None, :]) & (counted[of_channel] & (rate > 0))[:, None])
        entries.append((of_channel[there], slot, column[there], rate[there]))
    if (exchange := data.exchange) is not None:
        active = np.maximum(program.columns["x"], program.columns["v"])[exchange.uses[:, 0]]
        there, slot = np.nonzero((active >= 0) & counted[exchange.uses[:, 1]][:, None])
        entries.append((exchange.uses[there, 1], slot, active[there, slot], exchange.uses_rate[there]))
    channel, slot, cols, vals = (np.concatenate(part) for part in zip(*entries, strict=True))
    used = np.zeros((len(lines.channel_line), data.slots), dtype=bool)
    used[channel, slot] = True
    channels, slots = np.nonzero(used)
    row_of = np.full(used.shape, -1)
    row_of[channels, slots] = np.arange(len(channels))
    line = lines.channel_line[channels]
    program.add_rows(
        "line",
        -np.inf,
        0.0,
        np.concatenate([row_of[channel, slot], np.arange(len(channels))]),
        np.concatenate([cols, unit[line]]),
        np.concatenate([vals, -lines.line_capacity[line]]),
        index=np.column_stack([channels, slots]),
    )


def _add_reserved_rows(program: Program, data: PlanData, lines: LineData, exchange: ExchangeData) -> None:
    """Add the rows `reserved`: the units of a line hold what a job with pools at two sites takes at full width, however short it is at work."""
    point, channel = exchange.uses.T
    chosen = program.columns["y"][point]
    use = np.flatnonzero((chosen >= 0) & np.isfinite(lines.line_capacity)[lines.channel_line[channel]])
    index, row = np.unique(np.column_stack([data.point_job[point[use]], channel[use]]), axis=0, return_inverse=True)
    line = lines.channel_line[index[:, 1]]
    program.add_rows(
        "reserved",
        -np.inf,
        0.0,
        np.concatenate([row.reshape(-1), np.arange(len(index))]),
        np.concatenate([chosen[use], program.columns["unit"][line]]),
        np.concatenate([exchange.uses_rate[use], -lines.line_capacity[line]]),
        index=index,
    )
