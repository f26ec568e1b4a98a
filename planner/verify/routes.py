"""Check a plan's routes: all demand is served, over permitted routes, by replicas that work in that slot."""

from __future__ import annotations

from collections import defaultdict

from planner.verify.checked_plan import CheckedPlan
from planner.verify.deferral import check_deferral
from planner.verify.findings import close
from planner.verify.fleet.options import tokens_price

Served = dict[tuple[str, str, int], float]
"""Requests/s by workload of the spec, origin and slot."""


def check_routes(plan: CheckedPlan) -> None:
    """Read every route, then compare the requests served with the demand and with the replicas at work."""
    served = _read(plan)
    for workload in {workload.asked: workload for workload in plan.serving.values()}.values():
        factor = plan.demand_factor(workload.asked)
        if workload.spec.demand.deferral:
            check_deferral(plan, workload, served, factor)
            continue
        rates = workload.requests_by_slot(plan.problem.calendar)
        for o, origin in enumerate(workload.spec.origins):
            for t in range(plan.problem.calendar.slots):
                asked, got = float(rates[o][t]) * factor, served[workload.asked, origin.region, t]
                if not close(got, asked):
                    path = f"routes {workload.asked} from {origin.region} slot {t}"
                    plan.say(path, "verify.serves_rate", done=f"{got:.9g}", asked=f"{asked:.9g}")
    _check_replicas(plan)


def _read(plan: CheckedPlan) -> Served:
    """Read the requests, round trips, tokens and costs of all routes."""
    calendar = plan.problem.calendar
    served: Served = defaultdict(float)
    for i, row in enumerate(plan.document["routes"]):
        workload, t = plan.serving[row["workload"]], row["slot"]
        requests = row["tokens_per_s"] / workload.spec.lengths.output
        path = plan.problem.routes(workload.name, row["origin"], row["site"]).get(row.get("line", ""))
        if requests <= 0 or path is None or not row["pool"].startswith(f"{row['workload']}/{row['site']}/"):
            plan.say(f"routes[{i}]", "verify.route_not_allowed")
            continue
        served[workload.asked, row["origin"], t] += requests
        plan.asked[row["pool"], t] += requests
        plan.round_trips[row["pool"]].append(path.rtt_s)
        plan.tokens[workload.name][t] += row["tokens_per_s"]
        weight = float(calendar.seconds[t] * calendar.discount[t])
        bought = tokens_price(plan.sites[row["site"]], workload, float(calendar.edges_s[calendar.window[t]]))
        each = plan.problem.egress_bytes(workload) * path.price_per_byte + bought
        plan.traffic[workload.name][row["site"], row.get("line", "")] += requests * weight * each
    return served


def _check_replicas(plan: CheckedPlan) -> None:
    """Compare the capacity of the replicas at work with the requests that each pool is sent."""
    capacity: dict[tuple[str, int], float] = defaultdict(float)
    for name, replicas in plan.active.items():
        point, computed = plan.points[name]
        for t, count in enumerate(replicas if computed.workload in plan.serving else ()):
            capacity[point["pool"], t] += count * computed.capacity
    for pool, t in sorted({*plan.asked, *(key for key, able in capacity.items() if able)}):
        plan.equal(f"schedule slot {t}, replicas of {pool} [request/s]", capacity[pool, t], plan.asked[pool, t])
