"""Dispatch a fixed fleet over the slots of a longer calendar: integers and sizes fixed, one linear program per piece of it.

Sets, data and rows are as in the joint program on the slots of a piece. Still to decide is what runs when, where requests go,
and which electricity is bought, taken and stored. Unmet demand and unfinished work are columns of their own at a price, so that every
piece has a solution, which says how much is missing.

Lines and spread are fixed too, and leave these rows for requests:
    line      sum_a bytes_{a,c} f_{a,t} <= cap_l unit_l - traffic of streams and weights on channel c    for each c, t
    share     sum_{a of w into z} f_{a,t} <= share_w sum_{a of w} f_{a,t}    for each w, z, t
    counting  sum_{a of w into z} f_{a,t} >= least_w sum_{a of w} f_{a,t}    for each w, t and zone z that counts

Not here: whether the other zones could continue when one fails.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Functionals, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options, SolverError
from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.build import build
from solvers.model.data import Objective, PlanData
from solvers.model.routing import arc_open
from solvers.program import Program

TIME_TOL = 1e-9  # share of a piece's time that a job leaves free, so that rounding does not make it infeasible
LEAST_UNIT = 1e-30  # unit of columns for what is missing, where the demand itself is that small


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """Values of the blocks over all slots, unmet demand [W, O, T] in requests/s, and unfinished work [J]."""

    values: Mapping[str, Floats]
    unmet: Floats
    unfinished: Floats
    seconds: float
    columns: int


def dispatch(
    data: PlanData,
    fixed: Mapping[str, Floats],
    work: Floats,
    pieces: Sequence[Ints],
    functional: str,
    missing: tuple[float, float],
    options: Options,
) -> DispatchResult | None:
    """Dispatch divisible replicas piece by piece at least cost of `functional`; None where the time limit of the `options` comes first.

    `fixed`: blocks of the plan, n [U], open [R], host [W, R], run [P, V], contract [C], energy and power [B], unit [L], way [X],
    send [Y], c [W, zones]; each job has one point left. `work` [J, pieces]: work of each job in a piece. `missing`: price of an unmet
    request, and of an unfinished unit of work.
    """
    begin, columns, data = time.perf_counter(), 0, data.divisible()
    shapes = {"f": len(data.arc_pool), "x": len(data.point_pool), "v": len(data.point_pool)}
    if data.meters is not None:
        contracts, batteries = len(data.meters.contract_meter), len(data.meters.battery_meter)
        shapes |= {"grid": len(data.meters.meter_site), "taken": contracts} | dict.fromkeys(
            ("charge", "discharge", "stored"), batteries
        )
    values = {block: np.zeros((size, data.slots)) for block, size in shapes.items()}
    unmet, unfinished = np.zeros(data.demand.shape), np.zeros(len(data.job_work))
    full, closed = data, _closed_arcs(data, fixed)
    data = replace(
        data,
        lines=None,
        spread=None,
        ports=None,
        joint=None,
        limits=(),
        objective=Objective(functional),
        holding_upper=fixed["n"],
    )
    for piece, slots in enumerate(pieces):
        share = work[:, piece] if len(work) else np.zeros(0)
        part, points = restricted_to_slots(data, slots, share)
        program = build(part)
        _add_missing(program, part, functional, missing)
        _add_line_rows(program, full, fixed, slots)
        _add_share_rows(program, full, fixed, slots)
        left_s = max(options.time_limit_s - (time.perf_counter() - begin), 0.0)
        found = _solve_piece(
            program, part, fixed, points, functional, replace(options, time_limit_s=left_s), closed[:, slots]
        )
        if found is None:
            return None
        columns += program.column_count
        for block in values:
            of = points if block in ("x", "v") else slice(None)
            rows = np.zeros((len(values[block]), len(slots)))
            rows[of] = found[block]
            values[block][:, slots] = rows
        unmet[:, :, slots] = found["unmet"]
        jobs = np.flatnonzero(share > 0)
        unfinished[jobs] += found["unfinished"] + (share[jobs] - part.job_work)
    return DispatchResult(values, unmet, unfinished, time.perf_counter() - begin, columns)


def restricted_to_slots(data: PlanData, slots: Ints, work: Floats) -> tuple[PlanData, Ints]:
    """Restrict the input to some slots; return it and the points that remain: serving ones, and points of jobs with `work` [J] there."""
    jobs = np.flatnonzero(work > 0)
    number = np.full(len(data.job_work) + 1, -1)
    number[jobs] = np.arange(len(jobs))
    points = np.flatnonzero((data.point_pool >= 0) | (number[data.point_job] >= 0))
    renumbered = np.full(len(data.point_pool), -1)
    renumbered[points] = np.arange(len(points))
    uses = renumbered[data.point_uses[:, 0]] >= 0
    mask = data.job_window_mask[jobs][:, slots] if len(jobs) else np.zeros((0, len(slots)), dtype=bool)
    seconds, point_job = data.slot_hours_s[slots], number[data.point_job[points]]
    reach = np.zeros(len(jobs))
    of_job = point_job >= 0
    reach[point_job[of_job]] = data.point_capacity[points][of_job] * (mask @ seconds)[point_job[of_job]]
    part = replace(
        data, slot_window=data.slot_window[slots], slot_hours_s=seconds,
        point_pool=data.point_pool[points], point_job=point_job,
        point_uses=np.column_stack([renumbered[data.point_uses[uses, 0]], data.point_uses[uses, 1]]), point_uses_systems=data.point_uses_systems[uses],
        point_capacity=data.point_capacity[points], point_power_w=data.point_power_w[points],
        point_cost=_at_slots({name: values[points] for name, values in data.point_cost.items()}, slots),
        arc_cost=_at_slots(data.arc_cost, slots), demand=data.demand[:, :, slots],
        job_work=np.minimum(work[jobs], reach * (1 - TIME_TOL)), job_window_mask=mask,
        **{name: values[points] for name in ("point_restart_s", "point_storage") if (values := getattr(data, name)) is not None},
        holding_window=np.full(len(data.holding_option), -1), holding_last=None, meters=None if data.meters is None else _part_of_meters(data.meters, slots), order=_order(data, slots),
        spread=None if data.spread is None else replace(data.spread, tried_slots=np.flatnonzero(np.isin(slots, data.spread.tried_slots))),
    )  # fmt: skip
    return _without_other_windows(part, data), points


def _at_slots(costs: Functionals, slots: Ints) -> Functionals:
    return {name: values[:, slots] for name, values in costs.items()}


def _without_other_windows(part: PlanData, data: PlanData) -> PlanData:
    """Remove holdings of windows that come after the piece."""
    end = int(part.slot_window.max())
    later = data.holding_window > end
    return replace(
        part, holding_window=np.where(later, -1, data.holding_window), holding_upper=np.where(later, 0.0, data.holding_upper),
        holding_last=None if data.holding_last is None else np.minimum(data.holding_last, end),
    )  # fmt: skip


def _part_of_meters(meters: MeterData, slots: Ints) -> MeterData:
    return replace(
        meters,
        grid_cost=_at_slots(meters.grid_cost, slots),
        peak_slot=meters.peak_slot[:, slots],
        contract_share=meters.contract_share[:, slots],
        taken_cost=_at_slots(meters.taken_cost, slots),
    )


def _order(data: PlanData, slots: Ints) -> Chronology | None:
    """Close the chronology of a piece to a cycle, or to one per window where windows recur; None without a chronology."""
    if data.order is None:
        return None
    place = np.full(data.slots, -1)
    place[slots] = np.arange(len(slots))
    following = place[data.order.next[slots]]
    ends = np.flatnonzero(following < 0)
    starts = np.setdiff1d(np.arange(len(slots)), following)
    following[ends] = starts[np.searchsorted(starts, ends, side="right") - 1]  # slots of a piece are sorted
    return Chronology(next=following, step_s=data.order.step_s[slots])


def _add_missing(program: Program, data: PlanData, functional: str, price: tuple[float, float]) -> None:
    """Add columns `unmet` and `unfinished` to the rows `balance` and `progress`."""
    weight = data.slot_hours_s
    unmet = program.add_columns(
        "unmet",
        data.demand.shape,
        upper=data.demand,
        cost={functional: price[0] * weight},
        where=data.demand > 0,
        unit=np.maximum(data.demand, LEAST_UNIT),
    )
    for rows in program.row_blocks.get("balance", ()):
        workload, origin, slot = rows.index.T
        waits = np.zeros(len(slot), dtype=bool) if data.wait_slots is None else data.wait_slots[workload] > 0
        step = np.where(waits, data.order.step_s[slot], 1.0) if data.order is not None else np.ones(len(slot))
        program.add_entries(rows.start + np.arange(len(slot)), unmet[workload, origin, slot], step)
    unfinished = program.add_columns(
        "unfinished",
        data.job_work.shape,
        upper=data.job_work,
        cost={functional: price[1]},
        unit=np.maximum(data.job_work, LEAST_UNIT),
    )
    for rows in program.row_blocks.get("progress", ()):
        program.add_entries(rows.start + np.arange(len(rows.index)), unfinished[data.point_job[rows.index[:, 0]]], 1.0)


def _closed_arcs(data: PlanData, fixed: Mapping[str, Floats]) -> Bools:
    """Mark the arcs [A, T] whose lines are not ready, or whose workload is not hosted at their end."""
    if data.lines is None:
        return np.zeros((len(data.arc_pool), data.slots), dtype=bool)
    absent = data.lines.placed(data.demand.shape[0], data.sites) & (fixed["host"] < 0.5)
    return ~arc_open(data) | absent[data.arc_workload, data.arc_site][:, None]


def _add_line_rows(program: Program, data: PlanData, fixed: Mapping[str, Floats], slots: Ints) -> None:
    """Add the rows `line` for requests; `data`: over all slots."""
    lines = data.lines
    if lines is None:
        return
    steady = np.zeros((len(lines.channel_line), lines.stages))
    way, channel = lines.way_uses.T
    np.add.at(steady, (channel, lines.way_stage[way]), lines.way_uses_rate * fixed["way"][way])
    np.add.at(steady, (lines.send_channel, lines.send_stage), lines.send_rate * fixed["send"])
    counted = np.isfinite(lines.line_capacity)
    room = np.where(counted, lines.line_capacity, 0.0) * fixed["unit"]
    left = np.maximum(
        room[lines.channel_line][:, None] - steady[:, lines.window_stage[data.slot_window[slots]]], 0.0
    )  # [C, slots]
    arc, channel = lines.arc_uses[counted[lines.channel_line[lines.arc_uses[:, 1]]]].T
    size = lines.arc_uses_bytes[counted[lines.channel_line[lines.arc_uses[:, 1]]]]
    use, slot = np.nonzero((program.columns["f"][arc] >= 0) & (size > 0)[:, None])
    key, row = np.unique(channel[use] * len(slots) + slot, return_inverse=True)
    channels, at = np.divmod(key, len(slots))
    program.add_rows(
        "line",
        -np.inf,
        left[channels, at],
        row.reshape(-1),
        program.columns["f"][arc[use], slot],
        size[use],
        index=np.column_stack([channels, at]),
    )


def _add_share_rows(program: Program, data: PlanData, fixed: Mapping[str, Floats], slots: Ints) -> None:
    """Add the rows `share` and `counting`; `data`: over all slots."""
    spread, flow = data.spread, program.columns["f"]
    if spread is None:
        return
    zone = spread.site_zone[data.arc_site]
    for w in range(data.demand.shape[0]):
        mine = np.flatnonzero(data.arc_workload == w)
        for z in range(spread.zone_count):
            sides = []
            if spread.largest_share[w] < 1:
                sides.append(("share", spread.largest_share[w], -np.inf, 0.0))
            if spread.zones[w] > 1 and fixed["c"][w, z] > 0.5:
                sides.append(("counting", spread.least_share[w], 0.0, np.inf))
            for block, share, low, high in sides:
                part = np.repeat((zone[mine] == z) - share, len(slots))
                program.add_rows(
                    block,
                    low,
                    high,
                    np.tile(np.arange(len(slots)), len(mine)),
                    flow[mine].ravel(),
                    part,
                    count=len(slots),
                )


def _solve_piece(
    program: Program,
    data: PlanData,
    fixed: Mapping[str, Floats],
    points: Ints,
    functional: str,
    options: Options,
    closed: Bools,
) -> dict[str, Floats] | None:
    """Solve a piece with everything in `fixed` fixed, and no flow on arcs that are `closed` [A, slots]; return its blocks, None if out of time."""
    arrays = program.arrays()
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    upper[program.columns["f"][closed & (program.columns["f"] >= 0)]] = 0.0
    known = {
        "n": fixed["n"] * (data.holding_upper > 0),
        "y": np.ones(len(data.point_pool)),
        **{b: fixed[b] for b in ("open", "host", "contract", "energy", "power") if b in fixed},
    }
    windows = program.columns["run"].shape[1]
    known["run"] = fixed["run"][points][:, :windows]
    for block, values in known.items():
        index = program.columns.get(block)
        if index is not None and index.size:
            there = index >= 0
            lower[index[there]] = upper[index[there]] = np.asarray(values, dtype=float)[there]
    found = WarmStartedLp(arrays, program.functional(functional), options).solve(lower, upper)
    if found.status == "limit":
        return None
    if found.x is None:
        raise SolverError(f"the dispatch of a piece ended as {found.status}")
    return program.values(found.x)
