"""Block of a spec about pre-emption of jobs."""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import SecondsFromStart


class Preemption(Block):
    """What it costs a job that its systems are wanted for something else and it goes on later: serving comes before it at all times."""

    restart: SecondsFromStart | None = None
    """Time that is lost whenever its width comes back; that of saving the run and of recovering from any failure where it is left out."""
