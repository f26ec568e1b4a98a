"""Check the sessions of a workload: Little's law and the caches that wait, summed anew from points and schedule."""

from __future__ import annotations

from typing import Any

from models.formats import element_bytes
from models.transformer.attention import kv_bytes
from planner.problem.facts import ServingFacts
from planner.spec.load.sessions import Session
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.points.serving import cache_of


def check_sessions(plan: CheckedPlan, path: str, row: Row) -> None:
    """Compare the sessions that a workload states with those that its points have."""
    facts = plan.serving.get(row["name"])
    block = None if facts is None else facts.spec.session
    if facts is None or block is None or not row["points"]:
        if "session" in row:
            plan.say(f"{path}.session", "verify.without_sessions")
        return
    calls = {point["id"]: [point["capacity"] * a for a in plan.active[point["id"]]] for point in row["points"]}
    by_slot = [sum(rates) for rates in zip(*calls.values(), strict=True)]
    stated = row.get("session") or {}
    slot = stated.get("slot")
    if type(slot) is not int or not 0 <= slot < len(by_slot):
        plan.say(f"{path}.session.slot", "verify.slots", last=str(len(by_slot) - 1))
        return
    if by_slot[slot] < max(by_slot) * (1 - 1e-6):
        plan.say(
            f"{path}.session.slot", "verify.calls_in_busiest_slot", given=f"{by_slot[slot]:g}", most=f"{max(by_slot):g}"
        )
    plan.equal(
        f"{path}.session", stated, _expected(facts, block, row, {n: rates[slot] for n, rates in calls.items()}, slot)
    )


def _expected(facts: ServingFacts, block: Session, row: Row, calls: dict[str, float], slot: int) -> dict[str, Any]:
    """Sum sessions over points: N = X R + (X - X/n) Z, and the context that is kept between two calls."""
    step = block.growth + facts.spec.lengths.output
    # A call is followed by another with chance 1 - 1/n; the calls before one, given that there is one, are counted from the first.
    later = block.earlier_calls / (1.0 - 1.0 / block.calls) if block.calls > 1 else 0.0
    busy = waiting = held = 0.0
    ways: dict[str, float] = {}
    for point in row["points"]:
        rate, pools = calls[point["id"]], point["pools"]
        idle = (rate - rate / block.calls) * block.wait
        busy += rate * point.get("call_s", 0.0)
        waiting += idle
        way = pools[0].get("waiting") or "elsewhere"
        ways[way] = ways.get(way, 0.0) + idle
        if way in ("resident", "offloaded") and block.calls > 1:
            new = block.growth + (facts.spec.lengths.output if pools[0]["role"] == "prefill" else 0)
            kept = facts.spec.lengths.input + later * step - new
            held += idle * float(kv_bytes(facts.architecture, kept, element_bytes(cache_of(facts, pools[0]))))
    total = sum(calls.values())
    return {
        "slot": slot,
        "calls_per_s": total,
        "tasks_per_s": total / block.calls,
        "sessions": busy + waiting,
        "waiting_sessions": waiting,
        "waiting_bytes": held,
        "prompt_tokens": facts.spec.lengths.input + block.earlier_calls * step,
        "waiting": ways,
    }
