"""The spec as the user writes it: its blocks, with types, units and keys. Names are looked up in `planner.resolve.resolver`.

The docstrings here are the descriptions of the JSON Schema that `flopwatt schema` prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from planner.errors import SpecError
from planner.messages import Message
from planner.spec.apis import Api
from planner.spec.base import MOST_ENTRIES, SOME, Block, problems_of
from planner.spec.document import read_document
from planner.spec.economics import OwnedSystems, Ownership, RentedSystems
from planner.spec.electricity import Series
from planner.spec.lines import Line
from planner.spec.load.packing import Packing
from planner.spec.load.relays import Operation
from planner.spec.offers import Offer
from planner.spec.old_keys import Renamed, in_written_keys, with_new_keys
from planner.spec.phases import Phases
from planner.spec.porting import Porting
from planner.spec.prices import PriceLevels
from planner.spec.quantities import WHOLE, Amount, Day, Fraction, Kilograms, Memory, Name, Rate, Real, Seconds, Switch
from planner.spec.reinforcement import Reinforcement
from planner.spec.requirements.adapt import Adapt
from planner.spec.robust import Robust
from planner.spec.sites import Site
from planner.spec.stack.kv_tiers import KvTiersOnOffer
from planner.spec.workloads import Serving, Training
from planner.ways_in.kinds import SPEC, wrong_kind

SCHEMA_VERSION: Literal[1] = 1

Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["CNY"])]


GuessPath = Annotated[str, Field(min_length=1, max_length=200)]
GuessReason = Annotated[str, Field(min_length=1, max_length=1000)]


class Exchange(Block):
    """Exchange rate of a currency to the US dollar."""

    per_usd: Rate
    """Units of the currency for one US dollar."""
    date: str | None = None
    """Date of the rate."""


class Horizon(Block):
    """Time that the plan covers: `years` from `start`, cut into hours of one typical day, of several, or of all days of a year."""

    start: Day = date(2027, 1, 1)
    """First day."""
    years: Annotated[int, Field(ge=1, le=30), WHOLE] = 1
    """Whole years of 365 days."""
    calendar: Literal["representative-day", "representative-days", "sampled-days", "full-year"] = "representative-day"
    """How time is cut: one typical day of 24 hours between any two starts or deadlines, the `days` most typical days of the year (at least one
    between any two starts or deadlines), `days` days at even distances that each represent the days around them, or all days."""
    days: Annotated[int, Field(ge=1, le=365), WHOLE] | None = None
    """Number of days for "representative-days" (the days of the true peaks come on top) and for "sampled-days"."""
    dispatch: Switch = True
    """Whether a plan on fewer hours than its series hold is dispatched over all hours of the year afterwards."""
    discount_rate: Fraction | None = None
    """Per year; the catalog's default if omitted."""
    payments: Literal["yearly", "quarterly", "monthly"] = "yearly"
    """How often running costs are paid, each time for the part of the year that ends then: rent, electricity, staff, maintenance, tokens. A purchase is paid on delivery."""

    holidays: list[Day] = []
    """Public holidays of the plan's year, which take the shape of Sunday: in weights of weekdays, in tariffs, and in hourly prices and carbon of
    another year. A file of the plan's own year has them already."""

    @model_validator(mode="after")
    def _holidays(self) -> Horizon:
        typical = self.calendar == "representative-day"
        first = date(self.start.year, 1, 1) if typical else self.start
        last = date(self.start.year, 12, 31) if typical else self.start + timedelta(days=364)
        if outside := [day for day in self.holidays if not first <= day <= last]:
            names = ", ".join(f"{day}" for day in outside)
            raise ValueError(
                Message.of("spec.holidays_of_the_year", days=names, first=f"{first}", last=f"{last}").text()
            )
        return self

    @model_validator(mode="after")
    def _days(self) -> Horizon:
        if (self.days is not None) != (self.calendar in ("representative-days", "sampled-days")):
            raise ValueError(Message.of("spec.days_of_calendar").text())
        return self


class Objective(Block):
    """`{"minimise": "cost"}`, `{"minimise": "carbon"}` or `{"maximise": "throughput"}` (of one `workload` or of all)."""

    minimise: Literal["cost", "carbon"] | None = None
    """Net present value of all costs, or kilograms of carbon."""
    maximise: Literal["throughput"] | None = None
    """The largest factor by which the demand can be multiplied within the limits."""
    workload: Name | None = None
    """The serving workload whose demand is multiplied; all of them if omitted."""

    @model_validator(mode="after")
    def _one(self) -> Objective:
        if (self.minimise is None) == (self.maximise is None):
            raise ValueError(Message.of("spec.objective_expected").text())
        if self.workload is not None and self.maximise is None:
            raise ValueError(Message.of("spec.workload_only_with_throughput").text())
        return self


class Limits(Block):
    """Ceilings of the whole plan over the horizon."""

    budget: Amount | None = None
    """Ceiling on the present value of all costs."""
    capital: Amount | None = None
    """Ceiling on the purchase price of what is bought."""
    carbon: Kilograms | None = None
    """Ceiling on the carbon of operation and, in proportion to the time in use, of making the systems."""
    export_control: Switch = True
    """Whether chips that may not be sold to China are barred from sites there."""
    licences: list[Name] = []
    """Chips or systems that need an export licence for China and have one."""


class Override(Block):
    """A figure in place of the catalog's, under its path `kind/record/figure`."""

    value: Annotated[str, Field(min_length=1, max_length=200)] | Real
    """A number, or a text with its unit."""
    low: Annotated[str, Field(min_length=1, max_length=200)] | Real | None = None
    """Its low estimate, written as the value is."""
    high: Annotated[str, Field(min_length=1, max_length=200)] | Real | None = None
    """Its high estimate."""
    note: Annotated[str, Field(min_length=1)]
    """Reason; the plan lists it among its assumptions."""


class SolverOptions(Block):
    """Accuracy, time limit and method of the solver."""

    gap: Annotated[Real, Field(ge=1e-9, le=0.5)] = 0.01
    """Relative MIP gap that is enough: proven distance of the best plan found from the best possible one, at which the search stops. If omitted, divisible replicas and small questions are still searched to a tenth of it."""
    time_limit: Seconds = 60.0
    """Most time for a plan by the wall clock, from the spec on: operating points, program, marginal values, diagnosis and dispatch."""
    memory: Memory = 2e9
    """Most memory of the process for a plan: evaluations kept, and the programs of search and diagnosis, which end with what they found by then."""
    node_limit: Annotated[int, Field(ge=1, le=10**9), WHOLE] | None = None
    """Most nodes of branch and bound, of the solver's own with "direct": an end that is the same in every run, on any machine; unlimited if omitted."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] = 0
    replicas: Literal["auto", "divisible", "whole"] = "auto"
    """Serving replicas that are "whole" and hold their weights, or "divisible"; "auto": whole if a plan with them is found in time, which the plan states (docs/deployments.md)."""
    backend: Literal["highs", "pulp"] = "highs"
    method: Literal["auto", "direct", "branch", "decomposed", "general"] = "auto"
    """The solver's own branch and bound ("direct"), our branch and bound over the binaries ("branch"), decomposition by slots ("decomposed"), merged slots and then day by day ("general"), or by size ("auto")."""
    points_per_system: Annotated[int, Field(ge=1, le=100), WHOLE] = 3
    """Most operating points of a workload that become candidates on one system at one site."""

    @property
    def search_gap(self) -> float:
        """Gap at which a search that takes little time stops: that stated, or a tenth of that which is enough if the spec states none."""
        return self.gap if "gap" in self.model_fields_set else 0.1 * self.gap

    @property
    def whole(self) -> bool:
        """Whether serving replicas must be whole; not where that is left to the planner."""
        return self.replicas == "whole"


PER_DEPLOYMENT = 0.0025  # share of the value that a deployment saved may cost, where the spec states nothing


class Simplicity(Block):
    """Preference for few moving parts among plans that are nearly as good as the best one found, and limits on them."""

    within: Annotated[Real, Field(ge=0, le=0.5)] = 0.01
    """Share of its value that the best plan found may lose to one with fewer deployments, kinds of systems and sites, in this order, and then to the one of highest confidence of about as few; 0: none."""
    per_deployment: Annotated[Real, Field(ge=0, le=0.5)] | None = None
    """Share of its value that each deployment saved may cost: of the plans found, the one is taken that is best where each deployment counts so much; 0.0025 if omitted, and no limit beside `within` where that is stated."""
    most_sites: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = None
    """Most sites at which systems are held; any number if omitted."""
    most_kinds: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = None
    """Most kinds of systems held at a site at a time; any number if omitted."""
    least_systems: Annotated[int, Field(ge=1, le=10**6), WHOLE] | None = None
    """Least systems of a kind at a site where any are held; 1 if omitted."""

    @property
    def rate(self) -> float:
        """Share of the best plan's value that each deployment saved may cost; infinite where only `within` is stated."""
        if self.per_deployment is not None:
            return self.per_deployment
        return math.inf if "within" in self.model_fields_set else PER_DEPLOYMENT

    @property
    def limits(self) -> bool:
        """Whether the number of parts is limited."""
        return not self.most_sites is self.most_kinds is self.least_systems is None


class PlanSpec(Block):
    """The spec of a plan. Only `name`, `workloads` and `sites` are required."""

    schema_uri: Annotated[str | None, Field(alias="$schema")] = None
    """Address of this schema, for editors; ignored."""
    schema_version: Annotated[Literal[1], WHOLE] = SCHEMA_VERSION
    id: Annotated[str, Field(max_length=200)] | Annotated[int, WHOLE] | None = None
    """Identifier of this spec among others."""
    name: Name
    note: str = ""
    currency: Currency = "USD"
    """Currency of all amounts of the plan."""
    exchange: dict[Currency, Exchange] = {}
    """Exchange rates of currencies other than the US dollar."""
    horizon: Horizon = Horizon()
    objective: Objective = Objective(minimise="cost")
    workloads: Annotated[list[Annotated[Serving | Training | Reinforcement, Field(discriminator="kind")]], SOME]
    sites: Annotated[list[Site], SOME]
    owned: Annotated[list[OwnedSystems], Field(max_length=MOST_ENTRIES)] = []
    """Systems that are owned already."""
    rented: Annotated[list[RentedSystems], Field(max_length=MOST_ENTRIES)] = []
    """Systems that are rented already."""
    offers: Annotated[list[Offer], Field(max_length=MOST_ENTRIES)] | None = None
    """Ways to obtain systems; if omitted all of the catalog but the spot market, for the systems that the sites name or, where none does, for all that have the figures and a price; `notes` of the plan list what is left out."""
    kv_tiers: Annotated[list[KvTiersOnOffer], SOME] | None = None
    """Tiers of KV cache with which systems may be bought, for workloads whose `cache` has `reuse`; none if omitted."""
    phases: Phases | None = None
    """Phases of the build-out, from the start of the horizon; everything is obtained at the start if omitted."""
    apis: Annotated[list[Api], SOME] | None = None
    """APIs that sell tokens, as alternatives to systems."""
    porting: Annotated[list[Porting], SOME] | None = None
    """Costs of porting architectures to chip families; none if omitted."""
    lines: Annotated[list[Line], SOME] | None = None
    """Lines on offer between sites; if omitted, all traffic takes the best path at a price per byte."""
    sharing: Literal["all", "kind", "none"] = "all"
    """Which workloads may share systems: all, those of one kind (serving, training, reinforcement), or none."""
    economics: Ownership = Ownership()
    """What owning costs beside the price of what is bought; the catalog's figures if omitted."""
    prices: PriceLevels | None = None
    """Whether each price counts at its low, typical or high figure; typical if omitted."""
    limits: Limits = Limits()
    overrides: dict[str, Override] = {}
    """Figures in place of the catalog's, such as "chips/H100 SXM5 80GB/hbm_bytes_per_s"."""
    catalog: dict[
        Literal["chips", "systems", "fabrics", "architectures", "tariffs", "regions", "lines", "engines", "components"],
        list[dict[str, Any]],
    ] = {}
    """Records to add to the catalog, each figure with a note."""
    assumptions: Annotated[dict[GuessPath, GuessReason], Field(max_length=MOST_ENTRIES)] = {}
    """Values of this spec that are guesses, by their paths such as "workloads[0].lengths.input", each with the reason; the plan lists them among its assumptions."""
    series: dict[str, Series] = {}
    """Contents of the CSV files that the sites name; read from the files if omitted."""
    operation: Operation = Operation()
    """What it costs to change what systems run in the course of a day, and how often they may."""
    packing: Packing = Packing()
    """How full the systems that serve may be; as full as they get if omitted."""
    simplicity: Simplicity = Simplicity()
    """Preference for few moving parts."""
    solver: SolverOptions = SolverOptions()
    robust: Robust | None = None
    """Confidence that the plan must have under uncertain times, demand and prices; typical values are taken if omitted."""
    adapt: Adapt | None = None
    """Decisions that may wait until performance and demand are known; everything is decided at the start if omitted."""
    _renamed: tuple[Renamed, ...] = PrivateAttr(())

    @property
    def renamed(self) -> tuple[Renamed, ...]:
        """Return the keys that the document has under older names."""
        return self._renamed

    @field_validator("workloads")
    @classmethod
    def _unique(cls, workloads: list[Serving | Training | Reinforcement]) -> list[Serving | Training | Reinforcement]:
        names = [workload.name for workload in workloads]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(Message.of("spec.names_occur_twice", names=", ".join(twice)).text())
        return workloads


def parse_spec(document: Mapping[str, Any]) -> PlanSpec:
    """Check a document as read from JSON. Raises SpecError with every problem of type, unit or key at once."""
    document, renamed = with_new_keys(document)
    try:
        spec = PlanSpec.model_validate(document)
    except ValidationError as error:
        other = wrong_kind(document, SPEC)
        raise SpecError(other or in_written_keys(problems_of(error, PlanSpec), renamed)) from None
    spec._renamed = renamed
    return spec


def load_spec(source: str | Path | Mapping[str, Any]) -> PlanSpec:
    """Load a spec from a file or a mapping. Raises SpecError, or OSError when the file cannot be read."""
    if isinstance(source, Mapping):
        return parse_spec(source)
    return parse_spec(read_document(Path(source).read_bytes()))
