"""Blocks of a spec about the cost of owning, and systems owned or rented already: residual values, upkeep, staff, software, buildings, contracts."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.offers import Covered
from planner.spec.phases import Moment
from planner.spec.quantities import (
    WHOLE,
    Amount,
    AmountPerSecond,
    Fraction,
    LifeSeconds,
    Name,
    PeakPrice,
    Real,
    SecondsFromStart,
    Switch,
    offer_price,
)

MOST_POINTS = 40


class ResidualPoint(Block):
    """What a bought system is worth at an age."""

    age: LifeSeconds
    """Age of the system."""
    fraction: Fraction
    """Share of its purchase price that is left then."""


def _falling(points: list[ResidualPoint]) -> list[ResidualPoint]:
    """Check that ages rise and values do not. Raises ValueError otherwise."""
    for before, after in pairwise(points):
        if after.age <= before.age:
            raise ValueError(Message.of("spec.ages_in_order").text())
        if after.fraction > before.fraction:
            raise ValueError(Message.of("spec.values_fall_with_age").text())
    return points


Curve = Annotated[list[ResidualPoint], Field(min_length=1, max_length=MOST_POINTS), AfterValidator(_falling)]


Rise = Annotated[Real, Field(ge=-0.9, le=9, examples=[0.025])]


class Escalation(Block):
    """Share by which a price rises (or, below 0, falls) at the end of each year of the horizon; prices of the spec and the catalog hold at its start."""

    electricity: Rise = 0.0
    """Of electricity from the grid: energy, delivery, levies and demand charges, and a market's price for surplus; contracts keep their price."""
    staff: Rise = 0.0
    """Of staff."""
    rent: Rise = 0.0
    """Of rented halls, and of systems rented on demand or on the spot market whose offer states no `price_change_per_year`; a commitment keeps its price."""
    maintenance: Rise = 0.0
    """Of maintenance."""


class Ownership(Block):
    """Cost of bought systems, beside their price; the catalog's figure where one is omitted."""

    residual: Curve | None = None
    """Residual value of all kinds of system by age, linear between the points and from the whole price at delivery; the catalog's for
    each kind if omitted."""
    residual_of: dict[Name, Curve] = {}
    """Residual value of single kinds of system, by their names."""
    maintenance: Fraction | None = None
    """Of systems and fabric per year, as a share of their purchase price; the catalog's if omitted."""
    levies: Fraction | None = None
    """Property tax and insurance of systems and fabric per year, as a share of their purchase price; none if omitted, which the plan says."""
    escalation: Escalation = Escalation()
    """Rise of running costs by year."""
    spare_parts: Fraction | None = None
    """Stock of parts held beside bought systems, as a share of their purchase price; it is bought, and sold, with them."""
    staff_per_power: PeakPrice | None = None
    """Staff of a building of our own, per nameplate power and time; that of a rented hall is in its rent."""
    staff_per_system: AmountPerSecond | None = None
    """Staff that runs the systems, for each that is bought."""
    software_per_chip: AmountPerSecond | None = None
    """Licences and support, for each chip that is held, bought or rented, unless its offer `includes` "software"."""
    software_per_system: AmountPerSecond | None = None
    """Licences and support, for each system that is held, bought or rented, unless its offer `includes` "software"."""
    facility_premium: Fraction | None = None
    """Extra cost of a building for AI, as a share of the region's construction cost: denser power and cooling."""
    facility_lead_time: SecondsFromStart | None = None
    """Time until a site with `building` "new" is finished."""


class OwnedSystems(Block):
    """Systems of one kind and age that stand at a site: a plan keeps them there, moves them to another site, or sells them."""

    system: Name
    """A system of the catalog."""
    region: Name
    """Region of the site where they stand."""
    count: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """How many there are."""
    age: LifeSeconds
    """Age at the start of the horizon."""
    price: Amount | None = None
    """Price of one when new; the catalog's least at that site if omitted."""
    resale: Amount | None = None
    """What one would sell for at the start; the residual value at its age of the price when new if omitted."""
    book_value: Amount | None = None
    """What one stands in the books at; it decides nothing, and the plan states gain or loss of a sale by it."""
    topology: Name | None = None
    """Topology of the network that joins them; any of the site's if omitted. It is paid for, as is the building."""
    movable: Switch = True
    """Whether they may be moved to another site, where they need a network and a building."""
    move_cost: Fraction | None = None
    """Cost of moving one, as a share of its price when new; the catalog's if omitted."""
    move_time: SecondsFromStart = 0.0
    """Time from the start of the horizon until moved systems run at their new site."""
    lease_end: SecondsFromStart | None = None
    """When leased hardware goes back, from the start of the horizon: it stands in our own building, is kept up by our own staff, and cannot
    be sold; its rent is due whatever the plan does, and is left out. Systems of a provider belong under `rented`."""

    @model_validator(mode="after")
    def _leased(self) -> OwnedSystems:
        for key in ("resale", "book_value"):
            if self.lease_end is not None and getattr(self, key) is not None:
                raise ValueError(Message.of("spec.lease_not_sold", key=key).text())
        return self


Rent = Annotated[
    str, Field(examples=["55.04 USD/h", "6.88 USD/gpu/h"], json_schema_extra={"x-unit": "currency/s"}),
]  # fmt: skip


class RentedSystems(Block):
    """Systems of one kind that are rented today: the plan keeps them to the end of the contract, gives them back before, or extends.

    Their rent is due until they are given back, whether they work or not; building, network, power, maintenance and staff are in it.
    """

    system: Name
    """A system of the catalog, such as an instance of a cloud."""
    region: Name
    """Region of the site where they stand."""
    count: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """How many there are."""
    price: Rent
    """Rent of one, or of one chip, such as "6.88 USD/gpu/h"."""
    until: Moment
    """End of the contract."""
    notice: SecondsFromStart = 0.0
    """Time from notice, given at the start of the horizon at the earliest, until systems go back; a day at least, as a return takes one."""
    exit_fee: Fraction | None = None
    """Share of the rent from the return to `until` that is due at the return; the catalog's if omitted."""
    extendable: Switch = True
    """Whether they may be kept beyond `until`."""
    extension_price: Rent | None = None
    """Rent of one, or of one chip, beyond `until`; as `price` if omitted."""
    includes: Annotated[list[Covered], Field(max_length=1)] = []
    """What the rent covers beside the systems: "software" for the licences and support of `economics`, which are due beside it otherwise."""

    @field_validator("price", "extension_price", mode="before")
    @classmethod
    def _readable(cls, price: Any) -> Any:
        if price is not None:
            offer_price(price, False, chips=1)
        return price
