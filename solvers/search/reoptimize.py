"""Re-optimise a joint program that stays loaded while prices, demand or limits change.

The input is built anew each time, which is fast, and compared with the loaded program. Where its nonzeros are in the same places, only
the differences are passed on; otherwise the program is loaded anew and starts from the last basis, as far as the two have fleet options
and operating points in common. The relaxation, warm-started, gives the bound; the fleets of earlier solutions, those first that would
cost least now, give the plan. Where the two are further apart than the gap, branch and bound continues with the pseudocosts learnt
before, or the program is solved like any other. The latter is also the case where something else than cost is minimised, and for very
large programs, which are not kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.warm_start import WarmStartedMip
from solvers.interface import Options
from solvers.mip import solve as solve_mip
from solvers.model import build
from solvers.model.data import COST, PlanData
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.program import Program
from solvers.search import direct, joint
from solvers.search.line_units import polish_line_units
from solvers.solution import Solution

FIRST, IN_PLACE, SEARCHED, REBUILT = "first", "in place", "searched", "rebuilt"
Values = TypeVar("Values", Floats, Ints)
POINT_BLOCKS = ("x", "v", "y", "run")  # blocks of columns whose first index is an operating point


@dataclass(frozen=True, slots=True, kw_only=True)
class ReoptimizerSettings:
    """The memory of the search, and up to which size."""

    solutions: int = 16
    """Earlier solutions whose fleets are tried."""
    structures: int = 4
    """Loaded programs with different nonzeros: the first and the latest ones."""
    most_columns: int = 200_000
    """Largest program that is kept; the relaxation of a larger one takes too long as a whole."""


SETTINGS = ReoptimizerSettings()


@dataclass(slots=True)
class Reoptimizer:
    """A joint program that is solved repeatedly with changed data.

    `how` the last solution came about: `first`; `in place`; `searched` anew, as earlier solutions did not reach the gap; or `rebuilt`,
    because its nonzeros are in other places. `seconds`: of all solves together.
    """

    how: str = ""
    seconds: float = 0.0
    settings: ReoptimizerSettings = SETTINGS
    _loaded: list[_LoadedProgram] = field(default_factory=list)  # the first one, and the latest of other structures
    _solutions: list[tuple[PlanData, Mapping[str, Floats]]] = field(default_factory=list)  # latest first

    def solve(self, data: PlanData, options: Options) -> Solution:
        """Solve as `joint.solve` does, to the same gap; which plan within the gap may depend on what was solved before."""
        begin = time.perf_counter()
        solution = self._solve(data, options)
        self.seconds += time.perf_counter() - begin
        return solution

    def _solve(self, data: PlanData, options: Options) -> Solution:
        infeasible = unfinished(data) or (not data.objective.maximises and unserved(data))
        if infeasible or options.solver != "highs" or data.objective.functional != COST:
            return self._solve_cold(data, options)
        program = build.build(data)
        if program.column_count > self.settings.most_columns:
            return self._solve_cold(data, options)
        objective = build.objective_vector(program, data)
        warm, changed_in_place = self._loaded_program(data, program, objective, options)
        if self._solutions:
            begin, warm.earlier_solutions = time.perf_counter(), self._earlier_solutions(data, program, objective)
            raw = solve_mip(program, objective, "min", options, warm=warm)
            raw = polish_line_units(program, objective, "min", raw, options)
            if raw.status in ("optimal", "within_gap", "infeasible"):
                found = direct.solution_of(data, program, raw, options, begin)
                return self._remember(data, replace(found, bases=warm.bases))
            self.how = SEARCHED if changed_in_place else REBUILT
        return self._remember(data, replace(joint.solve(data, options), bases=warm.bases))

    def _solve_cold(self, data: PlanData, options: Options) -> Solution:
        self.how = REBUILT
        return joint.solve(data, options)

    def _loaded_program(
        self, data: PlanData, program: Program, objective: Floats, options: Options
    ) -> tuple[WarmStartedMip, bool]:
        """Return a loaded program of the same structure, and whether it was loaded before; load one otherwise."""
        arrays = program.arrays()
        same = next((loaded.mip for loaded in self._loaded if loaded.mip.has_structure_of(arrays)), None)
        self.how = FIRST if not self._loaded else REBUILT if same is None else IN_PLACE
        if same is not None:
            return same, True
        before = next(
            (found for loaded in reversed(self._loaded) if (found := loaded.mapped_to(data, program)) is not None), None
        )
        new = WarmStartedMip(arrays.scaled(objective), options, before)
        latest = self._loaded[1:][2 - self.settings.structures :]
        self._loaded = [*self._loaded[:1], *latest, _LoadedProgram(data, program, new)]
        return new, False

    def _earlier_solutions(self, data: PlanData, program: Program, objective: Floats) -> list[Floats]:
        """Columns of earlier solutions, NaN where this program has none of them; those first that would cost least now."""
        columns = []
        for earlier, values in self._solutions:
            was = _earlier_points(data, earlier)
            if was is not None:
                values = {**values, **{b: _mapped(values[b], was) for b in POINT_BLOCKS if b in values}}
            columns.append(program.vector(values, missing=np.nan))
        return sorted(columns, key=lambda x: float(objective @ np.nan_to_num(x)) if np.isfinite(x).all() else np.inf)

    def _remember(self, data: PlanData, solution: Solution) -> Solution:
        """Keep the solution, and forget an earlier one with the same fleet."""
        if solution.values:
            fleet = np.round(solution.values["n"])
            others = [
                old
                for old in self._solutions
                if old[1]["n"].shape != fleet.shape or (np.round(old[1]["n"]) != fleet).any()
            ]
            self._solutions = [(data, solution.values), *others][: self.settings.solutions]
        return solution


@dataclass(frozen=True, slots=True)
class _LoadedProgram:
    """A loaded program with the data and blocks that it was built from."""

    data: PlanData
    program: Program
    mip: WarmStartedMip

    def mapped_to(self, data: PlanData, program: Program) -> tuple[WarmStartedMip, Ints, Ints] | None:
        """Return the number here of each column and row of another program, -1 for a new one.

        None where the blocks of the two differ in more than their operating points.
        """
        was = _earlier_points(data, self.data)
        columns, mine = np.full(program.column_count, -1), self.program.columns
        for block, index in program.columns.items():
            before = mine.get(block)
            if before is not None and was is not None and block in POINT_BLOCKS:
                before = _mapped(before, was)
            if before is None or before.shape != index.shape:
                return None
            columns[index[index >= 0]] = before[index >= 0]
        numbers = {
            (block, *key): part.start + i
            for block, parts in self.program.row_blocks.items()
            for part in parts
            for i, key in enumerate(part.index.tolist())
        }
        rows = [
            numbers.get((block, *key), -1)
            for block, parts in program.row_blocks.items()
            for part in parts
            for key in part.index.tolist()
        ]
        return self.mip, columns, np.array(rows, dtype=np.int64)


def _earlier_points(data: PlanData, earlier: PlanData) -> Ints | None:
    """[P]: the number that each operating point had in earlier data, -1 for a new one; None where fleet options or pools differ."""
    same = ("option_site", "option_group", "option_fabric", "holding_option", "holding_window", "arc_pool")
    if any(not np.array_equal(getattr(data, name), getattr(earlier, name)) for name in same):
        return None
    of_points = ("point_pool", "point_job", "point_capacity", "point_power_w", "point_uses", "point_uses_systems")
    if all(np.array_equal(getattr(data, name), getattr(earlier, name)) for name in of_points):
        return np.arange(len(data.point_pool))
    number = {key: p for p, key in reversed(list(enumerate(_point_keys(earlier))))}
    return np.array([number.get(key, -1) for key in _point_keys(data)], dtype=np.int64)


def _point_keys(data: PlanData) -> list[tuple[object, ...]]:
    """Identify operating points by what does not depend on prices."""
    uses: list[list[tuple[int, float]]] = [[] for _ in data.point_pool]
    for (point, option), systems in zip(data.point_uses.tolist(), data.point_uses_systems.tolist(), strict=True):
        uses[point].append((option, systems))
    figures = zip(
        data.point_pool.tolist(),
        data.point_job.tolist(),
        data.point_capacity.tolist(),
        data.point_power_w.tolist(),
        strict=True,
    )
    return [(*point, *used) for point, used in zip(figures, uses, strict=True)]


def _mapped(values: Values, was: Ints) -> Values:
    """Values by operating point in the new order; new points get NaN, or -1 where values are integers."""
    missing = np.full((1, *values.shape[1:]), -1 if values.dtype.kind == "i" else np.nan)
    return np.concatenate([values, missing.astype(values.dtype)])[was]
