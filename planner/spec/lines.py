"""Blocks of a spec about the network of sites: the lines on offer, what travels beside requests, and the spread over zones.

What they mean to a plan is in `planner.resolve.lines` and `planner.problem.spread`.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator

from planner.spec.base import Block
from planner.spec.quantities import (
    WHOLE,
    AmountPerSecond,
    BytePrice,
    ByteRate,
    Fraction,
    Name,
    Real,
    Seconds,
    SecondsFromStart,
    TrafficRate,
)

Security = Literal["public", "encrypted", "private"]  # each meets what asks for it or for one before it
SECURITY: tuple[Security, ...] = get_args(Security)


class Line(Block):
    """A kind of line that can be rented, between two regions or between any two; what is left out is the catalog's."""

    kind: Name
    """A line of the catalog: dedicated line, IPSec VPN, internet TLS, SD-WAN."""
    between: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = None
    """The two regions; any two where it is left out. An entry for two regions goes before one for any two."""
    units: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] | None = None
    """Most units between the same two regions; any number where it is left out."""
    capacity: ByteRate | None = None
    """Of one unit, in each direction."""
    price: AmountPerSecond | None = None
    """Of one unit, both ends together."""
    price_per_byte: BytePrice | None = None
    """Of a byte that leaves a site."""
    latency_factor: Annotated[Real, Field(ge=0.1, le=100)] | None = None
    """Round trip over that of the path between the two regions."""
    added_latency: SecondsFromStart | None = None
    """Added to the round trip."""
    availability: Fraction | None = None
    """Share of time it is up."""
    security: Security | None = None
    """Who can read along: a line of one class fits what asks for it or for less."""
    setup: SecondsFromStart | None = None
    """From the start of the horizon until it carries traffic; 0 for a line that is there already."""
    note: str = ""

    @field_validator("between")
    @classmethod
    def _two(cls, between: list[str] | None) -> list[str] | None:
        if between is not None and between[0] == between[1]:
            raise ValueError("expected two different regions")
        return between


class Stream(Block):
    """Messages between the region from which weights come and each site of the workload."""

    rate: TrafficRate | None = None
    """In the direction of most of it; the catalog's default where it is left out."""
    security: Security | None = None
    """Least class of its lines; the workload's where it is left out."""
    availability: Fraction | None = None
    """Least availability of its lines; the workload's where it is left out."""


class Distribution(Block):
    """How new weights reach the sites."""

    window: Seconds | None = None
    """Time within which an update must have crossed each line it is sent over; the catalog's default where it is left out."""
    security: Security | None = None
    """Least class of its lines; the workload's where it is left out."""
    availability: Fraction | None = None
    """Least availability of its lines; the workload's where it is left out."""


class Traffic(Block):
    """What a workload sends beside its requests."""

    control: Stream = Stream()
    """Commands to each site."""
    telemetry: Stream = Stream()
    """Metrics, logs and traces from each site."""
    weights: Distribution = Distribution()
    """Updates of the weights."""
