"""The block `robust` of a spec: the confidence that a plan must have, and the uncertainties that count."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real, Switch


class Robust(Block):
    """A chance constraint: latencies, demand, deadlines and budget must hold together in a share of sampled scenarios."""

    confidence: Annotated[Real, Field(ge=0.5, le=0.99)] = 0.9
    """Share of the scenarios in which everything holds at once."""
    scenarios: Annotated[int, Field(ge=50, le=10_000), WHOLE] = 400
    """Number of sampled scenarios."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] = 0
    """Random seed of the scenarios."""
    measure: Literal["chance", "cvar"] = "chance"
    """Cost that is minimised: at typical prices ("chance"), or the mean over the dearest scenarios, those beyond `confidence` ("cvar"), which
    a budget then limits too."""
    demand: Annotated[Real, Field(ge=0, le=0.5)] = 0.15
    """Half-width of the demand of each serving workload around the spec's, as a share; uniform in between."""
    times: Switch = True
    """Whether predicted times and throughputs have the errors of held-out measurements."""
    prices: Switch = True
    """Whether prices vary between their low, typical and high figures, of the catalog and of `prices.ranges`."""
