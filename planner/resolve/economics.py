"""Resolve discount rate and service lives, and the limits on money."""

from __future__ import annotations

import math

from catalog.units import YEAR_S
from models.economics import horizon_share
from planner.problem.facts import Economics
from planner.resolve.context import NOT_STATED, ResolveContext


def economics_facts(context: ResolveContext) -> Economics:
    """Resolve the discount rate and the lives over which prices are recovered; what the spec leaves out is booked as assumed."""
    ledger, horizon = context.ledger, context.spec.horizon
    systems, fabric, facility = ((component, "*", "*") for component in ("systems", "fabric", "facility"))
    rate = horizon.discount_rate
    if rate is None:
        rate = ledger.default("discount_rate", "horizon.discount_rate", NOT_STATED, systems, fabric, facility)
    life_s = ledger.default("system_life_s", "systems.life", "service life of systems and fabric", systems, fabric)
    facility_life_s = ledger.default("facility_life_s", "facility.life", "service life of the building", facility)
    life_years, facility_life_years = life_s / YEAR_S, facility_life_s / YEAR_S
    return Economics(
        discount_rate=rate,
        years=horizon.years,
        system_life_years=life_years,
        facility_life_years=facility_life_years,
        capital_share=float(horizon_share(rate, life_years, horizon.years)),
        facility_share=float(horizon_share(rate, facility_life_years, horizon.years)),
    )


def money_limit(context: ResolveContext, given: tuple[float, str] | None, path: str) -> float:
    """Convert a ceiling on money to the currency of the plan; infinite where the spec states none."""
    return math.inf if given is None else context.convert(given, path=path)
