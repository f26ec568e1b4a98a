"""Blocks of a spec about the network between sites: the lines on offer, and the traffic besides requests.

Their effect on a plan: `planner.resolve.routes.lines`.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator

from planner.messages import Message
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
    """A type of line that can be rented, between two regions or between any two; omitted keys take the catalog's figures."""

    kind: Name
    """A line of the catalog: dedicated line, IPSec VPN, internet TLS, SD-WAN."""
    between: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = None
    """The two regions; any two if omitted. An entry for two regions goes before one for any two."""
    units: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] | None = None
    """Most units between the same two regions; unlimited if omitted."""
    capacity: ByteRate | None = None
    """Capacity of one unit, in each direction."""
    price: AmountPerSecond | None = None
    """Price of one unit, both ends together."""
    price_per_byte: BytePrice | None = None
    """Price of traffic that leaves a site."""
    latency_factor: Annotated[Real, Field(ge=0.1, le=100)] | None = None
    """Round trip over that of the path between the two regions."""
    added_latency: SecondsFromStart | None = None
    """Added to the round trip."""
    availability: Fraction | None = None
    """Share of time that it is up."""
    security: Security | None = None
    """Security class: a line of one class meets requirements of that class or a lower one."""
    setup: SecondsFromStart | None = None
    """Time from the start of the horizon until it carries traffic; 0 for an existing line."""
    note: str = ""

    @field_validator("between")
    @classmethod
    def _two(cls, between: list[str] | None) -> list[str] | None:
        if between is not None and between[0] == between[1]:
            raise ValueError(Message.of("spec.regions_differ").text())
        return between


class Stream(Block):
    """Messages between the source of the weights and each site of the workload."""

    rate: TrafficRate | None = None
    """Rate in the main direction; the catalog's default if omitted."""
    security: Security | None = None
    """Lowest security class of its lines; the workload's if omitted."""
    availability: Fraction | None = None
    """Lowest availability of its lines; the workload's if omitted."""


class Distribution(Block):
    """Distribution of new weights to the sites."""

    window: Seconds | None = None
    """Time within which an update must have crossed each line it is sent over; the catalog's default if omitted."""
    security: Security | None = None
    """Lowest security class of its lines; the workload's if omitted."""
    availability: Fraction | None = None
    """Lowest availability of its lines; the workload's if omitted."""


class Traffic(Block):
    """Traffic of a workload besides its requests."""

    control: Stream = Stream()
    """Commands to each site."""
    telemetry: Stream = Stream()
    """Metrics, logs and traces from each site."""
    weights: Distribution = Distribution()
    """Updates of the weights."""
