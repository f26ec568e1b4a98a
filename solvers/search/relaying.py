"""Let workers keep their weights: search the residents of a plan again, window by window, with its fleet and its other integers held.

A search within a gap, and residents that are made whole slot by slot, load weights that a look at the whole day would not. Loads cost little
beside systems, so that neither has a reason to avoid them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.highs_run import MIP_FEASIBILITY_TOL, run_highs
from solvers.interface import Options
from solvers.model.build import objective_vector
from solvers.model.data import COST, PlanData
from solvers.model.preemption import predecessors
from solvers.program import Arrays, Program
from solvers.search.needless import without_needless


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayingSettings:
    """Sizes and gaps of the search of a window."""

    columns: int = 40_000
    """Most columns."""
    nodes: int = 100
    """Most nodes, so that it ends where it ended before."""
    gap: float = 1e-3
    """Relative gap, in the cost of the columns that move."""
    loads: float = 1e-6
    """Loads from which on a window is searched."""
    slack: float = 1e-9
    """Room of rows for the rounding of the columns that are held, relative to their entries in them."""


SETTINGS = RelayingSettings()
BROKEN = 1e-6  # violation of a row from which on values are no plan
TOTALS = " sub-totals"  # end of the names of columns that add up a limited functional
MOVING = ("f", "x", "loading", "waiting", "grid")  # blocks of slots that follow the residents
BY_GROUP = ("residents", "deployments")


def tidied(program: Program, data: PlanData, values: Mapping[str, Floats], options: Options) -> Mapping[str, Floats]:
    """Return a plan without what it does not need, and with the cheapest residents that are found for its fleet; itself where neither changes it."""
    return with_fewer_loads(program, data, without_needless(program, data, values), options)


def with_fewer_loads(
    program: Program, data: PlanData, values: Mapping[str, Floats], options: Options
) -> Mapping[str, Floats]:
    """Return a plan with the cheapest residents that are found for its fleet: never a dearer one; itself where nothing is priced or loaded."""
    if data.relays is None or "loading" not in values or (values["loading"] <= SETTINGS.loads).all():
        return values
    begin, x = time.perf_counter(), program.vector(values)
    cost = _price(program, data)
    window, best = _window_of_columns(program, data), x
    loading = program.columns["loading"]
    for number in range(data.windows):
        mine = loading[:, data.slot_window == number]
        mine = mine[mine >= 0]
        if not len(mine) or (best[mine] <= SETTINGS.loads).all() or options.left_s(begin) <= 0:
            continue
        left = replace(options, time_limit_s=options.left_s(begin))
        best = _searched(program.arrays(), cost, best, (window == number) & _used(program, data, best), left)
    if best is x:
        return values
    found = program.values(best)
    return {block: found[block] for block in values}


def _price(program: Program, data: PlanData) -> Floats:
    """[columns]: coefficients to minimise: those in the objective, or in money at the same factor on demand; loads count a little in any case."""
    price = program.functional(COST) if data.objective.maximises else objective_vector(program, data).copy()
    loading = program.columns["loading"]
    loading = loading[loading >= 0]
    price[loading] += 1e-9 * max(float(np.abs(price).max(initial=0.0)), 1.0)
    return price


def _window_of_columns(program: Program, data: PlanData) -> Ints:
    """[columns]: the window of the columns that may move, -1 for those that are held."""
    window = np.full(program.column_count, -1)
    for block, columns in program.columns.items():
        if block in MOVING:
            there = columns >= 0
            window[columns[there]] = data.slot_window[np.nonzero(there)[-1]]
        elif block.endswith(TOTALS):
            window[columns] = data.slot_window[: len(columns)]
    group = np.arange(data.slots) if data.resident_group is None else data.resident_group
    of_group = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    of_group[group] = data.slot_window
    for block in BY_GROUP:
        columns = program.columns[block]
        row, at = np.nonzero(columns >= 0)
        window[columns[row, at]] = of_group[at]
    return window


def _used(program: Program, data: PlanData, x: Floats) -> Bools:
    """[columns]: False for residents and replicas of points that hold none at any time."""
    held, active = program.columns["residents"], program.columns["x"]
    there = (np.where(held >= 0, x[held], 0.0) > 0.5).any(axis=1)
    point = np.zeros(len(active), dtype=bool)
    np.logical_or.at(point, data.point_uses[:, 0], there)
    whole = np.zeros(len(active), dtype=bool)
    np.logical_or.at(whole, data.point_uses[:, 0], (held >= 0).any(axis=1))
    unused, used = whole & ~point, np.ones(program.column_count, dtype=bool)
    for block, rows in (
        ("residents", unused[data.point_uses[:, 0]]), ("loading", unused[data.point_uses[:, 0]]), ("x", unused), ("deployments", unused),
    ):  # fmt: skip
        columns = program.columns[block][rows]
        used[columns[columns >= 0]] = False
    return used


def _searched(arrays: Arrays, cost: Floats, x: Floats, free: Bools, options: Options) -> Floats:
    """Return the plan with the best values of some columns that are found; itself where none is better, or the search would be too large."""
    at = np.flatnonzero(free)
    if len(at) > SETTINGS.columns:
        return x
    matrix = sparse.csr_array(arrays.matrix)
    rows = np.flatnonzero(abs(matrix) @ free.astype(float) > 0)
    inside = matrix[rows]
    offset = inside @ np.where(free, 0.0, x)
    room = SETTINGS.slack * (abs(inside) @ np.abs(x))
    part = Arrays(
        sparse.csc_array(inside[:, at]),
        arrays.row_lower[rows] - offset - room,
        arrays.row_upper[rows] - offset + room,
        arrays.lower[at],
        arrays.upper[at],
        arrays.integer[at],
        arrays.unit[at],
    )
    scaled = part.scaled(cost[at])
    limits = replace(
        options,
        progress=None,
        node_limit=SETTINGS.nodes,
        gap=SETTINGS.gap,
        enough_gap=None,
        longest_s=None,
        target=None,
    )
    outcome = run_highs(scaled, limits, MIP_FEASIBILITY_TOL, start=x[at] / scaled.column)
    if outcome.x is None:
        return x
    found = x.copy()
    found[at] = np.where(part.integer, np.round(outcome.x * scaled.column), outcome.x * scaled.column)
    return found if cost @ found < cost @ x else x


def loading_groups(program: Program, group: Ints) -> Ints:
    """[rows]: the group of a row `loading`, whose predecessor counts as the schedule has it until it is decided; -1 for others."""
    of_row = np.full(program.row_count, -1)
    for part in program.row_blocks.get("loading", ()):
        of_row[part.rows] = group[part.index[:, 1]]
    return of_row


def loads_after(program: Program, data: PlanData, group: Ints) -> Ints:
    """[columns]: the group of the slot before each load, -1 for columns other than `loading`."""
    found = np.full(program.column_count, -1)
    loading = program.columns.get("loading", np.zeros((0, data.slots), dtype=np.int64))
    use, slot = np.nonzero(loading >= 0)
    if len(use):
        found[loading[use, slot]] = group[predecessors(data.chronology.next)[slot]]
    return found


def without_loads(program: Program, x: Floats) -> Floats:
    """Return the columns without loads: each slot in turn takes of the limit of a day what it needs."""
    loading, found = program.columns.get("loading", np.zeros(0, dtype=np.int64)), x.copy()
    found[loading[loading >= 0]] = 0.0
    return found


def with_loads(
    program: Program, data: PlanData, values: Mapping[str, Floats], options: Options
) -> Mapping[str, Floats] | None:
    """Return a plan that was found without price or limit of loads as a plan of `program`, which has both: with the loads that its residents make and
    then fewer; None where the limit does not hold."""
    x, loading, resident = program.vector(values), program.columns["loading"], program.columns["resident"]
    assert data.order is not None
    before = predecessors(data.order.next)
    held = np.where(resident >= 0, x[resident], 0.0)
    loads = np.maximum(held - held[:, before], 0.0)
    x[loading[loading >= 0]] = loads[loading >= 0]
    found = with_fewer_loads(program, data, program.values(x), options)
    return found if program.arrays().violation(program.vector(found)) <= BROKEN else None
