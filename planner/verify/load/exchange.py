"""Add up what points with pools at two sites send over the lines between both, from the replicas at work: KV caches, or weights and responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from planner.messages import Message
from planner.problem.facts import ServingFacts
from planner.problem.lines import Carrier
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.points.exchange import (
    MOST_LOAD,
    Flow,
    cache_bytes,
    response_bytes,
    stands_apart,
    way_of,
    weight_bytes,
)
from planner.verify.points.serving import choice_of


def exchanged(plan: CheckedPlan) -> list[Flow]:
    """List what each point of two sites sends, and book its price as egress of the other site."""
    flows = []
    calendar = plan.problem.calendar
    for name, (row, computed) in plan.points.items():
        workload = plan.serving.get(computed.workload) or plan.training.get(computed.workload)
        if not stands_apart(row):
            continue
        if isinstance(workload, ServingFacts):
            flow = _caches(plan, name, workload)
        elif isinstance(workload, ReinforcementFacts):
            flow = _weights(plan, name, workload)
        else:
            continue
        flows.append(flow)
        way, other = way_of(plan.problem, workload, row), _other_site(row)
        worth = sum(
            rate * float(s * d)
            for sent in flow.sent
            for rate, s, d in zip(sent, calendar.seconds, calendar.discount, strict=True)
        )
        plan.traffic[workload.name][other, way.kind] += worth * way.price_per_byte
    return flows


def _other_site(row: Any) -> str:
    """Return the site of the pool that does not stand at the point's own."""
    return next(str(pool["site"]) for pool in row["pools"] if pool["site"] != row["site"])


def _caches(plan: CheckedPlan, name: str, workload: ServingFacts) -> Flow:
    """Add up the KV caches of a point by slot, and the prompts that come the other way."""
    row, computed = plan.points[name]
    way, (option, _) = way_of(plan.problem, workload, row), computed.extra[0]
    cache = cache_bytes(workload, choice_of(workload, option, row["pools"][0]))
    prompt = workload.spec.prompt_tokens * plan.problem.bytes_per_token
    rates = [active * computed.capacity for active in plan.active[name]]
    caches, prompts = [rate * cache for rate in rates], [rate * prompt for rate in rates]
    _check_path(plan, name, way, _rented(plan, way), max(caches))
    return Flow(
        workload.name, "caches", way.hops, way.kind, (caches, prompts), ([rate / MOST_LOAD for rate in caches], prompts)
    )


def _weights(plan: CheckedPlan, name: str, job: ReinforcementFacts) -> Flow:
    """Add up the weights of a job by slot, and the responses that come the other way; the job keeps the rate that its path states."""
    row, _ = plan.points[name]
    way, rate = way_of(plan.problem, job, row), float(row["path"]["bytes_per_s"])
    seconds, active = row["iteration"]["iteration_s"], plan.active[name]
    there, back = (_times(active, size / seconds) for size in (weight_bytes(job, row), response_bytes(job)))
    _check_path(plan, name, way, rate, weight_bytes(job, row) / seconds)
    words = Message.of("path.verify_reserved", workload=job.name, line=" - ".join(way.hops)).text()
    plan.at_most(f"{name}.path.bytes_per_s", rate, _rented(plan, way), words)
    kept = _times(active, rate)
    return Flow(job.name, "rollouts", way.hops, way.kind, (there, back), (kept, kept))


def _times(active: Sequence[float], rate: float) -> list[float]:
    return [share * rate for share in active]


def _rented(plan: CheckedPlan, way: Carrier) -> float:
    """Return the capacity that the plan rents of the narrowest line of a way [byte/s]."""
    assert plan.problem.lines is not None
    facts = [plan.problem.lines.lines[line] for line, _ in way.uses]
    rented = {(row["line"], row["kind"]): row["units"] or 0 for row in plan.document["lines"]}
    return min(rented.get((line.name, line.kind), 0) * line.unit_bytes_per_s for line in facts)


def _check_path(plan: CheckedPlan, name: str, way: Carrier, rate: float, used: float) -> None:
    """Compare the path of a point with what it has of the line, and with what it sends: caches in its busiest slot, or weights in the mean of an iteration."""
    assert plan.problem.lines is not None
    expected = {
        "kind": "line",
        "design": way.kind,
        "size": None,
        "line": " - ".join(way.hops),
        "latency_s": sum(plan.problem.lines.lines[line].rtt_s for line, _ in way.uses),
        "bytes_per_s": rate,
        "used_bytes_per_s": used,
        "share": used / rate if rate else math.inf,
    }
    plan.equal(f"{name}.path", dict(plan.points[name][0]["path"]), expected)
