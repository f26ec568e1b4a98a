"""Evaluate an operating point under a power cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.problem.facts import CapCurve, SystemFacts
from planner.resolve.power_caps import LEAST_POWER


@dataclass(frozen=True, slots=True)
class Capped:
    """`speed` of the whole point, `extra_w` above idle of each pool."""

    speed: float
    extra_w: tuple[float, ...]


def capped_at(cap: float, curve: CapCurve, pools: Sequence[tuple[SystemFacts, float, float]]) -> Capped | None:
    """A cap as a share of nameplate on all systems of a point, as (system, systems per replica, watts above idle) by pool; None
    where it changes nothing or goes below what was measured."""
    speed, extra = 1.0, []
    for system, systems, extra_w in pools:
        allowed, idle = cap * systems * system.power_w, systems * system.idle_w
        share = allowed / (idle + extra_w)
        if share < LEAST_POWER or allowed < idle:
            return None
        speed = min(speed, float(np.interp(share, curve.power, curve.speed)) if share < 1 else 1.0)
        extra.append(min(extra_w, allowed - idle))
    return Capped(speed, tuple(extra)) if speed < 1 else None


def stretched(stated: Mapping[str, Any], capped: Capped) -> dict[str, Any]:
    """What a plan must say of a capped point, from what it would say of the same point without the cap."""
    s = capped.speed
    over = lambda times: {name: value / s for name, value in times.items()}
    interval = stated["interval_80"] and {
        name: [bound * s if name == "capacity" else bound / s for bound in bounds]
        for name, bounds in stated["interval_80"].items()
    }
    pools = {
        i: {**pool, "extra_power_w": watts}
        for (i, pool), watts in zip(stated["pools"].items(), capped.extra_w, strict=True)
    }
    return {
        **stated, "pools": pools, "capacity": stated["capacity"] * s, "mfu": stated["mfu"] * s, "latency_s": over(stated["latency_s"]),
        "time_s": over(stated["time_s"]), "interval_80": interval, **({"hfu": stated["hfu"] * s} if "hfu" in stated else {}),
    }  # fmt: skip
