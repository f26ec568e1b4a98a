"""Plan rows of requests that are routed to the systems that hold their prefixes, or at random: what the way finds, and what the other would."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.serving.decode import ServingLayouts
from planner.evaluate.serving_state import other_way, prefix_cache, prefix_hits, routed_by
from planner.interpret.decisions import Decisions
from planner.interpret.load.kv_tiers import evaluated
from planner.problem.facts import ServingFacts, WorkloadFacts


def prefix_routing_of(decided: Decisions, workload: WorkloadFacts, mine: list[int]) -> dict[str, Any]:
    """State how the prefixes of a workload are routed, with hit rates and capacities of its points; nothing where it does not say."""
    if not isinstance(workload, ServingFacts) or workload.spec.cache is None or workload.spec.cache.routing is None:
        return {}
    block, other = workload.spec.cache, routed_by(workload, other_way(workload.spec.cache))
    systems = np.zeros(decided.problem.calendar.slots)
    rows, imbalance = [], 1.0
    for p in mine:
        point = decided.form.points[p]
        use = point.uses[0]
        cache = prefix_cache(block, use.option.system.chips, use.option.system.kv_tiers)
        if cache is None:
            continue
        systems = systems + use.systems * np.asarray(decided.active[p])
        imbalance = cache.imbalance
        here = [
            prefix_hits(each, use.option.system, ServingLayouts(**use.layout), use.choice.kv_precision, point.capacity / use.workers)
            for each in (workload, other)
        ]  # fmt: skip
        capacity, elsewhere = (
            evaluated(decided, point, each, use.option.system.kv_tiers)[0] for each in (workload, other)
        )
        rows.append(
            {
                "point": decided.point_ids[p],
                "hit_rate": here[0],
                "hit_rate_other": here[1],
                "capacity_other": elsewhere / capacity,
            }
        )
    stated = {"policy": block.routing, "workers": block.workers, "systems": float(systems.max(initial=0.0))}
    return {"prefix_routing": {**stated, "imbalance": imbalance, "points": rows}}
