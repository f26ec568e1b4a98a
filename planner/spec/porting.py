"""Block of a spec about porting architectures to families of chips."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from catalog.units import HOUR_S
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import Amount, AmountPerSecond, Name, Real


class Porting(Block):
    """One-off cost of porting an architecture to the chips of a family before it can run there."""

    family: Name
    """Family of chips as in the catalog, such as "ascend"."""
    architecture: Name | None = None
    """An architecture of the catalog; if omitted, each architecture that the workloads run."""
    cost: Amount | None = None
    """Paid at the start of the horizon, once for all sites and workloads."""
    hours: Annotated[Real, Field(ge=0, le=1e7)] | None = None
    """Engineering hours, which with `rate` make the cost."""
    rate: AmountPerSecond | None = None
    """Cost of an engineering hour, such as "100 USD/h"."""
    note: str = ""

    @model_validator(mode="after")
    def _one_cost(self) -> Porting:
        if (self.hours is None) != (self.rate is None) or (self.cost is None) == (self.hours is None):
            raise ValueError(Message.of("spec.porting_cost_or_hours").text())
        return self

    @property
    def amount(self) -> tuple[float, str]:
        """Return (amount, currency)."""
        if self.cost is not None:
            return self.cost
        assert self.hours is not None and self.rate is not None
        return self.hours * HOUR_S * self.rate[0], self.rate[1]
