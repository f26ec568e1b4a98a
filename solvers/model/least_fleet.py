"""The least fleet block: systems that whole replicas hold at least, one worker of every role for each workload that must be served.

With divisible replicas many workloads of little demand share a system in any proportion. A whole worker takes whole chips, so the smallest
ones of all workloads must fit side by side. The rows are implied by whole replicas; they tighten the program with divisible ones, whose
bound holds for both. Where systems are counted by slot, they must fit side by side among those that run in each slot.

Sets
    w            workloads with demand in slot t that may not wait; of several that share a pool, one
    p            operating points of the pools that serve a workload; each has whole replicas
    k            fleet options
    u            holdings; k(u) its fleet option
    d            windows; t(d) the slot of a window in which most must be there
    m            rows of weights, below
Data
    least_{p,k}  systems of fleet option k that the workers of one replica take, spares included
    weight_{m,k} >= 0: 1 for each fleet option; 1 for one of them, of rows by window; and the prices, from the duals of the cheapest fleet with
                 parts of systems that holds one replica of every workload
    work_{u,t}   on_{u,t} of holdings that are counted by slot, n_u of others
Variables
    None of its own.
Objective
    None of its own.
Constraints
    least fleet  sum_{u covers d} weight_{m,k(u)} n_u >= sum_w min_{p of w} sum_k weight_{m,k} least_{p,k}    for each m, d;
                 rounded up where weights are whole
    least fleet by slot  sum_{u covers d(t)} weight_{m,k(u)} work_{u,t} >= the same of the workloads w in t    for each m, t, where some u are counted by slot
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.plain_lp import solve_lp
from solvers.model.block_data.least_fleet import LeastFleet
from solvers.model.data import PlanData
from solvers.model.deferral import most_served
from solvers.model.fleet import at_work
from solvers.model.residency import is_whole
from solvers.model.routing import arc_open
from solvers.program import Program

LP_ITERATIONS = (("simplex_iteration_limit", 20_000),)  # limit on the program whose duals weigh the fleet options
ROUNDING = 1e-6  # part of a sum of systems, before it is rounded up; relative and absolute
MOST_SIZES = 20_000  # replicas of different sizes up to which prices are sought

Sizes = list[Floats]
"""For each workload, the systems [size, K] that one replica of each of its points takes, each size once."""


def with_least_fleet(data: PlanData) -> PlanData:
    """Return the input with the least fleet of its whole replicas, which stays when replicas are divided (`PlanData.relaxation`)."""
    return replace(data, least_fleet=least_fleet_of(data))


def least_fleet_of(data: PlanData) -> LeastFleet | None:
    """Derive the rows; None where they say nothing: no replica is whole, no demand is certain, or some workload may do without systems."""
    if data.objective.maximises or data.scenarios is not None or not is_whole(data).any():
        return None
    sizes, served = _sizes(data), _served(data)
    rows: list[tuple[int, int, Floats, float]] = []
    for window in range(data.windows):
        slots = np.flatnonzero(data.slot_window == window)
        here = [[sizes[w] for w in np.flatnonzero(served[:, t]).tolist() if w in sizes] for t in slots]
        most = max(here, key=lambda of_slot: _least(of_slot, np.ones(len(data.option_site))), default=[])
        rows += [(window, -1, *row) for row in _rows(most, _weights(data, most, window))]
        if data.hourly is not None:
            rows += _by_slot(data, window, dict(zip(slots.tolist(), here)))
    if not rows:
        return None
    windows, slot_of, weights, least_of = zip(*rows)
    return LeastFleet(
        weight=np.array(weights),
        window=np.array(windows, dtype=np.int64),
        least=np.array(least_of, dtype=float),
        slot=np.array(slot_of, dtype=np.int64),
    )


def _rows(of_workloads: Sizes, weights: Iterable[tuple[Floats, bool]]) -> Iterator[tuple[Floats, float]]:
    """Yield weights and side of the rows that say something."""
    for weight, whole in weights:
        least = _least(of_workloads, weight)
        if least > ROUNDING:
            yield weight, math.ceil(least * (1 - ROUNDING) - ROUNDING) if whole else least


def _by_slot(data: PlanData, window: int, of_slots: dict[int, Sizes]) -> Iterator[tuple[int, int, Floats, float]]:
    """Yield the rows of the slots of a window; slots with the same workloads have the same ones."""
    known: dict[tuple[int, ...], list[tuple[Floats, float]]] = {}
    for slot, here in of_slots.items():
        key = tuple(map(id, here))
        if here and key not in known:
            prices = _prices(data, here, window)
            known[key] = list(_rows(here, [(np.ones(len(data.option_site)), True), *([] if prices is None else [(prices, False)])]))  # fmt: skip
        yield from ((window, slot, *row) for row in known.get(key, ()))


def add_least_fleet(program: Program, data: PlanData) -> None:
    """Add the rows, after the holdings."""
    if (block := data.least_fleet) is None:
        return
    covers = data.covers()[:, block.window].T & (block.weight[:, data.holding_option] > 0)
    slot = np.full(len(block.least), -1) if block.slot is None else block.slot
    _add(program, data, "least fleet", np.flatnonzero(slot < 0), np.where(covers, program.columns["n"][None, :], -1))
    if data.hourly is not None:
        columns = at_work(program, data)[:, np.maximum(slot, 0)].T
        _add(program, data, "least fleet by slot", np.flatnonzero(slot >= 0), np.where(covers, columns, -1))


def _add(program: Program, data: PlanData, name: str, rows: Ints, columns: Ints) -> None:
    """Add some of the rows over `columns` [F, U]."""
    block = data.least_fleet
    assert block is not None
    row, holding = np.nonzero(columns[rows] >= 0)
    weight = block.weight[rows[row], data.holding_option[holding]]
    program.add_rows(name, block.least[rows], np.inf, row, columns[rows][row, holding], weight, count=len(rows))


def _served(data: PlanData) -> Bools:
    """[W, T]: the workload must be served in the slot, and shares no pool with another one that counts."""
    asked: Bools = np.any(data.demand > 0, axis=1)
    if data.wait_slots is not None:
        asked &= (data.wait_slots == 0)[:, None]
    taken: set[int] = set()
    asked_of, pool_of = data.arc_asked(), data.arc_pool
    for w in range(len(asked)):
        pools = set(pool_of[asked_of == w].tolist())
        if pools & taken:
            asked[w] = False
        elif asked[w].any():
            taken |= pools
    return asked


def _sizes(data: PlanData) -> dict[int, Floats]:
    """Collect the sizes of each workload's replicas; workloads of which some need no whole replica are left out."""
    point, option = data.point_uses.T
    workers = data.role_workers()
    each = np.zeros((len(data.point_pool), len(data.option_site)))
    np.add.at(each, (point, option), data.point_uses_systems / workers * (workers + data.role_spares()))
    able, whole = (data.point_pool >= 0) & (data.point_capacity > 0), is_whole(data)
    carries = (most_served(data)[data.arc_asked(), data.arc_origin] * arc_open(data) > 0).any(axis=1)
    found = {}
    for w in range(data.demand.shape[0]):
        points = able & np.isin(data.point_pool, data.arc_pool[(data.arc_asked() == w) & carries])
        if points.any() and whole[points].all():
            found[w] = np.unique(each[points], axis=0)
    return found


def _least(of_workloads: Sizes, weight: Floats) -> float:
    """Sum the least weight of a replica over the workloads."""
    return float(sum((sizes @ weight).min() for sizes in of_workloads))


def _weights(data: PlanData, of_workloads: Sizes, window: int) -> list[tuple[Floats, bool]]:
    """List the weights [K] of a window's rows, and whether they are whole."""
    options = len(data.option_site)
    if not of_workloads:
        return []
    found = [(np.ones(options), True), *((weight, True) for weight in np.eye(options))]
    prices = _prices(data, of_workloads, window)
    return found if prices is None else [*found, (prices, False)]


def _prices(data: PlanData, of_workloads: Sizes, window: int) -> Floats | None:
    """Find the duals of the cheapest fleet, with parts of systems, that holds one replica of every workload; None where there is none.

    min sum_k c_k n_k,  sum_s z_{w,s} = 1 for each w,  sum_{w,s} size_{w,s,k} z_{w,s} <= n_k for each k.
    """
    cost = _least_cost(data, window)
    count = sum(map(len, of_workloads))
    if cost is None or count > MOST_SIZES:
        return None
    options, workloads = len(cost), len(of_workloads)
    owner = np.repeat(np.arange(workloads), [len(sizes) for sizes in of_workloads])
    one = sparse.csr_array((np.ones(count), (owner, np.arange(count))), shape=(workloads, count))
    none = sparse.csr_array((workloads, options))
    room = sparse.csr_array(np.concatenate(of_workloads).T)
    of_size, of_system = sparse.vstack([one, room]), sparse.vstack([none, -sparse.eye_array(options)])
    matrix = sparse.csc_array(sparse.hstack([of_size, of_system]))
    lower = np.concatenate([np.ones(workloads), np.full(options, -np.inf)])
    upper = np.concatenate([np.ones(workloads), np.zeros(options)])
    columns = np.zeros(count + options), np.full(count + options, np.inf)
    cost_of = np.concatenate([np.zeros(count), cost])
    found = solve_lp(cost_of, matrix, (lower, upper), columns, seconds=math.inf, settings=LP_ITERATIONS)
    if found.duals is None:
        return None
    scale = cost.max()
    return np.clip(-found.duals[workloads:] / scale, 0.0, cost / scale) if scale > 0 else None


def _least_cost(data: PlanData, window: int) -> Floats | None:
    """[K]: least cost of a system of each fleet option throughout the window, in the objective; None where the objective counts no systems."""
    cost = data.holding_cost.get(data.objective.functional)
    if cost is None:
        return None
    if data.hourly is not None:
        running = data.hourly.cost.get(data.objective.functional, np.zeros((len(cost), data.slots)))
        cost = cost + np.where(data.hourly.holding, running[:, data.slot_window == window].sum(axis=1), 0.0)
    there = data.covers()[:, window]
    least = np.full(len(data.option_site), np.inf)
    np.minimum.at(least, data.holding_option[there], np.maximum(cost[there], 0.0))
    highest = least[np.isfinite(least)].max(initial=0.0)
    return np.where(np.isfinite(least), least, highest)
