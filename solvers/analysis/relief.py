"""Change limits of a program, and find the least relief with which an infeasible one becomes feasible.

A limit is keyed by its kind and position in the input: ("power", site), or ("power", sites + stage) where a site's power changes,
("connection", site), ("supply", supply), ("storage", site), ("racks", site), ("limit", position). What the positions mean to a user is up to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.interface import Options
from solvers.mip import solve
from solvers.model.block_data.electricity import MeterData
from solvers.model.build import build, slot_of_columns
from solvers.model.data import COST, Objective, PlanData
from solvers.model.fleet import holding_upper
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.program import Program

LimitKey = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliefSettings:
    """How precisely relief is solved."""

    gap: float = 0.01
    """Relative gap of a least relief."""
    limit_gap: float = 0.001
    """Gap relative to the limits, which applies where it is larger: three digits of a limit are shown."""
    any_solution_gap: float = 0.9
    """Gap where any solution will do."""


SETTINGS = ReliefSettings()


# --- limits of the input ------------------------------------------------------------------------------------------


def without_limits(data: PlanData, keys: Iterable[LimitKey]) -> PlanData:
    """Remove limits from the input. Upper bounds of holdings must not have been derived from them."""
    return with_limits(data, dict.fromkeys(keys, math.inf))


def with_limits(data: PlanData, values: Mapping[LimitKey, float]) -> PlanData:
    """Replace limits of the input."""
    power, supply, limits = power_limits(data), data.supply_limit.astype(float), list(data.limits)
    connection = np.zeros(0) if data.meters is None else data.meters.grid_upper_w.astype(float)
    storage = np.zeros(0) if data.site_storage is None else data.site_storage.astype(float)
    racks = np.zeros(0) if data.site_racks is None else data.site_racks.astype(float)
    for (kind, position), value in values.items():
        if kind == "limit":
            limits[position] = replace(limits[position], upper=value)
        elif kind == "connection":
            connection[_meters(data).meter_site == position] = value
        else:
            {"power": power, "supply": supply, "storage": storage, "racks": racks}[kind][position] = value
    if data.meters is not None:
        data = replace(data, meters=replace(data.meters, grid_upper_w=connection))
    if data.site_storage is not None:
        data = replace(data, site_storage=storage)
    if data.site_racks is not None:
        data = replace(data, site_racks=racks)
    if data.power_stages is not None:
        data = replace(data, power_stages=replace(data.power_stages, limit_w=power[data.sites :]))
    return replace(data, site_power_limit_w=power[: data.sites], supply_limit=supply, limits=tuple(limits))


def power_limits(data: PlanData) -> Floats:
    """List the power limits [W] in the order of their keys: limits of sites, then of stages."""
    stages = np.zeros(0) if data.power_stages is None else data.power_stages.limit_w
    return np.append(data.site_power_limit_w, stages).astype(float)


def limit_value(data: PlanData, key: LimitKey) -> float:
    """Return the value of a limit in the input."""
    kind, position = key
    if kind == "limit":
        return data.limits[position].upper
    if kind == "connection":
        meters = _meters(data)
        return float(meters.grid_upper_w[meters.meter_site == position][0])
    none = np.zeros(0)
    storage, racks = (none if held is None else held for held in (data.site_storage, data.site_racks))
    known = {"power": power_limits(data), "supply": data.supply_limit, "storage": storage, "racks": racks}
    return float(known[kind][position])


def _meters(data: PlanData) -> MeterData:
    if data.meters is None:
        raise ValueError("a limit on a connection without meters")
    return data.meters


def limit_rows(program: Program, block: str, position: int) -> Ints:
    """List the row numbers of a limit, including those in the failure of a zone.

    They are the rows of `block` whose index begins with `position`; for power, ends with it.
    """
    at, in_failure = (-1, -1) if block == "power" else (0, 1)
    parts = [part.start + np.flatnonzero(part.index[:, at] == position) for part in program.row_blocks.get(block, ())]
    parts += [
        part.start + np.flatnonzero(part.index[:, in_failure] == position)
        for part in program.row_blocks.get(f"survived {block}", ())
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


# --- feasibility --------------------------------------------------------------------------------------------------


def is_structurally_infeasible(data: PlanData) -> bool:
    """Whether some demand or some job has nothing that can serve it."""
    return bool(unserved(data) or unfinished(data))


def is_feasible(data: PlanData, options: Options) -> bool | None:
    """Whether some plan satisfies all limits; None where time ran out before that was known."""
    if is_structurally_infeasible(data):
        return False
    program = build(data)
    options = replace(options, solver="highs", method="direct", gap=SETTINGS.any_solution_gap)
    # minimising a limited functional leads the search to solutions that satisfy the limit
    objective = next(
        (program.functional(limit.functional) for limit in data.limits if math.isfinite(limit.upper)),
        np.zeros(program.column_count),
    )
    found = solve(program, objective, "min", options, polished=False)
    return True if found.x is not None else (False if found.status == "infeasible" else None)


# --- least relief -------------------------------------------------------------------------------------------------


def least_relief(
    data: PlanData, keys: Sequence[LimitKey], options: Options, most: float = math.inf, known: float = 0.0
) -> dict[LimitKey, float] | None:
    """Find the least sum of relative increases of some limits with which a plan exists, all other limits kept.

    Columns and rows as in `solvers.analysis.elastic`, objective sum_i r_i / limit_i. None where no sum below `most` suffices, or none was
    found in time. `known`: a lower bound on the sum.
    """
    if is_structurally_infeasible(without_limits(data, keys)):
        return None
    program, relief, size = elastic_program(data, keys, most)
    objective = np.zeros(program.column_count)
    objective[relief] = 1.0 / size
    gap = SETTINGS.gap
    if known > 0:
        gap = max(gap, min(SETTINGS.limit_gap / known, SETTINGS.any_solution_gap))
    found = solve(program, objective, "min", replace(options, solver="highs", gap=gap), polished=False)
    if found.x is None:
        return None
    return {key: max(float(value), 0.0) for key, value in zip(keys, found.x[relief], strict=True)}


def elastic_program(data: PlanData, keys: Sequence[LimitKey], most: float) -> tuple[Program, Ints, Floats]:
    """Build the program with elastic limits: rows use_i - r_i <= limit_i.

    Return it, its columns r [keys], each at most `most` times its size, and those sizes [keys].
    """
    data = replace(data, objective=Objective(COST))
    ceilings = {
        key: math.inf if key[0] == "limit" else max(_largest_use(data, keys, key), limit_value(data, key))
        for key in keys
    }
    program = build(with_limits(data, ceilings))
    values = np.array([limit_value(data, key) for key in keys])
    size = np.where(values > 0, values, 1.0)
    relief = program.add_columns("relief", (len(keys),), upper=most * size, unit=size)
    for i, key in enumerate(keys):
        _add_elastic_rows(program, data, key, float(values[i]), int(relief[i]), i)
    return program, relief, size


def _add_elastic_rows(program: Program, data: PlanData, key: LimitKey, value: float, relief: int, i: int) -> None:
    """Add rows `relieved`: the rows of the limit, with its value and the column `relief` instead of its ceiling."""
    kind, position = key
    if kind == "limit":
        functional = data.limits[position].functional
        program.add_cost(functional, np.array([relief]), -1.0)
        program.add_functional_row("relieved", functional, -np.inf, value, slot_of_columns(program), i)
        return
    numbers = limit_rows(program, kind, position)
    part = program.arrays().matrix.tocsr()[numbers].tocoo()
    at, use = part.coords
    program.add_rows(
        "relieved",
        -np.inf,
        value,
        np.concatenate([at, np.arange(len(numbers))]),
        np.concatenate([use, np.full(len(numbers), relief)]),
        np.concatenate([part.data, -np.ones(len(numbers))]),
        count=len(numbers),
    )


def _largest_use(data: PlanData, keys: Sequence[LimitKey], key: LimitKey) -> float:
    """Compute an upper bound on the use of a limit: all holdings at their upper bounds, at work at the most demanding point."""
    loose, (kind, position) = without_limits(data, keys), key
    most = holding_upper(loose)
    if kind == "supply":
        return float(most[data.supply_member[data.supply_member[:, 0] == position, 1]].sum())
    if kind == "racks" and data.holding_racks is not None:
        return float((most * data.holding_racks)[data.option_site[data.holding_option] == position].sum())
    point, option = data.point_uses.T
    per_system = np.zeros(len(data.option_site))
    load = data.point_power_w
    if kind == "storage" and data.point_storage is not None:
        load = data.point_storage
    draw = np.divide(load[point], data.point_uses_systems, out=np.zeros(len(point)), where=data.point_uses_systems > 0)
    np.maximum.at(per_system, option, draw)
    site = position
    if kind == "power" and position >= data.sites and data.power_stages is not None:
        site = int(data.power_stages.site[position - data.sites])
    here = data.option_site[data.holding_option] == site
    idle = data.holding_power_w if kind != "storage" else 0.0
    use = float((most * (idle + per_system[data.holding_option]))[here].sum())
    if kind == "connection":
        meters = _meters(data)
        use += float(meters.battery_upper_w[meters.meter_site[meters.battery_meter] == position].sum())
    return use
