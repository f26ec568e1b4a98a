"""The end of the time that a spec allows for its answer, and the solver options of the steps on the way there.

`solver.time_limit` counts from the spec to the plan by the wall clock: operating points, program, marginal values, diagnosis and
dispatch. Each step gets what those before it have left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.spec.model import PlanSpec
    from solvers.interface import Options

THREADS = 2
PROGRAM_SHARE = 0.9  # share of what is left that goes to the program, the rest to marginal values and the plan document
SHARE_BEFORE_DISPATCH = (
    0.6  # share of what is left that goes to the program where the plan is dispatched on all hours of the year after it
)
LEAST_S = 0.2  # that a step gets when the time is up, so that it can end in order


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the performance counter [s]."""

    ends_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Set the deadline a number of seconds from now."""
        return cls(time.perf_counter() + seconds)

    @property
    def left_s(self) -> float:
        """Return the time that is left [s]; below 0 when it is up."""
        return self.ends_s - time.perf_counter()

    def share(self, share: float) -> Deadline:
        """Return the moment at which a share of the time that is left is up."""
        return Deadline.after(share * self.left_s)

    def options(self, options: Options, share: float = 1.0) -> Options:
        """Limit the solver to a share of the time that is left."""
        return replace(options, time_limit_s=max(min(share * self.left_s, options.time_limit_s), LEAST_S))


def options_of(spec: PlanSpec, threads: int = THREADS, progress: Callable[[str], None] | None = None) -> Options:
    """Return the solver options that a spec asks for."""
    from solvers.interface import Options

    asked = spec.solver
    return Options(
        solver=asked.backend,
        gap=asked.search_gap,
        enough_gap=asked.gap,
        time_limit_s=asked.time_limit,
        node_limit=asked.node_limit,
        seed=asked.seed,
        threads=threads,
        method=asked.method,
        progress=progress,
    )
