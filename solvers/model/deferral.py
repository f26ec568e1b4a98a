"""The deferral block: requests of a workload that may wait, so that they are served when power is cheap or clean.

Sets        workloads w whose requests may wait, origins o, slots t in rings, next(t) the slot after t.
Data        demand_{w,o,t} [requests/s] arriving, wait_w [whole slots] that a request may wait at most, step_t [s].
Variables   waiting_{w,o,t} >= 0 requests that wait at the end of slot t.
Constraints balance  sum_a step_t f_{a,t} + waiting_{w,o,t} - waiting_{w,o,t-1} = step_t demand_{w,o,t}   (times lambda)
            patience waiting_{w,o,t} <= sum of step_s demand_{w,o,s} over the wait_w slots s that end with t (times lambda)

First come, first served: no request waits longer than wait_w slots just when those that wait are of the last wait_w slots.
The rows of balance take the place of those in `solvers.model.routing`.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.program import Program


def may_wait(data: PlanData) -> Bools:
    """[W]: the workloads whose requests may wait."""
    return np.zeros(data.demand.shape[0], dtype=bool) if data.wait_slots is None else data.wait_slots > 0


def arriving(data: PlanData, slots: Floats) -> Floats:
    """[W, O, T]: requests that arrive in so many slots [W] up to and with slot t."""
    before = np.empty(data.slots, dtype=int)
    before[data.order.next] = np.arange(data.slots)
    total, at = np.zeros(data.demand.shape), np.arange(data.slots)
    for lag in range(int(slots.max(initial=0))):
        total += np.where(slots[:, None, None] > lag, data.demand[:, :, at] * data.order.step_s[at], 0.0)
        at = before[at]
    return total


def most_served(data: PlanData) -> Floats:
    """[W, O, T]: no more than this is served in a slot [requests/s]: what arrives in it and what may have waited for it."""
    if data.wait_slots is None or not data.wait_slots.any():
        return data.demand
    most = arriving(data, data.wait_slots + 1.0) / data.order.step_s
    return np.where(data.wait_slots[:, None, None] > 0, most, data.demand)


def add_waiting(program: Program, data: PlanData, flow: Ints, factor: Ints) -> None:
    """Variables and rows of the workloads that may wait; `factor`: the column of lambda, or -1."""
    if data.wait_slots is None or not data.wait_slots.any():
        return
    waits = (data.wait_slots > 0)[:, None] & (data.demand > 0).any(axis=2)  # [W, O]
    usual = np.maximum(data.demand.max(axis=2, initial=0.0), np.finfo(float).tiny)[:, :, None] * np.median(
        data.order.step_s
    )
    waiting = program.add_columns("waiting", data.demand.shape, unit=usual, where=waits[:, :, None])
    workload, origin, slot = np.nonzero(waits[:, :, None] & np.ones(data.demand.shape, dtype=bool))
    row_of = np.full(data.demand.shape, -1)
    row_of[workload, origin, slot] = np.arange(len(slot))
    grows, step = data.scaled()[workload] > 0, data.order.step_s[slot]
    asked = data.demand[workload, origin, slot] * step
    arc, at = np.nonzero((flow >= 0) & waits[data.arc_asked(), data.arc_origin][:, None])
    column = waiting[workload, origin, slot]
    rows, index = np.arange(len(slot)), np.column_stack([workload, origin, slot])
    program.add_rows(
        "balance",
        np.where(grows, 0.0, asked),
        np.where(grows, 0.0, asked),
        np.concatenate(
            [
                row_of[data.arc_asked()[arc], data.arc_origin[arc], at],
                rows,
                row_of[workload, origin, data.order.next[slot]],
                np.flatnonzero(grows),
            ]
        ),
        np.concatenate([flow[arc, at], column, column, np.full(int(grows.sum()), int(factor))]),
        np.concatenate([data.order.step_s[at], np.ones(len(rows)), -np.ones(len(rows)), -asked[grows]]),
        index=index,
    )
    patience = arriving(data, data.wait_slots.astype(float))[workload, origin, slot]
    program.add_rows(
        "patience",
        -np.inf,
        np.where(grows, 0.0, patience),
        np.concatenate([rows, np.flatnonzero(grows)]),
        np.concatenate([column, np.full(int(grows.sum()), int(factor))]),
        np.concatenate([np.ones(len(rows)), -patience[grows]]),
        index=index,
    )
