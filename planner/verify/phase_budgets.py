"""The re-check of what phases limit: power that changes at a site, and the payments of each phase, added up from the plan document."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalog.units import YEAR_S
from planner.verify.findings import Report
from planner.verify.fleet import tokens_price
from planner.verify.lines import LineCheck
from planner.verify.terms import SECOND, annuity

if TYPE_CHECKING:
    from planner.verify.amounts import Amounts


def payments(check: Amounts) -> list[float] | None:
    """What is paid in each phase, not discounted; None where meters leave payments without a phase."""
    problem, calendar = check.problem, check.problem.calendar
    if any(site.electricity is not None for site in problem.sites):
        return None
    return [
        _paid(
            check,
            p,
            [phase.start_s - SECOND <= calendar.edges_s[w] < phase.end_s - SECOND for w in range(calendar.windows)],
        )
        for p, phase in enumerate(problem.phases)
    ]


def _paid(check: Amounts, p: int, inside: list[bool]) -> float:
    problem, calendar, money = check.problem, check.problem.calendar, check.problem.economics
    edges, building = (
        [float(edge) for edge in calendar.edges_s],
        annuity(money.discount_rate, money.facility_life_years),
    )
    slots = [
        (t, int(calendar.window[t]), float(calendar.seconds[t]))
        for t in range(calendar.slots)
        if inside[int(calendar.window[t])]
    ]
    total = 0.0
    for row, when, option in zip(check.document["fleet"], check.times, check.options_by_row, strict=True):
        seconds = [(t, s) for t, w, s in slots if w in when.windows]
        each = 0.0
        if option.owned:
            each += (when.price + option.fabric_capital) * (when.phase == p)
            each += (
                option.facility_capital
                * building
                * sum(edges[w + 1] - edges[w] for w in when.windows if inside[w])
                / YEAR_S
            )
            each += sum(
                s
                * (
                    option.nameplate_w * option.site.hall_per_w_s
                    + option.idle_it_w * option.site.pue * float(option.site.price_per_j[calendar.hour[t]])
                )
                for t, s in seconds
            )
        elif row["how"] != "api":
            each += when.price * sum(s for _, s in seconds)
        total += row["count"] * each
    for name, replicas in check.active.items():
        for option, extra in check.points[name][1].extra:
            total += (
                sum(
                    replicas[t] * extra * option.site.pue * float(option.site.price_per_j[calendar.hour[t]]) * s
                    for t, _, s in slots
                )
                if option.owned
                else 0.0
            )
    lasts = {t: s for t, _, s in slots}
    for row in check.document["routes"]:
        if row["slot"] in lasts:
            workload, site = check.serving[row["workload"]], check.sites[row["site"]]
            path = problem.routes(workload.name, row["origin"], row["site"])[row.get("line", "")]
            each = problem.egress_bytes(workload) * path.price_per_byte + tokens_price(
                site, workload, edges[int(calendar.window[row["slot"]])]
            )
            total += row["tokens_per_s"] / workload.spec.lengths.output * each * lasts[row["slot"]]
    for site in (check.sites[region] for component, region, *_ in check.sums.lines if component == "site"):
        total += site.fixed_cost_per_s * sum(s for _, w, s in slots if edges[w] >= site.from_s - SECOND)
    if check.lines is not None:  # the same check with a payment worth 1 in the phase and 0 outside
        masked = replace(
            problem, calendar=replace(calendar, discount=np.array([float(inside[int(w)]) for w in calendar.window]))
        )
        again = LineCheck(masked, check.document, Report())
        again.run(check.lines.hosts)
        total += sum(again.costs.values())
    else:
        worth = sum((edges[w + 1] - edges[w]) * float(calendar.window_worth[w]) for w in range(calendar.windows))
        here = sum(edges[w + 1] - edges[w] for w in range(calendar.windows) if inside[w])
        total += (
            sum(amount for (component, *_), amount in check.sums.lines.items() if component == "weights") / worth * here
        )
    return total + (p == 0) * sum(
        amount for (component, *_), amount in check.sums.lines.items() if component == "porting"
    )
