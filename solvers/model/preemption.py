"""The preemption block: time that a job loses whenever its width returns after a preemption.

Part of the schedule block, whose rows `progress` it extends.

Sets
    p            operating points of jobs
    t            slots in rings; t-1 precedes t
Data
    cap_p        work units/s at full width
    restart_p    time lost per unit of width that returns [s]
    least_p      slots for which width that returned stays, itself included; 1 where it may go at once
    times_t      how often a slot occurs: seconds_t over its length
Variables
    rise_{p,t}   in [0, 1], width that returns in a slot; only where that costs time or must last
    back_{p,t}   in {0, 1}, 1 when width rises; only where running without progress could reduce the objective
Objective
    None of its own.
Constraints
    progress     ... - sum_t cap_p restart_p times_t rise_{p,t}    on the left of `progress` of the schedule block, for each p
    resumed      v_{p,t} - v_{p,t-1} <= rise_{p,t}    for each p, t; v is 0 where the job may not run
    lasts        sum_{s of the last least_p slots up to t} rise_{p,s} <= v_{p,t}    for each p with least_p > 1, and t
    begins       rise_{p,t} <= back_{p,t}  and  rise_{p,t} <= v_{p,t} - v_{p,t-1} + 1 - back_{p,t}
                 for each p, t with back: rise is exactly the increase of width
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.program import Program

WIDTH_TOL = 1e-9  # difference below which two widths are equal


def add_restarts(program: Program, data: PlanData, row_of: Ints) -> None:
    """Add the block, after the rows `progress`; `row_of` [P]: position of a point's row among them."""
    share, restart = program.columns["v"], data.point_restart_s
    if restart is None:
        return
    before = predecessors(data.chronology.next)
    counts = restart > 0 if data.point_least_run_s is None else (restart > 0) | (data.point_least_run_s > 0)
    where = (share >= 0) & counts[:, None]
    rise = program.add_columns("rise", share.shape, upper=1.0, where=where)
    point, at = np.nonzero(where)
    start = program.row_blocks["progress"][-1].start
    times = data.slot_hours_s / data.chronology.step_s
    program.add_entries(
        start + row_of[point], rise[point, at], -data.point_capacity[point] * restart[point] * times[at]
    )
    row, index = np.arange(len(point)), np.column_stack([point, at])
    now, last, up = share[point, at], share[point, before[at]], rise[point, at]
    program.add_rows(
        "resumed",
        -np.inf,
        0.0,
        np.tile(row, 3),
        np.concatenate([now, last, up]),
        np.repeat([1.0, -1.0, -1.0], len(row)),
        index=index,
    )

    _add_least_runs(program, data, rise, before)
    back = program.add_columns(
        "back", share.shape, upper=1.0, integer=True, where=where & idling_may_pay(data)[:, None]
    )
    exact = back[point, at] >= 0
    (now, last, up), switch = (part[exact] for part in (now, last, up)), back[point, at][exact]
    row = np.arange(len(switch))
    program.add_rows(
        "begins",
        -np.inf,
        0.0,
        np.tile(row, 2),
        np.concatenate([up, switch]),
        np.repeat([1.0, -1.0], len(row)),
        index=index[exact],
    )
    program.add_rows(
        "begins",
        -np.inf,
        1.0,
        np.tile(row, 4),
        np.concatenate([up, now, last, switch]),
        np.repeat([1.0, -1.0, 1.0, 1.0], len(row)),
        index=index[exact],
    )


def _add_least_runs(program: Program, data: PlanData, rise: Ints, before: Ints) -> None:
    """Add the rows `lasts`: width that returned in the last slots is at work still."""
    least_s = data.point_least_run_s
    if least_s is None:
        return
    slots = np.ceil(least_s[:, None] / data.chronology.step_s - WIDTH_TOL).astype(np.int64)  # [P, T]
    point, at = np.nonzero((rise >= 0) & (slots > 1))
    back, rows, columns = at, [], []
    for past in range(int(slots[point, at].max(initial=0))):
        there = (past < slots[point, at]) & (rise[point, back] >= 0)
        rows.append(np.flatnonzero(there))
        columns.append(rise[point, back][there])
        back = before[back]
    now, index = program.columns["v"][point, at], np.column_stack([point, at])
    row, column = np.concatenate([np.arange(len(point)), *rows]), np.concatenate([now, *columns])
    signs = np.concatenate([-np.ones(len(point)), np.ones(len(row) - len(point))])
    program.add_rows("lasts", -np.inf, 0.0, row, column, signs, index=index)


def predecessors(following: Ints) -> Ints:
    """[T]: the slot before each slot."""
    before = np.empty_like(following)
    before[following] = np.arange(len(following))
    return before


def idling_may_pay(data: PlanData) -> Bools:
    """[P]: running without progress could reduce the objective in some slot, or would be missing at a meter."""
    found = data.metered()[data.point_site()]
    for name in data.counted() & set(data.point_cost):
        found |= (data.point_cost[name] < 0).any(axis=1)
    return found


def working_share(data: PlanData, point: int, share: Floats) -> Floats:
    """[T]: share of each slot that makes progress, net of restarts; negative where less runs than restarts lose."""
    if data.point_restart_s is None:
        return share
    net: Floats = share - data.point_restart_s[point] * width_back(data, share) / data.chronology.step_s
    return net


def width_back(data: PlanData, share: Floats) -> Floats:
    """[T]: width that returns in each slot."""
    rise = share - share[predecessors(data.chronology.next)]
    return np.where(rise > WIDTH_TOL, rise, 0.0)
