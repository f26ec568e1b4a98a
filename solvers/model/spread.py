"""The spread block: serving over several zones, none with too much, and enough left when one of them fails.

Sets        workloads w, zones z of sites, arcs a of w into z, slots t; slots u in which a zone is let fail.
Data        D_{w,t} = demand of all origins, share_w, zones_w, least_w; most_{a,t} what an arc can carry.
Variables   c_{w,z}    1 when the zone counts; only where more than one must
            g_{z,a,u} >= 0 and h_{z,p,u} >= 0   requests/s and replicas of the workloads that survive the loss of z
Objective   nothing of its own: what a failure costs is not counted.
Constraints share      sum_{a of w into z} f_{a,t} <= share_w D_{w,t}                          (D times lambda where that is asked)
            zones      sum_z c_{w,z} >= zones_w
            counting   sum_{a of w into z} f_{a,t} >= least_w D_{w,t} c_{w,z}
                       with lambda: >= least_w (lambda D_{w,t} - M_{w,t} (1 - c_{w,z})),  M = most that w can be served in t
                       where requests may wait, in both: sum_{a of w} f_{a,t}, what is served in the slot, for D (times lambda)
            share hosted  sum_{a of w into r} f_{a,t} <= share_w D_{w,t} host_{w,r}   where r is all of its zone   (stronger than link)
            hosts      sum_r host_{w,r} >= ceil(1 / share_w), likewise
            survived   for each z and u, over arcs and points outside z: sum_a g = demand (times lambda) at once, sum_a g <= sum_p cap_p h,
                       installed systems and power as in fleet, lines as in lines, g <= most host; what does not
                       survive by wish goes on as it is outside z, and is lost inside
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats
from solvers.model.data import PlanData
from solvers.model.deferral import may_wait, most_served
from solvers.model.routing import parallel_arcs
from solvers.program import Program


def add_spread(program: Program, data: PlanData, most: Floats) -> None:
    """Comes after every block that runs or sends; `most` [A, T]: requests/s that an arc can carry."""
    if data.spread is None:
        return
    _add_shares(program, data, most)
    if not data.objective.maximises:
        _add_hosted_shares(program, data)
    if data.spread.survives.any():
        for zone in range(data.spread.zone_count):
            _add_failure(program, data, most, zone)


def _add_shares(program: Program, data: PlanData, most: Floats) -> None:
    spread, flow, factor = data.spread, program.columns["f"], program.columns["lambda"]
    workloads, zones = data.demand.shape[0], spread.zone_count
    total = data.demand.sum(axis=1)  # [W, T]
    arc_zone, answers = spread.site_zone[data.arc_site], data.arc_asked()
    wanting = np.flatnonzero((spread.zones > 1) & (total > 0).any(axis=1))
    counts = program.add_columns(
        "c", (workloads, zones), upper=1.0, integer=True, where=np.isin(np.arange(workloads), wanting)[:, None]
    )
    program.add_rows(
        "zones",
        spread.zones[wanting].astype(float),
        np.inf,
        np.repeat(np.arange(len(wanting)), zones),
        counts[wanting].ravel(),
        1.0,
        index=wanting[:, None],
    )

    waits, served, largest = (
        may_wait(data),
        np.zeros((workloads, data.slots), dtype=bool),
        np.zeros((workloads, data.slots)),
    )
    arc, at = np.nonzero(flow >= 0)
    served[answers[arc], at] = True
    np.add.at(largest, answers, most)
    if not data.objective.maximises:
        largest = most_served(data).sum(axis=1)
    slots = np.where(waits[:, None], served, total > 0)[:, None, :] & np.ones((1, zones, 1), dtype=bool)
    for block, rows in (
        ("share", (spread.largest_share < 1)[:, None, None] & slots),
        ("counting", (counts >= 0)[:, :, None] & slots),
    ):
        w, z, t = np.nonzero(rows)
        row_of = np.full(rows.shape, -1)
        row_of[w, z, t] = np.arange(len(t))
        inside = row_of[answers[arc], arc_zone[arc], at]
        of_waiting = np.flatnonzero(waits[answers[arc]])
        each, zone = np.repeat(of_waiting, zones), np.tile(np.arange(zones), len(of_waiting))
        among = row_of[answers[arc[each]], zone, at[each]]
        each, among = each[among >= 0], among[among >= 0]
        asked, grows, every = total[w, t], (data.scaled()[w] > 0) & ~waits[w], np.arange(len(t))
        part = (spread.largest_share if block == "share" else spread.least_share)[w]
        share = np.where(waits[w], 0.0, part * asked)
        entries = [(inside, flow[arc, at], np.ones(len(arc))), (among, flow[arc[each], at[each]], -part[among]),
                   (every[grows], np.full(int(grows.sum()), int(factor)), -share[grows])]  # fmt: skip
        if block == "share":
            low, high = -np.inf, np.where(grows, 0.0, share)
        else:
            slack = np.where(grows | waits[w], part * largest[w, t], share)
            low, high = np.where(grows | waits[w], -slack, 0.0), np.inf
            entries.append((every, counts[w, z], -slack))
        row, cols, vals = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        program.add_rows(
            block, low, high, row[row >= 0], cols[row >= 0], vals[row >= 0], index=np.column_stack([w, z, t])
        )


def _add_hosted_shares(program: Program, data: PlanData) -> None:
    """What follows from the shares for whole hosts: the relaxation would open a part of many sites."""
    spread, flow, host, total = data.spread, program.columns["f"], program.columns["host"], data.demand.sum(axis=1)
    alone = (np.bincount(spread.site_zone, minlength=spread.zone_count) == 1)[spread.site_zone]
    itself = np.ones(len(total), dtype=bool) if data.choice is None else data.choice.group < 0
    for w in np.flatnonzero((spread.largest_share < 1) & ~may_wait(data) & itself):
        mine = np.flatnonzero(data.arc_workload == w)
        sites = np.unique(data.arc_site[mine])
        gated = sites[alone[sites] & (host[w, sites] >= 0)]
        r, t = (grid.ravel() for grid in np.meshgrid(gated, np.flatnonzero(total[w] > 0), indexing="ij"))
        row_of = np.full((data.sites, data.slots), -1)
        row_of[r, t] = np.arange(len(t))
        arc, at = np.nonzero(flow[mine] >= 0)
        row = row_of[data.arc_site[mine[arc]], at]
        inside = row >= 0
        program.add_rows(
            "share hosted",
            -np.inf,
            0.0,
            np.concatenate([row[inside], np.arange(len(t))]),
            np.concatenate([flow[mine[arc], at][inside], host[w, r]]),
            np.concatenate([np.ones(int(inside.sum())), -spread.largest_share[w] * total[w, t]]),
            index=np.column_stack([np.full(len(t), w), r, t]),
        )
        if len(gated) == len(sites) and (total[w] > 0).any():
            least = np.ceil(1.0 / spread.largest_share[w] - 1e-9)
            program.add_rows(
                "hosts", least, np.inf, np.zeros(len(sites), dtype=np.int64), host[w, sites], 1.0, index=np.array([[w]])
            )


def _add_failure(program: Program, data: PlanData, most: Floats, zone: int) -> None:
    spread, slots = data.spread, data.spread.tried_slots
    outside = spread.site_zone != zone
    arcs = np.flatnonzero(spread.survives[data.arc_workload] & outside[data.arc_site])
    pools = np.unique(data.arc_pool[arcs])
    surviving_pool = np.unique(data.arc_pool[spread.survives[data.arc_workload]])
    points = np.flatnonzero(np.isin(data.point_pool, pools) & (data.point_capacity > 0))
    name = f"zone {zone}"
    flow = program.add_columns(
        f"{name} g", (len(data.arc_pool), data.slots), where=_mask(most.shape, arcs, slots) & (most > 0)
    )
    active = program.add_columns(
        f"{name} h", (len(data.point_pool), data.slots), where=_mask((len(data.point_pool), data.slots), points, slots)
    )
    arc, at = np.nonzero(flow >= 0)
    point, when = np.nonzero(active >= 0)

    # all demand of what survives, at once
    w, o, t = np.nonzero((data.demand > 0) & spread.survives[:, None, None] & np.isin(np.arange(data.slots), slots))
    row_of = np.full(data.demand.shape, -1)
    row_of[w, o, t] = np.arange(len(t))
    asked, grows = data.demand[w, o, t], data.scaled()[w] > 0
    program.add_rows(
        "survived balance",
        np.where(grows, 0.0, asked),
        np.where(grows, 0.0, asked),
        np.concatenate([row_of[data.arc_workload[arc], data.arc_origin[arc], at], np.flatnonzero(grows)]),
        np.concatenate([flow[arc, at], np.full(int(grows.sum()), int(program.columns["lambda"]))]),
        np.concatenate([np.ones(len(arc)), -asked[grows]]),
        index=_tagged(zone, w, o, t),
    )
    pool_rows = data.arc_pool[arc] * data.slots + at, data.point_pool[point] * data.slots + when
    _grouped(
        program,
        "survived capacity",
        zone,
        data.slots,
        pool_rows,
        (flow[arc, at], active[point, when]),
        (np.ones(len(arc)), -data.point_capacity[point]),
        np.unique(pool_rows[0]),
    )

    host, opened = program.columns["host"], program.columns["open"]
    gate = np.where(host >= 0, host, opened)
    first, together = parallel_arcs(data, most)
    gated = gate[data.arc_workload[arc], data.arc_site[arc]] >= 0
    key, row = np.unique(first[arc[gated]] * data.slots + at[gated], return_inverse=True)
    lead, slot = np.divmod(key, data.slots)
    program.add_rows(
        "survived hosted",
        -np.inf,
        0.0,
        np.concatenate([row.reshape(-1), np.arange(len(key))]),
        np.concatenate([flow[arc[gated], at[gated]], gate[data.arc_workload[lead], data.arc_site[lead]]]),
        np.concatenate([np.ones(int(gated.sum())), -together[lead, slot]]),
        index=_tagged(zone, lead, slot),
    )

    # systems and power: what survives in its new places, all else as it is
    running = np.maximum(program.columns["x"], program.columns["v"])
    others = (running >= 0) & ~np.isin(data.point_pool, surviving_pool)[:, None] & outside[data.point_site()][:, None]
    others &= np.isin(np.arange(data.slots), slots)
    now = np.where(others, running, active)
    user, option = data.point_uses.T
    use, slot = np.nonzero(now[user] >= 0)
    held, covers = program.columns["n"], data.covers()[:, data.slot_window]
    holding, there = np.nonzero(covers & np.isin(np.arange(data.slots), slots))
    rows = option[use] * data.slots + slot, data.holding_option[holding] * data.slots + there
    _grouped(
        program,
        "survived installed",
        zone,
        data.slots,
        rows,
        (now[user[use], slot], held[holding]),
        (data.point_uses_systems[use], -np.ones(len(holding))),
        np.unique(rows[0]),
    )

    limit, number = (by_window[:, data.slot_window] for by_window in data.power_limit())
    runs, slot = np.nonzero(now >= 0)
    rows = (
        data.point_site()[runs] * data.slots + slot,
        data.option_site[data.holding_option[holding]] * data.slots + there,
    )
    wanted = np.unique(rows[0])
    wanted = wanted[np.isfinite(limit.ravel()[wanted])]
    _grouped(
        program,
        "survived power",
        zone,
        data.slots,
        rows,
        (now[runs, slot], held[holding]),
        (data.point_power_w[runs], data.holding_power_w[holding]),
        wanted,
        limit.ravel()[wanted],
        number.ravel()[wanted],
    )
    if data.lines is not None:
        _add_lines_left(program, data, zone, flow, outside)


def _add_lines_left(program: Program, data: PlanData, zone: int, flow, outside) -> None:
    lines, spread = data.lines, data.spread
    stays = ~spread.survives[data.arc_workload] & outside[data.arc_site]
    now = np.where(stays[:, None] & np.isin(np.arange(data.slots), spread.tried_slots), program.columns["f"], flow)
    counted = np.isfinite(lines.line_capacity)[lines.channel_line]
    stage = lines.window_stage[data.slot_window]
    arc, channel = lines.arc_uses.T
    use, slot = np.nonzero((now[arc] >= 0) & counted[channel][:, None])
    rows, cols, vals = [channel[use] * data.slots + slot], [now[arc[use], slot]], [lines.arc_uses_bytes[use]]
    for column, of_channel, of_stage, rate in (
        (
            program.columns["way"][lines.way_uses[:, 0]],
            lines.way_uses[:, 1],
            lines.way_stage[lines.way_uses[:, 0]],
            lines.way_uses_rate,
        ),
        (program.columns["send"], lines.send_channel, lines.send_stage, lines.send_rate),
    ):
        there, slot = np.nonzero(
            (of_stage[:, None] == stage[None, :])
            & counted[of_channel][:, None]
            & np.isin(np.arange(data.slots), spread.tried_slots)
        )
        rows.append(of_channel[there] * data.slots + slot)
        cols.append(column[there])
        vals.append(rate[there])
    wanted = np.unique(rows[0])
    line = lines.channel_line[wanted // data.slots]
    rows.append(wanted)
    cols.append(program.columns["unit"][line])
    vals.append(-lines.line_capacity[line])
    _grouped(program, "survived line", zone, data.slots, rows, cols, vals, wanted)


def _mask(shape: tuple[int, int], first, second) -> np.ndarray:
    mask = np.zeros(shape, dtype=bool)
    mask[np.ix_(first, second)] = True
    return mask


def _tagged(zone: int, *parts) -> np.ndarray:
    return np.column_stack([np.full(len(parts[0]), zone), *parts])


def _grouped(
    program: Program, block: str, zone: int, slots: int, rows, cols, vals, wanted, upper=0.0, number=None
) -> None:
    """Rows named by (position, slot) = divmod(row, slots) and, where it is given, a `number`; those not `wanted` say nothing and are left out."""
    row, col, val = (np.concatenate(part) for part in (rows, cols, vals))
    place = np.searchsorted(wanted, row)
    there = (
        (place < len(wanted)) & (wanted[np.minimum(place, len(wanted) - 1)] == row)
        if len(wanted)
        else np.zeros(len(row), dtype=bool)
    )
    index = _tagged(zone, *np.divmod(wanted, slots), *(() if number is None else (number,)))
    program.add_rows(block, -np.inf, upper, place[there], col[there], val[there], index=index)
