"""Check a plan's limits: value of each from the plan's rows, slack, and marginal value by the bound."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from planner.messages import Message, Said, said
from planner.plan import is_by_the_bound
from planner.problem.facts import OfferFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.claims.simplicity import part_values
from planner.verify.claims.unchecked import release_of
from planner.verify.findings import RELATIVE_TOL
from planner.verify.fleet.facility import FacilityCheck
from planner.verify.phase_budgets import payments
from planner.verify.power import power_values
from planner.verify.preemption import InterruptionCheck
from planner.version import RELEASE

LimitValue = tuple[str, str, float, float]
"""Path in the spec, name, value, limit."""


def check_limits(plan: CheckedPlan) -> None:
    """Compare every limit of the spec with its row, and test that the plan meets it."""
    rows = plan.document["limits"]
    # releases up to 0.2 stored the English text alone
    by_code = release_of(plan.document) == RELEASE or any("name_message" in row for row in rows)
    computed = sorted(_limit_values(plan), key=lambda found: (found[0], _identity(found[1], by_code), found[2]))
    named = [(row["path"], _identity(said(row, "name"), by_code), row) for row in rows]
    named.sort(key=lambda entry: (*entry[:2], entry[2]["value"]))
    stated = [row for _, _, row in named]
    if [(path, _identity(name, by_code)) for path, name, _, _ in computed] != [entry[:2] for entry in named]:
        plan.say("limits", "verify.limits_once")
        return
    for (path, name, value, limit), row in zip(computed, stated, strict=True):
        plan.equal(f"limits {path}", {k: row[k] for k in ("value", "limit")}, {"value": value, "limit": limit})
        if release_of(plan.document) == RELEASE:  # others may have worded it otherwise
            plan.equal(f"limits {path}.name", row["name"], name)
        plan.equal(f"limits {path}.slack", row["slack"], row["limit"] - row["value"])
        plan.at_most(f"limits {path}", value, limit, name)
    _check_prices_of_the_bound(plan)


def _identity(name: str, by_code: bool) -> str:
    """Return what tells limits of one path apart: code and arguments of the name, or the name where the plan has no codes."""
    return json.dumps(name.message.coded(), sort_keys=True) if by_code and isinstance(name, Said) else name


def _check_prices_of_the_bound(plan: CheckedPlan) -> None:
    """Test that the slack of all limits, priced by the duals of the bound, is at most value minus bound (weak duality)."""
    document, name = plan.document, "marginal_value_divisible"
    value, bound, divisible = document["objective"]["value"], document["bound"], document.get("bound_divisible")
    rows = [row for row in document["limits"] if is_by_the_bound(row) and row[name] is not None]
    for row in rows:
        if not row[name] < 0:
            plan.say(f"limits {row['path']}.{name}", "verify.relaxing_raises", given=repr(row[name]))
    if rows and divisible is None:
        plan.say("bound_divisible", "verify.bound_by_prices")
    if divisible is not None and (bound is None or divisible > bound + RELATIVE_TOL * abs(bound)):
        plan.say("bound_divisible", "verify.above_bound", bound=repr(bound), given=repr(divisible))
    if rows and divisible is not None:
        slack_worth = sum(max(row["slack"], 0.0) * -row[name] for row in rows)
        if slack_worth > value - divisible + RELATIVE_TOL * abs(value):
            plan.say("limits", "verify.slack_worth", worth=f"{slack_worth:.9g}", away=f"{value - divisible:.9g}")


def _limit_values(plan: CheckedPlan) -> Iterator[LimitValue]:
    """Yield every limit of the spec that applies to the plan."""
    yield from power_values(plan)
    yield from _connections(plan)
    for offer in plan.problem.offers:
        yield from _supplies(plan, offer)
    yield from _network_sizes(plan)
    yield from (row for row in _money_and_carbon(plan) if math.isfinite(row[3]))
    if plan.lines is not None:
        yield from plan.lines.limit_values()
    if plan.spread is not None:
        yield from plan.spread.limit_values()
    yield from InterruptionCheck(plan).limit_values()
    yield from FacilityCheck(plan).limit_values()
    yield from part_values(plan)
    yield from _deadlines(plan)
    yield from _latencies(plan)


def _connections(plan: CheckedPlan) -> Iterator[LimitValue]:
    for site in plan.problem.sites:
        meter = site.electricity
        if meter is not None and math.isfinite(meter.connection_w):
            over_grid = [contract.name for contract in meter.contracts if contract.kind == "grid"]
            bought = max(
                row["grid_w"] + sum(row["ppa_w"][name] for name in over_grid)
                for row in plan.document["schedule"]
                if row["site"] == site.region
            )
            yield (
                f"{meter.path}.connection",
                Message.of("limit.connection", site=site.region).text(),
                bought,
                meter.connection_w,
            )


def _supplies(plan: CheckedPlan, offer: OfferFacts) -> Iterator[LimitValue]:
    """Yield the supply of an offer, in all and by phase."""
    if offer.stated_at:  # counts against the supply of the offer without tiers
        return
    way = "rented" if offer.rented is not None else "owned" if offer.owned is not None else offer.how
    name = Message.of("limit.supply", system=offer.system, how=Message.of(f"how.{way}").text()).text()
    if math.isfinite(offer.supply):
        held = [counts for key, counts in plan.running.items() if plan.fleet_options[key].offer.order == offer.path]
        is_held_already = offer.owned is not None or offer.rented is not None
        path = f"{offer.path}.{'count' if is_held_already else 'supply'}"
        yield path, name, max(map(sum, zip(*held, strict=True)), default=0.0), offer.supply
    if offer.owned is not None:  # all there at the start, which no key of the spec states
        return
    for p, (phase, most) in enumerate(zip(plan.problem.phases, offer.phase_supply, strict=False)):
        rows = [
            running
            for running, holding, option in zip(plan.running_by_row, plan.holdings, plan.options_by_row, strict=True)
            if holding.phase == p and option.offer.order == offer.path
        ]
        taken = max(map(sum, zip(*rows, strict=True)), default=0.0)
        if math.isfinite(most):
            yield (
                f"{offer.path}.supply_by_phase.{phase.name}",
                Message.of("limit.supply_in", supply=name, phase=phase.name).text(),
                taken,
                most,
            )


def _network_sizes(plan: CheckedPlan) -> Iterator[LimitValue]:
    for key, counts in plan.held.items():
        option = plan.fleet_options[key]
        if math.isfinite(option.largest):
            name = Message.of(
                "limit.fabric_size", fabric=option.fabric, system=option.system.name, site=option.site.region
            ).text()
            yield f"{option.site.path}.topologies", name, max(counts), option.largest


def _money_and_carbon(plan: CheckedPlan) -> Iterator[LimitValue]:
    problem = plan.problem
    capital = [
        (row["count"] * holding.capital(option), holding.phase)
        for row, holding, option in zip(plan.document["fleet"], plan.holdings, plan.options_by_row, strict=True)
    ]
    spent = sum(amount for amount, _ in capital) + (plan.electricity.capital if plan.electricity else 0.0)
    yield "limits.budget", Message.of("limit.budget").text(), sum(plan.sums.lines.values()), problem.budget
    yield "limits.capital", Message.of("limit.capital").text(), spent, problem.capital
    yield "limits.carbon", Message.of("limit.carbon").text(), sum(plan.sums.carbon.values()), problem.carbon_kg
    for phase, paid in zip(problem.phases, payments(plan), strict=True):
        yield f"{phase.path}.budget", Message.of("limit.phase_budget", phase=phase.name).text(), paid, phase.budget
    for p, phase in enumerate(problem.phases):
        bought = sum(amount for amount, when in capital if when == p)
        yield f"{phase.path}.capital", Message.of("limit.phase_capital", phase=phase.name).text(), bought, phase.capital


def _deadlines(plan: CheckedPlan) -> Iterator[LimitValue]:
    for job in plan.problem.training:
        busy_s = sum(
            width * float(s)
            for name in plan.points_of(job.name)
            for width, s in zip(plan.active[name], plan.problem.calendar.seconds, strict=True)
        )
        name = Message.of("limit.job_time", job=job.name).text()
        yield f"{job.path}.deadline", name, busy_s, job.spec.deadline - job.spec.start


def _latencies(plan: CheckedPlan) -> Iterator[LimitValue]:
    for workload in plan.problem.serving:
        mine = plan.points_of(workload.name)
        for limit in workload.spec.limits() if mine else ():
            key = f"{limit.metric}.{limit.percentile}"
            name = Message.of(
                "limit.latency", metric=limit.metric.upper(), percentile=limit.percentile, workload=workload.name
            ).text()
            worst = max(plan.latency_at_origin(point, limit) for point in mine)
            yield f"{workload.path}.slo.{key}", name, worst, limit.seconds
