"""Starting points of the interior-point method: cold, or from an iterate of a similar LP.

Any point inside the positive orthant will do; the method is infeasible-start. A good one has complementarity products of similar size.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.blocks import PRICED_ROWS, BlockProgram
from solvers.decomposition.interior_point.iterate import Iterate, masked
from solvers.decomposition.interior_point.lp_data import State
from solvers.decomposition.interior_point.settings import SCALE_FLOOR, START

PACES = ("v", "running")
"""Columns and slacks that say how fast jobs run."""


def cold_start(blocks: BlockProgram) -> Iterate:
    """Spread demand over all arcs, match replicas and systems to it, and price rows near what systems cost."""
    z = _cold_columns(blocks)
    w, balance = _cold_prices(blocks)
    free = {"balance": balance, "progress": np.zeros(len(blocks.placements)), "equal": np.zeros(blocks.equal.shape[0])}
    return Iterate(masked(blocks, z), masked(blocks, w), free)


def _full(blocks: BlockProgram, count: int, value: float) -> Floats:
    return np.full((count, blocks.slots), float(value))


def _replica_capacity(blocks: BlockProgram) -> Floats:
    """[points]: requests/s that a replica serves."""
    return np.asarray(blocks.serves.sum(axis=0)).ravel()


def _cold_columns(o: BlockProgram) -> State:
    """Return columns and slacks of a cold start; slacks are at least what the rows leave."""
    view, z = o.view, {}
    z["f"] = o.arc_upper / np.maximum(o.into_demand.sum(axis=1), 1.0)[o.arc_demand][:, None]
    among = np.maximum((o.serves > 0).sum(axis=1), 1)
    pool_load = o.into_pool @ z["f"] / among[:, None]
    z["x"] = np.maximum(pool_load[view.data.point_pool[o.points]] / _replica_capacity(o)[:, None], 0.01)
    z["v"], z["unmet"] = _full(o, len(o.placements), 0.05), START.unmet_share * view.demand
    upper = np.where(o.mask["upper"], o.upper, np.inf)
    z["m"] = np.minimum(np.maximum(0.1 * np.where(np.isfinite(upper), upper, 1.0), 0.05), 0.5 * upper)
    z["upper"] = np.where(o.mask["upper"], upper - z["m"], 1.0)
    least = {
        "capacity": _full(o, o.pools, 0.5),
        "installed": _full(o, o.fleet_options, 0.5),
        "power": np.maximum(_full(o, o.sites, 1.0), START.slack_share * o.limit),
        "hosted": np.maximum(0.3 * o.let, 1e-3),
        "running": _full(o, len(o.placements), 0.1),
        "above": np.maximum(1.0, START.slack_share * np.abs(o.above_sides)),
    }
    without_slacks = o.rows(z | {name: np.zeros_like(least[name]) for name in PRICED_ROWS})
    return z | {name: np.maximum(least[name], without_slacks[name]) for name in PRICED_ROWS}


def _cold_prices(o: BlockProgram) -> tuple[State, Floats]:
    """Return reduced costs and prices of a cold start, and prices of the rows `balance`.

    Systems cost what their holdings cost, spread evenly over the slots; pools and demands what the cheapest point or arc asks.
    """
    slots, pool, capacity = o.slots, o.view.data.point_pool[o.points], _replica_capacity(o)
    cost = o.cost["m"]
    usual = max(float(np.abs(cost).mean()) if len(cost) else 0.0, 1e-3)
    systems_held = o.systems.tocsc()
    each = np.zeros(o.fleet_options)
    np.maximum.at(each, systems_held.indices // o.windows, np.repeat(cost, np.diff(systems_held.indptr)))
    least = 0.1 * max(float(np.median(each)) if len(each) else 0.0, 1e-3)
    alpha = np.maximum(each, least)[:, None] * np.ones(slots) / slots
    need: Floats = np.asarray(o.uses.T @ alpha)
    beta = np.full((o.pools, slots), np.inf)
    np.minimum.at(beta, pool, (need + o.cost["x"]) / capacity[:, None])
    jobs_need: Floats = np.asarray(o.job_uses.T @ alpha)
    w: State = {
        "installed": alpha,
        "power": _full(o, o.sites, 0.1 * np.median(alpha) if alpha.size else 1.0),
        "capacity": np.maximum(np.where(np.isfinite(beta), 0.9 * beta, 0.0), 1e-4),
    }
    delta = np.full((o.demands, slots), np.inf)
    np.minimum.at(delta, o.arc_demand, o.cost["f"] + w["capacity"][o.arc_pool])
    delta = np.where(np.isfinite(delta), delta, 0.0)
    w["hosted"] = 0.05 * np.maximum(delta[o.arc_demand[o.gated]], 0.0) + 1e-6
    w["running"] = 0.1 * jobs_need + 1e-6
    w["above"] = np.full(o.above.shape[0], 0.01 * usual)
    w["x"] = np.maximum(
        o.cost["x"] + need - capacity[:, None] * w["capacity"][pool], 0.1 * np.median(need) if need.size else 1.0
    )
    flow = o.cost["f"] + w["capacity"][o.arc_pool] - delta[o.arc_demand]
    flow[o.gated] += w["hosted"]
    w["f"] = np.maximum(flow, max(0.1 * float(np.median(delta)) if delta.size else 0.0, 1e-4))
    w["v"] = np.maximum(jobs_need, 1e-3)
    w["unmet"] = np.maximum(o.cost["unmet"] - delta, START.slack_share * o.cost["unmet"])
    w["m"], w["upper"] = np.maximum(0.3 * np.abs(cost), 0.1 * usual), np.where(o.mask["upper"], 0.1 * usual, 0.0)
    return w, delta


def warm_start_from(
    old: BlockProgram, at: Iterate, new: BlockProgram, group: Ints, keep_job_pace: bool = False
) -> Iterate:
    """Map an iterate of one LP to a starting point of another.

    `group` [slots]: the slot of the old LP that each slot of the new one resembles; prices are in proportion to the length of the slots.
    What the old LP lacks starts cold, and so do jobs that must be done at a new placement (`_start_moved_jobs`). `keep_job_pace`: jobs
    keep their schedules exactly; one without an hour to spare could not return to its own.
    """
    fresh, part = cold_start(new), new.view.seconds / old.view.seconds[group]
    placement_row = _positions(old.placements, new.placements, len(new.view.data.point_job))
    z, w = _map_slots(old, at, new, group, fresh)
    _scale_to_demand(old, new, group, z)
    free = {
        "balance": at.free["balance"][:, group] * part,
        "progress": np.append(at.free["progress"], 0.0)[placement_row],
    }
    _map_first_stage(old, at, new, fresh, z, w)
    _map_first_stage_rows(old, at, new, fresh, z, w, free)
    if not keep_job_pace:
        _start_moved_jobs(new, placement_row < 0, z, w, free)
    result = Iterate(masked(new, z), masked(new, w), free)
    if np.array_equal(group, np.arange(old.slots)):
        return result
    return Iterate(
        _mixed(result.z, fresh.z) | {name: result.z[name] for name in (PACES if keep_job_pace else ())},
        _mixed(result.w, fresh.w),
        _mixed(result.free, fresh.free),
    )


def _mixed(warm: State, cold: State) -> State:
    share = START.cold_start_share
    return {name: (1 - share) * values + share * cold[name] for name, values in warm.items()}


def _map_slots(old: BlockProgram, at: Iterate, new: BlockProgram, group: Ints, fresh: Iterate) -> tuple[State, State]:
    """Return the columns, slacks and prices of the slots, from the values of the old slots that they resemble."""
    data, part = new.view.data, new.view.seconds / old.view.seconds[group]
    arcs = _positions(old.arcs, new.arcs, len(data.arc_pool))
    placements = _positions(old.placements, new.placements, len(data.point_job))
    rows = {
        "x": _positions(old.points, new.points, len(data.point_pool)),
        "f": arcs,
        "hosted": _positions(old.arcs[old.gated], new.arcs[new.gated], len(data.arc_pool)),
        "v": placements,
        "running": placements,
        "power": np.arange(old.sites),
        "unmet": np.arange(old.demands),
        "installed": _positions(old.linking.fleet_options, new.linking.fleet_options, len(data.option_site)),
        "capacity": np.arange(old.pools),
    }
    z: State = {}
    w: State = {}
    for name, row in rows.items():
        covered = (row >= 0)[:, None] & np.vstack([old.mask[name], np.zeros((1, old.slots), dtype=bool)])[row][:, group]
        z[name] = np.where(covered, _padded(at.z[name])[row][:, group] * 1.0, fresh.z[name])
        w[name] = np.where(covered, _padded(at.w[name])[row][:, group] * part, fresh.w[name])
    return z, w


def _padded(values: Floats) -> Floats:
    """Append a row of zeros, which position -1 refers to."""
    return np.vstack([values, np.zeros((1, values.shape[1]))])


def _map_first_stage(old: BlockProgram, at: Iterate, new: BlockProgram, fresh: Iterate, z: State, w: State) -> None:
    """Set the first-stage columns and the slacks of their bounds."""
    marked = np.zeros(old.first_stage.size)
    marked[old.moving] = 1.0 + np.arange(len(old.moving))
    row = map_columns(old.first_stage, new.first_stage, marked)[new.moving].astype(np.int64) - 1
    for onto, values, start in ((z, at.z, fresh.z), (w, at.w, fresh.w)):
        for name in ("m", "upper"):
            onto[name] = np.where(row >= 0, np.append(values[name], 0.0)[row], start[name])
    bounded = new.mask["upper"]
    upper = np.where(bounded, new.upper, np.inf)
    z["m"] = np.where(bounded, np.clip(z["m"], 1e-6 * upper, (1 - 1e-6) * upper), z["m"])
    z["upper"] = np.where(bounded, upper - z["m"], 1.0)
    w["upper"] = np.where(bounded, np.maximum(w["upper"], 1e-9), 0.0)


def _map_first_stage_rows(
    old: BlockProgram, at: Iterate, new: BlockProgram, fresh: Iterate, z: State, w: State, free: State
) -> None:
    """Set the slacks and prices of the first-stage rows, found by their keys."""
    was = {key: i for i, key in enumerate(_row_keys(old))}
    row = np.array([was.get(key, -1) for key in _row_keys(new)], dtype=np.int64)
    equal, above = row[: len(new.row_parts[0])], row[len(new.row_parts[0]) :]
    free["equal"] = np.append(at.free["equal"], 0.0)[equal]
    above = np.where(above >= 0, above - len(old.row_parts[0]), -1)
    for onto, values, start in ((z, at.z, fresh.z), (w, at.w, fresh.w)):
        onto["above"] = np.where(above >= 0, np.append(values["above"], 0.0)[above], start["above"])


def _row_keys(o: BlockProgram) -> list[Hashable]:
    """Identify the first-stage rows: key and side, rows with equal sides first."""
    return [
        (o.first_stage.keys[row], side)
        for part, side in zip(o.row_parts, ("equal", "low", "high"), strict=True)
        for row in part
    ]


def _start_moved_jobs(o: BlockProgram, unknown: Bools, z: State, w: State, free: State) -> None:
    """Schedule jobs that must be done at a new placement, or whose schedule falls short there.

    The rest of the work is spread evenly over the open time of the slots, and the job pays for it at the present prices. From where they
    were, most steps would go by until the rows `progress` hold.
    """
    slack = START.slack_share
    shares = np.where(o.may_run & ~unknown[:, None], np.minimum(z["v"], 1 - slack), 0.0)
    scheduled = (o.rate * shares).sum(axis=1)
    placements = np.flatnonzero(o.runs & (o.done < 0) & (o.done_fixed > 0.5) & (scheduled < START.settled_job_share))
    if not len(placements):
        return
    rate, may, share = o.rate[placements], o.may_run[placements], shares[placements]
    price = free["progress"][placements]
    room = np.where(may, 1 - slack - share, 0.0)
    left = (1 - (rate * share).sum(axis=1)) / np.maximum((rate * room).sum(axis=1), SCALE_FLOOR)
    share = share + room * np.clip(left, 0.0, 1.0)[:, None]
    share = np.maximum(share, SCALE_FLOOR)
    systems = o.back["job_uses"] @ w["installed"] + o.back["job_watts"] @ w["power"]
    takes = (o.cost["v"] + systems * o.reach)[placements]
    done = (rate * share * may).sum(axis=1)
    paid = np.divide((takes * share * may).sum(axis=1), done, out=np.zeros(len(placements)), where=done > 0)
    price = np.maximum(price, paid)
    floor = slack * np.maximum(takes, np.maximum(takes.mean(axis=1), SCALE_FLOOR)[:, None])
    z["v"][placements], z["running"][placements] = share, 1 - share
    w["v"][placements] = np.maximum(takes - price[:, None] * rate, floor)
    w["running"][placements] = np.maximum(price[:, None] * rate - takes, floor)
    free["progress"][placements] = price


def _scale_to_demand(old: BlockProgram, new: BlockProgram, group: Ints, z: State) -> None:
    """Scale flows, and the replicas that carry them, to each slot's own demand."""
    old_demand = old.view.demand[:, group]
    times = np.divide(new.view.demand, old_demand, out=np.ones_like(old_demand), where=old_demand > 0)
    if (times == 1.0).all():
        return
    before: Floats = np.asarray(new.into_pool @ z["f"])
    z["f"], z["hosted"] = z["f"] * times[new.arc_demand], z["hosted"] * times[new.arc_demand[new.gated]]
    more = np.divide(np.asarray(new.into_pool @ z["f"]), before, out=np.ones_like(before), where=before > 0)
    z["x"], z["capacity"] = z["x"] * more[new.view.data.point_pool[new.points]], z["capacity"] * more


def _positions(before: Ints, after: Ints, count: int) -> Ints:
    """Return where each entry of `after` stood in `before`, -1 if nowhere; entries are below `count`."""
    place = np.full(count, -1)
    place[before] = np.arange(len(before))
    return place[after]
