"""The question as the user wrote it: types, units and keys of a spec. Names are looked up in `planner.resolve`.

Every quantity is a text with its unit (`"500 ms"`, `"20 MW"`, `"420M CNY"`) and is held in SI.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from catalog import units
from planner.errors import Problem, SpecError, close_matches, path_text

SCHEMA_VERSION = 1
FABRIC_DESIGNS = ("scale-up", "rail-optimised", "fat-tree-1:1", "fat-tree-2:1")
PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "int8")


def _quantity(unit: str, example: str, *, zero: bool = False, bare: bool = False) -> Any:
    """A number of SI `unit`, written as text with a unit; positive, or not negative when `zero`."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError(f'expected a text such as "{example}", got {_shown(value)}')
        number = units.parse(value, unit)
        if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
            raise ValueError(f'expected a {"non-negative" if zero else "positive"} quantity such as "{example}", got {_shown(value)}')
        return number

    kinds = ["string", "number"] if bare else ["string"]
    schema = WithJsonSchema({"type": kinds, "examples": [example], "description": f"held in {unit}"})
    return Annotated[float, BeforeValidator(read), schema]


def _money(per: str, example: str) -> Any:
    """(amount, currency); `per` is the SI unit that the amount is per, or empty."""

    def read(value: Any) -> tuple[float, str]:
        if not isinstance(value, str):
            raise ValueError(f'expected an amount with its currency such as "{example}", got {_shown(value)}')
        amount, currency = units.parse_money(value, per)
        if amount < 0:
            raise ValueError(f'expected an amount that is not negative such as "{example}", got {_shown(value)}')
        return amount, currency

    return Annotated[tuple[float, str], BeforeValidator(read), WithJsonSchema({"type": "string", "examples": [example]})]


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


Seconds = _quantity("s", "500 ms")
SecondsFromStart = _quantity("s", "0 d", zero=True)
Tokens = _quantity("token", "15T", bare=True)
TokenRate = _quantity("token/s", "10B tokens/day")
RequestRate = _quantity("request/s", "40", bare=True, zero=True)
Watts = _quantity("W", "20 MW")
Kilograms = _quantity("kg", "5 kt")
Count = _quantity("1", "100", bare=True, zero=True)
Fraction = _quantity("1", "0.08", bare=True, zero=True)
PositiveNumber = _quantity("1", "1.2", bare=True)
Amount = _money("", "420M CNY")
AmountPerSecond = _money("s", "2M USD/year")
EnergyPrice = _money("J", "0.08 USD/kWh")
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Block(BaseModel):
    """A part of the spec: unknown keys are refused, values never change after parsing."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Exchange(Block):
    per_usd: PositiveNumber
    date: str | None = None


class Horizon(Block):
    """What is paid for: `years` from `start`, each day standing for one typical day."""

    start: date = date(2027, 1, 1)
    years: Annotated[int, Field(ge=1, le=30)] = 1
    calendar: Literal["representative-day"] = "representative-day"
    discount_rate: Fraction | None = None


class Objective(Block):
    """`{"minimise": "cost"}`, `{"minimise": "carbon"}` or `{"maximise": "throughput"}` (of one `workload` or of all)."""

    minimise: Literal["cost", "carbon"] | None = None
    maximise: Literal["throughput"] | None = None
    workload: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Objective:
        if (self.minimise is None) == (self.maximise is None):
            raise ValueError('expected either {"minimise": "cost"}, {"minimise": "carbon"} or {"maximise": "throughput"}')
        if self.workload is not None and self.maximise is None:
            raise ValueError('"workload" belongs to {"maximise": "throughput"} only; remove it')
        return self


class Demand(Block):
    """Mean over the day, as requests or as output tokens; `profile`: 24 weights by local hour of the origin."""

    requests_per_s: RequestRate | None = None
    output_tokens: TokenRate | None = None
    profile: Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=24, max_length=24)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Demand:
        if (self.requests_per_s is None) == (self.output_tokens is None):
            raise ValueError('give exactly one of "requests_per_s" (such as 40) and "output_tokens" (such as "10B tokens/day")')
        if self.profile is not None and sum(self.profile) <= 0:
            raise ValueError("the profile needs at least one hour with a positive weight")
        return self


class Lengths(Block):
    """Mean tokens of a request, and the coefficients of variation of both (0: all requests alike)."""

    input: Annotated[int, Field(ge=1, le=10_000_000)]
    output: Annotated[int, Field(ge=2, le=1_000_000)]
    input_cv: Annotated[float, Field(ge=0, le=10)] = 1.0
    output_cv: Annotated[float, Field(ge=0, le=10)] = 1.0


class Origin(Block):
    region: Name
    share: Annotated[float, Field(gt=0, le=1)]


class Percentiles(Block):
    """Limits on a latency by percentile; all that are given must hold."""

    mean: Seconds | None = None
    p50: Seconds | None = None
    p90: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None

    def limits(self) -> list[tuple[str, float]]:
        return [(name, value) for name in type(self).model_fields if (value := getattr(self, name)) is not None]


class Slo(Block):
    """Time to first token, time per output token and end to end, as the user at the origin sees them."""

    ttft: Percentiles | None = None
    tpot: Percentiles | None = None
    e2e: Percentiles | None = None

    def limits(self) -> list[tuple[str, str, float]]:
        """(metric, percentile, limit in seconds) for every limit given."""
        return [
            (metric, percentile, limit)
            for metric in type(self).model_fields
            if (block := getattr(self, metric)) is not None
            for percentile, limit in block.limits()
        ]


class Serving(Block):
    name: Name
    kind: Literal["serving"]
    architecture: Name
    demand: Demand
    lengths: Lengths
    origins: Annotated[list[Origin], Field(min_length=1)]
    slo: Slo = Slo()
    grade: Literal["consumer", "professional", "frontier"] | None = None
    precision: Annotated[list[Literal[PRECISIONS]], Field(min_length=1)] = ["fp8", "bf16"]
    disaggregation: Literal["allowed", "never", "always"] = "allowed"
    residency: list[Name] | None = None
    weights_from: Name | None = None
    weight_updates_per_year: Count = 12.0
    note: str = ""

    @model_validator(mode="after")
    def _shares(self) -> Serving:
        total = sum(origin.share for origin in self.origins)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"the shares of origins add up to {total:g}; they must add up to 1")
        regions = [origin.region for origin in self.origins]
        if len(set(regions)) < len(regions):
            raise ValueError("a region stands twice under origins; add its shares up in one entry")
        return self


class Training(Block):
    name: Name
    kind: Literal["training"]
    architecture: Name
    tokens: Tokens
    deadline: Seconds
    start: SecondsFromStart = 0.0
    sequence_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 4096
    batch_tokens: Tokens = 4_194_304.0
    precision: Annotated[list[Literal[PRECISIONS]], Field(min_length=1)] = ["bf16"]
    residency: list[Name] | None = None
    note: str = ""

    @model_validator(mode="after")
    def _window(self) -> Training:
        if self.deadline <= self.start:
            raise ValueError("the deadline must be after the start")
        if self.batch_tokens < self.sequence_tokens:
            raise ValueError("batch_tokens must hold at least one sequence of sequence_tokens")
        return self


class Site(Block):
    region: Name
    power: Watts | None = None
    systems: Annotated[list[Name], Field(min_length=1)] | None = None
    fabrics: Annotated[list[Literal[FABRIC_DESIGNS]], Field(min_length=1)] = list(FABRIC_DESIGNS)
    network: Name = "InfiniBand NDR"
    fixed_cost: AmountPerSecond | None = None
    electricity_price: EnergyPrice | None = None
    tariff: Name | None = None
    pue: Annotated[float, Field(ge=1, le=5)] | None = None
    note: str = ""

    @model_validator(mode="after")
    def _one_price(self) -> Site:
        if self.electricity_price is not None and self.tariff is not None:
            raise ValueError('give "electricity_price" or "tariff", not both')
        return self


class Offer(Block):
    """A way to obtain a system; without `price` the catalog's offer of the same system and way is taken."""

    system: Name
    how: Literal["buy", "reserved", "on_demand"]
    price: str | None = None
    supply: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    regions: Annotated[list[Name], Field(min_length=1)] | None = None
    note: str = ""

    def amount(self) -> tuple[float, str] | None:
        """(amount, currency), per system when bought and per system and second when rented."""
        if self.price is None:
            return None
        return units.parse_money(self.price, "" if self.how == "buy" else "s")

    @model_validator(mode="after")
    def _price(self) -> Offer:
        try:
            self.amount()
        except units.UnitError as error:
            raise ValueError(f"price: {error}") from None
        return self


class Limits(Block):
    """Ceilings of the whole plan over the horizon. `budget`: present value of all costs; `capital`: what is bought."""

    budget: Amount | None = None
    capital: Amount | None = None
    carbon: Kilograms | None = None
    export_control: bool = True
    licences: list[Name] = []


class Override(Block):
    value: str | float
    note: Annotated[str, Field(min_length=1)]


class SolverOptions(Block):
    gap: Annotated[float, Field(gt=0, lt=1)] = 0.001
    time_limit: Seconds = 60.0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    backend: Literal["highs", "pulp"] = "highs"
    points_per_system: Annotated[int, Field(ge=1, le=100)] = 3


class PlanSpec(Block):
    """A whole question. Only `name`, `workloads` and `sites` must be given."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, populate_by_name=True)

    schema_uri: str | None = Field(default=None, alias="$schema")
    schema_version: Literal[1] = SCHEMA_VERSION
    id: str | int | None = None
    name: Name
    note: str = ""
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"
    exchange: dict[str, Exchange] = {}
    horizon: Horizon = Horizon()
    objective: Objective = Objective(minimise="cost")
    workloads: Annotated[list[Annotated[Serving | Training, Field(discriminator="kind")]], Field(min_length=1)]
    sites: Annotated[list[Site], Field(min_length=1)]
    offers: list[Offer] | None = None
    limits: Limits = Limits()
    overrides: dict[str, Override] = {}
    catalog: dict[Literal["chips", "systems", "fabrics", "architectures", "tariffs", "regions"], list[dict[str, Any]]] = {}
    solver: SolverOptions = SolverOptions()

    @model_validator(mode="after")
    def _unique(self) -> PlanSpec:
        for label, names in (("workloads", [w.name for w in self.workloads]), ("sites", [s.region for s in self.sites])):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{label}: {', '.join(twice)} stands twice; names must differ")
        return self


def parse_spec(document: Mapping[str, Any]) -> PlanSpec:
    """`document` (as read from JSON) as a checked spec.

    Raises SpecError with every problem of type, unit or key at once.
    """
    try:
        return PlanSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError([_problem(item) for item in error.errors()]) from None


def read_document(text: str | bytes) -> dict[str, Any]:
    """The JSON object in `text`; NaN, infinities and repeated keys are refused. Raises SpecError."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except UnicodeDecodeError as error:
        raise SpecError([Problem("", f"the file is not UTF-8 text (byte {error.start}); save it as UTF-8")]) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise SpecError([Problem("", f"not valid JSON: {error.msg} at {where}")]) from None
    except RecursionError:
        raise SpecError([Problem("", "nested too deeply; a spec needs fewer than ten levels")]) from None
    except ValueError as error:
        raise SpecError([Problem("", str(error))]) from None
    if not isinstance(document, dict):
        raise SpecError([Problem("", f'expected a JSON object {{"name": ..., "workloads": [...], "sites": [...]}}, got {_shown(document)}')])
    return document


def load_spec(source: str | Path | Mapping[str, Any]) -> PlanSpec:
    """A spec from a file or from a mapping. Raises SpecError, or OSError when the file cannot be read."""
    if isinstance(source, Mapping):
        return parse_spec(source)
    return parse_spec(read_document(Path(source).read_bytes()))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that a spec may hold; write a finite number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f'the key "{key}" stands twice in one object; keep one')
        result[key] = value
    return result


def _problem(item: Mapping[str, Any]) -> Problem:
    """A pydantic error as a place in the user's words and a remedy."""
    location = list(item["loc"])
    if len(location) > 2 and location[0] == "workloads":
        del location[2]  # the discriminator, which is no key of the user's
    kind, given = item["type"], item.get("input")
    if kind == "extra_forbidden":
        known = _known_keys(location[:-1])
        return Problem(path_text(location), f'unknown key{close_matches(str(location[-1]), known)}; known here: {", ".join(known)}')
    if kind == "missing":
        return Problem(path_text(location), "is missing; add it")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return Problem(path_text([*location, "kind"]), 'expected "serving" or "training"')
    message = item["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    if kind != "value_error":
        message += f", got {_shown(given)}"
    return Problem(path_text(location), message)


def _known_keys(location: list[str | int]) -> list[str]:
    """Keys of the block at `location`, found by walking the field types."""
    blocks: list[type[Block]] = [PlanSpec]
    for part in location:
        if isinstance(part, int):
            continue
        found: list[type[Block]] = []
        for block in blocks:
            if part in block.model_fields:
                found += _blocks_in(block.model_fields[part].annotation)
        blocks = found or blocks
    return sorted({field.alias or name for block in blocks for name, field in block.model_fields.items()})


def _blocks_in(annotation: Any) -> list[type[Block]]:
    if isinstance(annotation, type) and issubclass(annotation, Block):
        return [annotation]
    return [block for part in getattr(annotation, "__args__", ()) for block in _blocks_in(part)]
