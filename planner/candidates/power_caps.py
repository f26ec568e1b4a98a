"""Derive operating points under a power cap, slower and cheaper to run, from the mean of measured curves of speed against power.

A capped point is the same queue with all times stretched: at relative speed s it serves s times the requests per second, and each
latency is 1/s times the uncapped one. Not here: the performance of the uncapped point (`models`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.candidates.points import OperatingPoint, Pool, Use
from planner.evaluate.power_caps import CappedPoint, capped_at, slowed, slowed_class
from planner.problem.derating import stretch_of
from planner.problem.facts import Derating
from planner.spec.slo import LatencyLimit


def with_caps(pool: Pool, slo: Sequence[LatencyLimit], derating: Derating | None = None) -> Pool:
    """Add to a pool the capped forms of its points that keep the latency limits at the origins."""
    capped = [point for plain in pool.points for point in capped_points(plain)]
    if not capped:
        return pool
    kept = (point for point in capped if _meets(point, pool.allowance_s, slo, derating))
    return replace(pool, points=(*pool.points, *kept))


def capped_points(point: OperatingPoint) -> list[OperatingPoint]:
    """List the capped forms of a point on owned systems at a site with power caps; none of one that stands at two sites."""
    site = point.uses[0].option.site
    if point.exchange is not None or site.cap_curve is None or not all(use.option.owned for use in point.uses):
        return []
    found = (
        (cap, capped_at(cap, site.cap_curve, [(u.option.system, u.systems, u.extra_it_w) for u in point.uses]))
        for cap in site.power_caps
    )
    return [_slowed(point, cap, capped) for cap, capped in found if capped is not None]


def _slowed(point: OperatingPoint, cap: float, capped: CappedPoint) -> OperatingPoint:
    """Slow a point down to the speed under its cap."""
    uses: tuple[Use, ...] = tuple(
        replace(use, extra_it_w=watts) for use, watts in zip(point.uses, capped.extra_w, strict=True)
    )
    s = capped.speed
    return replace(
        point, uses=uses, steady=None if point.steady is None else slowed(point.steady, s), capacity=point.capacity * s, mfu=point.mfu * s, hfu=point.hfu * s, power_cap=cap,
        call_s=None if point.call_s is None else point.call_s / s, classes=tuple(slowed_class(row, s) for row in point.classes), latency={name: seconds / s for name, seconds in point.latency.items()}, time_s={name: seconds / s for name, seconds in point.time_s.items()},
    )  # fmt: skip


def _meets(point: OperatingPoint, allowance_s: float, slo: Sequence[LatencyLimit], derating: Derating | None) -> bool:
    """Tell whether a point keeps all latency limits at the origins of its pool."""
    stretch = stretch_of(derating, (use.option.system for use in point.uses))
    return all(
        limit.at_origin(point.latency[limit.key] * stretch.get(limit.metric, 1.0), allowance_s) <= limit.seconds
        for limit in slo
    ) and _classes_meet(point, allowance_s)


def _classes_meet(point: OperatingPoint, allowance_s: float) -> bool:
    """Tell whether a point keeps the limits of every class of requests."""
    classes = point.serving.spec.classes or []
    return all(
        limit.at_origin(row["ttft_s"][limit.percentile], allowance_s) <= limit.seconds
        for each, row in zip(classes, point.classes, strict=False)  # no rows of an API
        for limit in each.limits()
    )
