"""Operating points under a power cap: slower and cheaper to run, on the mean of measured curves of speed against power.

A capped point is the same queue with all times stretched: at speed s it serves s times the requests per second, and each latency is
1/s of what it was. Not here: how a point runs uncapped (`models`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.candidates.points import Point, Pool, Use
from planner.problem.derating import Derating, stretch_of
from planner.problem.facts import CapCurve, SystemFacts
from planner.problem.provenance import Ledger

LEAST = 0.5  # of the uncapped draw: below it too few curves were measured
AXIS = "power limit"


def measured_curve(ledger: Ledger, path: str) -> CapCurve:
    """Mean relative speed over the measured curves that reach down to half of the power, with their sources booked."""
    power = np.linspace(LEAST, 1.0, 51)
    speeds = []
    for name in ledger.catalog.names("power_curves"):
        record = ledger.catalog.get("power_curves", name)
        if record.words("axis") != AXIS or min(record.figure("relative_power").value) > LEAST:
            continue
        drawn, speed = (np.array(ledger.figure("power_curves", name, f"relative_{what}").value) for what in ("power", "throughput"))
        order = np.argsort(drawn)
        speeds.append(np.minimum(np.interp(power, drawn[order], speed[order]), 1.0))
    reason = f"speed under a cap: mean of {len(speeds)} measured curves of training on older chips, of the power of the whole system"
    ledger.assume(f"{path}.power_caps", f"{np.mean(speeds, axis=0)[0]:.2f} at half the power", "1", reason)
    return CapCurve(power, np.mean(speeds, axis=0))


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
        if share < LEAST or allowed < idle:
            return None
        speed = min(speed, float(np.interp(share, curve.power, curve.speed)) if share < 1 else 1.0)
        extra.append(min(extra_w, allowed - idle))
    return Capped(speed, tuple(extra)) if speed < 1 else None


def with_caps(pool: Pool, slo: Sequence[tuple[str, str, float]], derating: Derating | None = None) -> Pool:
    """The pool with a capped form of each point that keeps its limits at the origins."""
    capped = [point for plain in pool.points for point in capped_points(plain)]
    return replace(pool, points=(*pool.points, *(p for p in capped if _in_time(p, pool.allowance_s, slo, derating)))) if capped else pool


def capped_points(point: Point) -> list[Point]:
    site = point.uses[0].lot.site
    if site.cap_curve is None or not all(use.lot.owned for use in point.uses):
        return []
    found = ((cap, capped_at(cap, site.cap_curve, [(u.lot.system, u.systems, u.extra_it_w) for u in point.uses])) for cap in site.power_caps)
    return [_slower(point, cap, capped) for cap, capped in found if capped is not None]


def _slower(point: Point, cap: float, capped: Capped) -> Point:
    uses: tuple[Use, ...] = tuple(replace(use, extra_it_w=watts) for use, watts in zip(point.uses, capped.extra_w, strict=True))
    s = capped.speed
    return replace(
        point, uses=uses, capacity=point.capacity * s, mfu=point.mfu * s, hfu=point.hfu * s, power_cap=cap,
        latency={name: seconds / s for name, seconds in point.latency.items()}, time_s={name: seconds / s for name, seconds in point.time_s.items()},
    )  # fmt: skip


def _in_time(point: Point, allowance_s: float, slo: Sequence[tuple[str, str, float]], derating: Derating | None) -> bool:
    stretch = stretch_of(derating, (use.lot.system for use in point.uses))
    return all(point.latency[f"{metric}.{p}"] * stretch.get(metric, 1.0) + (0.0 if metric == "tpot" else allowance_s) <= limit for metric, p, limit in slo)


def stretched(stated: Mapping[str, Any], capped: Capped) -> dict[str, Any]:
    """What a plan must say of a capped point, from what it would say of the same point without the cap."""
    s = capped.speed
    over = lambda times: {name: value / s for name, value in times.items()}
    interval = stated["interval_80"] and {
        name: [bound * s if name == "capacity" else bound / s for bound in bounds] for name, bounds in stated["interval_80"].items()
    }
    pools = {i: {**pool, "extra_power_w": watts} for (i, pool), watts in zip(stated["pools"].items(), capped.extra_w, strict=True)}
    return {
        **stated, "pools": pools, "capacity": stated["capacity"] * s, "mfu": stated["mfu"] * s, "latency_s": over(stated["latency_s"]),
        "time_s": over(stated["time_s"]), "interval_80": interval, **({"hfu": stated["hfu"] * s} if "hfu" in stated else {}),
    }  # fmt: skip
