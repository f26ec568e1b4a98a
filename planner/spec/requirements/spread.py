"""Block of a spec about the spread of a workload over zones."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real


class Spread(Block):
    """How a workload must be spread over zones; a site is a zone of its own unless its `zone` says otherwise. Shares are of the requests
    served in an hour: those that arrive in it, unless requests may wait."""

    zones: Annotated[int, Field(ge=1, le=100), WHOLE] = 1
    """Zones that must serve, each at least `least_share` of every hour's requests."""
    least_share: Annotated[Real, Field(gt=0, le=1)] = 0.1
    """Least share of every hour's requests that makes a zone count."""
    largest_share: Annotated[Real, Field(gt=0, le=1)] | None = None
    """Largest share of any hour's requests that one zone may serve."""
    survive: Annotated[int, Field(ge=0, le=1), WHOLE] = 0
    """1: when any one zone fails at the busiest hour, the others can serve everything."""

    @model_validator(mode="after")
    def _possible(self) -> Spread:
        if self.zones * self.least_share > 1 + 1e-9:
            raise ValueError(
                Message.of("spec.zones_share_too_large", zones=self.zones, share=f"{self.least_share:g}").text()
            )
        return self
