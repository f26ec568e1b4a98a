"""What stands between a program and an answer, and what its limits are worth: conflicts, least relief, prices.

A limit is named by its kind and position in the input: ("power", site), or sites + stage of one whose power changes, ("connection", site),
("supply", supply), ("storage", site), ("limit", position).
What the positions mean to a user is the caller's business.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from solvers import mip as backends
from solvers.joint import COST, build, objective_vector, slot_of_columns, unfinished, unserved
from solvers.mip import Linear, Options
from solvers.model.data import Floats, Ints, Objective, PlanData
from solvers.model.fleet import holding_upper
from solvers.program import Program

Row = tuple[str, int]
Thing = TypeVar("Thing")

RELIEF_GAP = 0.01       # a least relief is found to this share of itself
LIMIT_GAP = 0.001       # or of the limits, where that is more: three digits of them are told
ANY_GAP = 0.9           # any answer will do
ROUNDING = 1e-9         # duals below this, relative to objective over limit, are the solver's rounding


# --- limits in conflict ------------------------------------------------------------------------------------------


def smallest_conflict(things: Sequence[Thing], fails: Callable[[Sequence[Thing]], bool]) -> list[Thing]:
    """An irreducible subset of `things` that fails on its own, where all together fail; early things are preferred.

    QuickXplain: divide and conquer with about k log(n/k) questions for k of n things. `fails` must never turn false
    when things are added; where it cannot tell, it says false, and the subset may then be larger than need be.
    Junker, AAAI 2004, algorithm 1.

    >>> smallest_conflict("abcdefgh", lambda some: {"c", "g"} <= set(some))
    ['c', 'g']
    """

    def within(background: list[Thing], grown: bool, some: list[Thing]) -> list[Thing]:
        if grown and fails(background):
            return []
        if len(some) == 1:
            return some
        first, second = some[: len(some) // 2], some[len(some) // 2 :]
        late = within(background + first, True, second)
        return within(background + late, bool(late), first) + late

    return within([], True, list(things)) if things else []


def hitting_sets(conflicts: Sequence[Sequence[Thing]]) -> list[tuple[Thing, ...]]:
    """All smallest sets that take something from every conflict: what must at least be given up.

    Reiter, Artificial Intelligence 32 (1987), section 4.

    >>> hitting_sets([["a", "b"], ["b", "c"]]), hitting_sets([["a"], ["c"]])
    ([('b',)], [('a', 'c')])
    """
    union = list(dict.fromkeys(thing for conflict in conflicts for thing in conflict))
    for size in range(1, len(conflicts) + 1):
        found = [some for some in itertools.combinations(union, size) if all(set(some) & set(c) for c in conflicts)]
        if found:
            return found
    return [()]


# --- is there any answer, and how much would give one -------------------------------------------------------------


def loosened(data: PlanData, rows: Iterable[Row]) -> PlanData:
    """The same input without these limits. Upper bounds of holdings must not have been drawn from them."""
    return with_limits(data, dict.fromkeys(rows, math.inf))


def with_limits(data: PlanData, values: Mapping[Row, float]) -> PlanData:
    """The same input with other limits."""
    power, supply, limits = _power(data), data.supply_limit.astype(float), list(data.limits)
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


def _power(data: PlanData) -> Floats:
    """Limits on power as they are numbered: those of the sites, then those of stages."""
    stages = np.zeros(0) if data.power_stages is None else data.power_stages.limit_w
    return np.append(data.site_power_limit_w, stages).astype(float)


def _asked(data: PlanData, row: Row) -> float:
    kind, position = row
    if kind == "limit":
        return data.limits[position].upper
    if kind == "connection":
        return float(data.meters.grid_upper_w[data.meters.meter_site == position][0])
    return float({"power": _power(data), "supply": data.supply_limit, "storage": data.site_storage}[kind][position])


def is_feasible(data: PlanData, options: Options) -> bool | None:
    """Whether any plan meets all limits; None where the time was up before that was known."""
    if structural(data):
        return False
    program = build(data)
    options = replace(options, solver="highs", method="direct", gap=ANY_GAP)
    # a limit on a total is met by making that total small; without one there is nothing to steer by
    steer = next((program.functional(limit.functional) for limit in data.limits if math.isfinite(limit.upper)), np.zeros(program.column_count))
    found = backends.solve(program, steer, "min", options, polished=False)
    return True if found.x is not None else (False if found.status == "infeasible" else None)


def structural(data: PlanData) -> bool:
    """Whether some demand or some job has nothing that could do it."""
    return bool(unserved(data) or unfinished(data))


def least_relief(data: PlanData, rows: Sequence[Row], options: Options, most: float = math.inf, known: float = 0.0) -> dict[Row, float] | None:
    """By how much to raise some limits, all others kept: the least sum of relative changes. None where there is no
    such answer with a sum below `most`, or none in the time. `known`: a bound below which it surely is not. Columns and rows as in `solvers.analysis.elastic`, objective sum r_i / limit_i.
    """
    if structural(loosened(data, rows)):
        return None
    program, relief, size = with_relief(data, rows, most)
    objective = np.zeros(program.column_count)
    objective[relief] = 1.0 / size
    options = replace(options, solver="highs", gap=max(RELIEF_GAP, min(LIMIT_GAP / known, ANY_GAP)) if known > 0 else RELIEF_GAP)
    found = backends.solve(program, objective, "min", options, polished=False)
    if found.x is None:
        return None
    return {row: max(float(value), 0.0) for row, value in zip(rows, found.x[relief], strict=True)}


def with_relief(data: PlanData, rows: Sequence[Row], most: float) -> tuple[Program, Ints, Floats]:
    """(the program, its relief columns, the size by which each is measured)."""
    data = replace(data, objective=Objective(COST))
    ceilings = {row: math.inf if row[0] == "limit" else max(_largest_use(data, rows, row), _asked(data, row)) for row in rows}
    program = build(with_limits(data, ceilings))
    asked = np.array([_asked(data, row) for row in rows])
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
    numbers = _rows_of(program, kind, position)
    part = program.arrays().matrix.tocsr()[numbers].tocoo()
    at, use = part.coords
    program.add_rows("relieved", -np.inf, asked, np.concatenate([at, np.arange(len(numbers))]),
                     np.concatenate([use, np.full(len(numbers), relief)]),
                     np.concatenate([part.data, -np.ones(len(numbers))]), count=len(numbers))


def _largest_use(data: PlanData, rows: Sequence[Row], row: Row) -> float:
    """No plan can use more than this of a limit: all holdings at their upper bounds, at work at the worst point."""
    loose, (kind, position) = loosened(data, rows), row
    most = holding_upper(loose)
    if kind == "supply":
        return float(most[data.supply_member[data.supply_member[:, 0] == position, 1]].sum())
    point, lot = data.point_uses.T
    per_system = np.zeros(len(data.lot_site))
    load = data.point_storage if kind == "storage" else data.point_power_w
    draw = np.divide(load[point], data.point_uses_systems, out=np.zeros(len(point)), where=data.point_uses_systems > 0)
    np.maximum.at(per_system, lot, draw)
    staged = kind == "power" and position >= data.sites
    here = data.lot_site[data.holding_lot] == (data.power_stages.site[position - data.sites] if staged else position)
    drawn = float((most * ((data.holding_power_w if kind != "storage" else 0.0) + per_system[data.holding_lot]))[here].sum())
    if kind == "connection":
        drawn += float(data.meters.battery_upper_w[data.meters.meter_site[data.meters.battery_meter] == position].sum())
    return drawn


def _rows_of(program: Program, block: str, first: int) -> Ints:
    """Row numbers of a limit: those of the block whose index begins with `first` (ends with it, for power), and for power those of any zone's failure too."""
    at, then = (-1, -1) if block == "power" else (0, 1)
    parts = [part.start + np.flatnonzero(part.index[:, at] == first) for part in program.row_blocks.get(block, ())]
    parts += [part.start + np.flatnonzero(part.index[:, then] == first) for part in program.row_blocks.get(f"survived {block}", ())]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


# --- what limits and systems are worth ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prices:
    """`rows`, `sizes` [U]: change of the objective per unit more of a limit, or of the largest size of a holding's
    network. `entries`: how much worse the objective gets when one system is brought in each way; None where it cannot, all of them None
    where they were not known in time."""

    rows: Mapping[Row, float]
    sizes: Floats
    entries: tuple[float | None, ...]
    entries_in_time: bool


def prices(data: PlanData, values: Mapping[str, Floats], sizes: Floats, ways: Sequence[Sequence[int]], options: Options,
           bases: dict[str, object] | None = None, rivals: Sequence[object] = (), program: Program | None = None, seconds: float = math.inf) -> Prices | None:
    """Prices of the linear program around a plan: its yes-or-no choices held, its counts taken as divisible.

    `values`: the plan's, by block. `sizes` [U]: the largest number of systems on one network. `ways`: holdings that are
    the same system obtained the same way at one site. A limit's price is its dual. An entry is priced by solving again
    with one system of the way forced in; for that jobs may be split among points, and a system of which the site has
    none may choose its network. None where the linear program has no optimum, or none in so many `seconds`. `bases`: of programs alike, to start from;
    those of this one take their places. `rivals`: of ways with the same of these only the one of the least entry is told for sure.
    `program`: that of `data`, where it is built already.
    """
    ends = time.perf_counter() + seconds
    program = build(data) if program is None else program.copied()
    entry = _add_entries(program, data, ways)
    sign = -1.0 if data.objective.maximises else 1.0
    arrays, gates = program.arrays(), _Gates(program, data, values)
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    held = program.columns["n"]
    upper[held[held >= 0]] = sizes[held >= 0]
    for block in ("open", "z", "host", "y", "run", *(("port",) if data.ports is not None else ()), *(("back",) if "back" in program.columns else ())):
        columns = program.columns[block]
        lower[columns[columns >= 0]] = upper[columns[columns >= 0]] = np.round(values[block][columns >= 0])
    row_upper = arrays.row_upper.copy()
    row_upper[gates.open_rows()] = np.inf
    linear = Linear(replace(arrays, row_upper=row_upper, lower=lower, upper=upper), sign * objective_vector(program, data), options,
                    (bases or {}).get("held"), ends)
    answer = linear.solve(lower, upper)
    if answer.status != "optimal":
        return None
    worth = {row: sign * float(answer.row_duals[_rows_of(program, *row)].sum()) for row in _limited(data)}
    size_worth = np.where(held >= 0, sign * answer.column_duals[held], 0.0)
    at_size = np.isfinite(sizes) & (values["n"] >= 0) & (np.append(answer.x, 0.0)[held] >= sizes * (1 - 1e-9))
    bases = {} if bases is None else bases
    bases["held"] = linear.basis
    entries = _entries(linear, gates, lower, upper, entry, ways, rivals or range(len(ways)), bases)
    in_time = time.perf_counter() < ends
    return Prices(without_rounding(data, worth, answer.value), np.where(at_size, size_worth, 0.0), entries if in_time else (None,) * len(ways), in_time)


def without_rounding(data: PlanData, worth: Mapping[Row, float], objective: float) -> dict[Row, float]:
    """Prices of limits, 0 where even the whole limit at its price is nothing beside the objective."""
    least = ROUNDING * max(abs(objective), 1e-9)
    return {row: 0.0 if abs(value) * max(_asked(data, row), 1.0) <= least else value for row, value in worth.items()}


def _limited(data: PlanData) -> list[Row]:
    return [*(("power", int(r)) for r in np.flatnonzero(np.isfinite(_power(data)))),
            *(("supply", int(s)) for s in np.flatnonzero(np.isfinite(data.supply_limit))),
            *(("connection", int(r)) for r in (data.meters.meter_site[np.isfinite(data.meters.grid_upper_w)] if data.meters is not None else ())),
            *(("storage", int(r)) for r in (np.flatnonzero(np.isfinite(data.site_storage)) if data.site_storage is not None else ())),
            *(("limit", i) for i, limit in enumerate(data.limits) if math.isfinite(limit.upper))]


def _add_entries(program: Program, data: PlanData, ways: Sequence[Sequence[int]]) -> Ints:
    """[ways]: columns fixed at 0; at 1, one system of the way is there in every window that it can be there in. -1 where none can be."""
    held, covers = program.columns["n"], data.covers()
    there = np.array([bool((covers[list(way)] & (held[list(way)] >= 0)[:, None]).any()) for way in ways], dtype=bool)
    entry = program.add_columns("entry", (len(ways),), upper=0.0, where=there)
    for number, way in enumerate(ways):
        for window in range(data.windows) if there[number] else ():
            members = [u for u in way if covers[u, window] and held[u] >= 0]
            if not members:
                continue
            program.add_rows("entry", 0.0, np.inf, np.zeros(len(members) + 1, dtype=np.int64), np.append(held[members], entry[number]),
                             np.append(np.ones(len(members)), -1.0), count=1)
    return entry


def _entries(linear: Linear, gates: _Gates, lower: Floats, upper: Floats, entry: Ints, ways: Sequence[Sequence[int]], rivals: Sequence[object],
             bases: dict[str, object]) -> tuple[float | None, ...]:
    """Reduced costs of holdings bound what a way costs from below: one whose bound is beyond a rival's entry is not asked about."""
    lower, upper = lower.copy(), upper.copy()
    free = gates.free_columns()
    lower[free], upper[free] = 0.0, 1.0
    linear.start_from(bases.get("free"))
    base = linear.solve(lower, upper)
    bases["free"] = linear.basis
    worse: list[float | None] = [None] * len(entry)
    if base.status != "optimal":
        return tuple(worse)
    at_least, least = _at_least(gates, base.column_duals, ways), dict.fromkeys(rivals, math.inf)
    for way in np.argsort(at_least, kind="stable"):
        if entry[way] < 0 or at_least[way] >= least[rivals[way]]:
            continue
        lower[entry[way]] = upper[entry[way]] = 1.0
        forced = linear.solve(lower, upper, value_only=True)
        if forced.status == "optimal":
            worse[way] = max(forced.value - base.value, 0.0)
            least[rivals[way]] = min(least[rivals[way]], worse[way])
        lower[entry[way]] = upper[entry[way]] = 0.0
    return tuple(worse)


def _at_least(gates: _Gates, reduced: Floats, ways: Sequence[Sequence[int]]) -> Floats:
    """[ways]: what one system of a way costs at least. In each window it takes one of a holding there, whose reduced cost is that of all its windows."""
    held, covers = gates.program.columns["n"], gates.data.covers()
    per_window = np.where(covers & (held >= 0)[:, None], (np.maximum(reduced[held], 0.0) / np.maximum(covers.sum(axis=1), 1))[:, None], np.inf)
    least = [per_window[list(way)].min(axis=0) for way in ways]
    return np.array([each[np.isfinite(each)].sum() for each in least])


class _Gates:
    """Rows of the form `count or flow <= bound x choice`, which say nothing once the choice is made, and the choices
    that an entering system may make anew."""

    def __init__(self, program: Program, data: PlanData, values: Mapping[str, Floats]) -> None:
        self.program, self.data, self.values = program, data, values
        lot = data.holding_lot
        used = (values["n"] > 0.5) & (data.lot_fabric[lot] >= 0)
        self.settled = np.zeros(program.columns["z"].shape, dtype=bool)      # [group, design]
        self.settled[np.unique(data.lot_group[lot[used]])] = True

    def open_rows(self) -> Ints:
        data, values, columns = self.data, self.values, self.program.columns
        lot, found = data.holding_lot, [np.zeros(0, dtype=np.int64)]
        for block, part in ((b, p) for b in ("standing", "opening", "hosted", "ported") for p in self.program.row_blocks.get(b, ())):
            if block == "hosted":
                arc = part.index[:, 0]
                place = data.arc_workload[arc], data.arc_site[arc]
                chosen = np.where(columns["host"][place] >= 0, values["host"][place], values["open"][place[1]])
            elif block == "ported":
                chosen = values["port"][part.index[:, 2]]
            elif block == "standing":
                u = part.index[:, 0]
                chosen = values["z"][data.lot_group[lot[u]], data.lot_fabric[lot[u]]]
            else:
                chosen = values["open"][data.lot_site[lot[part.index[:, 0]]]]
            found.append(part.start + np.flatnonzero(chosen > 0.5))
        return np.concatenate(found)

    def free_columns(self) -> Ints:
        columns = self.program.columns
        blocks = [np.where(self.settled, -1, columns["z"]), columns["y"], columns["run"], *([columns["port"]] if self.data.ports is not None else [])]
        free = np.concatenate([block.ravel() for block in blocks])
        return free[free >= 0]
