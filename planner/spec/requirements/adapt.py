"""The block `adapt` of a spec: decisions that may wait until more is known, and the promise that later decisions keep."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from catalog.units import DAY_S, YEAR_S
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.phases import Moment
from planner.spec.quantities import WHOLE, Real, SecondsFromStart, Switch

MEASURED_S = 42 * DAY_S
"""When the first systems have been measured, unless the spec states its dates [s from the start]."""
MOST_DATES = 12
Known = Literal["performance", "demand", "prices"]


class DecisionDate(Block):
    """A date at which the plan may be changed."""

    at: Moment
    """When; the first decision is made at the start, and is not listed."""
    knows: Annotated[list[Known], Field(max_length=3)] = ["performance", "demand", "prices"]
    """What is known by then: the errors of predicted times ("performance"), the level of demand ("demand"), and prices from the start on ("prices"). What is
    known stays known."""


class Adapt(Block):
    """Decide in stages: sign the systems needed now, and rent, buy or return later, when performance and demand are known."""

    promise: Annotated[Real, Field(ge=0, le=0.99)] = 0.8
    """Least share of scenarios in which all demand is served and all jobs end in time, after later decisions."""
    risk: Literal["expected", "cvar"] = "expected"
    """Cost that is minimised: its mean over scenarios, or its mean over the dearest ones, those beyond `tail` ("cvar")."""
    tail: Annotated[Real, Field(ge=0.5, le=0.99)] = 0.9
    """Share of scenarios that the conditional value at risk leaves out."""
    dates: Annotated[list[DecisionDate], Field(min_length=1, max_length=MOST_DATES)] | None = None
    """Dates of later decisions, in order; if omitted, 6 weeks after the start and then every year."""
    delivery: SecondsFromStart = 0.0
    """Time from a later order of a bought system until it can serve, where its offer states no `delivery`; systems ordered at the start are there when the
    plan says so."""
    notice: SecondsFromStart = 0.0
    """Time from a later order of a reserved system until it can serve, and of a return until it is paid for no more; systems on demand, on the spot
    market and tokens of an API are there at once."""
    demand: Annotated[Real, Field(ge=0, le=0.5)] = 0.15
    """Half-width of the demand of each serving workload around the spec's, as a share; uniform in between."""
    times: Switch = True
    """Whether predicted times and throughputs have the errors of held-out measurements."""
    prices: Switch = False
    """Whether prices of rents, orders and energy after the start vary between their low, typical and high figures, of the catalog and of
    `prices.ranges`; systems signed at the start have their typical price."""
    unserved: Annotated[Real, Field(ge=1, le=1000)] = 3.0
    """Price of a request that is not served and of a job that does not end, in multiples of what the plan without this block pays for it."""
    scenarios: Annotated[int, Field(ge=50, le=2000), WHOLE] = 400
    """Number of sampled scenarios that the tree is made of."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] = 0
    """Random seed of the scenarios."""

    @model_validator(mode="after")
    def _learning(self) -> Adapt:
        known: set[str] = set()
        for date in self.dates or ():
            if not known <= set(date.knows):
                raise ValueError(Message.of("spec.adapt_forgets").text())
            known = {
                name for name in date.knows if self.prices or name != "prices"
            }  # prices that do not vary are known anyway
        return self

    def decided(self, years: int) -> list[DecisionDate]:
        """List the later dates of a horizon, given in years."""
        if self.dates is not None:
            return self.dates
        return [
            DecisionDate.model_validate({"at": f"{at / DAY_S:g} d"})
            for at in (MEASURED_S, *(year * YEAR_S for year in range(1, years)))
        ]
