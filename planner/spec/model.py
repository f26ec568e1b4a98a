"""The question as the user wrote it: types, units and keys of a spec. Names are looked up in `planner.resolve.resolver`.

The docstrings here are the descriptions of the JSON Schema that `flopwatt schema` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from planner.errors import SpecError
from planner.spec.apis import Api
from planner.spec.base import MOST_ENTRIES, SOME, Block, problems_of
from planner.spec.document import read_document
from planner.spec.electricity import Series
from planner.spec.lines import Line
from planner.spec.offers import Offer
from planner.spec.phases import Phases
from planner.spec.porting import Porting
from planner.spec.prices import PriceLevels
from planner.spec.quantities import WHOLE, Amount, Day, Fraction, Kilograms, Name, Rate, Real, Seconds, Switch
from planner.spec.robust import Robust
from planner.spec.sites import Site
from planner.spec.workloads import Serving, Training

SCHEMA_VERSION: Literal[1] = 1

Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["CNY"])]


class Exchange(Block):
    """What a US dollar costs in a currency."""

    per_usd: Rate
    """Units of the currency for one US dollar."""
    date: str | None = None
    """When that was so."""


class Horizon(Block):
    """What is paid for: `years` from `start`, cut into hours of one typical day, of several, or of all days of a year."""

    start: Day = date(2027, 1, 1)
    """First day."""
    years: Annotated[int, Field(ge=1, le=30), WHOLE] = 1
    """Whole years of 365 days."""
    calendar: Literal["representative-day", "representative-days", "sampled-days", "full-year"] = "representative-day"
    """How time is cut: one typical day of 24 hours between any two starts or deadlines, the `days` most typical of the year, `days` at even
    distances, each for the days around it, or all of them."""
    days: Annotated[int, Field(ge=1, le=365), WHOLE] | None = None
    """Of "representative-days", where the days of the true peaks come on top, and of "sampled-days"."""
    dispatch: Switch = True
    """Whether a plan on fewer hours than its series have is run through all hours of the year afterwards."""
    discount_rate: Fraction | None = None
    """Per year; the catalog's default where it is left out."""

    @model_validator(mode="after")
    def _days(self) -> Horizon:
        if (self.days is not None) != (self.calendar in ("representative-days", "sampled-days")):
            raise ValueError(
                '"days" (such as 12) belongs to the calendars "representative-days" and "sampled-days", and is needed there'
            )
        return self


class Objective(Block):
    """`{"minimise": "cost"}`, `{"minimise": "carbon"}` or `{"maximise": "throughput"}` (of one `workload` or of all)."""

    minimise: Literal["cost", "carbon"] | None = None
    """Net present value of all costs, or kilograms of carbon."""
    maximise: Literal["throughput"] | None = None
    """The largest factor by which the demand can be multiplied within the limits."""
    workload: Name | None = None
    """The serving workload whose demand is multiplied; all of them where it is left out."""

    @model_validator(mode="after")
    def _one(self) -> Objective:
        if (self.minimise is None) == (self.maximise is None):
            raise ValueError(
                'expected either {"minimise": "cost"}, {"minimise": "carbon"} or {"maximise": "throughput"}'
            )
        if self.workload is not None and self.maximise is None:
            raise ValueError('"workload" belongs to {"maximise": "throughput"} only; remove it')
        return self


class Limits(Block):
    """Ceilings of the whole plan over the horizon."""

    budget: Amount | None = None
    """Of the present value of all costs."""
    capital: Amount | None = None
    """Of the purchase price of what is bought."""
    carbon: Kilograms | None = None
    """Of the carbon of operation and, in proportion, of making the systems."""
    export_control: Switch = True
    """Whether chips that may not be sold to China are kept from sites there."""
    licences: list[Name] = []
    """Chips or systems that need an export licence for China and have one."""


class Override(Block):
    """A figure in place of the catalog's, under its path `kind/record/figure`."""

    value: Annotated[str, Field(min_length=1, max_length=200)] | Real
    """A number, or a text with its unit."""
    low: Annotated[str, Field(min_length=1, max_length=200)] | Real | None = None
    """The least that it may be, written as the value is."""
    high: Annotated[str, Field(min_length=1, max_length=200)] | Real | None = None
    """The most that it may be."""
    note: Annotated[str, Field(min_length=1)]
    """Why; it stands among the plan's assumptions."""


class SolverOptions(Block):
    """How far and how long to search."""

    gap: Annotated[Real, Field(ge=1e-9, le=0.5)] = 0.001
    """Proven relative distance from the best plan at which to stop."""
    time_limit: Seconds = 60.0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] = 0
    backend: Literal["highs", "pulp"] = "highs"
    method: Literal["auto", "direct", "branch", "decomposed"] = "auto"
    """The solver's own search, a search over the yes-or-no choices, the slots one by one where that can be, or which of them suits the size."""
    points_per_system: Annotated[int, Field(ge=1, le=100), WHOLE] = 3
    """Most operating points of a workload that go on from one system at one site."""


class PlanSpec(Block):
    """A question to flopwatt. Only `name`, `workloads` and `sites` must be given."""

    schema_uri: Annotated[str | None, Field(alias="$schema")] = None
    """Place of this schema, for editors; ignored."""
    schema_version: Annotated[Literal[1], WHOLE] = SCHEMA_VERSION
    id: Annotated[str, Field(max_length=200)] | Annotated[int, WHOLE] | None = None
    """Name of this question among others."""
    name: Name
    note: str = ""
    currency: Currency = "USD"
    """Currency of all amounts of the plan."""
    exchange: dict[Currency, Exchange] = {}
    """Rates of other currencies than the US dollar."""
    horizon: Horizon = Horizon()
    objective: Objective = Objective(minimise="cost")
    workloads: Annotated[list[Annotated[Serving | Training, Field(discriminator="kind")]], SOME]
    sites: Annotated[list[Site], SOME]
    offers: Annotated[list[Offer], Field(max_length=MOST_ENTRIES)] | None = None
    """Ways to obtain systems; where it is left out all of the catalog but the spot market, for the systems that the sites name or, where none does, for all."""
    phases: Phases | None = None
    """Stretches of the build-out, from the start of the horizon on; all is obtained at the start where it is left out."""
    apis: Annotated[list[Api], SOME] | None = None
    """Tokens on offer by the million, beside systems."""
    porting: Annotated[list[Porting], SOME] | None = None
    """Costs of bringing architectures to families of chips; none where it is left out."""
    lines: Annotated[list[Line], SOME] | None = None
    """Lines on offer between sites; where it is left out all traffic takes the best path at a price per byte."""
    sharing: Literal["all", "kind", "none"] = "all"
    """Which workloads may work on the same systems: all, those of one kind (serving, training), or none."""
    prices: PriceLevels | None = None
    """At which of its figures each price counts; at the typical one where it is left out."""
    limits: Limits = Limits()
    overrides: dict[str, Override] = {}
    """Figures in place of the catalog's, such as "chips/H100 SXM5 80GB/hbm_bytes_per_s"."""
    catalog: dict[
        Literal["chips", "systems", "fabrics", "architectures", "tariffs", "regions", "lines"], list[dict[str, Any]]
    ] = {}
    """Records that the catalog lacks, each figure with a note."""
    series: dict[str, Series] = {}
    """Contents of the CSV files that the sites name; filled in from the files where it is left out."""
    solver: SolverOptions = SolverOptions()
    robust: Robust | None = None
    """How sure the plan shall be under uncertain times, demand and prices; the likeliest values are taken where it is left out."""

    @field_validator("workloads")
    @classmethod
    def _unique(cls, workloads: list[Serving | Training]) -> list[Serving | Training]:
        names = [workload.name for workload in workloads]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} stands twice; names must differ")
        return workloads


def parse_spec(document: Mapping[str, Any]) -> PlanSpec:
    """`document` (as read from JSON) as a checked spec.

    Raises SpecError with every problem of type, unit or key at once.
    """
    try:
        return PlanSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems_of(error, PlanSpec)) from None


def load_spec(source: str | Path | Mapping[str, Any]) -> PlanSpec:
    """A spec from a file or from a mapping. Raises SpecError, or OSError when the file cannot be read."""
    if isinstance(source, Mapping):
        return parse_spec(source)
    return parse_spec(read_document(Path(source).read_bytes()))
