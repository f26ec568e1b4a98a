"""Marginal values of limits, network sizes and new systems around a plan, by linear programs with its binaries fixed."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvers.analysis.relief import LimitKey, limit_rows, limit_value, power_limits
from solvers.arrays import Floats, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Program

DUAL_TOL = 1e-9  # a limit is worth nothing if all of it at its dual is below this share of the objective
SIZE_TOL = 1e-9  # relative: a count this close to the size of its network is at it
FIXED, FREE = "held", "free"  # keys of bases: binaries fixed, and those that a new system may choose anew free


@dataclass(frozen=True, slots=True)
class MarginalValues:
    """`rows`, `sizes` [U]: change of the objective per unit of a limit, or of the size of the network that a holding stands on.

    `entries`: how much worse the objective gets when one system of each way is brought in; None where that is infeasible, or, if not
    `entries_in_time`, everywhere.
    """

    rows: Mapping[LimitKey, float]
    sizes: Floats
    entries: tuple[float | None, ...]
    entries_in_time: bool


def marginal_values(
    data: PlanData,
    values: Mapping[str, Floats],
    sizes: Floats,
    ways: Sequence[Sequence[int]],
    options: Options,
    bases: dict[str, Any] | None = None,
    rivals: Sequence[Hashable] = (),
    program: Program | None = None,
    seconds: float = math.inf,
) -> MarginalValues | None:
    """Marginal values of the linear program around a plan, its binaries fixed, its counts continuous.

    The value of a limit is its dual. The value of a new system is found by re-solving with one system forced in; jobs may then be divided
    among operating points, and a kind of system that the site has none of may choose its network. None where the LP has no optimum, or
    none within `seconds`.

    `values`: blocks of the plan. `sizes` [U]: most systems on one network. `ways`: sets of holdings that are one kind of system obtained
    one way at one site. `bases`: of similar programs to start from, replaced by this program's. `rivals` [ways]: among ways of the same
    rival only the least entry is certain. `program`: that of `data`, if built already.
    """
    deadline = time.perf_counter() + seconds
    program = build(data) if program is None else program.copied()
    entry = _add_entries(program, data, ways)
    sign = -1.0 if data.objective.maximises else 1.0
    arrays, linking = program.arrays(), _LinkingRows(program, data, values)
    lower, upper = _fixed_bounds(program, values, sizes)
    row_upper = arrays.row_upper.copy()
    row_upper[linking.rows_switched_on()] = np.inf
    bases = {} if bases is None else bases
    lp = WarmStartedLp(
        replace(arrays, row_upper=row_upper, lower=lower, upper=upper),
        sign * objective_vector(program, data),
        options,
        bases.get(FIXED),
        deadline,
    )
    answer = lp.solve(lower, upper)
    if answer.x is None or answer.value is None or answer.row_duals is None or answer.reduced_costs is None:
        return None
    duals, held = answer.row_duals, program.columns["n"]
    worth = {key: sign * float(duals[limit_rows(program, *key)].sum()) for key in _finite_limits(data)}
    # Negative at the upper end; where least and most are one count, as in robust plans, positive is the worth of the least.
    size_worth = np.where(held >= 0, sign * np.minimum(answer.reduced_costs[held], 0.0), 0.0)
    at_size = np.isfinite(sizes) & (values["n"] >= 0) & (np.append(answer.x, 0.0)[held] >= sizes * (1 - SIZE_TOL))
    bases[FIXED] = lp.basis
    entries = _entry_values(lp, linking, (lower, upper), entry, ways, rivals or range(len(ways)), bases)
    in_time = time.perf_counter() < deadline
    return MarginalValues(
        zero_below_rounding(data, worth, answer.value),
        np.where(at_size, size_worth, 0.0),
        entries if in_time else (None,) * len(ways),
        in_time,
    )


def zero_below_rounding(data: PlanData, worth: Mapping[LimitKey, float], objective: float) -> dict[LimitKey, float]:
    """Set the value of a limit to 0 where even the whole limit at that value is negligible beside the objective."""
    least = DUAL_TOL * max(abs(objective), 1e-9)
    return {
        key: 0.0 if abs(value) * max(limit_value(data, key), 1.0) <= least else value for key, value in worth.items()
    }


def _fixed_bounds(program: Program, values: Mapping[str, Floats], sizes: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of columns with binaries fixed as in the plan, and counts at most the size of their network."""
    arrays = program.arrays()
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    held = program.columns["n"]
    upper[held[held >= 0]] = sizes[held >= 0]
    blocks = ["open", "z", "host", "y", "run", *(name for name in ("port", "back", "joins") if name in program.columns)]
    for block in blocks:
        columns = program.columns[block]
        there = columns >= 0
        lower[columns[there]] = upper[columns[there]] = np.round(values[block][there])
    return lower, upper


def _finite_limits(data: PlanData) -> list[LimitKey]:
    keys: list[LimitKey] = [("power", int(r)) for r in np.flatnonzero(np.isfinite(power_limits(data)))]
    keys += [("supply", int(s)) for s in np.flatnonzero(np.isfinite(data.supply_limit))]
    if data.meters is not None:
        keys += [("connection", int(r)) for r in data.meters.meter_site[np.isfinite(data.meters.grid_upper_w)]]
    if data.site_storage is not None:
        keys += [("storage", int(r)) for r in np.flatnonzero(np.isfinite(data.site_storage))]
    if data.site_racks is not None:
        keys += [("racks", int(r)) for r in np.flatnonzero(np.isfinite(data.site_racks))]
    return keys + [("limit", i) for i, limit in enumerate(data.limits) if math.isfinite(limit.upper)]


# --- new systems --------------------------------------------------------------------------------------------------


def _add_entries(program: Program, data: PlanData, ways: Sequence[Sequence[int]]) -> Ints:
    """Add a column [ways] fixed at 0, and rows by which, at 1, it brings one system into every window that the way covers.

    -1 where the way has no holding.
    """
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


def _entry_values(
    lp: WarmStartedLp,
    linking: _LinkingRows,
    bounds: tuple[Floats, Floats],
    entry: Ints,
    ways: Sequence[Sequence[int]],
    rivals: Sequence[Hashable],
    bases: dict[str, Any],
) -> tuple[float | None, ...]:
    """Solve with one system of each way forced in, in order of a lower bound; skip those whose bound exceeds the entry of a rival."""
    lower, upper = (side.copy() for side in bounds)
    free = linking.columns_to_free()
    lower[free], upper[free] = 0.0, 1.0
    lp.start_from(bases.get(FREE))
    base = lp.solve(lower, upper)
    bases[FREE] = lp.basis
    worse: list[float | None] = [None] * len(entry)
    if base.value is None or base.reduced_costs is None:
        return tuple(worse)
    bound, least = _entry_bounds(linking, base.reduced_costs, ways), dict.fromkeys(rivals, math.inf)
    for way in np.argsort(bound, kind="stable"):
        if entry[way] < 0 or bound[way] >= least[rivals[way]]:
            continue
        lower[entry[way]] = upper[entry[way]] = 1.0
        forced = lp.solve(lower, upper, value_only=True)
        if forced.value is not None:
            value = max(forced.value - base.value, 0.0)
            worse[way] = value
            least[rivals[way]] = min(least[rivals[way]], value)
        lower[entry[way]] = upper[entry[way]] = 0.0
    return tuple(worse)


def _entry_bounds(linking: _LinkingRows, reduced: Floats, ways: Sequence[Sequence[int]]) -> Floats:
    """Compute a lower bound on the cost of one system of each way [ways] from reduced costs.

    It takes one holding in each window that the way covers, and the reduced cost of a holding pays for all its windows.
    """
    held, covers = linking.program.columns["n"], linking.data.covers()
    per_window = np.where(
        covers & (held >= 0)[:, None],
        (np.maximum(reduced[held], 0.0) / np.maximum(covers.sum(axis=1), 1))[:, None],
        np.inf,
    )
    least = [per_window[list(way)].min(axis=0) for way in ways]
    return np.array([each[np.isfinite(each)].sum() for each in least])


class _LinkingRows:
    """Rows `count or flow <= bound x binary`, which limit nothing once the binary is 1, and the binaries that a new system may choose."""

    def __init__(self, program: Program, data: PlanData, values: Mapping[str, Floats]) -> None:
        self.program, self.data, self.values = program, data, values
        option = data.holding_option
        used = (values["n"] > 0.5) & (data.option_fabric[option] >= 0)
        self._has_systems = np.zeros(program.columns["z"].shape, dtype=bool)  # [group, design]
        self._has_systems[np.unique(data.option_group[option[used]])] = True

    def rows_switched_on(self) -> Ints:
        """List the row numbers of linking rows whose binary is 1 in the plan."""
        found = [np.zeros(0, dtype=np.int64)]
        for block in ("standing", "opening", "hosted", "ported", "survived ported"):
            for part in self.program.row_blocks.get(block, ()):
                found.append(part.start + np.flatnonzero(self._binary_values(block, part.index) > 0.5))
        return np.concatenate(found)

    def _binary_values(self, block: str, index: Ints) -> Floats:
        """Return the value of the binary in each row of a block."""
        data, values, option = self.data, self.values, self.data.holding_option
        if block == "hosted":
            arc = index[:, 0]
            place = data.arc_workload[arc], data.arc_site[arc]
            hosted = self.program.columns["host"][place] >= 0
            return np.where(hosted, values["host"][place], values["open"][place[1]])
        if block.endswith("ported"):
            return values["port"][index[:, -1]]
        held = option[index[:, 0]]
        if block == "standing":
            return values["z"][data.option_group[held], data.option_fabric[held]]
        return values["open"][data.option_site[held]]

    def columns_to_free(self) -> Ints:
        """List the binaries that a new system may choose anew: designs of groups without systems, operating points, windows and payments."""
        columns = self.program.columns
        blocks = [np.where(self._has_systems, -1, columns["z"]), columns["y"], columns["run"]]
        if self.data.ports is not None:
            blocks.append(columns["port"])
        free = np.concatenate([block.ravel() for block in blocks])
        return free[free >= 0]
