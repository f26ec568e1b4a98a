"""Check systems that are rented already: all of them are held at first, go back on allowed days, and the table says so with what it saves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from catalog.units import DAY_S, YEAR_S
from planner.problem.facts import OfferFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.fleet.economics import licences_of
from planner.verify.fleet.options import key_of
from planner.verify.timing import TIME_TOL_S

TABLE = "rented"


def check_rented(plan: CheckedPlan) -> None:
    """Count the rented systems in the rows of the fleet, and compare the table with them."""
    offers = [offer for offer in plan.problem.offers if offer.rented is not None]
    if not offers and TABLE not in plan.document:
        return
    expected = []
    for offer in offers:
        there = sum(row["count"] for row in plan.document["fleet"] if row["offer"] == offer.path)
        if there != offer.supply:
            plan.say(TABLE, "verify.rented_count", path=offer.path, count=str(there), stated=f"{offer.supply:g}")
        expected.append(_row(plan, offer))
    plan.equal(TABLE, plan.document.get(TABLE, []), expected)


def _row(plan: CheckedPlan, offer: OfferFacts) -> dict[str, Any]:
    """Build the row of an entry from the fleet."""
    rented, calendar = offer.rented, plan.problem.calendar
    assert rented is not None
    edges = [float(edge) for edge in calendar.edges_s]
    end_s = min(rented.until_s, edges[-1])
    ends: dict[float, int] = {}
    for row, holding in zip(plan.document["fleet"], plan.holdings, strict=True):
        if row["offer"] == offer.path:
            gone_s = edges[holding.windows[-1] + 1]
            ends[gone_s] = ends.get(gone_s, 0) + row["count"]
    early = [gone for gone in sorted(ends) if gone < end_s - TIME_TOL_S]
    late = [gone for gone in sorted(ends) if gone > end_s + TIME_TOL_S]
    (site,) = offer.prices
    return {
        "path": offer.path,
        "system": offer.system,
        "site": site,
        "count": int(offer.supply),
        "until": _day(plan, rented.until_s),
        "kept": sum(count for gone, count in ends.items() if gone not in (*early, *late)),
        "given_back": [
            {
                "count": ends[gone],
                "day": _day(plan, gone),
                "saves": ends[gone] * (_due(plan, offer, end_s) - _due(plan, offer, gone)),
            }
            for gone in early
        ],
        "extended": [
            {
                "count": ends[gone],
                "day": _day(plan, gone),
                "costs": ends[gone] * (_due(plan, offer, gone) - _due(plan, offer, end_s)),
            }
            for gone in late
        ],
    }


def _day(plan: CheckedPlan, moment_s: float) -> str:
    return (plan.problem.calendar.start + timedelta(days=int(moment_s // DAY_S))).isoformat()


def _due(plan: CheckedPlan, offer: OfferFacts, gone_s: float) -> float:
    """Add up what one system costs until it goes back at a moment: rent, licences beside it, and the fee for the rest of the contract."""
    rented, calendar, money = offer.rented, plan.problem.calendar, plan.problem.economics
    assert rented is not None
    (site,) = offer.prices
    row = next(row for row in plan.document["fleet"] if row["offer"] == offer.path)
    licences = licences_of(money, plan.fleet_options[key_of(row)]) / YEAR_S
    total: float = 0.0
    for t in range(calendar.slots):
        begin_s = float(calendar.edges_s[int(calendar.window[t])])
        if begin_s >= gone_s - TIME_TOL_S:
            continue
        price = offer.prices[site]
        if begin_s >= rented.until_s - TIME_TOL_S and rented.extension_price is not None:
            price = rented.extension_price
        total += (price + licences) * float(calendar.seconds[t] * calendar.discount[t])
    fee = offer.exit_fee * max(rented.until_s - gone_s, 0.0) * offer.prices[site]
    return total + float(fee * (1 + money.discount_rate) ** (-gone_s / YEAR_S))
