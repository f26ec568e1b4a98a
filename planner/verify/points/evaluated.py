"""A used point of a plan: figures evaluated again, and figures stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.verify.fleet.options import CheckedOption


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The figures of a point by the closed forms, in plain numbers; per pool where a sequence."""

    systems: Sequence[float]  # per replica
    extra_it_w: Sequence[float]  # above idle, per replica
    capacity: float  # requests/s or tokens/s
    latency_s: Mapping[str, float] = field(default_factory=dict)
    breakdown: Mapping[str, float] = field(default_factory=dict)
    mfu: float = 0.0
    memory_bytes: Sequence[float] = ()  # fullest chip, by pool
    fits: bool = True
    goodput: float = 1.0
    losses: Mapping[str, float] = field(default_factory=dict)  # losses of a job
    checkpoints: Mapping[str, float] = field(default_factory=dict)  # checkpoints of a job
    time_s: Mapping[str, float] = field(default_factory=dict)
    interval: Mapping[str, Any] | None = None
    tier: str = ""
    outside: Sequence[Mapping[str, Any]] = ()  # sentences on what lies outside what was fitted
    placement: Mapping[str, Any] | None = None
    iteration: Mapping[str, Any] | None = None  # reinforcement learning
    first_token_s: Mapping[str, float] = field(default_factory=dict)  # serving
    call_s: float | None = None  # sessions
    classes: Sequence[Mapping[str, Any]] = ()  # classes of requests
    links_s: float | None = None  # time of all links between two pools that the KV cache of a request takes
    computed_share: float = 1.0  # share of the tokens of prompts
    loads: Sequence[float] = ()  # share of the requests that read their cache from each tier
    hfu: float | None = None  # None for serving, and for plans of release 0.1 that do not state it


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A used point: `stated` holds the expected figures; the other fields are the plan's, from which all sums are made."""

    workload: str
    stated: Mapping[str, Any]
    fits: bool
    capacity: float
    latency: Mapping[str, float]
    chips: float
    mfu: float
    hfu: float  # 0 for serving
    systems: Sequence[float]  # per replica, by pool
    extra: Sequence[tuple[CheckedOption, float]]  # IT watts above idle per replica, by pool


def as_evaluated(
    workload: str, row: Mapping[str, Any], options: Sequence[CheckedOption], found: Recomputed
) -> Evaluated:
    """Write the figures of a point under the keys of its row."""
    pools = [
        {
            **pool,
            "systems_per_replica": systems,
            "extra_power_w": watts,
            **({"memory_bytes": memory} if "memory_bytes" in pool else {}),  # plans of release 0.2 do not state it
        }
        for pool, systems, watts, memory in zip(
            row["pools"], found.systems, found.extra_it_w, found.memory_bytes or [0.0] * len(row["pools"]), strict=True
        )
    ]
    pairs = list(zip(row["pools"], options, strict=True))
    return Evaluated(
        workload=workload,
        stated={
            "pools": dict(enumerate(pools)),
            "capacity": found.capacity,
            "latency_s": found.latency_s,
            "breakdown": found.breakdown,
            "mfu": found.mfu,
            "memory_bytes": max(found.memory_bytes, default=0.0),
            "goodput": found.goodput,
            "time_s": found.time_s,
            "interval_80": found.interval,
            "tier": found.tier,
            **({"outside": dict(enumerate(found.outside))} if found.outside else {}),
            "placement": found.placement,
            **({} if found.hfu is None else {"hfu": found.hfu}),
            **({"losses": found.losses} if "losses" in row else {}),  # plans of release 0.2 do not state them
            **({"checkpoints": found.checkpoints} if "checkpoints" in row else {}),  # nor these
            # Plans of release 0.2 do not state it.
            **({"first_token_s": found.first_token_s} if found.first_token_s and "first_token_s" in row else {}),
            **({} if found.call_s is None else {"call_s": found.call_s}),
            **({"classes": dict(enumerate(found.classes))} if found.classes else {}),
            **({} if found.iteration is None else {"iteration": found.iteration}),
        },
        fits=found.fits,
        capacity=row["capacity"],
        latency=row["latency_s"],
        mfu=row["mfu"],
        hfu=0.0 if found.hfu is None else row["hfu"],
        systems=[pool["systems_per_replica"] for pool in row["pools"]],
        chips=sum(pool["systems_per_replica"] * option.system.chips for pool, option in pairs),
        extra=[(option, pool["extra_power_w"]) for pool, option in pairs],
    )
