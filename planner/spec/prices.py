"""The block `prices` of a spec: at which of its low, typical and high figures each price counts, by the way to obtain.

How a figure is moved: `planner.problem.price_levels`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.messages import Message
from planner.spec.base import Block

Level = Literal["low", "typical", "high"]
Stated = Annotated[str, Field(min_length=1, max_length=200, examples=["280000 USD"])]


class PriceRange(Block):
    """Low and high of a price that the spec states; the stated price is the typical one."""

    low: Stated | None = None
    """As the price itself is written."""
    high: Stated | None = None
    """As the price itself is written."""

    @model_validator(mode="after")
    def _some(self) -> PriceRange:
        if self.low is None and self.high is None:
            raise ValueError(Message.of("spec.range_needs_low_or_high").text())
        return self


class PriceLevels(Block):
    """The level at which each price counts: one `level` for all, others for some. A price without a figure at its level counts at the typical one."""

    level: Level = "typical"
    """Level of all prices without one of their own below."""
    buy: Level | None = None
    """Of systems that are bought."""
    reserved: Level | None = None
    """Of systems rented under a commitment."""
    on_demand: Level | None = None
    """Of systems rented on demand."""
    spot: Level | None = None
    """Of systems from the spot market."""
    colocation: Level | None = None
    """Of rented halls."""
    api: Level | None = None
    """Of tokens from an API."""
    fabric: Level | None = None
    """Of switches and links."""
    facility: Level | None = None
    """Of buildings."""
    staff: Level | None = None
    """Of the people that run what is bought."""
    software: Level | None = None
    """Of licences and support for what is bought or rented."""
    electricity: Level | None = None
    """Of energy and of demand charges."""
    egress: Level | None = None
    """Of traffic between regions."""
    lines: Level | None = None
    """Of lines."""
    ranges: dict[str, PriceRange] = {}
    """Low and high of prices that the spec states, by path, such as "offers[0].price"; prices of the catalog have them there."""

    def of(self, way: str) -> Level:
        """Return the level of a way to obtain."""
        return getattr(self, way) or self.level

    @property
    def moved(self) -> bool:
        """Tell whether any price counts at a level other than typical."""
        return any(self.of(way) != "typical" for way in WAYS)


WAYS = tuple(name for name in PriceLevels.model_fields if name not in ("level", "ranges"))
