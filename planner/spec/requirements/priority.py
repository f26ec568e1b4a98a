"""Priorities among jobs: the order in which they go, and a spec in which some of them finish later.

Used by the search for what waits and by its verification: both read a plan's postponed jobs as these edits.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field

from catalog.units import HOUR_S
from planner.spec.document import Edits
from planner.spec.quantities import WHOLE

Priority = Annotated[int, Field(ge=1, le=1000), WHOLE]


class HasJob(Protocol):
    """A job of a problem."""

    @property
    def spec(self) -> Any:
        """The job as the spec states it."""


J = TypeVar("J", bound=HasJob)


def queue_of(jobs: tuple[J, ...]) -> list[J]:
    """Order the jobs that may wait: by priority, 1 first, and as listed within one; jobs without a priority never wait."""
    return sorted((job for job in jobs if job.spec.priority is not None), key=lambda job: job.spec.priority)


def put_off(path: str, job: Any, deadline_s: float) -> Edits:
    """Write the edits by which the job at `path` has until `deadline_s`, a whole number of hours, for the work that it has now."""
    edits: Edits = ((f"{path}.deadline", f"{round(deadline_s / HOUR_S)} h"),)
    if getattr(job, "iterations_per_hour", None) is None:
        return edits
    return (
        *edits,
        (f"{path}.iterations_per_hour", None),
        (f"{path}.iterations", math.ceil(job.all_iterations * (1.0 - 1e-12))),
    )
