"""Block of a spec about preemption of training jobs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from catalog.units import DAY_S
from planner.spec.base import Block
from planner.spec.quantities import SecondsFromStart


class Preemption(Block):
    """Cost of preempting a job, which always yields its systems to serving and resumes later."""

    restart: SecondsFromStart | None = None
    """Time lost at each resumption; the times to write a checkpoint, to recover from a failure and to read the checkpoint back if omitted."""
    least_run: Annotated[SecondsFromStart, Field(le=DAY_S)] | None = None
    """Time for which width that returns stays at least; 6 h for a job on more than 256 chips if omitted, and none for others."""
