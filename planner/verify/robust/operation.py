"""What APIs sell to a plan in a scenario, and what its dispatch costs there: from the spec and the plan's rows alone.

Written without `planner.solving.operation`, by which the plan was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Floats
from planner.problem.facts import ServingFacts, SiteFacts, is_assured, permitted
from planner.verify.checked_plan import CheckedPlan
from planner.verify.fleet.options import tokens_price
from planner.verify.timing import TIME_TOL_S, risen_by_slot

LATENCY_TOL = 1e-9  # relative


def supply_of(plan: CheckedPlan, site: SiteFacts) -> Floats:
    """Return the output tokens/s that an API sells in each slot [slot]; 0 before it is there."""
    calendar = plan.problem.calendar
    offer = next(offer for offer in plan.problem.offers if offer.path == site.path)
    there = calendar.edges_s[calendar.window] >= site.from_s - TIME_TOL_S
    return np.where(there, offer.supply, 0.0)


def may_buy(plan: CheckedPlan, workload: ServingFacts, site: SiteFacts) -> bool:
    """Tell whether a workload may be served by an API, whatever the latency."""
    if site.api is None or not site.api.serves(workload) or not permitted(workload, site):
        return False
    if any(each.limits() for each in workload.spec.classes or []):
        return False
    offer = next(offer for offer in plan.problem.offers if offer.path == site.path)
    return is_assured(workload, site, offer)


def near_enough(workload: ServingFacts, site: SiteFacts, rtt_s: float) -> bool:
    """Tell whether the latencies that an API states, with the round trip to it, are within the limits of the workload."""
    stated = {} if site.api is None else site.api.latency
    return all(
        limit.at_origin(stated.get(limit.key, math.inf), rtt_s) <= limit.seconds * (1 + LATENCY_TOL)
        for limit in workload.spec.limits()
    )


def worth_s(plan: CheckedPlan) -> Floats:
    """Return the present worth of one unit per second over each slot [s]."""
    calendar = plan.problem.calendar
    return np.array([float(s * d) for s, d in zip(calendar.seconds, calendar.discount, strict=True)])


def traffic_price(plan: CheckedPlan, workload: ServingFacts, price_per_byte: float) -> Floats:
    """Price the answers of one request/s over each slot, [slot]."""
    sent = workload.spec.lengths.output * plan.problem.bytes_per_token
    return worth_s(plan) * price_per_byte * sent


def tokens_by_price(plan: CheckedPlan, workload: ServingFacts, site: SiteFacts) -> Iterator[tuple[str, Floats]]:
    """Yield (path of a stated price, its part of the price of one request/s over each slot [slot])."""
    api, calendar = site.api, plan.problem.calendar
    if api is None:
        return
    asked = workload.spec
    for kind, at_start in (
        ("input", api.input_price * asked.prompt_tokens),
        ("output", api.output_price * asked.lengths.output),
    ):
        moved = [(1 + api.price_change) ** (float(calendar.edges_s[w]) / YEAR_S) for w in calendar.window]
        yield f"{site.path}.{kind}", worth_s(plan) * at_start * np.array(moved)


def energy_price(plan: CheckedPlan, site: SiteFacts) -> Floats:
    """Price one watt of our own systems at the meter over each slot; 0 where electricity is a decision of its own, [slot]."""
    if site.electricity is not None:
        return np.zeros(plan.problem.calendar.slots)
    calendar = plan.problem.calendar
    worth = worth_s(plan) * np.array(risen_by_slot(calendar, plan.problem.economics.escalation.electricity))
    prices: Floats = worth * np.array([float(site.price_per_j[hour]) for hour in calendar.hour])
    return prices


def planned_operation(plan: CheckedPlan) -> float:
    """Add up what the plan's own dispatch costs: electricity above idle of serving, traffic and tokens."""
    total = 0.0
    for name, replicas in plan.active.items():
        row, computed = plan.points[name]
        if computed.workload not in plan.serving:
            continue
        for option, extra in computed.extra:
            if option.owned:
                watts = np.array(replicas) * extra * option.pue
                total += float(watts @ energy_price(plan, option.site))
    calendar = plan.problem.calendar
    for row in plan.document["routes"]:
        workload, t, site = plan.serving[row["workload"]], row["slot"], plan.sites[row["site"]]
        path = plan.problem.routes(workload.name, row["origin"], row["site"])[row.get("line", "")]
        requests = row["tokens_per_s"] / workload.spec.lengths.output
        bought = tokens_price(site, workload, float(calendar.edges_s[calendar.window[t]])) * worth_s(plan)[t]
        total += requests * (bought + traffic_price(plan, workload, path.price_per_byte)[t])
    return total
