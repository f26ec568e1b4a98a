"""Block of a spec about checkpoints of a training job, and how it starts again."""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import ByteRate, SecondsFromStart


class Checkpoints(Block):
    """Rate of checkpoints, and the time that each of them and each restart costs."""

    bandwidth_per_chip: ByteRate | None = None
    """Rate at which the share of a chip is written and read back, at most the site's `storage_bandwidth` for all chips; that of published
    runs if omitted."""
    stall: SecondsFromStart | None = None
    """Time for which the run stands still for a checkpoint that is written beside the computation; until it is written if omitted."""
    recovery: SecondsFromStart | None = None
    """Time from an interruption until the checkpoint is read back: detection, new systems and start of the software; a usual one if omitted."""
