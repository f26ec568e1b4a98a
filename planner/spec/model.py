"""The question as the user wrote it: types, units and keys of a spec. Names are looked up in `planner.resolve.resolver`.

The docstrings here are the descriptions of the JSON Schema that `flopwatt schema` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from catalog.units import HOUR_S, YEAR_S
from planner.errors import SpecError
from planner.spec.apis import Api
from planner.spec.base import MOST_ENTRIES, Block
from planner.spec.document import read_document
from planner.spec.electricity import Electricity, HourlyFile, Series
from planner.spec.fabrics import DEFAULT_FABRICS, FabricName
from planner.spec.lines import Line, Security, Traffic
from planner.spec.phases import DemandInTime, OfferInTime, Phases, SiteInTime
from planner.spec.porting import Porting
from planner.spec.preemption import Preemption
from planner.spec.prices import PriceLevels
from planner.spec.quality import Alternative, QualityFloor, comparable, of_one_source
from planner.spec.quantities import (
    WHOLE,
    Amount,
    AmountPerSecond,
    ByteRate,
    Bytes,
    Day,
    EnergyPrice,
    Fraction,
    Kilograms,
    Name,
    PeakPrice,
    Rate,
    Real,
    RequestRate,
    Seconds,
    SecondsFromStart,
    Switch,
    TokenRate,
    Tokens,
    UpdatesPerYear,
    Watts,
    offer_price,
)
from planner.spec.robust import Robust
from planner.spec.serving import Drafting, PrefixSharing, SellingPrice
from planner.spec.slo import Slo
from planner.spec.spot import SpotTerms
from planner.spec.spread import Spread
from planner.spec.validation import problems_of

SCHEMA_VERSION = 1
LEAST_WEIGHT = 1e-6  # of an hour, a share
PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "int8")
ENGINES = ("tensorrt_llm", "tensorrt_plan", "vllm", "sglang")  # as in models.serving.constants

Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["CNY"])]
Precisions = Annotated[list[Literal[PRECISIONS]], Field(min_length=1, max_length=len(PRECISIONS))]

SOME = Field(min_length=1, max_length=MOST_ENTRIES)


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


def _an_hour_or_none(wait: float) -> float:
    if wait and not HOUR_S <= wait <= YEAR_S:
        raise ValueError('expected a time from one hour to a year, such as "6 h"')
    return wait


class Demand(DemandInTime):
    """Mean over the day, as requests or as output tokens; `profile`: 24 weights by local hour of the origin."""

    requests_per_s: RequestRate | None = None
    """Requests; give these or `output_tokens`."""
    output_tokens: TokenRate | None = None
    """Tokens of the answers; give these or `requests_per_s`."""
    profile: Annotated[list[Annotated[Real, Field(ge=0, le=1e6)]], Field(min_length=24, max_length=24)] | None = None
    """Weights of the hours of a day, of any size; flat where it is left out."""
    week: Annotated[list[Annotated[Real, Field(ge=LEAST_WEIGHT, le=1e6)]], Field(min_length=7, max_length=7)] | None = (
        None
    )
    """Weights of the days of a week from Monday on; all the same where it is left out. A typical day is their mean."""
    months: (
        Annotated[list[Annotated[Real, Field(ge=LEAST_WEIGHT, le=1e6)]], Field(min_length=12, max_length=12)] | None
    ) = None
    """Weights of the months from January on; all the same where it is left out. A typical day is their mean."""
    deferral: Annotated[Seconds, AfterValidator(_an_hour_or_none)] = 0.0
    """How long a request may wait until its hour is served, in whole hours; not at all where it is left out."""

    @model_validator(mode="after")
    def _one(self) -> Demand:
        if (self.requests_per_s is None) == (self.output_tokens is None):
            raise ValueError(
                'give exactly one of "requests_per_s" (such as 40) and "output_tokens" (such as "10B tokens/day")'
            )
        return self

    @field_validator("profile")
    @classmethod
    def _some_demand(cls, profile: list[float] | None) -> list[float] | None:
        if profile is not None and max(profile) < LEAST_WEIGHT:
            raise ValueError(f"expected at least one hour with a weight of {LEAST_WEIGHT} or more")
        if profile is not None and any(0 < weight < LEAST_WEIGHT * max(profile) for weight in profile):
            raise ValueError(
                f"expected each weight to be 0, or at least {LEAST_WEIGHT} of the largest; write 0 for next to nothing"
            )
        return profile


class Lengths(Block):
    """Mean tokens of a request, and the coefficients of variation of both (0: all requests alike)."""

    input: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Tokens of the prompt."""
    output: Annotated[int, Field(ge=2, le=1_000_000), WHOLE]
    """Tokens of the answer."""
    input_cv: Annotated[Real, Field(ge=0, le=10)] = 1.0
    """Standard deviation of the prompts over their mean."""
    output_cv: Annotated[Real, Field(ge=0, le=10)] = 1.0
    """Standard deviation of the answers over their mean."""


class Origin(Block):
    """A region whose users send requests."""

    region: Name
    """A region of the catalog."""
    share: Annotated[Real, Field(ge=LEAST_WEIGHT, le=1)]
    """Its part of the demand; the shares of all origins add up to 1."""


class Serving(Block):
    """Requests to answer, day after day."""

    name: Name
    kind: Literal["serving"]
    architecture: Name
    """An architecture of the catalog."""
    alternatives: Annotated[list[Alternative], SOME, AfterValidator(of_one_source)] | None = None
    """Architectures that could run in its place: plans choose among them under a `quality_floor`, `frontier --against quality` over all floors."""
    quality_floor: QualityFloor | None = None
    """How good the answers must be, by the scores of the `alternatives`; without it the workload runs its `architecture`."""
    demand: Demand
    lengths: Lengths
    origins: Annotated[list[Origin], SOME]
    """Where the users are."""
    slo: Slo = Slo()
    grade: Literal["consumer", "professional", "frontier"] | None = None
    """Grade of the tokens; a label, by which costs and margins are summed up."""
    selling_price: SellingPrice | None = None
    """What its tokens are sold at; it decides nothing, and gives the plan a margin."""
    precision: Precisions = ["fp8", "bf16"]
    """Precisions of the weights that may be used."""
    disaggregation: Literal["allowed", "never", "always"] = "allowed"
    """Whether prefill and decode may, must not or must run in separate pools."""
    engine: Literal[ENGINES] | None = None
    """Serving software, of which the times of host, launch and first token are taken; any other where it is left out."""
    cache: PrefixSharing | None = None
    """KV caches of earlier requests that are kept; none where it is left out."""
    speculation: Drafting | None = None
    """Speculative decoding or multi-token prediction; none where it is left out."""
    residency: Annotated[list[Name], SOME] | None = None
    """Regions or residency zones within which the data must stay; anywhere where it is left out."""
    weights_from: Name | None = None
    """Region from which new weights are sent to the sites; the first origin where it is left out."""
    weight_updates_per_year: UpdatesPerYear = 12.0
    security: Security = "public"
    """Least class of the lines that carry its traffic; needs `lines`."""
    availability: Fraction = 0.0
    """Least availability of the lines that carry its traffic; needs `lines`."""
    traffic: Traffic = Traffic()
    """What it sends beside its requests; needs `lines`."""
    spread: Spread | None = None
    """How it must be spread over zones; anyhow where it is left out."""
    note: str = ""

    @field_validator("quality_floor")
    @classmethod
    def _scored(cls, floor: QualityFloor | None, known: ValidationInfo) -> QualityFloor | None:
        return comparable(floor, known.data["alternatives"]) if "alternatives" in known.data else floor

    @field_validator("origins")
    @classmethod
    def _shares(cls, origins: list[Origin]) -> list[Origin]:
        total = sum(origin.share for origin in origins)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"the shares add up to {total:g}; they must add up to 1")
        return origins

    @field_validator("cache")
    @classmethod
    def _a_part_of_the_prompt(cls, cache: PrefixSharing | None, known: ValidationInfo) -> PrefixSharing | None:
        lengths = known.data.get("lengths")
        if cache is not None and lengths is not None and cache.prefix_tokens >= lengths.input:
            raise ValueError(
                f"prefix_tokens is {cache.prefix_tokens}; expected fewer than the {lengths.input} tokens of the prompt"
            )
        return cache


class Training(Block):
    """A run over `tokens` between `start` and `deadline`, both counted from the start of the horizon."""

    name: Name
    kind: Literal["training"]
    architecture: Name
    """An architecture of the catalog."""
    tokens: Tokens
    start: SecondsFromStart = 0.0
    deadline: Seconds
    sequence_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] = 4096
    """Tokens of one sequence."""
    batch_tokens: Tokens = 4_194_304.0
    """Tokens of one optimizer step."""
    precision: Precisions = ["bf16"]
    """Precisions of the matrix products that may be used."""
    preemption: Preemption | None = None
    """What it costs to interrupt it; nothing where it is left out."""
    token_bytes: Bytes | None = None
    """Bytes of stored data that it reads per token, such as "60 kB" of video; those of text where it is left out."""
    availability: Annotated[Real, Field(gt=0, lt=1)] | None = None
    """Share of the time in which it is to have all its systems: spares of our own are held for that. 0.95 where it is left out."""
    residency: Annotated[list[Name], SOME] | None = None
    """Regions or residency zones within which the data must stay; anywhere where it is left out."""
    note: str = ""

    @field_validator("deadline")
    @classmethod
    def _after_start(cls, deadline: float, known: ValidationInfo) -> float:
        if deadline <= known.data.get("start", 0.0):
            raise ValueError("lies before the start; bring the start forward or put the deadline off")
        return deadline

    @field_validator("batch_tokens")
    @classmethod
    def _a_sequence(cls, batch: float, known: ValidationInfo) -> float:
        if batch < known.data.get("sequence_tokens", 1):
            raise ValueError(
                f"expected at least the {known.data['sequence_tokens']} tokens of one sequence, got {batch:g}"
            )
        return batch


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


class Offer(SpotTerms, OfferInTime):
    """A way to obtain a system; without `price` the catalog's offer of the same system and way is taken."""

    system: Name
    """A system of the catalog."""
    how: Literal["buy", "reserved", "on_demand", "spot"]
    price: (
        Annotated[
            str, Field(examples=["310000 USD", "55.04 USD/h"], json_schema_extra={"x-unit": "currency, or currency/s"})
        ]
        | None
    ) = None
    """Per system when bought, per system and time when rented."""
    supply: Annotated[int, Field(ge=0, le=10_000_000), WHOLE] | None = None
    """Most systems that can be had; any number where it is left out."""
    regions: Annotated[list[Name], SOME] | None = None
    """Regions where it holds; at all sites where it is left out."""
    note: str = ""

    def amount(self) -> tuple[float, str] | None:
        """(amount, currency), per system when bought and per system and second when rented."""
        return None if self.price is None else offer_price(self.price, self.how == "buy")

    @field_validator("price", mode="before")
    @classmethod
    def _readable(cls, price: Any, known: ValidationInfo) -> Any:
        if price is not None and "how" in known.data:
            offer_price(price, known.data["how"] == "buy")
        return price

    @model_validator(mode="after")
    def _in_time(self) -> Offer:
        self.check_prices(self.how == "buy")
        self.check_terms(self.how)
        if self.life is not None and self.how != "buy":
            raise ValueError('"life" belongs to what is bought; remove it')
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
