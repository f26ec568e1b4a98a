"""Block of a spec about what a serving worker does before it serves at its full rate."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import ByteRate, Bytes, Real, SecondsFromStart


class ScaleUp(Block):
    """Start of a worker on systems that ran something else: its engine starts, weights and data are read, its prefix cache fills."""

    start: SecondsFromStart | None = None
    """Time from the start of an engine until it reads weights, and of what it does afterwards, such as capturing graphs; the catalog's if omitted."""
    bandwidth: ByteRate | None = None
    """Rate at which a worker reads from the storage of the site; all of the site's `storage_bandwidth` if omitted."""
    preloaded: Annotated[Real, Field(ge=0, le=1)] = 0.0
    """Share of the weights that lies ready on every system, in memory of its host or on its disks."""
    preload_bandwidth: ByteRate | None = None
    """Rate at which a worker reads that share."""
    data: Bytes = 0.0
    """What a worker reads from storage besides weights: adapters, indexes, compiled kernels, saved caches."""
    warm_up: SecondsFromStart = 0.0
    """Time in which the prefix cache of a worker fills: its hit rate rises evenly from 0. Needs a `cache`."""

    @model_validator(mode="after")
    def _read_at_a_rate(self) -> ScaleUp:
        if (self.preloaded > 0) != (self.preload_bandwidth is not None):
            raise ValueError(Message.of("spec.preload_needs_bandwidth").text())
        return self
