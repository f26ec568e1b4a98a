"""Block of a spec about a site: where systems may stand, what its power costs, and what it may draw."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from catalog.contents import SEPARATE
from planner.messages import Message
from planner.spec.base import SOME
from planner.spec.electricity import Contents, Electricity, HourlyFile
from planner.spec.fabrics import DEFAULT_FABRICS, FabricName
from planner.spec.facility import Assurance, Hall
from planner.spec.phases import SiteInTime
from planner.spec.quantities import AmountPerSecond, ByteRate, EnergyPrice, Name, PeakPrice, Real, Watts


class Site(Assurance, Hall, SiteInTime):
    """A place where systems may stand."""

    region: Name
    """A region of the catalog."""
    power: Watts | None = None
    """Ceiling on the power that our own systems draw at the meter; none if omitted."""
    systems: Annotated[list[Name], SOME] | None = None
    """Systems that may stand there; all that are offered if omitted."""
    topologies: Annotated[list[FabricName], SOME] = list(DEFAULT_FABRICS)
    """Allowed topologies of the network between our own systems; ":3" after a tree's name tapers its leaves by that ratio."""
    fabric: Name = "InfiniBand NDR"
    """A fabric of the catalog: switches, cables and optics of the network between our own systems."""
    network_share: Annotated[Real, Field(gt=0, le=1)] = 1.0
    """Share of the link rate that messages reach: below 1 where software copies them on the way."""
    storage_bandwidth: ByteRate | None = None
    """Rate at which all jobs there together read their data and write their checkpoints; unlimited if omitted."""
    fixed_cost: AmountPerSecond | None = None
    """Fixed cost of using the site at all."""
    crew: AmountPerSecond | None = None
    """Pay of the crew that the site needs at any size while it is used, such as shifts round the clock; none if omitted. Staff by power then
    counts what each further MW takes (`staff_beside_crew` of the catalog, unless `economics.staff_per_power` is stated)."""
    colocation: PeakPrice | None = None
    """Rent of a hall for our own systems, per nameplate power and time, in place of a building; electricity is paid on top."""
    building: Literal["standing", "new"] = "standing"
    """"new": it must be built first, and holds nothing before the lead time of `economics.facility_lead_time`."""
    electricity_price: EnergyPrice | None = None
    """One electricity price for all hours, in place of the catalog's."""
    tariff: Name | None = None
    """A time-of-use tariff of the catalog."""
    delivery: EnergyPrice | None = None
    """Charge on top of every hour's price for delivery, and for demand and levies unless they are stated apart; if omitted, the catalog's for the
    region where the price is that of a market, the user's own hourly file included."""
    contents: Contents | None = None
    """What the price contains, and what is due on top."""
    hourly: HourlyFile | None = None
    """Hourly price, carbon intensity or both from a CSV file."""
    power_caps: Annotated[list[Annotated[Real, Field(ge=0.3, lt=1)]], Field(max_length=5)] = []
    """Power caps, as shares of nameplate, at which our own systems may run at the lower speed of measured curves; none if omitted."""
    electricity: Electricity | None = None
    """Grid purchase, contracts and storage as decisions; if omitted, each joule costs the price of its hour."""
    pue: Annotated[Real, Field(ge=1, le=5)] | None = None
    """Power at the meter over power of the systems; if omitted, that of large halls in the region's climate, by what cools a system."""
    zone: Name | None = None
    """Failure zone of `spread`: sites with the same name fail together; a zone of its own if omitted."""
    note: str = ""

    @field_validator("building")
    @classmethod
    def _no_hall(cls, building: str, known: ValidationInfo) -> str:
        if building == "new" and known.data.get("colocation") is not None:
            raise ValueError(Message.of("spec.rented_hall_with_building").text())
        return building

    @field_validator("tariff")
    @classmethod
    def _one_price(cls, tariff: str | None, known: ValidationInfo) -> str | None:
        if tariff is not None and known.data.get("electricity_price") is not None:
            raise ValueError(Message.of("spec.price_or_tariff").text())
        return tariff

    @model_validator(mode="after")
    def _each_part_once(self) -> Site:
        stated = {} if self.contents is None else self.contents.states()
        if self.delivery is not None and stated.get("delivery"):
            raise ValueError(Message.of("electricity.delivery_stated_twice").text())
        charge = None if self.electricity is None else self.electricity.demand_charge
        if charge is not None and stated.get("demand", SEPARATE) != SEPARATE:
            raise ValueError(Message.of("electricity.demand_stated_twice").text())
        if self.contents is not None and self.contents.amount("demand") is not None:
            if charge is not None:
                raise ValueError(Message.of("electricity.demand_stated_twice").text())
            if self.electricity is None:
                raise ValueError(Message.of("electricity.demand_needs_meter").text())
        return self
