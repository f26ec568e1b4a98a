"""The block `robust` of a spec: how sure a plan shall be, and of what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real, Switch


class Robust(Block):
    """What the plan promises (latencies, all demand, deadlines, budget) shall hold in a share of sampled worlds."""

    confidence: Annotated[Real, Field(ge=0.5, le=0.99)] = 0.9
    """Share of the worlds in which everything holds at once."""
    worlds: Annotated[int, Field(ge=50, le=10_000), WHOLE] = 400
    """Worlds that are sampled."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] = 0
    """Of the worlds."""
    measure: Literal["chance", "cvar"] = "chance"
    """What is made least: the cost at typical prices, or its mean over the dearest worlds (those beyond `confidence`). The latter is
    also what a budget is held against."""
    demand: Annotated[Real, Field(ge=0, le=0.5)] = 0.15
    """How far the demand of each serving workload may lie above or below the spec's, any value between alike."""
    times: Switch = True
    """Whether predicted times and throughputs err as they did on measurements that they had not been fitted to."""
    prices: Switch = True
    """Whether prices vary between their low, typical and high figures, of the catalog and of `prices.ranges`."""
