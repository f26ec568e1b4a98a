"""Check the rows of tiers of KV cache: prices from the spec's own texts, what each saves by evaluating the points again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.problem.facts import OfferFacts, SystemFacts
from planner.problem.kv_tiers import KvTier
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.options import CheckedOption, key_at
from planner.verify.points.serving import one_pool, two_pools

TABLE = "kv_tiers"


def check_kv_tiers(plan: CheckedPlan) -> None:
    """Compare the table with the fleet, the schedule and the spec."""
    if not plan.problem.spec.kv_tiers:
        if TABLE in plan.document:
            plan.say(TABLE, "verify.no_tiers")
        return
    rows = plan.document[TABLE]
    stated = [(row["site"], row["system"], row["tier"]) for row in rows]
    wanted = []
    for (site, name), count in sorted(_held(plan).items()):
        system = plan.problem.systems[name]
        for tier in system.kv_tiers.tiers if system.kv_tiers else ():
            wanted.append((site, name, tier.name))
            if wanted[-1] in stated:
                i = stated.index(wanted[-1])
                _check_price(plan, f"{TABLE}[{i}]", system, tier)
                plan.equal(f"{TABLE}[{i}]", _plain(rows[i]), _plain(_expected(plan, site, system, tier, count)))
    if stated != wanted:
        plan.say(TABLE, "verify.tier_rows", given=str(stated), expected=str(wanted))


def _plain(row: Row) -> dict[str, Any]:
    return {**row, "points": dict(enumerate(row["points"]))}


def _held(plan: CheckedPlan) -> dict[tuple[str, str], float]:
    """Count the systems of each kind at each site, the most at once of each option."""
    found: dict[tuple[str, str], float] = {}
    for key, counts in plan.held.items():
        if plan.fleet_options[key].system.kv_tiers is not None:
            found[key[0], key[1]] = found.get((key[0], key[1]), 0) + max(counts)
    return found


def _check_price(plan: CheckedPlan, path: str, system: SystemFacts, tier: KvTier) -> None:
    """Compute what a system pays for a tier from the block of the spec."""
    assert system.kv_tiers is not None
    i = int(system.kv_tiers.path.removeprefix("kv_tiers[").removesuffix("]"))
    block = next(offer for offer in (plan.problem.spec.kv_tiers or [])[i].tiers if offer.name == tier.name)
    amount, currency = block.price
    rates = plan.problem.per_usd
    per_byte = (
        amount
        if currency == plan.problem.spec.currency
        else amount / rates[currency] * rates[plan.problem.spec.currency]
    )
    sizes = [size / block.shared_by for size in block.sizes]
    if not any(math.isclose(size, tier.share_bytes, rel_tol=1e-12) for size in sizes):
        plan.say(path, "verify.tier_size", bytes=f"{tier.share_bytes:g}")
    plan.equal(f"{path}.price", tier.price, tier.share_bytes * per_byte)


def _expected(plan: CheckedPlan, site: str, system: SystemFacts, tier: KvTier, count: float) -> dict[str, Any]:
    used, needed, points = 0.0, 0.0, []
    for name, place, row in _points_on(plan, site, system.name):
        computed = plan.points[name][1]
        at_work = sum(
            active * float(seconds)
            for active, seconds in zip(plan.active[name], plan.problem.calendar.seconds, strict=True)
        )
        time = computed.systems[place] * at_work
        ratio = 1.0
        workload = plan.serving.get(computed.workload)
        cache = workload.spec.cache if workload is not None else None
        if place == 0 and cache is not None and cache.reuse is not None:
            with_it, without = (_again(plan, name, row, tiers) for tiers in (None, tier.name))
            ratio = without[0] / with_it[0]
            points.append(
                {
                    "point": name,
                    "computed_share": with_it[1],
                    "computed_without": without[1],
                    "capacity_without": ratio,
                }
            )
        used += time
        needed += time / ratio
    saved = count * (needed / used - 1.0) if used else 0.0
    offer = _offer_of(plan, site, system.name)
    return {
        "site": site,
        "system": system.name,
        "tier": tier.name,
        "systems": count,
        "bytes": count * tier.share_bytes,
        "shared_by": tier.shared_by,
        "price": count * tier.price,
        "power_w": count * tier.power_w,
        "points": points,
        "systems_saved": saved,
        "earns": saved * (offer.prices[site] - tier.price) - count * tier.price,
    }


def _offer_of(plan: CheckedPlan, site: str, system: str) -> OfferFacts:
    return next(plan.fleet_options[key].offer for key in plan.held if key[:2] == (site, system))


def _points_on(plan: CheckedPlan, site: str, system: str) -> Iterator[tuple[str, int, Row]]:
    """Yield (point, place of the pool, row of the point) of each pool on a kind of system at a site."""
    for name, (row, _) in plan.points.items():
        for place, pool in enumerate(row["pools"]):
            if (pool.get("site", row["site"]), pool["system"]) == (site, system):
                yield name, place, row


def _again(plan: CheckedPlan, name: str, row: Row, left_out: str | None) -> tuple[float, float]:
    """Evaluate a point with all tiers of its first pool but one: (requests per second, share of the prompt that is computed)."""
    workload = plan.serving[plan.points[name][1].workload]
    options = [plan.fleet_options[key_at(row["site"], pool)] for pool in row["pools"]]
    tiers = options[0].system.kv_tiers
    assert tiers is not None
    kept = replace(tiers, tiers=tuple(tier for tier in tiers.tiers if tier.name != left_out))
    first: CheckedOption = replace(options[0], system=replace(options[0].system, kv_tiers=kept))
    pools = one_pool if row["pools"][0]["role"] == "serve" else two_pools
    found = pools(plan.problem, workload, [first, *options[1:]], row)
    return found.capacity, found.computed_share
