"""Bound the program with whole replicas by the programs of all slots, each with a fleet of its own (Lagrangian decomposition).

Where demand is flat, or systems rented by the hour cap what a slot is worth, no slot decides alone (`solvers.bound.whole_replicas`): each is worth
as much as the others, and whole systems and replicas cost what they cost in every one. Every slot decides here on a copy of the fleet, which it
pays for by its share of the price.

Sets
    t            slots; S_t columns of slot t, F columns of no slot, which every slot has a copy of
    R_t          rows with columns of slot t and of no other; R rows with columns of F alone
    C            rows with columns of several slots
Data
    c, A, l, u   cost, matrix, and bounds of the columns of the program with whole replicas over all its points
    y_i          duals of the linear program with divisible replicas, 0 towards an endless side of a row
    b_i          lower side of a row with y_i > 0, upper side of one with y_i < 0
    share_{t,j}  part of the cost of column j of F that slot t pays:  sum_{i in R_t} y_i A_{i,j} + rest_j / T,  where rest_j is what remains of
                 the cost after all of these and sum_{i in C} y_i A_{i,j}
Bound
    sum_{i in C} y_i b_i + sum_t min (share_t x_F + (c - A_C'y) x_{S_t}) over the rows R and R_t, x whole where it is in the program

Any y and any shares that add up to the cost give a valid bound (Guignard and Kim 1987): a plan of the program is one of every slot, with the same
fleet in each. Slots with the same program are solved once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.highs_run import MIP_FEASIBILITY_TOL, run_highs
from solvers.bound.whole_replicas import Duals, bounded_columns, duals_of, placed_duals, slots_of
from solvers.interface import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.model.residency import is_whole
from solvers.program import Arrays
from solvers.solution import Solution

BUSY = 1e-6  # value of a column above which the column is at work
LEAST_SLOT_S = 0.2  # least time [s] of a slot when the time is nearly up


@dataclass(frozen=True, slots=True)
class SlotSum:
    """The bound on the objective, and the points [P] that work in some slot."""

    bound: float
    points: Bools


def bound_of_every_slot(data: PlanData, divisible: Solution, options: Options) -> SlotSum | None:
    """Return the bound with the points of the slots; None where there are no duals, or the program of a slot has no least value. `divisible`: solution with divisible replicas."""
    if not is_whole(data).any() or data.resident_group is not None or not divisible.values:
        return None
    duals = duals_of(data.relaxation(), divisible, options)
    return None if duals is None else sum_of_slots(data, duals, options)


def sum_of_slots(data: PlanData, duals: Duals, options: Options) -> SlotSum | None:
    """Sum the bounds of the slots at some duals, which need not be optimal; None where nothing is proven of a slot."""
    begin, sign = time.perf_counter(), -1.0 if data.objective.maximises else 1.0
    program = build(data)
    arrays, cost, at = program.arrays(), sign * objective_vector(program, data), slots_of(program)
    first, last = _slots_of_rows(arrays.matrix.tocsr(), at)
    y = placed_duals(program, data, duals)
    side = np.where(y > 0, arrays.row_lower, arrays.row_upper)
    y, side = np.where(np.isfinite(side), y, 0.0), np.where(np.isfinite(side), side, 0.0)
    y[first > last] = 0.0  # rows of no slot stay in every part, unpriced
    joint = np.where(last > first, y, 0.0)
    reduced = cost - arrays.matrix.T @ joint
    arrays = bounded_columns(arrays, cost)
    shared, rows = np.flatnonzero(at < 0), np.flatnonzero(first > last)
    shares = np.zeros((data.slots, len(shared)))
    by_rows = arrays.matrix.tocsr()[:, shared]
    for slot in range(data.slots):
        mine = np.flatnonzero((first == slot) & (last == slot))
        shares[slot] = by_rows[mine].T @ y[mine]
    shares += (reduced[shared] - shares.sum(axis=0)) / data.slots
    total, known, works = float(joint @ side), {}, np.zeros(program.column_count, dtype=bool)
    for slot in range(data.slots):
        part_rows = np.concatenate([rows, np.flatnonzero((first == slot) & (last == slot))])
        own = np.flatnonzero(at == slot)
        part = _part(arrays, part_rows, np.concatenate([shared, own]))
        prices = np.concatenate([shares[slot], reduced[own]])
        key = _key(part, prices)
        if key not in known:
            left = max(options.left_s(begin) / (data.slots - slot), LEAST_SLOT_S)
            known[key] = _least(part, prices, replace(options, time_limit_s=left))
        if (found := known[key]) is None:
            return None
        total += found[0]
        works[own[found[1][len(shared) :] > 0]] = True
    x = program.columns["x"]
    points = np.asarray((works[x] & (x >= 0)).any(axis=1), dtype=bool)
    return SlotSum(sign * total, points)


def _slots_of_rows(matrix: sparse.csr_array, at: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last slot of the columns of each row; the first is beyond the last where it has none."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    slot = at[matrix.indices]
    inside = (slot >= 0) & (matrix.data != 0)
    first, last = np.full(matrix.shape[0], np.iinfo(np.int64).max), np.full(matrix.shape[0], -1)
    np.minimum.at(first, row[inside], slot[inside])
    np.maximum.at(last, row[inside], slot[inside])
    return first, last


def _part(arrays: Arrays, rows: Ints, columns: Ints) -> Arrays:
    """Cut some rows and columns out of a program."""
    return Arrays(
        arrays.matrix.tocsr()[rows].tocsc()[:, columns],
        arrays.row_lower[rows],
        arrays.row_upper[rows],
        arrays.lower[columns],
        arrays.upper[columns],
        arrays.integer[columns],
        arrays.unit[columns],
    )


def _key(part: Arrays, prices: Floats) -> bytes:
    """Return the bytes of all numbers of a program, equal for equal programs alone."""
    numbers = (part.matrix.data, part.row_lower, part.row_upper, part.lower, part.upper, part.integer, prices)
    return b"".join(array.tobytes() for array in (*numbers, part.matrix.indices, part.matrix.indptr))


def _least(part: Arrays, cost: Floats, options: Options) -> tuple[float, Floats] | None:
    """Return a lower bound of the least value of a part, inf where it has no solution, with the columns found, else 0; None where nothing is proven."""
    none = np.zeros(len(cost))
    scaled = part.scaled(cost)
    found = run_highs(scaled, replace(options, progress=None, target=None), MIP_FEASIBILITY_TOL)
    if found.status == "infeasible":
        return np.inf, none
    if found.status == "unbounded" or found.bound is None or not np.isfinite(found.bound):
        return None
    return float(found.bound / scaled.objective), none if found.x is None else np.where(found.x > BUSY, found.x, 0.0)
