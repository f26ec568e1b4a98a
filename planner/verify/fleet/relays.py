"""What loads of weights cost a plan, and how often its systems load some: from the residents in its schedule, by code of the checks' own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.units import DAY_S, HOUR_S
from planner.messages import Message
from planner.problem.phases import counted_by_hour
from planner.verify.checked_plan import CheckedPlan
from planner.verify.fleet.options import CheckedOption, HeldKey, key_at

NUISANCE = 0.01  # share of a system-hour, where the spec states no cost


@dataclass(frozen=True, slots=True)
class PoolLoads:
    """Loads of the workers of one pool of a deployment: what one costs, and how many there are in each slot."""

    workload: str
    key: HeldKey
    each: float
    systems: float  # for one worker
    count: Sequence[int]  # by slot


def each_load(plan: CheckedPlan, option: CheckedOption, load_s: float, systems: float) -> float:
    """Price one worker that loads its weights, on all its systems."""
    facts, offer = plan.problem.economics.relays, option.offer
    if facts is None:
        return 0.0
    if facts.cost is not None:
        return facts.cost * systems
    per_h = offer.prices[option.site.region] * HOUR_S
    if offer.how == "buy":
        per_h /= offer.life_s(plan.problem.economics)
    return systems * per_h * (load_s / HOUR_S + NUISANCE)


def loads_of(plan: CheckedPlan) -> Iterator[PoolLoads]:
    """Read from the rows of a plan how often the workers of each pool load their weights."""
    before = {int(after): t for t, after in enumerate(plan.problem.calendar.next)}
    held: dict[str, dict[int, Sequence[int]]] = defaultdict(dict)
    for row in plan.document["schedule"]:
        for name, workers in row.get("resident", {}).items():
            held[name][row["slot"]] = workers
    for row in plan.document.get("deployments", ()) if plan.problem.economics.relays is not None else ():
        point, here = plan.points[row["point"]][0], held[row["point"]]
        none = [0] * len(point["pools"])
        for i, pool in enumerate(point["pools"]):
            count = [
                max(here.get(t, none)[i] - here.get(before[t], none)[i], 0) for t in range(plan.problem.calendar.slots)
            ]
            key, systems = key_at(point["site"], pool), pool["systems_per_replica"] / pool["workers"]
            each = each_load(plan, plan.fleet_options[key], row["load_s"], systems)
            yield PoolLoads(row["workload"], key, each, systems, count)


def paid_for_loads(plan: CheckedPlan, weight: Sequence[float]) -> Iterator[tuple[PoolLoads, list[float]]]:
    """Yield what the loads of each pool cost in each slot; `weight`: seconds of a slot, at present value or not."""
    step_s = plan.problem.calendar.step_s
    for loads in loads_of(plan):
        yield (
            loads,
            [n * loads.each * w / float(step) for n, w, step in zip(loads.count, weight, step_s, strict=True)],
        )


def check_relays(plan: CheckedPlan) -> None:
    """Compare how often systems load weights in each day with the most that the spec allows."""
    facts = plan.problem.economics.relays
    if facts is None:
        return
    taken: dict[HeldKey, list[float]] = {}
    for loads in loads_of(plan):
        mine = taken.setdefault(loads.key, [0.0] * len(loads.count))
        for t, n in enumerate(loads.count):
            mine[t] += n * loads.systems
    for key, systems in taken.items():
        if counted_by_hour(plan.problem, plan.fleet_options[key].offer):
            continue
        for day in _days(plan.problem.calendar):
            most = facts.per_day * plan.held[key][int(plan.problem.calendar.window[day[0]])] if any(systems) else 0.0
            words = Message.of("verify.relays_in_a_day", place="/".join(key[:3])).text()
            plan.at_most(f"schedule slot {day[0]}", sum(systems[t] for t in day), most, words)


def _days(calendar: Any) -> list[list[int]]:
    """Cut the slots into runs of 24 hours of one window, in their order."""
    days: list[list[int]] = []
    left = set(range(calendar.slots))
    while left:
        t, passed = min(left), DAY_S
        while t in left:
            if passed >= DAY_S or calendar.window[days[-1][-1]] != calendar.window[t]:
                days.append([])
                passed = 0.0
            days[-1].append(t)
            left.discard(t)
            passed += float(calendar.step_s[t])
            t = int(calendar.next[t])
    return days
