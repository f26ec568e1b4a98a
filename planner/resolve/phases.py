"""The parts of a spec that are about time, checked against its phases and in SI: for `planner.resolve.resolver`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from catalog.units import YEAR_S
from planner.errors import close_matches
from planner.problem.facts import OfferFacts, PhaseFacts, SpotFacts
from planner.problem.phases import seconds_from
from planner.spec.model import Demand, Offer, PlanSpec, Site
from planner.spec.quantities import offer_price

Money = Callable[..., float]
Wrong = Callable[[str, str], None]


def phase_facts(spec: PlanSpec, convert: Money, wrong: Wrong) -> tuple[PhaseFacts, ...]:
    """The phases one after the other; empty where the spec has none."""
    horizon_s = spec.horizon.years * YEAR_S
    starts = [seconds_from(spec.horizon.start, phase.start) for phase in spec.phases or ()]
    for i, start in enumerate(starts):
        path = f"phases[{i}].start"
        if i == 0 and start != 0:
            wrong(path, 'the first phase begins with the horizon; write "0 d"')
        elif i and start <= starts[i - 1]:
            wrong(path, "lies before the start of the phase above; put the phases in their order")
        elif start >= horizon_s:
            wrong(
                path, f"lies after the horizon of {spec.horizon.years} years; lengthen the horizon or bring it forward"
            )
    ends = [*starts[1:], horizon_s]
    amount = lambda given, path: math.inf if given is None else convert(*given, path=path)
    beside = {
        "robust": spec.robust is not None,
        "electricity": any(site.electricity is not None for site in spec.sites),
    }
    for i, phase in enumerate(spec.phases or ()):
        for name in (name for name, there in beside.items() if there and phase.budget is not None):
            wrong(
                f"phases[{i}].budget",
                f'cannot stand beside "{name}" yet; remove one of them, or state "capital" of the phase and "limits.budget"',
            )
    return tuple(
        PhaseFacts(
            phase.name,
            path,
            start,
            end,
            amount(phase.capital, f"{path}.capital"),
            amount(phase.budget, f"{path}.budget"),
        )
        for path, phase, start, end in zip(
            (f"phases[{i}]" for i in range(len(starts))), spec.phases or (), starts, ends
        )
    )


def offer_in_time(
    facts: OfferFacts, offer: Offer, spec: PlanSpec, phases: Sequence[PhaseFacts], convert: Money, wrong: Wrong
) -> OfferFacts:
    """The offer with all that changes from phase to phase."""
    path, start = facts.path, spec.horizon.start
    from_s, until_s = seconds_from(start, offer.available_from), seconds_from(start, offer.available_until, math.inf)
    _within(from_s, f"{path}.available_from", spec, wrong)
    if until_s <= from_s:
        wrong(f"{path}.available_until", "lies before the first delivery; put it off")
    names = [phase.name for phase in phases]
    _known(offer.price_by_phase, names, f"{path}.price_by_phase", wrong)
    _known(offer.supply_by_phase, names, f"{path}.supply_by_phase", wrong)
    prices: list[float | None] = []
    for name in names if offer.price_by_phase else ():
        stated = offer.price_by_phase.get(name)
        before = prices[-1] if prices else None
        prices.append(
            before
            if stated is None
            else convert(*offer_price(stated, offer.how == "buy"), path=f"{path}.price_by_phase.{name}")
        )
    return replace(
        facts, from_s=from_s, until_s=until_s, life_years=None if offer.life is None else offer.life / YEAR_S, price_change=offer.price_change_per_year,
        spot=None if offer.interruption_interval is None else SpotFacts(offer.interruption_interval, offer.restart, offer.headroom),
        phase_prices=tuple(prices), phase_supply=tuple(float(offer.supply_by_phase.get(name, math.inf)) for name in names if offer.supply_by_phase),
    )  # fmt: skip


def site_from_s(site: Site, path: str, spec: PlanSpec, wrong: Wrong) -> float:
    """When a site is built."""
    begins = seconds_from(spec.horizon.start, site.available_from)
    _within(begins, f"{path}.available_from", spec, wrong)
    if begins and site.electricity is not None:
        wrong(
            f"{path}.available_from",
            'cannot stand beside "electricity", whose contracts and batteries are there from the start; remove one of them',
        )
    return begins


def site_power(site: Site, path: str, phases: Sequence[PhaseFacts], wrong: Wrong) -> dict[str, Any]:
    """What `SiteFacts` says of a site's power: the most that it ever is, and how it changes."""
    steady = math.inf if site.power is None else site.power
    names = [phase.name for phase in phases]
    _known(site.power_by_phase, names, f"{path}.power_by_phase", wrong)
    if not site.power_by_phase or not names:
        return {"power_limit_w": steady}
    if names[0] in site.power_by_phase and site.power is not None:
        wrong(
            f"{path}.power",
            f'never holds beside "power_by_phase.{names[0]}", the limit of the first phase; remove one of them',
        )
    stated = tuple(site.power_by_phase.get(name) for name in names)
    ever = [limit for limit in stated if limit is not None] + ([steady] if stated[0] is None else [])
    return {"power_limit_w": max(ever), "phase_power_w": stated, "first_power_w": steady}


def factors(demand: Demand, path: str, phases: Sequence[PhaseFacts], wrong: Wrong) -> list[float]:
    """What the demand is multiplied by, phase by phase; empty where no phase changes it."""
    _known(demand.factor_by_phase, [phase.name for phase in phases], f"{path}.demand.factor_by_phase", wrong)
    found: list[float] = []
    for phase in phases if demand.factor_by_phase else ():
        found.append(demand.factor_by_phase.get(phase.name, found[-1] if found else 1.0))
    return found


def _within(moment_s: float, path: str, spec: PlanSpec, wrong: Wrong) -> None:
    if moment_s >= spec.horizon.years * YEAR_S:
        wrong(path, f"lies after the horizon of {spec.horizon.years} years; lengthen the horizon or bring it forward")


def _known(by_phase: dict[str, Any], names: Collection[str], path: str, wrong: Wrong) -> None:
    for name in by_phase:
        if name not in names:
            remedy = (
                f"unknown phase{close_matches(name, names)}; known here: {', '.join(names)}"
                if names
                else 'the spec has no "phases"; add them'
            )
            wrong(f"{path}.{name}", remedy)
