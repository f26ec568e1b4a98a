"""Evaluate how long each class of requests waits at an operating point, by priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from models.arrays import Bools, sum_of
from models.queueing.priority import priority_factors, priority_scvs
from models.serving.continuous_batching import ServingPoint
from models.serving.percentiles import latency_s, within_slo
from planner.evaluate.serving import QUANTILES
from planner.spec.load.classes import RequestClass
from planner.spec.slo import TTFT

SHOWN = ("mean", "p50", "p95", "p99")


@np.errstate(invalid="ignore")  # infinite waits of classes that are never reached
def class_points(classes: list[RequestClass], point: ServingPoint) -> list[ServingPoint]:
    """Evaluate the points that the requests of each class meet: the points of all requests, with the waits for prefill and for a slot of their priority.

    The load of the queue for prefill is `prefill_load`, that of the slots the share of them in use.
    """
    levels = sorted({each.priority for each in classes})
    shares = [sum_of(each.share for each in classes if each.priority == level) for level in levels]
    load = point.prefill_load
    full = point.batch / np.maximum(point.slots, 1.0)
    waits, slots = priority_factors(load, shares), priority_factors(full, shares)
    # The spread of waits in order of arrival stands for that of services: 4/3 (1 - rho)(1 + 2 c)/(1 + c) solved for c, between 0 and 4.
    part = 0.75 * (point.prefill_wait_scv - 2.0 * load + 1.0) / np.maximum(1.0 - load, 1e-9)
    service = np.clip((part - 1.0) / np.maximum(2.0 - part, 0.2), 0.0, 4.0)
    scvs = priority_scvs(load, service, shares)
    by_level = {
        level: replace(
            point, prefill_wait_s=point.prefill_wait_s * wait, prefill_wait_scv=scv, slot_wait_s=point.slot_wait_s * slot
        )
        for level, wait, slot, scv in zip(levels, waits, slots, scvs, strict=True)
    }  # fmt: skip
    return [by_level[each.priority] for each in classes]


def meets_classes(
    classes: list[RequestClass] | None, point: ServingPoint, allowance_s: float, stretch: Mapping[str, float] = {}
) -> Bools | bool:
    """Tell which points keep the limits of every class, `allowance_s` away from the users."""
    if not classes or all(each.ttft is None for each in classes):
        return True
    meets: Bools | bool = True
    for each, mine in zip(classes, class_points(classes, point), strict=True):
        limits = [limit.at_site(allowance_s, stretch.get(TTFT, 1.0)) for limit in each.limits()]
        if limits:
            meets = meets & within_slo(mine, {TTFT: [(QUANTILES[limit.percentile], limit.seconds) for limit in limits]})
    return meets


def class_rows(classes: list[RequestClass] | None, point: ServingPoint) -> tuple[dict[str, Any], ...]:
    """Write what each class of requests meets at one point, at the site: its mean wait and its time to first token [s]."""
    if not classes:
        return ()
    return tuple(
        {
            "class": each.name,
            "wait_s": float(mine.prefill_wait_s + mine.slot_wait_s),
            "ttft_s": {name: float(latency_s(mine, TTFT, QUANTILES[name])) for name in _shown(each)},
        }
        for each, mine in zip(classes, class_points(classes, point), strict=True)
    )


def _shown(each: RequestClass) -> list[str]:
    limited = {limit.percentile for limit in each.limits()}
    return [name for name in QUANTILES if name in SHOWN or name in limited]
