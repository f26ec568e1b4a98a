"""Count the systems that run in each slot: for a plan whose activity is known, and without more systems held than run at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.highs_run import MIP_FEASIBILITY_TOL, run_highs
from solvers.decomposition.coverage import pays_off, supports
from solvers.interface import Options
from solvers.mip import relative_gap, solve_with_fixed_integers
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Arrays, Program
from solvers.search.direct import solve_direct
from solvers.solution import Solution

USED = 1e-6  # systems below which a slot uses none: rounding of the activity
TOTALS = " sub-totals"  # end of the names of columns that add up a limited functional


def at_work(data: PlanData, values: Mapping[str, Floats]) -> Floats:
    """[K, T]: systems of each fleet option that a plan uses in a slot, with whole replicas that wait among them."""
    point, option = data.point_uses.T
    running, systems = np.maximum(values["x"], values["v"])[point], data.point_uses_systems[:, None]
    if "resident" in values:
        whole = (data.point_whole if data.point_whole is not None else np.zeros(len(values["x"]), dtype=bool))[point]
        workers = np.where(whole[:, None], values["resident"] / data.role_workers()[:, None], running)
        running = np.maximum(workers, 0.0)
    found = np.zeros((len(data.option_site), data.slots))
    np.add.at(found, option, np.maximum(running, 0.0) * systems)
    return found


def rented(data: PlanData, values: Mapping[str, Floats]) -> Floats:
    """[U, T]: systems that run for the activity of a plan, in fractions; 0 for holdings that are not counted by slot."""
    assert data.hourly is not None
    covers = data.covers()[:, data.slot_window] & data.hourly.holding[:, None]
    return np.where(covers, at_work(data, values)[data.holding_option], 0.0)


def solve_divisible(data: PlanData, options: Options) -> Solution:
    """Solve a program with divisible replicas. Where it is decomposed but for hourly systems, these are fractions first, whose bound holds for
    whole numbers too, and then whole."""
    by_use = data.by_use()
    if data.hourly is None or not supports(by_use) or not (options.method == "decomposed" or pays_off(by_use)):
        return solve_direct(data, options)
    begin, found = time.perf_counter(), solve_direct(by_use, options)
    if not found.values:
        return found
    left = replace(options, time_limit_s=max(options.left_s(begin), 0.0), method="auto")
    counted = on_whole_hours(data, found, left)
    return solve_direct(data, left) if counted is None else counted


def divided(data: PlanData) -> PlanData:
    """Return the same input with divisible replicas on whole hourly systems: a plan of it can be held, unlike one of `PlanData.divisible`."""
    return data if data.point_whole is None else replace(data.relaxation(hourly=True), least_fleet=None)


def on_whole_hours(data: PlanData, found: Solution, options: Options) -> Solution | None:
    """Return the solution of a program by use with whole hourly systems, as a plan of `data`; its bound stays. None where no whole numbers keep the rows."""
    program = build(data)
    x = completed(program, data, found.values, options)
    if x is None:
        return None
    value = float(objective_vector(program, data) @ x)
    return replace(
        found,
        status="limit",
        value=value,
        gap=None if found.bound is None else relative_gap(value, found.bound),
        values=program.values(x),
        functionals={name: float(program.functional(name) @ x) for name in program.functionals},
        row_duals={},
        built=(data, program),
    )


def with_rented(program: Program, data: PlanData, x: Floats) -> Floats:
    """Return columns in which as many systems run, in fractions, as the activity in x uses."""
    if data.hourly is not None:
        on = program.columns["on"]
        x[on[on >= 0]] = rented(data, program.values(x))[on >= 0]
    return x


def without_starts(data: PlanData) -> PlanData:
    """Return the same input with starts of hourly systems that are free and bind for one slot."""
    return data if data.hourly is None else replace(data, hourly=data.hourly.without_starts())


def with_starts(
    data: PlanData, found: tuple[Program, dict[str, Floats]] | None, options: Options
) -> tuple[Program, dict[str, Floats]] | None:
    """Return (program, a plan as blocks of values) with the starts of `data`, for a plan of the same input `without_starts`."""
    if found is None or data.hourly is None or not data.hourly.starts().any():
        return found
    program = build(data)
    x = completed(program, data, found[1], options)
    return None if x is None else (program, program.values(x))


def completed(program: Program, data: PlanData, values: Mapping[str, Floats], options: Options) -> Floats | None:
    """Return the columns of a plan with the cheapest whole numbers of systems that run in each slot; None where there are none.

    `values`: blocks of the plan, in which the systems that run may be missing. All other integers stay.
    """
    assert data.hourly is not None
    begin = time.perf_counter()
    x: Floats = program.vector(values)
    on = program.columns["on"]
    least = np.ceil(rented(data, values) - USED)
    x[on[on >= 0]] = least[on >= 0]
    if data.hourly.starts().any():
        found = _counted(program, data, x, options)
        if found is None:
            return None
        x = found
    held = program.columns["n"]
    most = np.where(on >= 0, np.append(x, 0.0)[on], 0.0).max(axis=1, initial=0.0)
    raised = data.hourly.holding & (held >= 0)
    x[held[raised]] = np.maximum(x[held[raised]], most[raised])
    sense = "max" if data.objective.maximises else "min"
    left = replace(options, time_limit_s=max(options.left_s(begin), 0.0))
    polished, _ = solve_with_fixed_integers(program, objective_vector(program, data), sense, x, left)
    return polished


def _counted(program: Program, data: PlanData, x: Floats, options: Options) -> Floats | None:
    """Choose the systems that run, and their starts; None where no choice keeps the rows."""
    arrays = program.arrays()
    sign = -1.0 if data.objective.maximises else 1.0
    mine = _free(program)
    at = np.flatnonzero(mine)
    matrix = arrays.matrix.tocsr()
    rows = np.flatnonzero(abs(matrix) @ mine.astype(float) > 0)
    inside = matrix[rows]
    offset = inside @ np.where(mine, 0.0, x)
    part = Arrays(
        inside[:, at].tocsc(),
        arrays.row_lower[rows] - offset - USED,
        arrays.row_upper[rows] - offset + USED,
        arrays.lower[at],
        arrays.upper[at],
        arrays.integer[at],
        arrays.unit[at],
    )
    scaled = part.scaled(sign * objective_vector(program, data)[at])
    outcome = run_highs(scaled, replace(options, progress=None, presolve=False), MIP_FEASIBILITY_TOL)
    if outcome.x is None:
        return None
    found: Floats = x.copy()
    found[at] = np.where(part.integer, np.round(outcome.x * scaled.column), outcome.x * scaled.column)
    return found


def _free(program: Program) -> Bools:
    """[columns]: those that follow from the activity of a plan: systems that run, their starts, and the sums of limited functionals."""
    free = np.zeros(program.column_count, dtype=bool)
    for block, columns in program.columns.items():
        if block in ("on", "started") or block.endswith(TOTALS):
            free[columns[columns >= 0]] = True
    return free


def with_least_held(program: Program, data: PlanData, values: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Return the values of a plan with no more systems held than its rows need, of holdings that cost nothing beside the hours that they run."""
    if data.hourly is None or "on" not in program.columns:
        return values
    cost = objective_vector(program, data)
    columns: Ints = program.columns["n"][data.hourly.holding]
    columns = columns[columns >= 0]
    x: Floats = program.vector(values)
    columns = columns[(x[columns] > 0.5) & (cost[columns] == 0)]
    if not len(columns):
        return values
    arrays = program.arrays()
    by_column, activity, lowered = sparse.csc_array(arrays.matrix), arrays.matrix @ x, False
    for column in columns.tolist():
        part = slice(by_column.indptr[column], by_column.indptr[column + 1])
        at, each = by_column.indices[part], by_column.data[part]
        low, high = activity[at] - arrays.row_lower[at], arrays.row_upper[at] - activity[at]
        room = float((np.where(each > 0, low, high) / np.abs(each)).min(initial=np.inf))
        step = min(np.floor(room + USED), np.rint(x[column]) - arrays.lower[column])
        if step > 0:
            x[column] -= step
            activity[at] -= each * step
            lowered = True
    if not lowered:
        return values
    found = program.values(x)
    return {block: found[block] for block in values}
