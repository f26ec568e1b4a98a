"""Block of a spec about a site: where systems may stand, what its power costs, and what it may draw."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from planner.spec.base import SOME
from planner.spec.electricity import Electricity, HourlyFile
from planner.spec.fabrics import DEFAULT_FABRICS, FabricName
from planner.spec.phases import SiteInTime
from planner.spec.quantities import AmountPerSecond, ByteRate, EnergyPrice, Name, PeakPrice, Real, Watts


class Site(SiteInTime):
    """A place where systems may stand."""

    region: Name
    """A region of the catalog."""
    power: Watts | None = None
    """Ceiling on what our own systems there draw at the meter; none where it is left out."""
    systems: Annotated[list[Name], SOME] | None = None
    """Systems that may stand there; all that are offered where it is left out."""
    fabrics: Annotated[list[FabricName], SOME] = list(DEFAULT_FABRICS)
    """Designs of the network between our own systems that may be chosen; ":3" after a tree's name tapers its leaves by that ratio."""
    network: Name = "InfiniBand NDR"
    """A fabric of the catalog: the switches, cables and optics of that network."""
    network_share: Annotated[Real, Field(gt=0, le=1)] = 1.0
    """Share of that network's rate that messages of our own systems reach: less where software copies them on the way."""
    storage_bandwidth: ByteRate | None = None
    """At which all jobs there together read their data and write their checkpoints; no limit where it is left out."""
    fixed_cost: AmountPerSecond | None = None
    """Paid as soon as anything stands there."""
    colocation: PeakPrice | None = None
    """Rent of a hall for our own systems, per nameplate power and time, in place of a building; electricity is paid on top."""
    electricity_price: EnergyPrice | None = None
    """One price for all hours, in place of the catalog's."""
    tariff: Name | None = None
    """A time-of-use tariff of the catalog."""
    hourly: HourlyFile | None = None
    """Price, carbon intensity or both, hour by hour from a CSV file."""
    power_caps: Annotated[list[Annotated[Real, Field(ge=0.3, lt=1)]], Field(max_length=5)] = []
    """Shares of nameplate at which our own systems may also run, slower, on measured curves; none where it is left out."""
    electricity: Electricity | None = None
    """Purchase, contracts and storage as decisions; each joule costs the price of its hour where it is left out."""
    pue: Annotated[Real, Field(ge=1, le=5)] | None = None
    """Power at the meter over power of the systems; the region's where it is left out."""
    zone: Name | None = None
    """Zone of `spread`: sites with the same word fail together; a zone of its own where it is left out."""
    note: str = ""

    @field_validator("tariff")
    @classmethod
    def _one_price(cls, tariff: str | None, known: ValidationInfo) -> str | None:
        if tariff is not None and known.data.get("electricity_price") is not None:
            raise ValueError('give "electricity_price" or "tariff", not both')
        return tariff
