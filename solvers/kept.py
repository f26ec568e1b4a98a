"""A joint program that is kept with its solver and changed in place: other prices, another demand, another limit.

The input is put together anew each time, which takes next to nothing, and compared with the program in the solver. Where
entries stand in the same places, only what differs is told; else the program is built anew in the solver. Then the relaxation,
solved on from its last basis where there is one, gives the bound, and the fleets known from earlier answers give the plan.
Where the two are further apart than asked, the search goes on from there, or the program is solved as any other. So it is,
and is not kept, where something else than cost is minimised, and where the program is very large."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from solvers import backends, joint
from solvers.data import COST, Floats, PlanData
from solvers.outcome import Options
from solvers.routing import unserved
from solvers.schedule import unfinished

FIRST, IN_PLACE, SEARCHED, REBUILT = "first", "in place", "searched", "rebuilt"
KNOWN = 4  # answers that are tried again
LARGEST = 200_000  # columns; the relaxation of a larger program as a whole takes too long


@dataclass(slots=True)
class KeptProgram:
    """`how` the last answer came about: the first one; in place; searched for anew, since what was kept did not reach the
    gap; or rebuilt, since entries stand in other places."""

    how: str = ""
    seconds: float = 0.0  # of all answers together
    _kept: list[backends.Kept] = field(default_factory=list)  # the first one, and the last of another shape
    _answers: list[Mapping[str, Floats]] = field(default_factory=list)  # the last one first

    def solve(self, data: PlanData, options: Options) -> joint.Solution:
        """As `joint.solve`, within the same gap; which of the plans within the gap may depend on what was asked before."""
        begin = time.perf_counter()
        solution = self._solve(data, options)
        self.seconds += time.perf_counter() - begin
        return solution

    def _solve(self, data: PlanData, options: Options) -> joint.Solution:
        nothing_can = unfinished(data) or (not data.objective.maximises and unserved(data))
        if nothing_can or options.solver != "highs" or data.objective.functional != COST:
            self.how = REBUILT
            return joint.solve(data, options)
        program = joint.build(data)
        if program.column_count > LARGEST:
            self.how = REBUILT
            return joint.solve(data, options)
        arrays, objective = program.arrays(), joint.objective_vector(program, data)
        alike = next((kept for kept in self._kept if kept.alike(arrays)), None)
        self.how = FIRST if not self._kept else REBUILT if alike is None else IN_PLACE
        kept = backends.Kept(arrays.scaled(objective), options) if alike is None else alike
        if alike is None:
            self._kept = [*self._kept[:1], kept]
        if self._answers:
            begin, kept.known = time.perf_counter(), [program.vector(values) for values in self._answers]
            raw = backends.solve(program, objective, "min", options, kept=kept)
            if raw.status in ("optimal", "within_gap", "infeasible"):
                return self._learn(joint._solution(data, program, raw, options, begin))
            self.how = REBUILT if alike is None else SEARCHED
        return self._learn(joint.solve(data, options))

    def _learn(self, solution: joint.Solution) -> joint.Solution:
        """Its fleet, to be tried again."""
        if solution.values:
            known = [old for old in self._answers if old["n"].shape != solution.values["n"].shape or (np.round(old["n"]) != np.round(solution.values["n"])).any()]
            self._answers = [solution.values, *known][:KNOWN]
        return solution
