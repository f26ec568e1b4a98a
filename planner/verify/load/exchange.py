"""Add up what points with prefill at one site and decode at another send over the lines between both, from the replicas at work."""

from __future__ import annotations

import math

from planner.problem.lines import Carrier
from planner.verify.checked_plan import CheckedPlan
from planner.verify.points.exchange import CacheFlow, cache_bytes, stands_apart, way_of
from planner.verify.points.serving import choice_of


def exchanged(plan: CheckedPlan) -> list[CacheFlow]:
    """List what each point of two sites sends, and book its price as egress of the site of prefill."""
    flows = []
    calendar = plan.problem.calendar
    for name, (row, computed) in plan.points.items():
        workload = plan.serving.get(computed.workload)
        if workload is None or not stands_apart(row):
            continue
        way, (option, _) = way_of(plan.problem, workload, row), computed.extra[0]
        cache = cache_bytes(workload, choice_of(workload, option, row["pools"][0]))
        prompt = workload.spec.prompt_tokens * plan.problem.bytes_per_token
        rates = [active * computed.capacity for active in plan.active[name]]
        flows.append(
            CacheFlow(
                workload.name, way.hops, way.kind, [rate * cache for rate in rates], [rate * prompt for rate in rates]
            )
        )
        _check_path(plan, name, way, max(rates) * cache)
        worth = sum(rate * float(s * d) for rate, s, d in zip(rates, calendar.seconds, calendar.discount, strict=True))
        plan.traffic[workload.name][option.site.region, way.kind] += worth * (cache + prompt) * way.price_per_byte
    return flows


def _check_path(plan: CheckedPlan, name: str, way: Carrier, used: float) -> None:
    """Compare the path of a point with the units of the lines that the plan rents, and with the caches of its busiest slot."""
    assert plan.problem.lines is not None
    facts = [plan.problem.lines.lines[line] for line, _ in way.uses]
    rented = {(row["line"], row["kind"]): row["units"] or 0 for row in plan.document["lines"]}
    rate = min(rented.get((line.name, line.kind), 0) * line.unit_bytes_per_s for line in facts)
    expected = {
        "kind": "line",
        "design": way.kind,
        "size": None,
        "line": " - ".join(way.hops),
        "latency_s": sum(line.rtt_s for line in facts),
        "bytes_per_s": rate,
        "used_bytes_per_s": used,
        "share": used / rate if rate else math.inf,
    }
    plan.equal(f"{name}.path", dict(plan.points[name][0]["path"]), expected)
