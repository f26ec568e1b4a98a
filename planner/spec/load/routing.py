"""The block `routing` of a workload that serves, trains or does both: how the experts of a mixture are loaded."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real, Switch


class Routing(Block):
    """How the gate of a mixture of experts loads them."""

    popularity: Annotated[Real, Field(ge=0, le=3)] | None = None
    """Zipf exponent of how often experts are chosen, 0 where all are chosen alike: the i-th is chosen in proportion to i to the power of minus
    this. The fullest rank follows from it, with experts and their copies placed by load."""
    imbalance: Annotated[Real, Field(ge=1, le=1000)] | None = None
    """Load of the fullest expert-parallel rank over the mean, as measured, in place of `popularity`."""
    redundant_experts: Annotated[int, Field(ge=0, le=4096), WHOLE] = 0
    """Second copies of experts in each layer, of the most popular ones first, beyond those that fill up the ranks; they take memory. In serving and the rollout of reinforcement only."""
    most_domains: Annotated[int, Field(ge=1, le=4096), WHOLE] | None = None
    """Scale-up domains (nodes) that a token may visit, crossing to each once; a copy crosses for each of its experts if omitted."""
    capacity_factor: Annotated[Real, Field(ge=0.1, le=1000)] | None = None
    """Tokens that an expert takes in a step over the mean of all experts; further ones are dropped. None are dropped if omitted."""
    two_batches: Switch = True
    """Whether one half of a batch may compute while the other exchanges tokens, where that is faster."""

    @model_validator(mode="after")
    def _one_load(self) -> Routing:
        if self.popularity is not None and self.imbalance is not None:
            raise ValueError(Message.of("spec.imbalance_twice").text())
        return self
