"""Evaluate an operating point under a power cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from models.arrays import Result
from models.serving.continuous_batching import ServingPoint
from planner.problem.electricity import CapCurve
from planner.problem.facts import SystemFacts
from planner.resolve.power_caps import LEAST_POWER


@dataclass(frozen=True, slots=True)
class CappedPoint:
    """An operating point under a power cap: its speed relative to uncapped, and the power above idle of each pool [W]."""

    speed: float
    extra_w: tuple[float, ...]


def cap_speed(cap: float, curve: CapCurve, pools: Sequence[tuple[SystemFacts, Result]]) -> Result:
    """Compute the relative speed of points whose systems are all held to a cap, a share of nameplate [1].

    `pools`: (system, watts above idle of one system) of each; watts broadcast, and the slowest pool sets the speed. 1 where the cap lies
    above the draw, NaN where it lies below idle or below the measured range of the curve.
    """
    speed: Result = np.float64(1.0)
    for system, extra_w in pools:
        allowed = cap * system.power_w
        share = allowed / (system.idle_w + np.asarray(extra_w, float))
        within = (share >= LEAST_POWER) & (allowed >= system.idle_w)
        speed = np.minimum(speed, np.where(within, np.interp(share, curve.power, curve.speed), np.nan))
    return speed


def capped_watts(cap: float, system: SystemFacts, extra_w: float) -> float:
    """Compute the power above idle of one system [W] that would draw `extra_w` without the cap."""
    return min(extra_w, cap * system.power_w - system.idle_w)


def slowed(point: ServingPoint, speed: Result) -> ServingPoint:
    """Stretch all times of a serving point: at relative speed s it serves s times the requests, and each time is 1/s of the uncapped one."""
    times = [field.name for field in fields(point) if field.name.endswith("_s") and field.name != "requests_per_s"]
    stretched: dict[str, Any] = {name: getattr(point, name) / speed for name in times}
    return replace(point, requests_per_s=point.requests_per_s * speed, **stretched)


def capped_at(cap: float, curve: CapCurve, pools: Sequence[tuple[SystemFacts, float, float]]) -> CappedPoint | None:
    """Apply a power cap, as a share of nameplate, to all systems of a point.

    `pools`: (system, systems per replica, watts above idle) of each. None where the cap changes nothing, or is below the measured range
    of the curve.
    """
    speed = float(cap_speed(cap, curve, [(system, extra_w / systems) for system, systems, extra_w in pools]))
    if not speed < 1:  # NaN out of the measured range
        return None
    extra = (systems * capped_watts(cap, system, extra_w / systems) for system, systems, extra_w in pools)
    return CappedPoint(speed, tuple(extra))


def slowed_class(row: Mapping[str, Any], speed: float) -> dict[str, Any]:
    """Stretch the times of a class of requests under a power cap."""
    return {
        **row,
        "wait_s": row["wait_s"] / speed,
        "ttft_s": {name: seconds / speed for name, seconds in row["ttft_s"].items()},
    }


def capped_row(stated: Mapping[str, Any], capped: CappedPoint) -> dict[str, Any]:
    """Derive the plan row of a capped point from the row of the same point without the cap."""
    s = capped.speed

    def stretched(times: Mapping[str, float]) -> dict[str, float]:
        return {name: value / s for name, value in times.items()}

    interval = stated["interval_80"] and {
        name: [bound if bound is None else bound * s if name == "capacity" else bound / s for bound in bounds]
        for name, bounds in stated["interval_80"].items()
    }
    pools = {
        i: {**pool, "extra_power_w": watts}
        for (i, pool), watts in zip(stated["pools"].items(), capped.extra_w, strict=True)
    }
    return {
        **stated, "pools": pools, "capacity": stated["capacity"] * s, "mfu": stated["mfu"] * s, "latency_s": stretched(stated["latency_s"]),
        "time_s": stretched(stated["time_s"]), **({"first_token_s": stretched(stated["first_token_s"])} if "first_token_s" in stated else {}), **({"call_s": stated["call_s"] / s} if "call_s" in stated else {}),
        **({"classes": {i: slowed_class(row, s) for i, row in stated["classes"].items()}} if "classes" in stated else {}), "interval_80": interval, **({"hfu": stated["hfu"] * s} if "hfu" in stated else {}),
    }  # fmt: skip
