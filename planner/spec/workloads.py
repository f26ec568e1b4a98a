"""Blocks of a spec about workloads: demand and its origins, requests to serve, and training runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from catalog.units import HOUR_S, HOURS_PER_DAY, YEAR_S
from models.arrays import sum_of
from models.formats import (
    CACHE_FORMATS,
    RECIPE_FORMATS,
    WEIGHT_FORMATS,
    Arithmetic,
    CacheFormat,
    RecipeFormat,
    WeightFormat,
)
from planner.messages import Message
from planner.spec.base import SOME, Block
from planner.spec.facility import AuditClasses
from planner.spec.lines import Security, Traffic
from planner.spec.load.classes import RequestClass, wrong_classes
from planner.spec.load.forecast import DemandForecast, added_share
from planner.spec.load.kv_exchange import KvExchange
from planner.spec.load.length_pools import Pools, wrong_pools
from planner.spec.load.lengths import MOST_VARIATION, Lengths
from planner.spec.load.media import WAYS_TO_ENCODE, Encoding, Media
from planner.spec.load.routing import Routing
from planner.spec.load.scale_up import ScaleUp
from planner.spec.load.sessions import Session
from planner.spec.load.users import Users
from planner.spec.phases import DemandInTime
from planner.spec.quantities import (
    WHOLE,
    Bytes,
    Fraction,
    Name,
    Real,
    RequestRate,
    Seconds,
    SecondsFromStart,
    Switch,
    TokenRate,
    Tokens,
    UpdatesPerYear,
)
from planner.spec.requirements.checkpoints import Checkpoints
from planner.spec.requirements.preemption import Preemption
from planner.spec.requirements.priority import Priority
from planner.spec.requirements.quality import Alternative, QualityFloor, comparable, of_one_source
from planner.spec.requirements.redundancy import Redundancy
from planner.spec.requirements.spread import Spread
from planner.spec.serving import Drafting, PrefixSharing, SellingPrice
from planner.spec.slo import LatencyLimit, Slo

LEAST_WEIGHT = 1e-6  # share of an hour
Precision = WeightFormat
PRECISIONS = WEIGHT_FORMATS
Engine = Literal[
    "tensorrt_llm", "tensorrt_plan", "vllm", "sglang", "local", "openvino"
]  # as in models.serving.constants
ENGINES: tuple[Engine, ...] = get_args(Engine)
Precisions = Annotated[list[Precision], Field(min_length=1, max_length=len(PRECISIONS))]
Recipes = Annotated[list[RecipeFormat], Field(min_length=1, max_length=len(RECIPE_FORMATS))]


def _an_hour_or_none(wait: float) -> float:
    if wait and not HOUR_S <= wait <= YEAR_S:
        raise ValueError(Message.of("spec.wait_out_of_range").text())
    return wait


DEMANDS = ("requests_per_s", "output_tokens", "tasks_per_s", "sessions", "users")
"""Keys of a serving demand, of which a spec states one."""
WORK: Mapping[str, tuple[str, ...]] = {
    "serving": tuple("demand.users.count" if key == "users" else f"demand.{key}" for key in DEMANDS),
    "training": ("tokens",),
    "reinforcement": ("iterations", "iterations_per_hour"),
}
"""Kind of workload -> keys of the amount of work, of which a spec states one."""


class Demand(DemandInTime):
    """Mean demand over the day, in requests or in output tokens; `profile`: 24 weights by local hour of the origin."""

    requests_per_s: RequestRate | None = None
    """Mean rate of requests, which are calls where there is a `session`; give this, `output_tokens` or `tasks_per_s`."""
    output_tokens: TokenRate | None = None
    """Mean rate of tokens in the answers."""
    tasks_per_s: RequestRate | None = None
    """Mean rate of tasks, each of several calls; needs `session`."""
    sessions: Annotated[Real, Field(gt=0, le=1e9)] | None = None
    """Sessions at work at once in the busiest hour, each of which begins its next task when its last one ends (closed loop); needs `session`. The
    plan finds the rate at which so many send calls."""
    users: Users | None = None
    """Users, of whom a share is at work at once; their requests are tasks where there is a `session`."""
    profile: Annotated[list[Annotated[Real, Field(ge=0, le=1e6)]], Field(min_length=24, max_length=24)] | None = None
    """Weights of the hours of a day, in any unit; flat if omitted."""
    week: Annotated[list[Annotated[Real, Field(ge=LEAST_WEIGHT, le=1e6)]], Field(min_length=7, max_length=7)] | None = (
        None
    )
    """Weights of the days of a week from Monday on; equal if omitted. A typical day is their mean."""
    months: (
        Annotated[list[Annotated[Real, Field(ge=LEAST_WEIGHT, le=1e6)]], Field(min_length=12, max_length=12)] | None
    ) = None
    """Weights of the months from January on; equal if omitted. A typical day is their mean."""
    deferral: Annotated[Seconds, AfterValidator(_an_hour_or_none)] = 0.0
    """Longest delay of a request, in whole hours; none if omitted."""
    forecast: DemandForecast | None = None
    """Growth, level and launches that are not known; takes the place of `robust.demand` in scenarios. As stated if omitted."""

    @model_validator(mode="after")
    def _one(self) -> Demand:
        rates = (self.requests_per_s, self.output_tokens, self.tasks_per_s, self.sessions, self.users)
        if sum(rate is not None for rate in rates) != 1:
            raise ValueError(Message.of("spec.demand_stated_once").text())
        if self.users is not None and self.users.peak_hour is not None and self.profile is not None:
            raise ValueError(Message.of("users.peak_hour_beside_profile").text())
        if self.forecast is not None and self.forecast.growth is not None and self.growth_per_year:
            raise ValueError(Message.of("forecast.growth_stated_twice").text())
        for launch in () if self.forecast is None else self.forecast.launches:
            added_share(launch, *self.stated)
        return self

    @property
    def stated(self) -> tuple[str, float]:
        """Return the key of the amount that the spec states, and the amount."""
        key = next(key for key in DEMANDS if getattr(self, key) is not None)
        return key, self.users.count if self.users is not None else getattr(self, key)

    @property
    def hours(self) -> list[float] | None:
        """Return the weights of the hours of a day: as stated, or of the users at once; None where the demand is flat."""
        return self.profile or (None if self.users is None else self.users.weights())

    @field_validator("profile", mode="before")
    @classmethod
    def _hours(cls, profile: object) -> object:
        if isinstance(profile, list) and len(profile) != HOURS_PER_DAY:
            raise ValueError(Message.of("spec.hours_of_a_day", hours=HOURS_PER_DAY, count=len(profile)).text())
        return profile

    @field_validator("profile")
    @classmethod
    def _some_demand(cls, profile: list[float] | None) -> list[float] | None:
        if profile is not None and max(profile) < LEAST_WEIGHT:
            raise ValueError(Message.of("spec.profile_without_load", least=LEAST_WEIGHT).text())
        if profile is not None and any(0 < weight < LEAST_WEIGHT * max(profile) for weight in profile):
            raise ValueError(Message.of("spec.profile_weight_too_small", least=LEAST_WEIGHT).text())
        return profile


class Origin(Block):
    """A region whose users send requests."""

    region: Name
    """A region of the catalog."""
    share: Annotated[Real, Field(ge=LEAST_WEIGHT, le=1)]
    """Its share of the demand; the shares of all origins add up to 1."""


class Workload(Block):
    """What serving and training workloads have in common."""

    name: Name
    kind: str
    architecture: Name
    """An architecture of the catalog."""
    residency: Annotated[list[Name], SOME] | None = None
    """Regions or residency zones within which the data must stay; unrestricted if omitted."""
    sole_tenant: Switch = False
    """Whether it may run only where no other party does; workloads of this plan are kept apart by `sharing`."""
    audit: AuditClasses = []
    """Audit classes that a place must hold, all of them, for it to run there; written as the sites, offers and APIs write them."""


class Serving(Workload):
    """A serving workload: requests to answer, day after day."""

    kind: Literal["serving"]
    alternatives: Annotated[list[Alternative], SOME, AfterValidator(of_one_source)] | None = None
    """Architectures that could run in its place: plans choose among them under a `quality_floor`, and `frontier --against quality` at every floor."""
    quality_floor: QualityFloor | None = None
    """Least quality of the answers, by the scores of the `alternatives`; without it the workload runs its `architecture`."""
    demand: Demand
    lengths: Lengths
    arrival_cv: Annotated[Real, Field(ge=0, le=MOST_VARIATION)] = 1.0
    """Standard deviation of the gaps between requests, as they arrive at one replica, over their mean: 0 evenly spaced, 1 at random (Poisson), more in bursts."""
    origins: Annotated[list[Origin], SOME]
    """Where the users are."""
    slo: Slo = Slo()
    grade: Literal["consumer", "professional", "frontier"] | None = None
    """Grade of the tokens; a label, by which costs and margins are summed up."""
    selling_price: SellingPrice | None = None
    """Price at which its tokens are sold; it does not affect the plan, which reports a margin by it."""
    precision: Precisions = ["fp8", "bf16"]
    """Formats of the weights that may be used; `fp8` and `fp4` mean the checkpoint's own kind of eight or four bits. Chips without such a
    unit widen the weights to 16 bit on the way. What a published checkpoint leaves in 16 bit is counted so."""
    arithmetic: Arithmetic | None = None
    """Arithmetic of products with the weights, such as "fp8" of weights in INT4; if omitted, the most direct that the chip has for them."""
    kv_precision: Annotated[list[CacheFormat], Field(min_length=1, max_length=len(CACHE_FORMATS))] | None = None
    """Formats of the KV cache, of which the plan takes one for each deployment; if omitted, as engines do it: 16 bit, or what the checkpoint
    asks for, which is 8 bit of those in NVFP4. What the answers lose by it is not judged."""
    disaggregation: Literal["allowed", "never", "always"] = "allowed"
    """Whether prefill and decode may, must not or must run in separate pools."""
    across_sites: Switch = False
    """Whether prefill may run at one site and decode at another, where a line of `lines` with a capacity of its own carries the KV caches."""
    kv_exchange: KvExchange | None = None
    """Exchange of KV caches between prefill and decode on chips of two vendors; not allowed if omitted."""
    engine: Name | None = None
    """Serving engine of the catalog, whose times of host, launch and first token are taken; those of other engines if omitted."""
    compiler: Name | None = None
    """Compiler of the catalog whose kernels the engine runs; the engine's own if omitted."""
    eager: bool | None = None
    """Whether the host starts each kernel of a step (eager mode) in place of replaying a recorded graph; if omitted, as the engine does on the chip: engines that were ported to Ascend start kernels from the host, the vendor's own and all engines elsewhere replay graphs."""
    memory_utilisation: Annotated[Real, Field(gt=0, le=1)] | None = None
    """Share of a chip's memory, as its driver reports it, that the engine fills with weights, KV cache and activations; if omitted 0.92 of vLLM, 0.9 of what weights leave of TensorRT-LLM, SGLang's static fraction, 0.9 without an engine."""
    cache: PrefixSharing | None = None
    """Prefix caching of earlier requests; none if omitted."""
    scale_up: ScaleUp | None = None
    """What a worker does before it serves at its full rate on systems that ran something else; as the catalog has it if omitted."""
    session: Session | None = None
    """Agentic sessions: requests are calls of tasks, `lengths.input` is the prompt of the first; requests of their own if omitted."""
    classes: Annotated[list[RequestClass], SOME] | None = None
    """Classes of its requests, such as those of tenants, that wait by priority; all wait in order of arrival if omitted."""
    pools: Pools = None
    """"one" for all requests, or pools "by length" of the prompt, at boundaries that the plan chooses or at stated ones; one if omitted."""
    media: Annotated[list[Media], SOME] | None = None
    """Images, sounds and videos in the prompts, of sessions in the first; their tokens come on top of `lengths.input`. None if omitted."""
    encoding: Annotated[list[Encoding], Field(min_length=1, max_length=len(WAYS_TO_ENCODE))] = list(WAYS_TO_ENCODE)
    """Where media are encoded, of which the plan takes one for each deployment: beside the engine on the same chips, or apart, on chips of
    their own before a single pool."""
    routing: Routing | None = None
    """How the gate of a mixture of experts loads them, with redundant copies, capacity and limits; as measured runs do on average if omitted."""
    speculation: Drafting | None = None
    """Speculative decoding or multi-token prediction; none if omitted."""
    weights_from: Name | None = None
    """Region from which new weights are sent to the sites; the first origin if omitted."""
    weight_updates_per_year: UpdatesPerYear = 12.0
    security: Security = "public"
    """Lowest security class of the lines that carry its traffic; needs `lines`."""
    availability: Fraction = 0.0
    """Lowest availability of the lines that carry its traffic; needs `lines`."""
    traffic: Traffic = Traffic()
    """Traffic besides its requests; needs `lines`."""
    redundancy: Redundancy | None = None
    """"N+1": each deployment carries its load when any one of its systems fails; or the share of systems held beyond those at work. None if omitted."""
    spread: Spread | None = None
    """How it must be spread over zones; unrestricted if omitted."""
    note: str = ""

    @field_validator("quality_floor")
    @classmethod
    def _scored(cls, floor: QualityFloor | None, known: ValidationInfo) -> QualityFloor | None:
        return comparable(floor, known.data["alternatives"]) if "alternatives" in known.data else floor

    @field_validator("origins")
    @classmethod
    def _shares(cls, origins: list[Origin]) -> list[Origin]:
        total = sum_of(origin.share for origin in origins)
        if abs(total - 1) > 1e-6:
            raise ValueError(Message.of("spec.shares_sum", total=f"{total:g}").text())
        return origins

    @field_validator("classes")
    @classmethod
    def _all_requests(cls, classes: list[RequestClass] | None) -> list[RequestClass] | None:
        if wrong := wrong_classes(classes or []) if classes else "":
            raise ValueError(wrong)
        return classes

    @field_validator("cache")
    @classmethod
    def _a_part_of_the_prompt(cls, cache: PrefixSharing | None, known: ValidationInfo) -> PrefixSharing | None:
        lengths = known.data.get("lengths")
        if cache is not None and lengths is not None and cache.prefix_tokens >= lengths.input:
            raise ValueError(
                Message.of("spec.prefix_longer_than_prompt", given=cache.prefix_tokens, count=lengths.input).text()
            )
        return cache

    @model_validator(mode="after")
    def _of_a_session(self) -> Serving:
        if self.session is None:
            wrong = [
                path
                for path, given in (
                    ("demand.tasks_per_s", self.demand and self.demand.tasks_per_s),
                    ("demand.sessions", self.demand and self.demand.sessions),
                    ("slo.task", self.slo.task),
                )
                if given
            ]  # fmt: skip
            if wrong:
                raise ValueError(Message.of("spec.tasks_need_session", paths=" and ".join(wrong)).text())
        elif self.cache is not None:
            raise ValueError(Message.of("spec.session_with_cache").text())
        if self.scale_up is not None and self.scale_up.warm_up and self.cache is None:
            raise ValueError(Message.of("spec.warm_up_without_cache").text())
        return self

    @model_validator(mode="after")
    def _divisible_by_length(self) -> Serving:
        if self.pools is not None and (wrong := wrong_pools(self)):
            raise ValueError(wrong)
        return self

    @property
    def prompt_tokens(self) -> float:
        """Compute the mean tokens of a prompt [token]; of a session over all its calls, whose context grows."""
        first = self.lengths.input + sum_of(media.tokens for media in self.media or [])
        if self.session is None:
            return first
        return first + self.session.earlier_calls * (self.session.growth + self.lengths.output)

    @property
    def mean_requests_per_s(self) -> float:
        """Compute the mean demand, in calls where there is a session [request/s]."""
        if self.demand.requests_per_s is not None:
            return self.demand.requests_per_s
        if self.demand.tasks_per_s is not None and self.session is not None:
            return self.demand.tasks_per_s * self.session.calls
        if self.demand.users is not None:
            calls = 1.0 if self.session is None else self.session.calls
            return self.demand.users.mean_requests_per_s(self.demand.profile) * calls
        return (self.demand.output_tokens or 0.0) / self.lengths.output

    def limits(self) -> list[LatencyLimit]:
        """List every limit of the SLO, as the user at the origin sees it."""
        return self.slo.limits(1.0 if self.session is None else self.session.round_trips)

    def limits_at_site(self, rtt_s: float, stretch: Mapping[str, float] = {}) -> list[LatencyLimit]:
        """List the limits that predictions at a site `rtt_s` away must keep; `stretch`: by metric, how far latencies may exceed the prediction."""
        return [limit.at_site(rtt_s, stretch.get(limit.metric, 1.0)) for limit in self.limits()]


class Adapters(Block):
    """Low-rank adapters, which a job of the tuning "lora" trains in place of the weights."""

    rank: Annotated[int, Field(ge=1, le=4096), WHOLE] = 16
    """Rank of each adapter."""
    targets: Literal["attention", "all"] = "attention"
    """Matrices that have one: those of attention, or those of the feed-forward blocks too."""


class TrainingSoftware(Block):
    """Software of a training run, where it is known."""

    framework: Literal["megatron", "nvidia-tuned", "fsdp", "xla", "other"] = "other"
    """Megatron-LM, Megatron as NVIDIA tunes it for published runs, fully sharded data parallelism of PyTorch, XLA, or another."""
    dispatcher: Literal["plain", "fused", "overlapped"] = "plain"
    """Exchange of tokens between experts: by all-to-all, by kernels that permute and send at once, or these beside the computation."""
    graphs: Literal["none", "partial", "full"] = "partial"
    """How much of a step is launched as CUDA graphs."""
    prediction_layers: Annotated[int, Field(ge=0, le=16), WHOLE] = 0
    """Layers behind the network that predict further tokens and are trained with it, each with a projection and one more use of the head."""
    activations: Literal["16-bit", "operands"] = "16-bit"
    """Format in which the inputs of the activation function wait for backward: 16 bit, or that of the operands of matrix products."""


class Training(Workload):
    """A training run over `tokens` between `start` and `deadline`, both counted from the start of the horizon."""

    kind: Literal["training"]
    tokens: Tokens
    start: SecondsFromStart = 0.0
    deadline: Seconds
    sequence_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] = 4096
    """Tokens of one sequence."""
    batch_tokens: Tokens = 4_194_304.0
    """Tokens of one optimizer step."""
    precision: Recipes = ["bf16"]
    """Recipes of the matrix products that may be used, by the format of their operands; the chip must compute in it, and apply block scales of MX
    and NV formats itself."""
    optimizer: Literal["adam", "adam_fp32", "adam_8bit", "muon", "adafactor"] = "adam"
    """Optimizer, by the state of a weight: Adam beside 16-bit weights with a 32-bit copy (14 bytes with the weight), with 32-bit weights alone
    (12), with moments of 8 bit (8), Muon (10), Adafactor (6)."""
    gradients: Literal["fp32", "bf16"] = "fp32"
    """Format in which gradients are kept. Between ranks they are reduced in 16 bit, whatever it is: so measured runs do, which 4 bytes
    would predict worse."""
    software: TrainingSoftware = TrainingSoftware()
    """Framework, dispatcher of experts and graphs; unknown software with an all-to-all and partial graphs if omitted."""
    tuning: Literal["pretrain", "sft", "lora"] = "pretrain"
    """What is trained: all weights on whole sequences, all weights on packed examples, or adapters beside frozen weights."""
    adapters: Adapters | None = None
    """Adapters of the tuning "lora"; of rank 16 on attention if omitted."""
    example_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] | None = None
    """Tokens of one example, of which sequences are packed ("sft" and "lora"); attention does not look beyond it. A whole sequence if omitted."""
    checkpoints: Checkpoints | None = None
    """Rate of checkpoints, and what each of them and each restart costs; as published runs do if omitted."""
    preemption: Preemption | None = None
    """Cost of interrupting it. If omitted, that of the catalog where the calendar is a typical day, the plan not robust and no site has `electricity`; null counts none."""
    priority: Priority | None = None
    """Class of the job, 1 first: where limits leave no room for all jobs, those of the highest numbers are done after their deadlines, or not at
    all. It never waits if omitted."""
    media: Annotated[list[Media], SOME] | None = None
    """Images, sounds and videos in each sequence, whose tokens are among its `sequence_tokens`; their encoders compute beside. None if omitted."""
    routing: Routing | None = None
    """How the gate of a mixture of experts loads them, with capacity and limits, but no redundant copies; as measured runs do on average if omitted."""
    token_bytes: Bytes | None = None
    """Stored data that it reads per token, such as "60 kB" of video; that of text if omitted."""
    availability: Annotated[Real, Field(gt=0, lt=1)] | None = None
    """Share of time in which it has all its systems, for which spares of our own are held; 0.95 if omitted."""
    note: str = ""

    @field_validator("deadline")
    @classmethod
    def _after_start(cls, deadline: float, known: ValidationInfo) -> float:
        if deadline <= known.data.get("start", 0.0):
            raise ValueError(Message.of("spec.time_before_start").text())
        return deadline

    @field_validator("media")
    @classmethod
    def _among_the_sequence(cls, media: list[Media] | None, known: ValidationInfo) -> list[Media] | None:
        tokens, sequence = sum_of(each.tokens for each in media or []), known.data.get("sequence_tokens", math.inf)
        if tokens > sequence:
            raise ValueError(Message.of("spec.media_longer_than_sequence", tokens=f"{tokens:g}", most=sequence).text())
        return media

    @field_validator("adapters")
    @classmethod
    def _of_lora(cls, adapters: Adapters | None, known: ValidationInfo) -> Adapters | None:
        if adapters is not None and known.data.get("tuning") != "lora":
            raise ValueError(Message.of("spec.only_with_lora").text())
        return adapters

    @field_validator("example_tokens")
    @classmethod
    def _within_a_sequence(cls, example: int | None, known: ValidationInfo) -> int | None:
        if example is None:
            return None
        if known.data.get("tuning") == "pretrain":
            raise ValueError(Message.of("spec.only_with_tuning").text())
        if example > known.data.get("sequence_tokens", example):
            raise ValueError(
                Message.of("spec.examples_longer_than_sequence", count=known.data["sequence_tokens"]).text()
            )
        return example

    @field_validator("batch_tokens")
    @classmethod
    def _a_sequence(cls, batch: float, known: ValidationInfo) -> float:
        if batch < known.data.get("sequence_tokens", 1):
            raise ValueError(
                Message.of(
                    "spec.batch_below_one_sequence", count=known.data["sequence_tokens"], given=f"{batch:g}"
                ).text()
            )
        return batch
