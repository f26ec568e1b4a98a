"""Block of a spec about the uncertainty of a demand: its growth, its level, and launches that may not happen.

Used by the paths that are drawn from it (`planner.problem.forecasts.demand`).
"""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from planner.messages import Message
from planner.spec.base import Block, first_of
from planner.spec.phases import Moment
from planner.spec.quantities import Real, RequestRate, TokenRate, shown

LEAST_FACTOR = 1e-3
MOST_LAUNCHES = 20
Factor = Annotated[Real, Field(ge=LEAST_FACTOR, le=1e3)]
GrowthShare = Annotated[Real, Field(ge=-0.9, le=99)]
UNITS = {"requests_per_s": RequestRate, "output_tokens": TokenRate, "tasks_per_s": RequestRate, "users": Real}
AmountAdded = Annotated[str, Field(min_length=1, max_length=200)] | Real


class Estimates(Block):
    """Low, typical and high of a figure, between which draws are triangular."""

    @model_validator(mode="after")
    def _in_order(self) -> Estimates:
        found = [getattr(self, key) for key in ("low", "typical", "high")]
        known = [value for value in found if value is not None and not isinstance(value, str)]
        if known != sorted(known):
            raise ValueError(Message.of("forecast.levels_out_of_order", given=shown(known)).text())
        return self


class DemandGrowth(Estimates):
    """Growth from each year of the horizon to the next, as a share; draws are triangular between low and high."""

    low: GrowthShare | None = None
    """Least growth; as typical if omitted."""
    typical: GrowthShare
    """Most likely growth, by which plans that are not robust count."""
    high: GrowthShare | None = None
    """Largest growth; as typical if omitted."""


class DemandLevel(Estimates):
    """Factor on the stated demand, which holds from the start on; draws are triangular between low and high."""

    low: Factor | None = None
    """Least factor; as typical if omitted."""
    typical: Factor = 1.0
    """Most likely factor, by which plans that are not robust count."""
    high: Factor | None = None
    """Largest factor; as typical if omitted."""


class LaunchFactor(Estimates):
    """Factor on a demand from a launch on; draws are triangular between low and high."""

    low: Factor | None = None
    """Least factor; as typical if omitted."""
    typical: Factor
    """Most likely factor: 1.4 is 40 % more."""
    high: Factor | None = None
    """Largest factor; as typical if omitted."""


class LaunchAddition(Estimates):
    """Demand that a launch adds, written as the demand of the workload is; draws are triangular between low and high."""

    low: AmountAdded | None = None
    """Least addition; as typical if omitted."""
    typical: AmountAdded
    """Most likely addition."""
    high: AmountAdded | None = None
    """Largest addition; as typical if omitted."""


class Launch(Block):
    """A change of demand that may happen: a product, a customer, a country. It lasts to the end of the horizon."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    probability: Annotated[Real, Field(ge=0, le=1)]
    """Probability that it happens; plans that are not robust count one of at least 0.5."""
    factor: LaunchFactor | None = None
    """Factor on the demand from then on; give this or `addition`."""
    addition: LaunchAddition | None = None
    """Demand that is added from then on, in the unit of the workload's demand, and does not grow with it."""
    date: Moment
    """Most likely date: a day, or a time from the start of the horizon. Draws are triangular between `earliest` and `latest`."""
    earliest: Moment | None = None
    """Earliest date; as `date` if omitted."""
    latest: Moment | None = None
    """Latest date; as `date` if omitted."""

    @model_validator(mode="after")
    def _one_size(self) -> Launch:
        if (self.factor is None) == (self.addition is None):
            raise ValueError(Message.of("forecast.size_stated_once").text())
        dates = [each for each in (self.earliest, self.date, self.latest) if each is not None]
        if len({isinstance(each, date) for each in dates}) > 1:
            raise ValueError(Message.of("forecast.dates_of_two_kinds").text())
        if dates != sorted(dates, key=lambda each: each.toordinal() if isinstance(each, date) else each):
            raise ValueError(Message.of("forecast.dates_out_of_order").text())
        return self


class DemandForecast(Block):
    """Estimates of a demand to come: growth in yearly steps, level, and launches."""

    growth: DemandGrowth | None = None
    """Growth per year; none if omitted. Takes the place of `growth_per_year`."""
    level: DemandLevel | None = None
    """Factor on the stated demand from the start on; 1 if omitted."""
    launches: Annotated[list[Launch], Field(max_length=MOST_LAUNCHES)] = []
    """Launches that may not happen."""

    @model_validator(mode="after")
    def _named_once(self) -> DemandForecast:
        names = [launch.name for launch in self.launches]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(Message.of("spec.names_occur_twice", names=", ".join(twice)).text())
        return self


def added_share(launch: Launch, key: str, stated: float) -> tuple[float, float, float]:
    """Return (low, typical, high) of what a launch adds, as shares of the demand stated under a key; 0 for a launch with a factor.

    Raises ValueError for an addition that is not written as that demand is, for one to sessions, and for figures out of order.
    """
    if launch.addition is None:
        return 0.0, 0.0, 0.0
    if key not in UNITS:
        raise ValueError(Message.of("forecast.addition_to_sessions", name=launch.name).text())
    if not stated:
        raise ValueError(Message.of("forecast.addition_to_no_demand", name=launch.name).text())
    amounts: TypeAdapter[float] = TypeAdapter(UNITS[key])
    typical = launch.addition.typical
    given = [typical if each is None else each for each in (launch.addition.low, typical, launch.addition.high)]
    try:
        low, middle, high = (amounts.validate_python(each) for each in given)
    except ValidationError as error:
        told = {"name": launch.name, "key": key, "words": first_of(error)}
        raise ValueError(Message.of("forecast.addition_malformed", **told).text()) from None
    if not 0 <= low <= middle <= high:
        raise ValueError(Message.of("forecast.levels_out_of_order", given=shown(given)).text())
    return low / stated, middle / stated, high / stated
