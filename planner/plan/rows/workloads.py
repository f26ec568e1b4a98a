"""Rows of workloads: latencies, queues of classes, sessions, routing by prefix."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.points import Point
from planner.plan.rows.values import Number, Text, Whole


class ClassLimit(TypedDict):
    """State a latency limit of a class, and its slack."""

    percentile: Text
    limit_s: Number
    slack_s: Number


_QueueWords = TypedDict("_QueueWords", {"class": Text})


class Queue(_QueueWords):
    """State wait, latency and limits of one class of requests over all points of a workload."""

    wait_s: Number
    ttft_s: dict[str, Number]
    priority: Whole
    share: Number
    slo: list[ClassLimit]


class Session(TypedDict):
    """State the sessions of a workload in its busiest slot."""

    slot: Whole
    calls_per_s: Number
    tasks_per_s: Number
    sessions: Number
    waiting_sessions: Number
    waiting_bytes: Number
    prompt_tokens: Number
    waiting: dict[str, Number]


class PrefixPoint(TypedDict):
    """State the hit rate of a point under either policy."""

    point: Text
    hit_rate: Number
    hit_rate_other: Number
    capacity_other: Number


class PrefixRouting(TypedDict):
    """Compare the routing of requests by prefix with the other policy."""

    policy: Text
    workers: Whole
    systems: Number
    imbalance: Number
    points: list[PrefixPoint]


class LatencyRow(TypedDict):
    """State a latency limit of a workload, the prediction, and the slack."""

    metric: Text
    percentile: Text
    limit_s: Number
    predicted_s: Number | None
    slack_s: Number | None


class Workload(TypedDict):
    """Describe how one workload is served or trained, with its cost and limits."""

    name: Text
    of: NotRequired[Text]
    """Name in the spec of a workload with a quality floor; each architecture that answers has a row called "workload (architecture)", here and in
    `routes`."""
    architecture: NotRequired[Text]
    """The architecture that the row runs, where the workload has a quality floor."""
    kind: Text
    points: list[Point]
    """`id`, `site`, `pool`, `pools` (role, system, layout, batch, precision, `kv_precision` where the plan chose it, `waiting` of the caches of
    sessions, `encoding` of media, `systems_per_replica` including a job's `spares`, power above idle, `memory_bytes` of the fullest chip),
    `capacity` per replica in `capacity_unit`, `latency_s` at the site, `first_token_s` (time to first token at the site: `mean`, `p50`, `p95`,
    `p99`, and the parts that the mean is the sum of: `overhead` of front end and scheduler, `prefill`, `chunking`, `prefill_wait`, `slot_wait`;
    not of APIs), `breakdown` (shares of time), `mfu`, `hfu` of a job, `goodput` (share of the time not lost to failures and checkpoints; the
    capacity includes it), `losses` of a job (share of its time by cause: `checkpoints`, `work_done_again`, `restarts` with reading back, together
    1 - goodput; of reinforcement learning also `controller` and `synchronisation` as shares of an iteration, hidden or not),
    `checkpoints` of a job (`interval_s` of work between two, `write_s` to write one, `stall_s` for which the run stands still for it, `bytes`),
    `time_s` of a job (`step`; `run`: all its tokens at full width, including failures and checkpoints), `interval_80`
    ([low, high] of each time and of the capacity, in which 80 % of runs fall; latencies with waits widen with the load, and high is null where a
    replica at the lower bound of its capacity would be overloaded), `tier` (how far the run is from the measurements behind the
    models: `known`, `new_source`, `new_kind` of network, `new_chip`, `new_generation`), `outside` (sentences on what of the run lies outside what its
    chip's family was fitted on, and how much wider the interval is for it; only where something does), `memory_bytes` of the fullest chip of all pools, `placement` ([plan.md](plan.md); only for jobs over several
    systems of our own, else null), `peak_replicas`, `power_cap` (share of nameplate, only where one is set), `iteration` (of [reinforcement
    learning](reinforcement.md#rows-of-a-plan) only), `call_s` (mean time of a call of a session), `classes` (wait and time to first token of each
    class of requests, at the site), `path` ([plan.md](plan.md#networks-and-placement); between pools that exchange KV caches or weights)."""
    tokens: Number
    cost: Number
    cost_per_million_tokens: Number | None
    utilisation: Number | None
    mfu: Number | None
    hfu: NotRequired[Number | None]
    grade: NotRequired[Text | None]
    revenue: NotRequired[Number]
    margin: NotRequired[Number]
    deadline_s: NotRequired[Number]
    """End of the time that a job has, from the start of the horizon."""
    slack_s: NotRequired[Number]
    """Time between start and deadline of a job beyond that which it takes at full width."""
    iterations: NotRequired[Number]
    cost_per_iteration: NotRequired[Number | None]
    session: NotRequired[Session]
    queues: NotRequired[list[Queue]]
    prefix_routing: NotRequired[PrefixRouting]
    slo: list[LatencyRow]
