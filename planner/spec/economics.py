"""Blocks of a spec about the cost of owning and systems owned already: residual values by age, maintenance, spare parts, staff, software and buildings."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
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
            raise ValueError(Message.of("spec.expected_each_age_once_in").text())
        if after.fraction > before.fraction:
            raise ValueError(Message.of("spec.expected_values_that_fall_with").text())
    return points


Curve = Annotated[list[ResidualPoint], Field(min_length=1, max_length=MOST_POINTS), AfterValidator(_falling)]


Rise = Annotated[Real, Field(ge=-0.9, le=9, examples=[0.025])]


class Escalation(Block):
    """Share by which a price rises (or, below 0, falls) at the end of each year of the horizon; prices of the spec and the catalog are those of its start."""

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
    """When leased systems go back, from the start of the horizon: they cannot be sold, and their rent is due whatever the plan does."""

    @model_validator(mode="after")
    def _leased(self) -> OwnedSystems:
        for key in ("resale", "book_value"):
            if self.lease_end is not None and getattr(self, key) is not None:
                raise ValueError(Message.of("spec.belongs_to_what_is_owned", key=key).text())
        return self
