"""What it costs a job to be pre-empted: the columns and rows of the schedule block that count its width coming back.

The formulation stands in schedule.py.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.program import Program

SAME = 1e-9  # widths that differ less are one


def add_restarts(program: Program, data: PlanData, row_of: Ints) -> None:
    """`row_of` [P]: the place of a point's progress row in its block. Comes after that block."""
    share, restart = program.columns["v"], data.point_restart_s
    before = predecessors(data.order.next)
    where = (share >= 0) & (restart > 0)[:, None]
    rise = program.add_columns("rise", share.shape, upper=1.0, where=where)
    point, at = np.nonzero(where)
    start = program.row_blocks["progress"][-1].start
    times = data.slot_hours_s / data.order.step_s
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


def predecessors(following: Ints) -> Ints:
    """[T]: the slot before each."""
    before = np.empty_like(following)
    before[following] = np.arange(len(following))
    return before


def idling_may_pay(data: PlanData) -> Bools:
    """[P]: where running for nothing could pay in some slot, or would be missing in the sums of a meter."""
    found = data.metered()[data.point_site()]
    for name in data.counted() & set(data.point_cost):
        found |= (data.point_cost[name] < 0).any(axis=1)
    return found


def working_share(data: PlanData, point: int, share: Floats) -> Floats:
    """[T]: what of a point's pattern makes progress; in a slot with less running than is lost to restarts, below 0."""
    if data.point_restart_s is None:
        return share
    return share - data.point_restart_s[point] * width_back(data, share) / data.order.step_s


def width_back(data: PlanData, share: Floats) -> Floats:
    """[T]: how much of its width comes back in each slot of a pattern."""
    rise = share - share[predecessors(data.order.next)]
    return np.where(rise > SAME, rise, 0.0)
