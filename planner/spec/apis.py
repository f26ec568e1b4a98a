"""Blocks of a spec about tokens that an API sells."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.spec.base import MOST_ENTRIES, Block
from planner.spec.phases import Moment
from planner.spec.quantities import WHOLE, Name, Real, TokenPrice
from planner.spec.slo import Slo


class Api(Block):
    """Tokens of others, paid by the million: they need no systems and no power of ours, and come at the latency that is stated."""

    name: Name
    """What the plan calls it."""
    region: Name
    """Region of the catalog in which it answers; the way there counts in the latency, and rules on residency hold."""
    input: TokenPrice = (0.0, "USD")
    """Per token of the prompts."""
    output: TokenPrice = (0.0, "USD")
    """Per token of the answers."""
    price_change_per_year: Annotated[Real, Field(ge=-0.99, le=9)] = 0.0
    """Part by which both prices rise (or, below 0, fall) in a year, from one window of the plan to the next."""
    latency: Slo
    """What it is known to keep, in its region. A workload with a limit that is not stated here, nor for a higher percentile, cannot use it."""
    architecture: Name | None = None
    """Architecture that it runs; only workloads that run it can use it. Where it is left out, the one that each workload names."""
    workloads: Annotated[list[Name], Field(min_length=1, max_length=MOST_ENTRIES)] | None = None
    """Serving workloads whose answers may come from it; all where it is left out."""
    supply: Annotated[int, Field(ge=1, le=10**12), WHOLE] | None = None
    """Most output tokens per second; any number where it is left out."""
    available_from: Moment | None = None
    """When it can first be used."""
    note: str = ""

    @model_validator(mode="after")
    def _priced(self) -> Api:
        if not {"input", "output"} & self.model_fields_set:
            raise ValueError('expected "input", "output" or both, such as {"output": "0.3 USD/1M tokens"}')
        return self
