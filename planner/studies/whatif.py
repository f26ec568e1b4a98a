"""Answer what-if questions on a solved spec: other prices, another demand or another limit.

Unaffected parts are kept: the points of the workloads, the program and its solver. Not here: how a program is
changed in place (`solvers.search.reoptimize`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.candidates.cache import OutOfTime
from planner.candidates.points import Candidates
from planner.errors import Issue, SpecError
from planner.interpret.framing import without_answer
from planner.messages import Message
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from planner.solving.answer import answer
from planner.solving.deadline import THREADS, Deadline
from planner.solving.standing import Progress
from planner.solving.stopped import without_points
from planner.spec.document import Edits, edited, read_spec

MAX_KEPT = 2000  # evaluated grids of points; about 0.2 MB each
Changes = Mapping[str, Any]  # path in the spec, such as offers[0].price -> value; None to take the value away


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of the last plan by stage, and how its program was solved (see `solvers.search.reoptimize`)."""

    resolve: float
    points: float
    program: float
    rest: float
    how: str

    @property
    def total(self) -> float:
        """Add up the seconds of all stages."""
        return self.resolve + self.points + self.program + self.rest


class WhatIf:
    """A spec that stays solved. `plan(changes)` answers it with some changes, each time relative to the original spec.

    >>> kept = WhatIf("examples/mixed_fleet.json")                              # doctest: +SKIP
    >>> kept.plan({"offers[0].price": "3500000 USD", "limits.carbon": "40 kt"})  # doctest: +SKIP
    """

    timing: Timing  # timing of the last plan
    base: Plan  # plan of the spec without changes

    def __init__(
        self, source: str | Path | Mapping[str, Any], *, overlays: Sequence[Path] = (), hourly: Sequence[Path] = (), progress: Progress | None = None,
        threads: int = THREADS, diagnosing: bool = True, solving: bool = True,
    ) -> None:  # fmt: skip
        """Solve the spec, unless only its variants are asked for (`solving`). Raises SpecError for an invalid or a robust spec and OSError for an unreadable file."""
        self.document = read_spec(source, hourly, overlays)
        self._overlays, self._progress, self._threads = overlays, progress, threads
        self._grids: dict[Any, Any] = {}
        self._begin()
        if solving:
            self.base = self.plan({}, diagnosing=diagnosing)
        self._of_base = frozenset(self._grids)

    def plan(self, changes: Changes, *, diagnosing: bool = True, anew: bool = False) -> Plan:
        """Solve the changed spec within its time limit to the same gap; which of the plans within the gap is found may depend on earlier questions.

        `diagnosing`: explain why there is no plan; `anew`: solve without the programs of earlier questions, on which the plan then does not depend. Raises SpecError for changes that the spec does not allow.
        """
        began = time.perf_counter()
        if anew:
            self._begin()
        document, problem = self._resolved(changes)
        resolved = time.perf_counter()
        deadline = Deadline(began + problem.spec.solver.time_limit)
        try:
            candidates = self._candidates(problem, deadline.ends_s)
        except OutOfTime as ended:
            spent = time.perf_counter() - resolved
            self.timing = Timing(resolved - began, spent, 0.0, 0.0, self._program.how)
            return without_answer(problem, None, "limit", None, document, reasons=without_points(problem, ended))
        found = time.perf_counter()
        before = self._program.seconds
        plan = answer(
            problem, candidates, document, overlays=self._overlays, progress=self._progress, threads=self._threads, solve_program=self._program.solve,
            diagnosing=diagnosing, deadline=deadline,
        )  # fmt: skip
        solved = self._program.seconds - before
        self.timing = Timing(
            resolved - began, found - resolved, solved, time.perf_counter() - found - solved, self._program.how
        )
        return plan

    def forget_points(self, *, of_base: bool = False) -> None:
        """Drop the evaluated grids of points, to save memory: grids that questions added, or the base's too.

        Later questions evaluate again those that they need; most need many of the base's.
        """
        for key in [key for key in self._grids if of_base or key not in self._of_base]:
            del self._grids[key]

    def _begin(self) -> None:
        """Keep no program yet."""
        from solvers.search.reoptimize import Reoptimizer

        self._program = Reoptimizer()

    def _resolved(self, changes: Changes) -> tuple[dict[str, Any], ResolvedSpec]:
        """Apply the changes to the spec, and resolve it."""
        from planner.solving.variants import resolved

        edits: Edits = tuple(changes.items())
        document = edited(self.document, edits)
        problem = resolved(document, self._overlays)
        if problem.spec.robust is not None:
            raise SpecError([Issue("robust", Message.of("whatif.robust").text())])
        return document, problem

    def _candidates(self, problem: ResolvedSpec, until: float) -> Candidates:
        from planner.solving.variants import points_found

        if len(self._grids) > MAX_KEPT:
            self._grids.clear()
        return points_found(problem, self._grids, below_floor=True, until=until)
