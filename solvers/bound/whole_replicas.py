"""Bound the program with whole replicas by that of one slot with the fleet, the other slots priced (Lagrangian relaxation).

Nearly all of what systems are worth lies in one slot, the fullest: the others are served by what that one needs. There whole replicas cost
what they cost, so whole replicas in that slot alone give most of the bound.

Sets
    s            the slot whose systems are worth most, by the duals of the rows `installed` and the systems held
    S            columns of slot s and of no slot; O the columns of the other slots
    I            rows in which a column of O occurs; the remaining rows hold columns of S alone
Data
    c, A, l, u   cost, matrix, and bounds of the columns of the program with whole replicas over all its points
    y_i          duals of the linear program with divisible replicas, 0 towards an endless side of a row; of a row `resident` the dual
                 of `installed` for the systems of a worker, so that residents of other slots cost nothing beside what they serve
    b_i          lower side of a row with y_i > 0, upper side of one with y_i < 0
Bound
    sum_{i in I} y_i b_i + sum_{j in O} min_{l_j <= x_j <= u_j} (c - A'y)_j x_j + min_{x of S} (c - A'y) x, the last over the rows beside I

Any y gives a valid bound (Geoffrion 1974): each plan of the program keeps the rows I, so that its cost is at least the sum, and its columns
of S keep the rows beside I. With the optimal duals of the linear program the sum is the bound of divisible replicas, apart from what
dominated points and the rows `first one` add. The last minimum is raised by branching on the workers of slot s (`solvers.bound.best_first`). All points stay in slot
s that whole replicas may need, since the program is that with whole replicas (`solvers.model.dominance`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.plain_lp import solve_lp
from solvers.bound.best_first import PartProgram, least
from solvers.general.structure import implied_upper, sufficient_upper
from solvers.interface import Options
from solvers.model.build import build, objective_vector, slot_of_columns
from solvers.model.data import PlanData
from solvers.model.fleet import system_prices
from solvers.model.residency import is_whole
from solvers.program import Arrays, Program
from solvers.solution import Solution

Duals = dict[str, tuple[Ints, Floats]]
"""Row block -> (index tuples, duals), of the minimised objective."""

SIZE_DIGITS = 9  # digits of the systems of a worker, up to which workers are of one size


@dataclass(frozen=True, slots=True)
class Slot:
    """The program of one slot with the fleet, and its columns in that with whole replicas."""

    part: PartProgram
    program: Program
    columns: Ints

    def values(self, x: Floats) -> dict[str, Floats]:
        """Return columns of the slot as blocks of values, 0 elsewhere."""
        every = np.zeros(self.program.column_count)
        every[self.columns] = x
        return self.program.values(every)


def decisive_slot(data: PlanData, divisible: Solution, options: Options) -> Slot | None:
    """Cut out the slot whose systems are worth most; None where none is, or no time is left for its duals. `divisible`: solution with divisible replicas."""
    if not is_whole(data).any() or data.resident_group is not None or not divisible.values:
        return None
    duals = duals_of(data.relaxation(), divisible, options)
    if duals is None:
        return None
    worth = _worth_of_systems(data, duals, divisible.values["n"])
    return slot_program(data, duals, int(np.argmax(worth))) if worth.max(initial=0.0) > 0 else None


def bound_of_slot(
    data: PlanData, slot: Slot, target: float, options: Options, times: int = 1
) -> tuple[float | None, dict[str, Floats]]:
    """Return (a bound on the objective with whole replicas, None where nothing is proven; blocks of the slot where the search stands).

    `target`: value beyond which nothing more is asked. `times`: by how many times as many linear programs as usual.
    """
    sign = -1.0 if data.objective.maximises else 1.0
    found = least(slot.part, sign * target, options, times)
    if found is None:
        return None, {}
    return sign * found.bound, {} if found.x is None else slot.values(found.x)


def duals_of(data: PlanData, divisible: Solution, options: Options) -> Duals | None:
    """Return the duals of the linear program with divisible replicas, minimised; None where it was not solved in time.

    None too for a plan found by decomposition, whose program is too large to be solved in one piece, and which has duals of limits alone.
    """
    if divisible.relaxed_duals:
        return None
    sign = -1.0 if data.objective.maximises else 1.0
    program = build(data)
    scaled = program.arrays().scaled(sign * objective_vector(program, data))
    arrays = scaled.arrays
    sides, bounds = (arrays.row_lower, arrays.row_upper), (arrays.lower, arrays.upper)
    found = solve_lp(scaled.cost, arrays.matrix, sides, bounds, seconds=options.time_limit_s)
    return None if found.duals is None else program.by_block(found.duals * scaled.row / scaled.objective)


def _worth_of_systems(data: PlanData, duals: Duals, held: Floats) -> Floats:
    """[T]: what the systems held are worth in each slot, by the duals of the rows `installed`."""
    there = np.zeros((len(data.option_site), data.windows))
    np.add.at(there, data.holding_option, held[:, None] * data.covers())
    worth: Floats = (_worth_of_one(data, duals) * there[:, data.slot_window]).sum(axis=0)
    return worth


def _worth_of_one(data: PlanData, duals: Duals) -> Floats:
    """[K, T]: what one more system of a fleet option is worth in a slot."""
    price = np.zeros((len(data.option_site), data.slots))
    (option, slot), dual = duals["installed"][0].T, duals["installed"][1]
    price[option, slot] = -dual
    return price


def slot_program(data: PlanData, duals: Duals, slot: int) -> Slot | None:
    """Cut the program of one slot out of that with whole replicas, the other slots at their duals; None where a column of theirs has no least cost."""
    program = build(data)
    arrays = program.arrays()
    cost = objective_vector(program, data) * (-1.0 if data.objective.maximises else 1.0)
    at = slots_of(program)
    other = (at >= 0) & (at != slot)
    priced: Bools = abs(arrays.matrix) @ other.astype(float) > 0
    y = np.where(priced, placed_duals(program, data, duals), 0.0)
    side = np.where(y > 0, arrays.row_lower, arrays.row_upper)
    y, side = np.where(np.isfinite(side), y, 0.0), np.where(np.isfinite(side), side, 0.0)
    reduced = cost - arrays.matrix.T @ y
    arrays = bounded_columns(arrays, cost)
    end = np.where(reduced > 0, arrays.lower, np.where(reduced < 0, arrays.upper, 0.0))
    if not np.isfinite(end[other]).all():
        return None
    rows, mine = np.flatnonzero(~priced), np.flatnonzero(~other)
    part = Arrays(
        arrays.matrix.tocsr()[rows].tocsc()[:, mine],
        arrays.row_lower[rows],
        arrays.row_upper[rows],
        arrays.lower[mine],
        arrays.upper[mine],
        arrays.integer[mine],
        arrays.unit[mine],
    )
    kind, price = _workers(data, program, slot)
    constant = float(y @ side + reduced[other] @ end[other])
    return Slot(PartProgram(part, reduced[mine], constant, kind[mine], price[mine]), program, mine)


def slots_of(program: Program) -> Ints:
    """[columns]: the slot of each column, sub-totals and residents included; -1 for columns of no slot."""
    slot = slot_of_columns(program)
    for block, columns in program.columns.items():
        if block in ("residents", "deployments"):  # each slot is a group of its own
            slot[columns[columns >= 0]] = np.nonzero(columns >= 0)[1]
        elif block.startswith("limit ") and len(columns) > 1:
            slot[columns] = np.arange(len(columns))
    return slot


def placed_duals(program: Program, data: PlanData, duals: Duals) -> Floats:
    """[rows]: duals of the program with divisible replicas on the rows of that with whole ones."""
    y = np.zeros(program.row_count)
    for block, (index, values) in duals.items():
        some = values != 0
        known = dict(zip(map(tuple, index[some].tolist()), values[some].tolist(), strict=True))
        for part in program.row_blocks.get(block, ()) if known else ():
            y[part.rows] = [known.get(tuple(key), 0.0) for key in part.index.tolist()]
    price, systems = _worth_of_one(data, duals), data.point_uses_systems / data.role_workers()
    for part in program.row_blocks["resident"]:
        use, slot = part.index.T
        y[part.rows] = -systems[use] * price[data.point_uses[use, 1], slot]
    limit = {int(part.index[0, 0]): y[part.rows.start] for part in program.row_blocks.get("limit", ())}
    for part in program.row_blocks.get(
        "limit sub-total", ()
    ):  # so that sub-totals, which are free, cost exactly nothing
        y[part.rows] = [limit[i] for i in part.index[:, 0].tolist()]
    return y


def bounded_columns(arrays: Arrays, cost: Floats) -> Arrays:
    """Return the program with the bounds of columns that its rows imply, or that some optimum keeps."""
    arrays = replace(arrays, upper=sufficient_upper(arrays, cost, implied_upper(arrays)))
    free = np.isneginf(arrays.lower)
    if not free.any():
        return arrays
    turned = arrays.matrix @ sparse.diags_array(np.where(free, -1.0, 1.0))
    lower, upper = np.where(free, -arrays.upper, arrays.lower), np.where(free, np.inf, arrays.upper)
    found = implied_upper(replace(arrays, matrix=turned.tocsc(), lower=lower, upper=upper))
    return replace(arrays, lower=np.where(free, -found, arrays.lower))


def _workers(data: PlanData, program: Program, slot: int) -> tuple[Ints, Floats]:
    """Return the kind and the price of the workers [columns] of a slot, -1 and 0 for other columns.

    Workers of one kind are of one size, on systems of one kind, for one workload, whatever the site's offer and the role: their sum is a
    whole number too, and one that decides more than the count at each of many similar points.
    """
    resident = program.columns["residents"][:, slot]
    use = np.flatnonzero(resident >= 0)
    point, option = data.point_uses[use].T
    systems = (data.point_uses_systems / data.role_workers())[use]
    workload = np.full(data.pools, -1)
    workload[data.arc_pool] = data.arc_workload
    key = np.column_stack([workload[data.point_pool[point]], data.option_group[option], np.round(systems, SIZE_DIGITS)])
    kind, worker_price = np.full(program.column_count, -1), np.zeros(program.column_count)
    kind[resident[use]] = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1)
    worker_price[resident[use]] = systems * system_prices(program, data)[option]
    return kind, worker_price
