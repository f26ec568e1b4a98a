"""Solve the changed specs of a study: one after another from the program of the one before, or each on its own on an engine.

Both find plans within the gap. Which of these it is follows from the order in the first way, and from the changed spec alone in the second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from planner.plan import Plan
from planner.studies.engines import Engine
from planner.studies.engines.calls import solved_on
from planner.studies.whatif import Changes, WhatIf


@dataclass(frozen=True, slots=True)
class Solved:
    """The plan of a changed spec, the way in which its program was solved, and the seconds taken; no plan where its workers died."""

    plan: Plan | None
    how: str = ""
    seconds: float = 0.0


def solved_plans(
    kept: WhatIf, asked: Sequence[Changes], engine: Engine | None, overlays: Sequence[Path]
) -> Iterator[tuple[int, Solved]]:
    """Yield (number, answer) of the changes as they are solved: in their order, from the program of `kept`, where there is no engine."""
    if engine is None:
        for number, changes in enumerate(asked):
            yield number, _timed(kept, changes, anew=False)
        return
    for number, solved in solved_on(engine, partial(_solver, kept.document), asked, overlays):
        yield number, solved or Solved(None)


def _solver(document: Mapping[str, Any], overlays: Sequence[Path]) -> Callable[[Changes], Solved]:
    """Make what solves changes in a worker, each without the programs of others."""
    kept = WhatIf(document, overlays=overlays, threads=1, solving=False)  # the solves share the processors
    return lambda changes: _timed(kept, changes, anew=True)


def _timed(kept: WhatIf, changes: Changes, *, anew: bool) -> Solved:
    began = time.perf_counter()
    plan = kept.plan(changes, diagnosing=False, anew=anew)
    return Solved(plan, kept.timing.how, time.perf_counter() - began)
