"""The hourly block: systems of some holdings run, and are paid for, in the slots in which they are wanted.

A holding that is counted by slot states the most systems that run at a time. They start when they are wanted, and once started run for a
least time. A start may cost something: a system is paid for while it gets ready, and serves nothing.

Sets
    u            holdings that are counted by slot; k(u) their fleet option
    t            slots; t-1 precedes t in its ring, and t-i precedes t by i slots
Data
    cost_{u,t}   cost of a system that runs in a slot, for each functional
    start_{u,t}  cost of a system that starts in a slot, for each functional
    least_u      slots for which a system runs at least; where its ring has fewer, they are counted again as the ring comes round
    upper_u      most systems of a holding
Variables
    on_{u,t}     integer in [0, upper_u], systems that run in a slot; only where the holding covers it
    started_{u,t}  >= 0, systems that start in a slot; only where starts cost something or bind for several slots
Objective
    sum_{u,t} cost_{u,t} on_{u,t} + sum_{u,t} start_{u,t} started_{u,t}, for each functional.
Constraints
    rented       on_{u,t} <= n_u    for each u, t
    started      sum_{v of k(u)} (on_{v,t} - on_{v,t-1}) <= started_{u,t}    for each u, t with started
    least run    sum_{i < least_u} sum_{v of k(u)} started_{v,t-i} <= sum_{v of k(u)} on_{v,t}    for each u with least_u > 1, t
    worked       sum_{p of j} uses_{p,k} y_p <= sum_{u of k, t} on_{u,t}    for each j with work, k counted by slot; t the slots of j: a job of
                 little work takes its systems for one slot at least, which fractions of a slot and of systems do not show
    installed    as in the fleet block, with on_{u,t} in place of n_u; so are the rows `beside`
    supply       sum_{u in s, u covers w(t)} on_{u,t} <= limit_s    for each t and supply s of which several u take; n_u for other holdings, and
                 where fractions of systems are counted by use, sum_p uses_{p,k} x_{p,t} for each of their fleet options k

A fleet option has at most one such holding in a slot, so that the sums over v have one term each: that of the window of the slot. Systems
are alike: the one that has run longest stops first, so that the rows `least run` allow what some choice of systems can do
(Rajan and Takriti 2005).
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Ints
from solvers.model.data import PlanData
from solvers.model.fleet import holding_upper
from solvers.model.preemption import predecessors
from solvers.program import Program


def add_hourly(program: Program, data: PlanData) -> None:
    """Add the block, after the holdings."""
    if (hourly := data.hourly) is None:
        return
    held, covers = program.columns["n"], data.covers()[:, data.slot_window]
    where = covers & (hourly.holding & (held >= 0))[:, None]
    on = program.add_columns(
        "on", covers.shape, upper=holding_upper(data)[:, None], integer=True, cost=hourly.cost, where=where
    )
    holding, slot = np.nonzero(where)
    index = np.column_stack([holding, slot])
    program.add_linking_rows("rented", on[holding, slot], held[holding], 1.0, index)
    if hourly.starts().any():
        _add_starts(program, data, on)


def _add_starts(program: Program, data: PlanData, on: Ints) -> None:
    """Add `started`, and the rows `started` and `least run`."""
    hourly, before = data.hourly, predecessors(data.chronology.next)
    assert hourly is not None
    program.presolve = False  # for a year by hour it takes minutes to probe counts that the linear program leaves whole
    runs = _of_option(data, on)  # [K, T]
    where = (on >= 0) & hourly.starts()[:, None] & (before != np.arange(data.slots))
    started = program.add_columns("started", on.shape, cost=hourly.start_cost, where=where)
    holding, slot = np.nonzero(where)
    option, row = data.holding_option[holding], np.arange(len(holding))
    index = np.column_stack([holding, slot])
    program.add_rows(
        "started",
        -np.inf,
        0.0,
        np.tile(row, 3),
        np.concatenate([on[holding, slot], runs[option, before[slot]], started[holding, slot]]),
        np.repeat([1.0, -1.0, -1.0], len(row)),
        index=index,
    )
    starts = _of_option(data, started)
    least = hourly.least_slots[holding]
    bound = np.flatnonzero(least > 1)
    rows, columns, when = [np.arange(len(bound))], [on[holding[bound], slot[bound]]], slot[bound]
    for i in range(int(least.max(initial=1))):
        still = np.flatnonzero(least[bound] > i)
        rows.append(still)
        columns.append(starts[option[bound[still]], when[still]])
        when = before[when]
    values = np.concatenate([-np.ones(len(bound)), np.ones(sum(map(len, rows[1:])))])
    program.add_rows(
        "least run", -np.inf, 0.0, np.concatenate(rows), np.concatenate(columns), values, index=index[bound]
    )


def add_worked(program: Program, data: PlanData) -> None:
    """Add the rows `worked`, after the schedule."""
    if data.hourly is None or not len(data.job_work):
        return
    on, chosen = program.columns["on"], program.columns["y"]
    point, option = data.point_uses.T
    job = np.maximum(data.point_job[point], 0)
    by_slot = np.zeros(len(data.option_site), dtype=bool)
    by_slot[data.holding_option[(on >= 0).any(axis=1)]] = True
    use = np.flatnonzero((chosen[point] >= 0) & by_slot[option] & (data.job_work[job] > 0))
    if not len(use):
        return
    index, row = np.unique(np.column_stack([job[use], option[use]]), axis=0, return_inverse=True)
    there = (index[:, 1][:, None] == data.holding_option[None, :])[:, :, None] & (on >= 0)[None]
    held_row, holding, slot = np.nonzero(there & data.job_window_mask[index[:, 0]][:, None, :])
    program.add_rows(
        "worked",
        -np.inf,
        0.0,
        np.concatenate([row.reshape(-1), held_row]),
        np.concatenate([chosen[point[use]], on[holding, slot]]),
        np.concatenate([data.point_uses_systems[use], -np.ones(len(held_row))]),
        index=index,
    )


def _of_option(data: PlanData, columns: Ints) -> Ints:
    """[K, T]: the columns [U, T] of the holding that a fleet option has in a slot, -1 where there is none."""
    found = np.full((len(data.option_site), data.slots), -1)
    holding, slot = np.nonzero(columns >= 0)
    found[data.holding_option[holding], slot] = columns[holding, slot]
    return found
