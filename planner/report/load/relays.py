"""How often systems load other weights in the course of a day, and which deployments do, in a sentence."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from catalog.units import DAY_S
from planner.messages import Message, listed
from planner.plan import Plan
from planner.report.phases import windows_of

NAMED = 1  # deployments named on the page
FEW = 0.005  # loads a day below which a deployment keeps its systems

Place = tuple[str, str]  # site, system


def load_lines(plan: Plan) -> list[str]:
    """Say how many systems load weights in a day, how often each does, and for which workloads; nothing where one deployment is alone.

    Fractions of replicas have no workers, so that their loads are neither counted nor priced: where points share systems, that is said.
    """
    if plan.document.get("replicas") == "divisible":
        return [Message.of("relays.not_counted").text()] if _share_systems(plan) else []
    rows = [row for row in plan.document.get("deployments", ()) if all("loads" in pool for pool in row["pools"])]
    if len(rows) < 2:
        return []
    seconds = _seconds_of_windows(plan)
    days = sum(seconds.values()) / DAY_S
    by_place: dict[Place, float] = defaultdict(float)
    by_service: dict[Place, float] = defaultdict(float)  # workload and site
    for row in rows:
        for pool in row["pools"]:
            loads = pool["loads"] * pool["systems_per_worker"] / days
            by_place[row["site"], pool["system"]] += loads
            by_service[row["workload"], row["site"]] += loads
    changing = sorted(((n, key) for key, n in by_service.items() if n > FEW), key=lambda entry: -entry[0])
    if not changing:
        return [Message.of("relays.none").text()]
    held = _systems_held(plan, seconds)
    each = max((loads / held[place] for place, loads in by_place.items() if held.get(place)), default=0.0)
    names = [
        Message.of("relays.of_deployment", workload=workload, site=site, loads=f"{loads:,.3g}").text()
        for loads, (workload, site) in changing
    ]
    told = names[:NAMED]
    if more := len(names) - NAMED if len(names) > NAMED else 0:
        told.append(Message.of("relays.more", count=more).text())
    total = sum(by_place.values())
    return [Message.of("relays.line", loads=f"{total:,.3g}", each=f"{each:,.2g}", names=listed(told)).text()]


def _share_systems(plan: Plan) -> bool:
    """Tell whether systems of one kind at one site serve by several points, between which they would have to load weights."""
    served = [
        {(point["site"], pool["system"]) for pool in point["pools"] if pool["role"] != "api"}
        for workload in plan.document["workloads"]
        for point in workload["points"]
        if workload["kind"] == "serving"
    ]
    return any(not one.isdisjoint(other) for one, other in combinations(served, 2))


def _seconds_of_windows(plan: Plan) -> dict[int, float]:
    """Add up the time of each window."""
    slots = {row["slot"]: row for row in plan.document["schedule"]}
    seconds: dict[int, float] = defaultdict(float)
    for row in slots.values():
        seconds[row["window"]] += row["seconds"]
    return seconds


def _systems_held(plan: Plan, seconds: dict[int, float]) -> dict[Place, float]:
    """Average over the horizon the systems held of each kind at each site."""
    total = sum(seconds.values())
    held: dict[Place, float] = defaultdict(float)
    for row in plan.document["fleet"]:
        span = windows_of(row)
        share = 1.0 if span is None else sum(s for w, s in seconds.items() if span[0] <= w <= span[1]) / total
        held[row["site"], row["system"]] += row["count"] * share
    return held
