"""Formulas of money for sheets of plans, written from their definitions: nothing here comes from the planner's own sums.

Payments of a year fall due at its end. A sheet takes the inputs that its spec states and the decisions of the plan (how many, in which hours, how many
kilowatt hours and tokens), and adds up one amount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from planner.plan import Plan
from tests.plans.one_server import SYSTEM, question, solved

RATE = 0.08
HOURS = 8760.0
KWH_J = 3.6e6
CHIPS, NAMEPLATE_KW = 8, 10.2  # of one DGX H100
EXACT = 1e-9
CURVE = [{"age": "2 years", "fraction": 0.5}, {"age": "5 years", "fraction": 0.1}]
POINTS = ((0.0, 1.0), (2.0, 0.5), (5.0, 0.1))

Document = Mapping[str, Any]


def worth(years: int) -> float:
    """Add up 1/(1 + r)^k over the ends of the years: the present worth of one unit a year."""
    return sum((1 + RATE) ** -k for k in range(1, years + 1))


def later(years: float) -> float:
    """Discount one unit that is paid after some years: (1 + r)^-t."""
    return float((1 + RATE) ** -years)


def annuity(years: float) -> float:
    """Spread one unit over the ends of some years: r / (1 - (1 + r)^-n)."""
    return RATE / (1 - later(years))


def left(age: float) -> float:
    """Read the share of a price that is left at an age: straight between the points of `CURVE`, and on past the last one, never below 0."""
    for (a, f), (b, g) in pairwise(POINTS):
        if age <= b:
            return f + (g - f) * (age - a) / (b - a)
    return 0.0


def between(begin: float, end: float, years: int) -> float:
    """Add up the present worth of one unit a year from `begin` to `end`: each year's part of it, paid at the end of that year."""
    parts = (max(0.0, min(end, k) - max(begin, k - 1.0)) * later(k) for k in range(1, years + 1))
    return sum(parts)


def kwh(rows: Sequence[Mapping[str, Any]], years: int) -> float:
    """Add up the energy of the schedule for one year [kWh]."""
    return sum(row["energy_j"] for row in rows) / KWH_J / years


def cost(plan: Document, *components: str) -> float:
    """Add up components of a plan's cost; none that is named may be missing."""
    return float(sum(plan["costs"][name] for name in components))


def carbon(plan: Document, *components: str) -> float:
    """Add up lines of a plan's carbon [kg]."""
    return float(sum(row["amount"] for row in plan["carbon_lines"] if row["component"] in components))


def meter(plan: Document, item: str) -> Mapping[str, Any]:
    """Return the only purchase of electricity of a kind."""
    (row,) = (row for row in plan["electricity"] if row["item"] == item)
    return dict(row)


@dataclass(frozen=True)
class Sheet:
    """One amount of a plan: where the plan states it, and what the sheet says; both read the plan's document."""

    name: str
    question: Callable[[], dict[str, Any]]
    stated: Callable[[Document], float]
    wanted: Callable[[Document], float]


@cache
def plan_of(asked: Callable[[], dict[str, Any]]) -> Plan:
    """Solve a question once for all of its amounts."""
    return solved(asked())


def check(sheet: Sheet) -> None:
    """Compare an amount with its sheet; an amount of nothing would show nothing."""
    document = plan_of(sheet.question).document
    stated, wanted = sheet.stated(document), sheet.wanted(document)
    assert wanted != 0.0
    assert abs(stated - wanted) <= EXACT * abs(wanted), (
        f"{sheet.name}: the plan states {stated!r}, the sheet says {wanted!r}"
    )


def owned_question(years: int, economics: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Ask for a server that is bought, with more of what owning costs; all else is free."""
    asked = question(horizon={"start": "2027-01-01", "years": years, "discount_rate": RATE}, **changes)
    asked["economics"] = {**asked["economics"], "residual": CURVE, **economics}
    return asked


def rented_question(years: int, offer: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Ask for a server that is rented; all else is free."""
    asked = question(horizon={"start": "2027-01-01", "years": years, "discount_rate": RATE}, **changes)
    asked["offers"] = [{"system": SYSTEM, **offer}]
    return asked
