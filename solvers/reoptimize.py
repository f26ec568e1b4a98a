"""A joint program that is kept with its solver and changed in place: other prices, another demand, another limit.

The input is put together anew each time, which takes next to nothing, and compared with the program in the solver. Where
entries stand in the same places, only what differs is told; else the program is built anew in the solver, and starts from the last basis
as far as the two have fleet options and points in common. Then the relaxation, solved on from its last basis, gives the bound, and the fleets known
from earlier answers, those first that would cost least now, give the plan. Where the two are further apart than asked, the search goes on
from there, with what earlier searches learnt of the choices, or the program is solved as any other. So it is, and is not kept, where
something else than cost is minimised, and where the program is very large."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from solvers import joint, mip
from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.warm_start import WarmStartedMip
from solvers.interface import Options
from solvers.line_units import polish_line_units
from solvers.model import build
from solvers.model.data import COST, PlanData
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.program import Program
from solvers.solution import Solution

FIRST, IN_PLACE, SEARCHED, REBUILT = "first", "in place", "searched", "rebuilt"
KNOWN = 16  # answers that are kept to be tried again
SHAPES = 4  # programs with entries in other places that are kept
OF_POINTS = ("x", "v", "y", "run")  # blocks whose first index is a point
LARGEST = 200_000  # columns; the relaxation of a larger program as a whole takes too long


@dataclass(slots=True)
class Reoptimizer:
    """`how` the last answer came about: the first one; in place; searched for anew, since what was kept did not reach the
    gap; or rebuilt, since entries stand in other places."""

    how: str = ""
    seconds: float = 0.0  # of all answers together
    _kept: list[_Shape] = field(default_factory=list)  # the first one, and the last of other shapes
    _answers: list[tuple[PlanData, Mapping[str, Floats]]] = field(default_factory=list)  # the last one first

    def solve(self, data: PlanData, options: Options) -> Solution:
        """As `joint.solve`, within the same gap; which of the plans within the gap may depend on what was asked before."""
        begin = time.perf_counter()
        solution = self._solve(data, options)
        self.seconds += time.perf_counter() - begin
        return solution

    def _solve(self, data: PlanData, options: Options) -> Solution:
        nothing_can = unfinished(data) or (not data.objective.maximises and unserved(data))
        if nothing_can or options.solver != "highs" or data.objective.functional != COST:
            self.how = REBUILT
            return joint.solve(data, options)
        program = build.build(data)
        if program.column_count > LARGEST:
            self.how = REBUILT
            return joint.solve(data, options)
        arrays, objective = program.arrays(), build.objective_vector(program, data)
        alike = next((shape.kept for shape in self._kept if shape.kept.alike(arrays)), None)
        self.how = FIRST if not self._kept else REBUILT if alike is None else IN_PLACE
        kept = alike
        if kept is None:
            before = next(
                (found for shape in reversed(self._kept) if (found := shape.towards(data, program)) is not None), None
            )
            kept = WarmStartedMip(arrays.scaled(objective), options, before)
            self._kept = [*self._kept[:1], *self._kept[1:][2 - SHAPES :], _Shape(data, program, kept)]
        if self._answers:
            begin, kept.known = time.perf_counter(), self._known(data, program, objective)
            raw = polish_line_units(
                program, objective, "min", mip.solve(program, objective, "min", options, warm=kept), options
            )
            if raw.status in ("optimal", "within_gap", "infeasible"):
                return self._learn(data, replace(joint._solution(data, program, raw, options, begin), bases=kept.bases))
            self.how = REBUILT if alike is None else SEARCHED
        return self._learn(data, replace(joint.solve(data, options), bases=kept.bases))

    def _known(self, data: PlanData, program: Program, objective: Floats) -> list[Floats]:
        """The earlier answers as far as they fit this program, not a number elsewhere; those first that would cost least as they were."""
        told = []
        for earlier, values in self._answers:
            was = _same_points(data, earlier)
            told.append(
                program.vector(
                    values
                    if was is None
                    else values | {block: _at(values[block], was) for block in OF_POINTS if block in values},
                    missing=np.nan,
                )
            )
        return sorted(told, key=lambda x: float(objective @ np.nan_to_num(x)) if np.isfinite(x).all() else np.inf)

    def _learn(self, data: PlanData, solution: Solution) -> Solution:
        """Its fleet, to be tried again."""
        if solution.values:
            fleet = np.round(solution.values["n"])
            known = [
                old
                for old in self._answers
                if old[1]["n"].shape != fleet.shape or (np.round(old[1]["n"]) != fleet).any()
            ]
            self._answers = [(data, solution.values), *known][:KNOWN]
        return solution


@dataclass(frozen=True, slots=True)
class _Shape:
    """A kept program and what its columns and rows are."""

    data: PlanData
    program: Program
    kept: WarmStartedMip

    def towards(self, data: PlanData, program: Program) -> tuple[WarmStartedMip, Ints, Ints] | None:
        """What another program can start from; None where the two have too little in common."""
        was = _same_points(data, self.data)
        columns, old = np.full(program.column_count, -1), self.program.columns
        for block, index in program.columns.items():
            before = _at(old[block], was) if was is not None and block in OF_POINTS and block in old else old.get(block)
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
        return self.kept, columns, np.array(rows, dtype=np.int64)


def _same_points(data: PlanData, earlier: PlanData) -> Ints | None:
    """[P]: the number that each point had, -1 for a new one; None where points stand on other fleet options or in other pools."""
    alike = ("option_site", "option_group", "option_fabric", "holding_option", "holding_window", "arc_pool")
    if any(not np.array_equal(getattr(data, name), getattr(earlier, name)) for name in alike):
        return None
    of_points = ("point_pool", "point_job", "point_capacity", "point_power_w", "point_uses", "point_uses_systems")
    if all(np.array_equal(getattr(data, name), getattr(earlier, name)) for name in of_points):
        return np.arange(len(data.point_pool))
    number = {key: p for p, key in reversed(list(enumerate(_points(earlier))))}
    return np.array([number.get(key, -1) for key in _points(data)], dtype=np.int64)


def _points(data: PlanData) -> list[tuple]:
    """What tells points apart and has nothing to do with prices."""
    uses: list[list] = [[] for _ in data.point_pool]
    for (point, option), systems in zip(data.point_uses.tolist(), data.point_uses_systems.tolist(), strict=True):
        uses[point].append((option, systems))
    told = zip(
        data.point_pool.tolist(),
        data.point_job.tolist(),
        data.point_capacity.tolist(),
        data.point_power_w.tolist(),
        strict=True,
    )
    return [(*point, *used) for point, used in zip(told, uses, strict=True)]


def _at(values: Floats, was: Ints) -> Floats:
    """Values by point, -1 and not a number for new ones as they are counted in whole numbers or not."""
    none = np.full((1, *values.shape[1:]), -1 if values.dtype.kind == "i" else np.nan)
    return np.concatenate([values, none.astype(values.dtype)])[was]
