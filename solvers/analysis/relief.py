"""Find the least relief of limits that makes an infeasible program feasible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from solvers import mip
from solvers.arrays import Floats, Ints
from solvers.mip import Options
from solvers.model.build import build, slot_of_columns
from solvers.model.data import COST, Objective, PlanData
from solvers.model.fleet import holding_upper
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.program import Program

Row = tuple[str, int]


RELIEF_GAP = 0.01  # a least relief is found to this share of itself


LIMIT_GAP = 0.001  # or of the limits, where that is more: three digits of them are told


ANY_GAP = 0.9  # any answer will do


ROUNDING = 1e-9  # duals below this, relative to objective over limit, are the solver's rounding


# --- is there any answer, and how much would give one -------------------------------------------------------------


def without_limits(data: PlanData, rows: Iterable[Row]) -> PlanData:
    """The same input without these limits. Upper bounds of holdings must not have been drawn from them."""
    return with_limits(data, dict.fromkeys(rows, math.inf))


def with_limits(data: PlanData, values: Mapping[Row, float]) -> PlanData:
    """The same input with other limits."""
    power, supply, limits = power_limits(data), data.supply_limit.astype(float), list(data.limits)
    connection = None if data.meters is None else data.meters.grid_upper_w.astype(float)
    storage = None if data.site_storage is None else data.site_storage.astype(float)
    for (kind, position), value in values.items():
        if kind == "limit":
            limits[position] = replace(limits[position], upper=value)
        elif kind == "connection":
            connection[data.meters.meter_site == position] = value
        elif kind == "storage":
            storage[position] = value
        else:
            {"power": power, "supply": supply}[kind][position] = value
    if connection is not None:
        data = replace(data, meters=replace(data.meters, grid_upper_w=connection))
    if data.site_storage is not None:
        data = replace(data, site_storage=storage)
    if data.power_stages is not None:
        data = replace(data, power_stages=replace(data.power_stages, limit_w=power[data.sites :]))
    return replace(data, site_power_limit_w=power[: data.sites], supply_limit=supply, limits=tuple(limits))


def power_limits(data: PlanData) -> Floats:
    """Limits on power as they are numbered: those of the sites, then those of stages."""
    stages = np.zeros(0) if data.power_stages is None else data.power_stages.limit_w
    return np.append(data.site_power_limit_w, stages).astype(float)


def limit_value(data: PlanData, row: Row) -> float:
    kind, position = row
    if kind == "limit":
        return data.limits[position].upper
    if kind == "connection":
        return float(data.meters.grid_upper_w[data.meters.meter_site == position][0])
    return float(
        {"power": power_limits(data), "supply": data.supply_limit, "storage": data.site_storage}[kind][position]
    )


def is_feasible(data: PlanData, options: Options) -> bool | None:
    """Whether any plan meets all limits; None where the time was up before that was known."""
    if is_structurally_infeasible(data):
        return False
    program = build(data)
    options = replace(options, solver="highs", method="direct", gap=ANY_GAP)
    # a limit on a total is met by making that total small; without one there is nothing to steer by
    steer = next(
        (program.functional(limit.functional) for limit in data.limits if math.isfinite(limit.upper)),
        np.zeros(program.column_count),
    )
    found = mip.solve(program, steer, "min", options, polished=False)
    return True if found.x is not None else (False if found.status == "infeasible" else None)


def is_structurally_infeasible(data: PlanData) -> bool:
    """Whether some demand or some job has nothing that could do it."""
    return bool(unserved(data) or unfinished(data))


def least_relief(
    data: PlanData, rows: Sequence[Row], options: Options, most: float = math.inf, known: float = 0.0
) -> dict[Row, float] | None:
    """By how much to raise some limits, all others kept: the least sum of relative changes. None where there is no
    such answer with a sum below `most`, or none in the time. `known`: a bound below which it surely is not. Columns and rows as in `solvers.analysis.elastic`, objective sum r_i / limit_i.
    """
    if is_structurally_infeasible(without_limits(data, rows)):
        return None
    program, relief, size = elastic_program(data, rows, most)
    objective = np.zeros(program.column_count)
    objective[relief] = 1.0 / size
    options = replace(
        options, solver="highs", gap=max(RELIEF_GAP, min(LIMIT_GAP / known, ANY_GAP)) if known > 0 else RELIEF_GAP
    )
    found = mip.solve(program, objective, "min", options, polished=False)
    if found.x is None:
        return None
    return {row: max(float(value), 0.0) for row, value in zip(rows, found.x[relief], strict=True)}


def elastic_program(data: PlanData, rows: Sequence[Row], most: float) -> tuple[Program, Ints, Floats]:
    """(the program, its relief columns, the size by which each is measured)."""
    data = replace(data, objective=Objective(COST))
    ceilings = {
        row: math.inf if row[0] == "limit" else max(_largest_use(data, rows, row), limit_value(data, row))
        for row in rows
    }
    program = build(with_limits(data, ceilings))
    asked = np.array([limit_value(data, row) for row in rows])
    size = np.where(asked > 0, asked, 1.0)
    relief = program.add_columns("relief", (len(rows),), upper=most * size, unit=size)
    for i, row in enumerate(rows):
        _add_relief(program, data, row, asked[i], relief[i], i)
    return program, relief, size


def _add_relief(program: Program, data: PlanData, row: Row, asked: float, relief: int, i: int) -> None:
    kind, position = row
    if kind == "limit":
        functional = data.limits[position].functional
        program.add_cost(functional, np.array([relief]), -1.0)
        program.add_functional_row("relieved", functional, -np.inf, asked, slot_of_columns(program), i)
        return
    numbers = rows_of(program, kind, position)
    part = program.arrays().matrix.tocsr()[numbers].tocoo()
    at, use = part.coords
    program.add_rows(
        "relieved",
        -np.inf,
        asked,
        np.concatenate([at, np.arange(len(numbers))]),
        np.concatenate([use, np.full(len(numbers), relief)]),
        np.concatenate([part.data, -np.ones(len(numbers))]),
        count=len(numbers),
    )


def _largest_use(data: PlanData, rows: Sequence[Row], row: Row) -> float:
    """No plan can use more than this of a limit: all holdings at their upper bounds, at work at the worst point."""
    loose, (kind, position) = without_limits(data, rows), row
    most = holding_upper(loose)
    if kind == "supply":
        return float(most[data.supply_member[data.supply_member[:, 0] == position, 1]].sum())
    point, option = data.point_uses.T
    per_system = np.zeros(len(data.option_site))
    load = data.point_storage if kind == "storage" else data.point_power_w
    draw = np.divide(load[point], data.point_uses_systems, out=np.zeros(len(point)), where=data.point_uses_systems > 0)
    np.maximum.at(per_system, option, draw)
    staged = kind == "power" and position >= data.sites
    here = data.option_site[data.holding_option] == (
        data.power_stages.site[position - data.sites] if staged else position
    )
    drawn = float(
        (most * ((data.holding_power_w if kind != "storage" else 0.0) + per_system[data.holding_option]))[here].sum()
    )
    if kind == "connection":
        drawn += float(data.meters.battery_upper_w[data.meters.meter_site[data.meters.battery_meter] == position].sum())
    return drawn


def rows_of(program: Program, block: str, first: int) -> Ints:
    """Row numbers of a limit: those of the block whose index begins with `first` (ends with it, for power), and for power those of any zone's failure too."""
    at, then = (-1, -1) if block == "power" else (0, 1)
    parts = [part.start + np.flatnonzero(part.index[:, at] == first) for part in program.row_blocks.get(block, ())]
    parts += [
        part.start + np.flatnonzero(part.index[:, then] == first)
        for part in program.row_blocks.get(f"survived {block}", ())
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
