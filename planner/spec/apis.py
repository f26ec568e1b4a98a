"""Blocks of a spec about tokens that an API sells."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.messages import Message
from planner.spec.base import MOST_ENTRIES
from planner.spec.facility import Assurance
from planner.spec.phases import Moment
from planner.spec.quantities import WHOLE, Name, Real, TokenPrice
from planner.spec.slo import Slo


class Api(Assurance):
    """Tokens bought from an API by the million: they need no systems and no power of ours, and arrive at the stated latency."""

    name: Name
    """What the plan calls it."""
    region: Name
    """Region of the catalog in which it answers; the round trip to it counts in the latency, and residency rules apply."""
    input: TokenPrice = (0.0, "USD")
    """Per token of the prompts."""
    output: TokenPrice = (0.0, "USD")
    """Per token of the answers."""
    price_change_per_year: Annotated[Real, Field(ge=-0.99, le=9)] = 0.0
    """Share by which both prices rise (or, below 0, fall) per year, from one window of the plan to the next."""
    latency: Slo
    """Latencies that it keeps, in its region. A workload with a limit on a percentile that is stated neither here nor for a higher percentile cannot use it."""
    architecture: Name | None = None
    """Architecture that it runs; only workloads on that architecture can use it. If omitted, it runs the architecture that each workload names."""
    workloads: Annotated[list[Name], Field(min_length=1, max_length=MOST_ENTRIES)] | None = None
    """Serving workloads that may use it; all if omitted."""
    supply: Annotated[int, Field(ge=1, le=10**12), WHOLE] | None = None
    """Most output tokens per second; unlimited if omitted."""
    available_from: Moment | None = None
    """When it can first be used."""
    note: str = ""

    @model_validator(mode="after")
    def _priced(self) -> Api:
        if not {"input", "output"} & self.model_fields_set:
            raise ValueError(Message.of("spec.priced_tokens_expected").text())
        return self
