"""Rows of operating points: pools, placement, iterations of reinforcement learning."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.framing import Sentence
from planner.plan.rows.values import Number, Text, Whole


class Pool(TypedDict):
    """Describe one pool of workers of an operating point: system, layout, batch and formats."""

    role: Text
    site: NotRequired[Text]
    system: Text
    how: Text
    topology: Text
    network_size: Whole | None
    offer: Text
    tenant: NotRequired[Text]
    precision: Text
    kv_precision: NotRequired[Text]
    waiting: NotRequired[Text]
    encoding: NotRequired[Text]
    layout: dict[str, Whole]
    batch: Whole
    workers: Whole
    systems_per_replica: Number
    spares: NotRequired[Number]
    extra_power_w: Number
    memory_bytes: NotRequired[Number]


class Placement(TypedDict):
    """State in which order to number the parallel dimensions of a job, so that the busiest link needs the least time."""

    order: list[Text | list[Text]]
    busiest_link_s: Number
    in_number_order_s: Number | None
    worst_s: Number
    tried: Whole
    factors: NotRequired[Any]


class Path(TypedDict):
    """State the path between the pools of a deployment: its bandwidth, what is used of it at full load, and the share of its time."""

    kind: Text
    design: Text
    size: Whole | None
    line: NotRequired[Text]
    latency_s: NotRequired[Number]
    bytes_per_s: Number
    used_bytes_per_s: Number
    share: Number


class CachePath(TypedDict):
    """State the path from a tier of KV cache to the chips of a deployment: its bandwidth, the part that requests read at full load, and that share."""

    tier: Text
    bytes_per_s: Number
    used_bytes_per_s: Number
    share: Number


class Environments(TypedDict):
    """State slots and cores of the environments that answer rollouts."""

    slots: Whole
    cores: Number
    price_per_h: NotRequired[Number]


class Rollout(TypedDict):
    """Describe the workers that generate responses."""

    precision: Text
    layout: dict[str, Whole]
    replicas: Whole
    slots: Whole
    environment_load: Number


class SplitRollout(TypedDict):
    """State format and layout of the rollout workers of a split."""

    precision: Text
    layout: dict[str, Whole]


class Split(TypedDict):
    """Describe one division of the systems between update and rollout."""

    precision: Text
    layout: dict[str, Whole]
    rollout: SplitRollout | None
    way: Text
    update_systems: Whole
    rollout_systems: Whole
    iteration_s: Number
    tokens_per_s: Number
    binds: Text
    idle: dict[str, Number]


class Iteration(TypedDict):
    """Describe an iteration of reinforcement learning: its parts, what binds, and the splits compared."""

    way: Text
    iteration_s: Number
    iterations_per_hour: Number
    tokens: Number
    parts_s: dict[str, Number]
    binds: Text
    idle: dict[str, Number]
    environments: NotRequired[Environments]
    rollout: Rollout | None
    splits: list[Split]


_ClassLatencyWords = TypedDict("_ClassLatencyWords", {"class": Text})


class ClassLatency(_ClassLatencyWords):
    """State wait and time to first token of one class of requests, in seconds."""

    wait_s: Number
    ttft_s: dict[str, Number]


class Point(TypedDict):
    """Describe an operating point: one way to run a workload on one system, with its rate and latencies at the site."""

    id: Text
    site: Text
    pool: Text | None
    power_cap: NotRequired[Number]
    pools: list[Pool]
    capacity: Number
    capacity_unit: Text
    latency_s: dict[str, Number]
    time_s: dict[str, Number]
    first_token_s: NotRequired[dict[str, Number]]
    call_s: NotRequired[Number]
    classes: NotRequired[list[ClassLatency]]
    interval_80: dict[str, list[Number | None]] | None
    tier: Text
    outside: NotRequired[list[Sentence]]
    breakdown: dict[str, Number]
    mfu: Number
    hfu: NotRequired[Number]
    goodput: Number
    losses: NotRequired[dict[str, Number]]
    checkpoints: NotRequired[dict[str, Number]]
    memory_bytes: Number
    iteration: NotRequired[Iteration]
    path: NotRequired[Path]
    cache_paths: NotRequired[list[CachePath]]
    placement: Placement | None
    peak_replicas: Number
