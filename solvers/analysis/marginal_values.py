"""Marginal values of a program's rows, with the integers fixed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.analysis.relief import ROUNDING, Row, limit_value, power_limits, rows_of
from solvers.arrays import Floats, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.mip import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Program

# --- what limits and systems are worth ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarginalValues:
    """`rows`, `sizes` [U]: change of the objective per unit more of a limit, or of the largest size of a holding's
    network. `entries`: how much worse the objective gets when one system is brought in each way; None where it cannot, all of them None
    where they were not known in time."""

    rows: Mapping[Row, float]
    sizes: Floats
    entries: tuple[float | None, ...]
    entries_in_time: bool


def marginal_values(
    data: PlanData,
    values: Mapping[str, Floats],
    sizes: Floats,
    ways: Sequence[Sequence[int]],
    options: Options,
    bases: dict[str, object] | None = None,
    rivals: Sequence[object] = (),
    program: Program | None = None,
    seconds: float = math.inf,
) -> MarginalValues | None:
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
    arrays, gates = program.arrays(), _LinkingRows(program, data, values)
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    held = program.columns["n"]
    upper[held[held >= 0]] = sizes[held >= 0]
    for block in (
        "open",
        "z",
        "host",
        "y",
        "run",
        *(("port",) if data.ports is not None else ()),
        *(("back",) if "back" in program.columns else ()),
    ):
        columns = program.columns[block]
        lower[columns[columns >= 0]] = upper[columns[columns >= 0]] = np.round(values[block][columns >= 0])
    row_upper = arrays.row_upper.copy()
    row_upper[gates.open_rows()] = np.inf
    linear = WarmStartedLp(
        replace(arrays, row_upper=row_upper, lower=lower, upper=upper),
        sign * objective_vector(program, data),
        options,
        (bases or {}).get("held"),
        ends,
    )
    answer = linear.solve(lower, upper)
    if answer.status != "optimal":
        return None
    worth = {row: sign * float(answer.row_duals[rows_of(program, *row)].sum()) for row in _limited(data)}
    size_worth = np.where(held >= 0, sign * answer.reduced_costs[held], 0.0)
    at_size = np.isfinite(sizes) & (values["n"] >= 0) & (np.append(answer.x, 0.0)[held] >= sizes * (1 - 1e-9))
    bases = {} if bases is None else bases
    bases["held"] = linear.basis
    entries = _entries(linear, gates, lower, upper, entry, ways, rivals or range(len(ways)), bases)
    in_time = time.perf_counter() < ends
    return MarginalValues(
        zero_below_rounding(data, worth, answer.value),
        np.where(at_size, size_worth, 0.0),
        entries if in_time else (None,) * len(ways),
        in_time,
    )


def zero_below_rounding(data: PlanData, worth: Mapping[Row, float], objective: float) -> dict[Row, float]:
    """Prices of limits, 0 where even the whole limit at its price is nothing beside the objective."""
    least = ROUNDING * max(abs(objective), 1e-9)
    return {
        row: 0.0 if abs(value) * max(limit_value(data, row), 1.0) <= least else value for row, value in worth.items()
    }


def _limited(data: PlanData) -> list[Row]:
    return [
        *(("power", int(r)) for r in np.flatnonzero(np.isfinite(power_limits(data)))),
        *(("supply", int(s)) for s in np.flatnonzero(np.isfinite(data.supply_limit))),
        *(
            ("connection", int(r))
            for r in (data.meters.meter_site[np.isfinite(data.meters.grid_upper_w)] if data.meters is not None else ())
        ),
        *(
            ("storage", int(r))
            for r in (np.flatnonzero(np.isfinite(data.site_storage)) if data.site_storage is not None else ())
        ),
        *(("limit", i) for i, limit in enumerate(data.limits) if math.isfinite(limit.upper)),
    ]


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
            program.add_rows(
                "entry",
                0.0,
                np.inf,
                np.zeros(len(members) + 1, dtype=np.int64),
                np.append(held[members], entry[number]),
                np.append(np.ones(len(members)), -1.0),
                count=1,
            )
    return entry


def _entries(
    linear: WarmStartedLp,
    gates: _LinkingRows,
    lower: Floats,
    upper: Floats,
    entry: Ints,
    ways: Sequence[Sequence[int]],
    rivals: Sequence[object],
    bases: dict[str, object],
) -> tuple[float | None, ...]:
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
    at_least, least = _at_least(gates, base.reduced_costs, ways), dict.fromkeys(rivals, math.inf)
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


def _at_least(gates: _LinkingRows, reduced: Floats, ways: Sequence[Sequence[int]]) -> Floats:
    """[ways]: what one system of a way costs at least. In each window it takes one of a holding there, whose reduced cost is that of all its windows."""
    held, covers = gates.program.columns["n"], gates.data.covers()
    per_window = np.where(
        covers & (held >= 0)[:, None],
        (np.maximum(reduced[held], 0.0) / np.maximum(covers.sum(axis=1), 1))[:, None],
        np.inf,
    )
    least = [per_window[list(way)].min(axis=0) for way in ways]
    return np.array([each[np.isfinite(each)].sum() for each in least])


class _LinkingRows:
    """Rows of the form `count or flow <= bound x choice`, which say nothing once the choice is made, and the choices
    that an entering system may make anew."""

    def __init__(self, program: Program, data: PlanData, values: Mapping[str, Floats]) -> None:
        self.program, self.data, self.values = program, data, values
        option = data.holding_option
        used = (values["n"] > 0.5) & (data.option_fabric[option] >= 0)
        self.settled = np.zeros(program.columns["z"].shape, dtype=bool)  # [group, design]
        self.settled[np.unique(data.option_group[option[used]])] = True

    def open_rows(self) -> Ints:
        data, values, columns = self.data, self.values, self.program.columns
        option, found = data.holding_option, [np.zeros(0, dtype=np.int64)]
        for block, part in (
            (b, p) for b in ("standing", "opening", "hosted", "ported") for p in self.program.row_blocks.get(b, ())
        ):
            if block == "hosted":
                arc = part.index[:, 0]
                place = data.arc_workload[arc], data.arc_site[arc]
                chosen = np.where(columns["host"][place] >= 0, values["host"][place], values["open"][place[1]])
            elif block == "ported":
                chosen = values["port"][part.index[:, 2]]
            elif block == "standing":
                u = part.index[:, 0]
                chosen = values["z"][data.option_group[option[u]], data.option_fabric[option[u]]]
            else:
                chosen = values["open"][data.option_site[option[part.index[:, 0]]]]
            found.append(part.start + np.flatnonzero(chosen > 0.5))
        return np.concatenate(found)

    def free_columns(self) -> Ints:
        columns = self.program.columns
        blocks = [
            np.where(self.settled, -1, columns["z"]),
            columns["y"],
            columns["run"],
            *([columns["port"]] if self.data.ports is not None else []),
        ]
        free = np.concatenate([block.ravel() for block in blocks])
        return free[free >= 0]
