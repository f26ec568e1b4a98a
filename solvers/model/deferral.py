"""The deferral block: requests that may wait are served when power is cheap or clean.

Service is first come, first served: no request waits longer than wait_w slots exactly when all that wait arrived in the last wait_w
slots. The rows `balance` replace the rows of the routing block for these workloads.

Sets
    w                workloads whose requests may wait
    o                origins
    t                slots in rings; next(t) follows t
Data
    D_{w,o,t}        requests that arrive [requests/s]
    wait_w           slots that a request may wait at most
    step_t           length of a slot [s]
Variables
    waiting_{w,o,t}  >= 0, requests that wait at the end of a slot
Objective
    None of its own.
Constraints
    balance          step_t sum_a f_{a,t} + waiting_{w,o,t} - waiting_{w,o,t-1} = step_t D_{w,o,t}
                     for each w, o, t; D times lambda where throughput is maximised
    patience         waiting_{w,o,t} <= sum_{i < wait_w} step_{t-i} D_{w,o,t-i}    for each w, o, t; likewise times lambda
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.program import Program


def may_wait(data: PlanData) -> Bools:
    """[W]: requests of the workload may wait."""
    return np.zeros(data.demand.shape[0], dtype=bool) if data.wait_slots is None else data.wait_slots > 0


def arriving(data: PlanData, slots: Ints) -> Floats:
    """[W, O, T]: requests that arrive in the last `slots` [W] slots, slot t included."""
    before = np.empty(data.slots, dtype=int)
    before[data.chronology.next] = np.arange(data.slots)
    total, at = np.zeros(data.demand.shape), np.arange(data.slots)
    for lag in range(int(slots.max(initial=0))):
        total += np.where(slots[:, None, None] > lag, data.demand[:, :, at] * data.chronology.step_s[at], 0.0)
        at = before[at]
    return total


def most_served(data: PlanData) -> Floats:
    """[W, O, T]: upper bound on service in a slot [requests/s]: what arrives in it, and what may have waited for it."""
    if data.wait_slots is None or not data.wait_slots.any():
        return data.demand
    most = arriving(data, data.wait_slots + 1) / data.chronology.step_s
    return np.where(data.wait_slots[:, None, None] > 0, most, data.demand)


def add_waiting(program: Program, data: PlanData, flow: Ints, factor: Ints) -> None:
    """Add the block, from within the routing block; `factor`: the column lambda, or -1."""
    if data.wait_slots is None or not data.wait_slots.any():
        return
    waits = (data.wait_slots > 0)[:, None] & (data.demand > 0).any(axis=2)  # [W, O]
    usual = np.maximum(data.demand.max(axis=2, initial=0.0), np.finfo(float).tiny)[:, :, None] * np.median(
        data.chronology.step_s
    )
    waiting = program.add_columns("waiting", data.demand.shape, unit=usual, where=waits[:, :, None])
    workload, origin, slot = np.nonzero(waits[:, :, None] & np.ones(data.demand.shape, dtype=bool))
    row_of = np.full(data.demand.shape, -1)
    row_of[workload, origin, slot] = np.arange(len(slot))
    grows, step = data.scaled()[workload] > 0, data.chronology.step_s[slot]
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
                row_of[workload, origin, data.chronology.next[slot]],
                np.flatnonzero(grows),
            ]
        ),
        np.concatenate([flow[arc, at], column, column, np.full(int(grows.sum()), int(factor))]),
        np.concatenate([data.chronology.step_s[at], np.ones(len(rows)), -np.ones(len(rows)), -asked[grows]]),
        index=index,
    )
    patience = arriving(data, data.wait_slots)[workload, origin, slot]
    program.add_rows(
        "patience",
        -np.inf,
        np.where(grows, 0.0, patience),
        np.concatenate([rows, np.flatnonzero(grows)]),
        np.concatenate([column, np.full(int(grows.sum()), int(factor))]),
        np.concatenate([np.ones(len(rows)), -patience[grows]]),
        index=index,
    )
