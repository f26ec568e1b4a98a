"""Block of a spec about agentic sessions: tasks of several calls, with tools or users between them."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real, SecondsFromStart

Waiting = Literal["resident", "offloaded", "dropped"]  # as in models.serving.sessions
WAYS_TO_WAIT: tuple[Waiting, ...] = get_args(Waiting)
MOST_VARIATION = 2.0  # variation of the number of calls
DEVIATIONS = 2.0  # deviations of the number of calls, by which the round trips of a task count beyond their mean


class Session(Block):
    """Agentic sessions: each request is a call of a task, whose prompt is the whole context of the task so far."""

    calls: Annotated[Real, Field(ge=1, le=10_000)]
    """Mean calls of a task."""
    calls_cv: Annotated[Real, Field(ge=0, le=MOST_VARIATION)] = 0.0
    """Standard deviation of the number of calls over its mean (0: all tasks alike)."""
    growth: Annotated[int, Field(ge=0, le=10_000_000), WHOLE] = 0
    """Tokens that come back from a tool or user between two calls, by which the context grows beside the answer."""
    wait: SecondsFromStart = 0.0
    """Mean time of the tool or user between two calls."""
    wait_cv: Annotated[Real, Field(ge=0, le=3)] = 1.0
    """Standard deviation of that time over its mean."""
    caches: Annotated[list[Waiting], Field(min_length=1, max_length=len(WAYS_TO_WAIT))] = list(WAYS_TO_WAIT)
    """Where the KV cache of a session may be while it waits, of which the plan takes one: in the memory of the chips, in that of their
    host, or nowhere, so that each call computes its whole prompt."""

    @field_validator("calls_cv")
    @classmethod
    def _several(cls, variation: float, known: ValidationInfo) -> float:
        if variation and known.data.get("calls", 2.0) == 1.0:
            raise ValueError(Message.of("spec.calls_do_not_vary").text())
        return variation

    @property
    def earlier_calls(self) -> float:
        """Compute the calls before a call in its task, on average over all calls:  (n (1 + cv^2) - 1)/2."""
        return 0.5 * (self.calls * (1.0 + self.calls_cv**2) - 1.0)

    @property
    def round_trips(self) -> float:
        """Count the round trips between user and site that the time of a task is to hold: two deviations beyond the mean."""
        return self.calls * (1.0 + DEVIATIONS * self.calls_cv)
