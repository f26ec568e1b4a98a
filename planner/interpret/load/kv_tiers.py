"""Plan rows of the tiers of KV cache with which systems are bought: what they hold, cost and earn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from models.serving.decode import ServingLayouts
from planner.candidates.points import OperatingPoint, Use
from planner.evaluate import disaggregated, serving
from planner.interpret.decisions import Decisions
from planner.problem.facts import OfferFacts, ServingFacts, SystemFacts
from planner.problem.kv_tiers import KvTierSet

Held = tuple[str, str]  # site, system


def kv_tier_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each tier of each kind of system held, by site.

    `earns`: systems that would be needed more without the tier, layouts and batches kept, at the price of one without it, less the
    price of the tier. Both are prices at the start of the horizon.
    """
    held: dict[Held, int] = defaultdict(int)
    offered: dict[Held, tuple[SystemFacts, OfferFacts]] = {}
    for option, count in decided.most_held().values():
        if option.system.kv_tiers is not None:
            key = option.site.region, option.system.name
            held[key] += count
            offered.setdefault(key, (option.system, option.offer))
    return [row for key in sorted(held) for row in _rows(decided, key, held[key], *offered[key])]


def _rows(
    decided: Decisions, key: Held, count: int, system: SystemFacts, offer: OfferFacts
) -> Iterator[dict[str, Any]]:
    bought = system.kv_tiers
    assert bought is not None
    site, name = key
    for tier in bought.tiers:
        occupied, needed = 0.0, 0.0  # system-seconds with the tier, and without it
        points = []
        for p, use in _on(decided, key):
            point = decided.form.points[p]
            seconds = use.systems * float(decided.active[p] @ decided.problem.calendar.seconds)
            share = 1.0
            if use is point.uses[0] and _reuses(point):
                fewer = bought.without(tier.name)
                found, without = (evaluated(decided, point, point.serving, tiers) for tiers in (bought, fewer))
                share = without[0] / found[0]
                points.append(
                    {
                        "point": decided.point_ids[p],
                        "computed_share": found[1],
                        "computed_without": without[1],
                        "capacity_without": share,
                    }
                )
            occupied, needed = occupied + seconds, needed + seconds / share
        saved = count * (needed / occupied - 1.0) if occupied else 0.0
        price = offer.prices[site]
        yield {
            "site": site,
            "system": name,
            "tier": tier.name,
            "systems": count,
            "bytes": count * tier.share_bytes,
            "shared_by": tier.shared_by,
            "price": count * tier.price,
            "power_w": count * tier.power_w,
            "points": points,
            "systems_saved": saved,
            "earns": saved * (price - tier.price) - count * tier.price,
        }


def _on(decided: Decisions, key: Held) -> Iterator[tuple[int, Use]]:
    """Yield the pools of used points that stand on a kind of system at a site."""
    for p in decided.used:
        for use in decided.form.points[p].uses:
            if (use.option.site.region, use.option.system.name) == key:
                yield p, use


def _reuses(point: OperatingPoint) -> bool:
    """Tell whether a point finds prefixes in tiers."""
    workload = point.workload.spec
    return workload.kind == "serving" and workload.cache is not None and workload.cache.reuse is not None


def evaluated(
    decided: Decisions, point: OperatingPoint, workload: ServingFacts, tiers: KvTierSet | None
) -> tuple[float, float]:
    """Evaluate a point of a workload with some of the tiers of its first pool: (requests per second, share of the prompt that is computed)."""
    constants = decided.problem.constants.serving
    pools = [use for use in point.uses if use.role in ("serve", "prefill", "decode")]
    first = pools[0]
    system = replace(first.option.system, kv_tiers=tiers)
    layouts = [ServingLayouts(**use.layout) for use in pools]
    if len(pools) == 1:
        found = serving.evaluate(
            workload, system, first.option.scaleout, layouts[0], float(first.batch), first.choice, constants
        )
    else:
        second = pools[1]
        found = disaggregated.evaluate(
            workload,
            (system, second.option.system),
            (first.option.scaleout, second.option.scaleout),
            (layouts[0], layouts[1]),
            float(second.batch),
            (first.workers, second.workers),
            first.choice,
            constants,
        ).point
    return float(found.requests_per_s), float(found.computed_share)
