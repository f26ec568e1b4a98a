"""The hourly block: systems of some holdings run, and are paid for, in the slots in which they are wanted.

A holding that is counted by slot states the most systems that run at a time. They start when they are wanted, and once started run for a
least time. A start may cost something: a system is paid for while it gets ready, and serves nothing.

Sets
    u            holdings that are counted by slot; k(u) their fleet option
    t            slots; t-1 precedes t in its ring, and t-i precedes t by i slots
    w            workloads whose requests do not wait
    p            operating points of the pools that serve w; each is charged to one of the fleet options that it uses, k(p)
    m            measures: fleet options whose systems differ in what they carry
Data
    cost_{u,t}   cost of a system that runs in a slot, for each functional
    start_{u,t}  cost of a system that starts in a slot, for each functional
    least_u      slots for which a system runs at least; where its ring has fewer, they are counted again as the ring comes round
    upper_u      most systems of a holding
    D_{w,t}      demand [requests/s]
    rate_{k,w}   most requests/s of w that a system of k carries: max_{p of w, k(p) = k} cap_p / uses_{p,k}
    share_{m,w}  systems of m that a request/s of w takes: 1 / rate_{m,w}; of the best k where m carries none of w
    part_{m,k}   what a system of k carries as a multiple of a system of m: max_w share_{m,w} rate_{k,w}
    need_{m,t}   sum_w share_{m,w} D_{w,t}, systems of m that carry the demand
    whole_{m,k,t}  floor(part_{m,k}) + min(frac(part_{m,k}) / frac(need_{m,t}), 1)
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
    least running  sum_u whole_{m,k(u),t} on_{u,t} >= ceil(need_{m,t})    for each m, t, over all holdings that cover w(t), with n_u for other holdings;
                 implied by whole systems: it rounds  sum_u part_{m,k(u)} on_{u,t} >= need_{m,t},  which adds up `installed`, `capacity` and
                 `balance` (mixed-integer rounding, Nemhauser and Wolsey 1990)

A fleet option has at most one such holding in a slot, so that the sums over v have one term each: that of the window of the slot. Systems
are alike: the one that has run longest stops first, so that the rows `least run` allow what some choice of systems can do
(Rajan and Takriti 2005).
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.data import PlanData
from solvers.model.fleet import at_work, holding_upper
from solvers.model.preemption import predecessors
from solvers.program import Program

ROUNDING = 1e-6  # part of a number of systems, before it is rounded up; relative and absolute
DIGITS = 9  # up to which loads of systems count as alike
MOST_ENTRIES = 1_000_000  # entries of the rows `least running`, up to which measures are taken, those that most fleet options share first


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


def add_least_running(program: Program, data: PlanData) -> None:
    """Add the rows, after the blocks of the systems that run."""
    if data.hourly is None or data.objective.maximises or data.scenarios is not None:
        return
    rate = rates(data)
    asked = np.where(rate.max(axis=0, initial=0.0)[:, None] > 0, _demand(data), 0.0)  # [W, T]
    if not asked.any():
        return
    most = MOST_ENTRIES // (data.slots * len(data.holding_option))
    measure, slot, need, whole = _rows(rate, asked, most)
    columns = np.where(data.covers()[:, data.slot_window], at_work(program, data), -1)  # [U, T]
    factor = whole[:, data.holding_option]  # [rows, U]
    row, holding = np.nonzero((columns[:, slot].T >= 0) & (factor > 0))
    program.add_rows(
        "least running",
        np.ceil(need),
        np.inf,
        row,
        columns[holding, slot[row]],
        factor[row, holding],
        index=np.column_stack([measure, slot]),
    )


def rates(data: PlanData) -> Floats:
    """[K, W]: most requests/s of a workload that a system of a fleet option carries, each point charged to the one of its fleet options that bounds it best."""
    point, option = data.point_uses.T
    systems = np.zeros((len(data.point_pool), len(data.option_site)))
    np.add.at(systems, (point, option), data.point_uses_systems)
    able = np.flatnonzero((data.point_pool >= 0) & (data.point_capacity > 0))
    served = np.zeros((data.pools, data.demand.shape[0]), dtype=bool)
    served[data.arc_pool, data.arc_asked()] = True
    found = np.zeros((len(data.option_site), data.demand.shape[0]))
    charged = systems[able].argmax(axis=1)
    rate = data.point_capacity[able] / systems[able, charged]
    for w in range(data.demand.shape[0]):
        mine = served[data.point_pool[able], w]
        np.maximum.at(found[:, w], charged[mine], rate[mine])
    return found


def _demand(data: PlanData) -> Floats:
    """[W, T]: demand of the workloads whose requests do not wait."""
    asked: Floats = data.demand.sum(axis=1)
    return asked if data.wait_slots is None else np.where((data.wait_slots == 0)[:, None], asked, 0.0)


def _rows(rate: Floats, asked: Floats, most: int) -> tuple[Ints, Ints, Floats, Floats]:
    """Return (measure, slot, need, factors [rows, K]) of the rows that rounding tightens, by at most so many measures."""
    best = rate.max(axis=0)
    able = np.flatnonzero(rate.max(axis=1) > 0)
    kinds = np.round(rate[able] / best.max(), DIGITS)
    _, first, alike = np.unique(kinds, axis=0, return_index=True, return_counts=True)
    measures = able[first[np.argsort(-alike, kind="stable")][:most]]
    one = np.where(rate[measures] > 0, rate[measures], best)  # [M, W]
    share = np.divide(1.0, one, out=np.zeros_like(one), where=one > 0)
    part = (share[:, None, :] * rate[None]).max(axis=2)  # [M, K]
    need = share @ asked * (1.0 - ROUNDING) - ROUNDING  # [M, T]
    above = need - np.floor(need)
    measure, slot = np.nonzero((need > 0) & (above > ROUNDING))
    mine = part[measure]
    whole = np.floor(mine) + np.minimum((mine - np.floor(mine)) / above[measure, slot][:, None], 1.0)
    return measures[measure], slot, need[measure, slot], whole
