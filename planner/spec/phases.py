"""Blocks of a spec about build-out in phases: the phases, and what changes from one to the next for offers, sites and demand.

Their effect on a plan: `planner.problem.phases`.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from catalog.units import YEAR_S, UnitError, parse
from planner.errors import words_of
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Amount, LifeSeconds, Real, Watts, offer_price, shown

MOST_PHASES = 40
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _moment(value: Any) -> Any:
    if isinstance(value, date):
        return value
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
        seconds = parse(value, "s") if isinstance(value, str) else -1.0
    except (ValueError, UnitError):
        seconds = -1.0
    if not 0 <= seconds <= 100 * YEAR_S:
        raise ValueError(Message.of("spec.day_or_time_expected", given=shown(value)).text())
    return seconds


def _phase_name(name: str) -> str:
    if not re.fullmatch(r"[^\W\d][\w -]{0,60}", name):
        raise ValueError(Message.of("spec.name_malformed", given=shown(name)).text())
    return name


Moment = Annotated[
    date | float,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "description": "A day, or a time from the start of the horizon.",
            "examples": ["2028-01-01", "1 year"],
        }
    ),
]
PhaseName = Annotated[str, AfterValidator(_phase_name)]
Price = Annotated[
    str, Field(examples=["310000 USD", "55.04 USD/h"], json_schema_extra={"x-unit": "currency, or currency/s"})
]


class Phase(Block):
    """A phase of the build-out, until the next one begins."""

    name: PhaseName
    start: Moment
    """When it begins; the first begins with the horizon."""
    capital: Amount | None = None
    """Ceiling on the purchase price of the systems and fabric delivered in it."""
    budget: Amount | None = None
    """Ceiling on payments in it, not discounted: the purchase price of what is delivered, and all running costs as they fall due."""


class OfferInTime(Block):
    """How an offer changes over time. Systems obtained in a phase are delivered at its start, or as soon after as possible, and stay."""

    available_from: Moment | None = None
    """First delivery: launch of a chip, or its lead time."""
    available_until: Moment | None = None
    """End of deliveries."""
    life: LifeSeconds | None = None
    """Service life of what is bought; the catalog's if omitted. With `phases` it is retired then."""
    price_change_per_year: Annotated[Real, Field(ge=-0.9, le=9)] = 0.0
    """Share by which the price rises (or, below 0, falls) per year; the price at delivery counts, also of what replaces a system at the end of its life."""
    price_by_phase: dict[PhaseName, Price] = {}
    """Price from a phase on; `price` before."""
    supply_by_phase: dict[PhaseName, Annotated[int, Field(ge=0, le=10_000_000), WHOLE]] = {}
    """Most systems that can be obtained in a phase; unlimited in phases that are omitted."""

    def check_prices(self, bought: bool) -> None:
        """Check the prices by phase. Raises ValueError for one that cannot be read, or beside a change per year."""
        for name, price in self.price_by_phase.items():
            try:
                offer_price(price, bought, chips=1)
            except ValueError as error:
                raise ValueError(Message.of("spec.price_by_phase", name=name, error=words_of(error)).text()) from None
        if self.price_by_phase and self.price_change_per_year:
            raise ValueError(Message.of("spec.price_stated_two_ways").text())


class SiteInTime(Block):
    """How a site changes over time."""

    available_from: Moment | None = None
    """When it is built, before which it holds no systems; the start of the horizon if omitted."""
    power_by_phase: dict[PhaseName, Watts] = {}
    """Ceilings on power from a phase on; `power` before."""


class DemandInTime(Block):
    """How a demand changes over time."""

    growth_per_year: Annotated[Real, Field(ge=-0.9, le=99)] = 0.0
    """Growth from each year of the horizon to the next, as a share."""
    factor_by_phase: dict[PhaseName, Annotated[Real, Field(ge=0, le=1e6)]] = {}
    """Factor on the demand from a phase on; 1 before."""


def distinct(phases: list[Phase] | None) -> list[Phase] | None:
    """Check that each name occurs once. Raises ValueError otherwise."""
    names = [phase.name for phase in phases or ()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(Message.of("spec.names_occur_twice", names=", ".join(twice)).text())
    return phases


Phases = Annotated[list[Phase], Field(min_length=1, max_length=MOST_PHASES), AfterValidator(distinct)]
