"""Check how prefixes are routed: hit rates and capacities by evaluating the points again, systems at work from the schedule."""

from __future__ import annotations

from typing import Any

from models.serving.decode import ServingLayouts
from planner.evaluate.serving_state import other_way, prefix_cache, prefix_hits, routed_by
from planner.problem.facts import ServingFacts
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.options import key_at
from planner.verify.points.serving import cache_of, one_pool, two_pools

KEY = "prefix_routing"


def check_prefix_routing(plan: CheckedPlan, path: str, row: Row) -> None:
    """Compare what a workload states of the routing of its prefixes."""
    facts = plan.serving.get(row["name"])
    block = None if facts is None else facts.spec.cache
    if facts is None or block is None or block.routing is None:
        if KEY in row:
            plan.say(f"{path}.{KEY}", "verify.without_prefix_routing")
        return
    stated = row.get(KEY) or {}
    expected = _expected(plan, facts, row)
    plan.equal(f"{path}.{KEY}", {**stated, "points": dict(enumerate(stated.get("points", ())))}, expected)


def _expected(plan: CheckedPlan, facts: ServingFacts, row: Row) -> dict[str, Any]:
    block = facts.spec.cache
    assert block is not None
    other, imbalance = routed_by(facts, other_way(block)), 1.0
    points: dict[int, Row] = {}
    systems = [0.0] * len(plan.problem.calendar.seconds)
    for point in row["points"]:
        pool = point["pools"][0]
        options = [plan.fleet_options[key_at(point["site"], each)] for each in point["pools"]]
        system = options[0].system
        cache = prefix_cache(block, system.chips, system.kv_tiers)
        if cache is None:
            continue
        imbalance = cache.imbalance
        held = plan.points[point["id"]][1].systems[0]
        systems = [sum_ + held * active for sum_, active in zip(systems, plan.active[point["id"]], strict=True)]
        layout, precision = (
            ServingLayouts(**pool["layout"]),
            cache_of(facts, pool),
        )
        rate = point["capacity"] / pool["workers"]
        again = one_pool if pool["role"] == "serve" else two_pools
        mine, theirs = (again(plan.problem, each, options, point).capacity for each in (facts, other))
        points[len(points)] = {
            "point": point["id"],
            "hit_rate": prefix_hits(facts, system, layout, precision, rate),
            "hit_rate_other": prefix_hits(other, system, layout, precision, rate),
            "capacity_other": theirs / mine,
        }
    return {
        "policy": block.routing,
        "workers": block.workers,
        "systems": max(systems, default=0.0),
        "imbalance": imbalance,
        "points": points,
    }
