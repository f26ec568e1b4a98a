"""A question about devices at the edge: fleets of devices, tiers of systems that they reach, and tasks that run on one of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.messages import Message
from planner.spec.base import SOME, Block
from planner.spec.model import Override
from planner.spec.quantities import (
    WHOLE,
    Amount,
    BytePrice,
    ByteRate,
    Bytes,
    Fraction,
    Joules,
    Name,
    Real,
    RequestRate,
    Seconds,
    SecondsFromStart,
    Watts,
)
from planner.spec.stack.case import CaseServing
from planner.spec.stack.priced import Priced, SystemPrice

DEVICE = "device"  # the tier of the devices themselves
MOST = 40  # tasks, fleets, tiers
Count = Annotated[int, Field(ge=1, le=10_000_000), WHOLE]


class DeviceFleet(Block):
    """A fleet of equal devices."""

    name: Name
    count: Count
    """Devices of the fleet."""
    system: Name
    """Compute of one device: a system of one chip of the catalog."""
    price: Amount | None = None
    """Price of the compute of one device; it is there already if omitted."""
    duty: Annotated[Real, Field(gt=0, le=1)] = 1.0
    """Share of the time in which the devices are at work."""
    power: Watts | None = None
    """Mean power that the compute of a device may draw at work, as its cooling allows; unlimited if omitted."""
    battery: Joules | None = None
    """Energy of the battery that compute may take between two charges; mains if omitted."""
    shift: Seconds | None = None
    """Time at work between two charges, with `battery`."""
    uplink: ByteRate | None = None
    """Rate of one device to the network; without it all its tasks run on the device."""
    availability: Fraction = 1.0
    """Availability of the device itself."""

    @model_validator(mode="after")
    def _with_shift(self) -> DeviceFleet:
        if (self.battery is None) != (self.shift is None):
            raise ValueError(Message.of("spec.battery_needs_shift").text())
        return self

    def power_limit_w(self) -> float | None:
        """Return the mean power of compute that cooling and battery allow [W]; None for no limit."""
        limits = [] if self.power is None else [self.power]
        if self.battery is not None and self.shift is not None:
            limits.append(self.battery / self.shift)
        return min(limits, default=None)


class Tier(Block):
    """Systems that devices reach over a network: near them, or in a centre."""

    name: Name
    """Its name, such as "near edge" or "centre"; "device" is that of the devices themselves."""
    system: Name
    price: SystemPrice
    """Purchase such as "310000 USD", or rent such as "98 USD/h", of one system."""
    places: Count = 1
    """Equal places over which devices are spread evenly; each that is used holds as many systems."""
    most: Count | None = None
    """Most systems of a place."""
    power: Watts | None = None
    """Most nameplate power of a place; unlimited if omitted."""
    rtt: SecondsFromStart = 0.0
    """Round trip between a device and the tier, radio and access included."""
    availability: Fraction = 1.0
    """Availability of the tier with its access."""
    data_price: BytePrice | None = None
    """Price of a byte between device and tier; free if omitted."""

    @field_validator("name")
    @classmethod
    def _not_the_device(cls, name: str) -> str:
        if name == DEVICE:
            raise ValueError(Message.of("spec.tier_is_device", tier=DEVICE).text())
        return name


class Task(Block):
    """A task of the devices of a fleet, from the reading of a sensor to an action."""

    name: Name
    fleet: Name
    workload: CaseServing
    """Network, lengths and media of one request, as in a case; its latency limits follow from `deadline`."""
    requests_per_s: RequestRate
    """Requests of one device at work."""
    deadline: Seconds
    """Time from the reading of the sensor to the action, within which 95 of 100 requests end."""
    sensing: SecondsFromStart = 0.0
    """Part of that time that sensor and actuator take."""
    upload: Bytes = 0.0
    """What a request sends where it does not run on the device."""
    download: Bytes = 0.0
    """What comes back."""
    availability: Fraction = 0.0
    """Least availability of where it runs."""
    tiers: Annotated[list[Name], Field(min_length=1, max_length=MOST)] | None = None
    """Tiers on which it may run, "device" among them; all if omitted."""

    @field_validator("requests_per_s")
    @classmethod
    def _some(cls, rate: float) -> float:
        if not rate:
            raise ValueError(Message.of("spec.rate_above_zero").text())
        return rate

    @field_validator("workload")
    @classmethod
    def _without_limits(cls, workload: CaseServing) -> CaseServing:
        if workload.slo.limits() or workload.demand is not None:
            raise ValueError(Message.of("spec.demand_follows_from_task").text())
        return workload

    @field_validator("sensing")
    @classmethod
    def _within_deadline(cls, sensing: float, known: ValidationInfo) -> float:
        if sensing >= known.data.get("deadline", sensing + 1.0):
            raise ValueError(Message.of("spec.takes_whole_deadline").text())
        return sensing


class EdgeSpec(Priced):
    """Devices, tiers and tasks; each task runs on one tier, at least cost per year."""

    name: Name = "edge"
    utilisation: Annotated[Real, Field(gt=0, le=1)] = 0.7
    """Most of the time that the compute of a device may be busy."""
    fleets: Annotated[list[DeviceFleet], SOME]
    tiers: Annotated[list[Tier], Field(max_length=MOST)] = []
    tasks: Annotated[list[Task], Field(min_length=1, max_length=MOST)]
    overrides: dict[str, Override] = {}
    catalog: dict[str, list[dict[str, Any]]] = {}
    note: str = ""

    @model_validator(mode="after")
    def _named(self) -> EdgeSpec:
        for what, blocks in (("fleets", self.fleets), ("tiers", self.tiers), ("tasks", self.tasks)):
            names = [block.name for block in blocks]
            if len(set(names)) < len(names):
                raise ValueError(Message.of("spec.name_twice", what=what).text())
        fleets, tiers = {fleet.name for fleet in self.fleets}, {DEVICE, *(tier.name for tier in self.tiers)}
        for task in self.tasks:
            if task.fleet not in fleets:
                raise ValueError(
                    Message.of(
                        "spec.task_of_unknown_fleet",
                        task=task.name,
                        name=task.fleet,
                        known=", ".join(sorted(fleets)),
                    ).text()
                )
            if unknown := sorted(set(task.tiers or ()) - tiers):
                raise ValueError(
                    Message.of(
                        "spec.task_of_unknown_tier",
                        task=task.name,
                        name=unknown[0],
                        known=", ".join(sorted(tiers)),
                    ).text()
                )
        return self
