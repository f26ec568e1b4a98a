"""Define the operating point of later stages: systems, capacity, power, and the figures that a plan prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models.arrays import sum_of
from models.serving.continuous_batching import ServingPoint
from planner.candidates.fleet_options import FleetOption
from planner.evaluate.disaggregated import CacheLine
from planner.problem.engine import EngineChoice
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.intervals import Interval, Run
from planner.problem.lines import CACHE_LOAD, CACHES, ROLLOUTS, Carrier

ENCODE = "encode"  # role of a pool of encoders


@dataclass(frozen=True, slots=True)
class Use:
    """One pool of an operating point: the systems of a fleet option that one replica occupies."""

    role: str  # serve, prefill, decode, train, update, rollout
    option: FleetOption
    systems: float  # per replica
    extra_it_w: float  # above idle, of one active replica
    precision: str
    layout: Mapping[str, int]
    batch: int = 0
    workers: int = 1  # copies of the layout in one replica
    spares: float = 0.0  # systems among these, in place of those in repair
    memory_bytes: float = 0.0  # fullest chip; 0 for an API
    kv_precision: str = ""  # KV cache of serving
    kv_chosen: bool = False  # whether the spec lists formats of it, of which the plan took one
    waiting: str = ""  # where the caches of sessions wait; empty without sessions
    encoding: str = ""  # where media are encoded; empty without media

    @property
    def choice(self) -> EngineChoice:
        """Return how the engine of a pool of serving runs."""
        return EngineChoice(self.precision, self.kv_precision, self.waiting, self.encoding)

    @property
    def systems_per_worker(self) -> float:
        """Compute the systems of one copy of the layout, such that `systems` = `workers` x `systems_per_worker`.

        A share of a system is 1 / n where n copies fit (`planner.evaluate.serving.systems_per_replica`). The headroom that serving holds
        on a spot market and the spares of a job are included.
        """
        return self.systems / self.workers


def use_row(use: Use) -> dict[str, Any]:
    """Write a pool as a row of a plan document."""
    return {
        "role": use.role,
        "system": use.option.system.name,
        "how": use.option.offer.how,
        "topology": use.option.fabric,
        "network_size": use.option.size,
        "offer": use.option.offer.path,
        **({"tenant": use.option.tenant} if use.option.tenant else {}),
        "precision": use.precision,
        **({"kv_precision": use.kv_precision} if use.kv_chosen else {}),
        **({"waiting": use.waiting} if use.waiting else {}),
        **({"encoding": use.encoding} if use.encoding else {}),
        "layout": dict(use.layout),
        "batch": use.batch,
        "workers": use.workers,
        "systems_per_replica": use.systems,
        **({"spares": use.spares} if use.spares else {}),
        "extra_power_w": use.extra_it_w,
        "memory_bytes": use.memory_bytes,
    }


@dataclass(frozen=True, slots=True)
class Exchange:
    """The way of KV caches from prefill at one site to decode at another, over lines between them."""

    way: Carrier  # in the direction of the caches
    line: CacheLine
    cache_bytes: float = 0.0  # for each request
    prompt_bytes: float = 0.0  # the other way

    traffic = CACHES

    def sent(self, capacity: float) -> tuple[float, float]:
        """Compute what a replica of a capacity [request/s] sends along the way and back [byte/s]."""
        return capacity * self.cache_bytes, capacity * self.prompt_bytes

    def kept(self, capacity: float) -> tuple[float, float]:
        """Compute what a replica takes of a line each way, with what caches leave free so that none waits long [byte/s]."""
        caches, prompts = self.sent(capacity)
        return caches / CACHE_LOAD, prompts


@dataclass(frozen=True, slots=True)
class WeightExchange:
    """The way of weights from the update at one site to the rollout at another, over lines between them, of which the job reserves a rate each way."""

    way: Carrier  # in the direction of the weights
    bytes_per_s: float  # reserved while it is at work
    weights_bytes: float = 0.0  # each iteration
    back_bytes: float = 0.0  # each iteration, the other way
    iteration_s: float = 1.0

    traffic = ROLLOUTS

    def sent(self, _: float) -> tuple[float, float]:
        """Compute what the job sends along the way and back, in the mean of an iteration [byte/s]."""
        return self.weights_bytes / self.iteration_s, self.back_bytes / self.iteration_s

    def kept(self, _: float) -> tuple[float, float]:
        """Return what the job reserves each way [byte/s]."""
        return self.bytes_per_s, self.bytes_per_s


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """One way to run one workload at one site."""

    workload: ServingFacts | TrainingFacts
    uses: tuple[Use, ...]
    capacity: float  # per replica: requests/s, or trained tokens/s at full width
    latency: Mapping[str, float] = field(default_factory=dict)  # "ttft.p95" -> seconds at the site
    breakdown: Mapping[str, float] = field(default_factory=dict)  # share of the time by cause
    mfu: float = 0.0
    hfu: float = 0.0  # a job with recomputed FLOPs counted
    goodput: float = 1.0  # share of the time that makes lasting progress; included in the capacity
    losses: Mapping[str, float] = field(default_factory=dict)  # share of a job's time by cause
    checkpoints: Mapping[str, float] = field(default_factory=dict)  # interval, time and size of a job's checkpoints
    time_s: Mapping[str, float] = field(
        default_factory=dict
    )  # times of a job: "step", and "run" from start to end at full width
    interval: Interval | None = None  # times of a job
    iteration: Mapping[str, Any] | None = None  # reinforcement learning: the row of its iteration in a plan
    call_s: float | None = None  # mean time of a call of a session, at the site
    classes: tuple[Mapping[str, Any], ...] = ()  # rows of the classes of requests, at the site
    links_s: float | None = None  # time of all links between two pools that the KV cache of a request takes
    steady: ServingPoint | None = field(default=None, repr=False, compare=False)  # a replica that serves
    exchange: Exchange | WeightExchange | None = None  # where pools stand at two sites; None: all pools at one
    power_cap: float | None = None  # share of the systems' nameplate that they may draw; None: all of it

    @property
    def serving(self) -> ServingFacts:
        """Return the workload of a serving point. Raises TypeError for a point of training."""
        if not isinstance(self.workload, ServingFacts):
            raise TypeError(f"{self.workload.name} is no serving workload")
        return self.workload

    @property
    def job(self) -> TrainingFacts:
        """Return the job of a training point. Raises TypeError for a point of serving."""
        if not isinstance(self.workload, TrainingFacts):
            raise TypeError(f"{self.workload.name} is no training job")
        return self.workload

    @property
    def site(self) -> str:
        """Return the region of the site: of the pool that answers, where prefill stands at another; of the update, where the rollout does."""
        return self.uses[-1 if isinstance(self.workload, ServingFacts) else 0].option.site.region

    @property
    def sites(self) -> tuple[str, ...]:
        """Return the regions of all pools, its own first."""
        return tuple(dict.fromkeys((self.site, *(use.option.site.region for use in self.uses))))

    @property
    def memory_bytes(self) -> float:
        """Return the memory of the fullest chip of all pools."""
        return max(use.memory_bytes for use in self.uses)

    @property
    def chips(self) -> float:
        """Count the chips of one replica."""
        return sum_of(use.systems * use.option.system.chips for use in self.uses)


def serving_run(point: OperatingPoint) -> Run:
    """Describe a serving point as its interval sees it: by the pool that decodes, which holds the most requests."""
    use, lengths = max(point.uses, key=lambda use: use.batch), point.serving.spec.lengths
    chips = use.layout["tp"] * use.layout["pp"] * use.layout["dp"]
    return Run.of(point.serving.architecture, chips, lengths.input + lengths.output, use.batch, use.precision)


def deployment_of(point: OperatingPoint) -> tuple[Any, ...]:
    """Return what identifies the deployment of a point: workload, site, and how each pool runs on which system."""
    pools = (
        (
            use.role,
            use.option.system.name,
            use.precision,
            use.kv_precision if use.kv_chosen else "",
            use.waiting,
            use.encoding,
            *sorted(use.layout.items()),
            use.batch,
            *((use.option.site.region, point.exchange.way.kind) if point.exchange is not None else ()),
        )
        for use in point.uses
    )
    return (point.workload.name, point.site, point.power_cap, *pools)


@dataclass(frozen=True, slots=True)
class Pool:
    """Points that may serve a set of origins at one site: origins that leave the same part of the latency limits.

    `allowance_s`: round trip taken off the latency limits. `line_types`: one entry per origin; an origin appears once for each type of
    line that reaches the site, with an empty type where there is no choice of lines.
    """

    workload: ServingFacts
    site: str
    origins: tuple[str, ...]
    allowance_s: float
    points: tuple[OperatingPoint, ...]
    line_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """Operating points of a problem, the fleet options that they use, and what was dropped."""

    fleet_options: tuple[FleetOption, ...]
    pools: tuple[Pool, ...]
    training: Mapping[str, tuple[OperatingPoint, ...]]  # by job
    dropped: Mapping[str, Counter[str]]  # by workload: reason -> count
    evaluated: int
    fastest: Mapping[str, float] = field(
        default_factory=dict
    )  # trained tokens/s of each job at any width that was searched
