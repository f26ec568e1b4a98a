"""Evaluate an operating point under a power cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.problem.facts import CapCurve, SystemFacts
from planner.resolve.power_caps import LEAST_POWER


@dataclass(frozen=True, slots=True)
class CappedPoint:
    """An operating point under a power cap: its speed relative to uncapped, and the power above idle of each pool [W]."""

    speed: float
    extra_w: tuple[float, ...]


def capped_at(cap: float, curve: CapCurve, pools: Sequence[tuple[SystemFacts, float, float]]) -> CappedPoint | None:
    """Apply a power cap, as a share of nameplate, to all systems of a point.

    `pools`: (system, systems per replica, watts above idle) of each. None where the cap changes nothing, or is below the measured range
    of the curve.
    """
    speed, extra = 1.0, []
    for system, systems, extra_w in pools:
        allowed, idle = cap * systems * system.power_w, systems * system.idle_w
        share = allowed / (idle + extra_w)
        if share < LEAST_POWER or allowed < idle:
            return None
        speed = min(speed, float(np.interp(share, curve.power, curve.speed)) if share < 1 else 1.0)
        extra.append(min(extra_w, allowed - idle))
    return CappedPoint(speed, tuple(extra)) if speed < 1 else None


def capped_row(stated: Mapping[str, Any], capped: CappedPoint) -> dict[str, Any]:
    """Derive the plan row of a capped point from the row of the same point without the cap."""
    s = capped.speed

    def slowed(times: Mapping[str, float]) -> dict[str, float]:
        return {name: value / s for name, value in times.items()}

    interval = stated["interval_80"] and {
        name: [bound * s if name == "capacity" else bound / s for bound in bounds]
        for name, bounds in stated["interval_80"].items()
    }
    pools = {
        i: {**pool, "extra_power_w": watts}
        for (i, pool), watts in zip(stated["pools"].items(), capped.extra_w, strict=True)
    }
    return {
        **stated, "pools": pools, "capacity": stated["capacity"] * s, "mfu": stated["mfu"] * s, "latency_s": slowed(stated["latency_s"]),
        "time_s": slowed(stated["time_s"]), "interval_80": interval, **({"hfu": stated["hfu"] * s} if "hfu" in stated else {}),
    }  # fmt: skip
