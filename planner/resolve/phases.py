"""Resolve the phases of the build-out, and their changes to offers, sites and demand."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from catalog.units import YEAR_S, show
from planner.errors import close_matches
from planner.messages import Message
from planner.problem.calendar import Calendar
from planner.problem.facts import OfferFacts, PhaseFacts, ServingFacts
from planner.problem.forecasts.demand import LIKELY, demand_factor, typical_demand
from planner.problem.owned import SpotFacts
from planner.problem.phases import BY_WINDOW, demand_growth, seconds_from
from planner.resolve.context import ResolveContext
from planner.resolve.money.economics import lead_time_s
from planner.spec.load.forecast import DemandForecast
from planner.spec.model import PlanSpec
from planner.spec.offers import Offer
from planner.spec.quantities import offer_price
from planner.spec.sites import Site
from planner.spec.workloads import Demand, Serving


def phase_facts(context: ResolveContext) -> tuple[PhaseFacts, ...]:
    """Resolve the phases of the build-out in their order; none where the spec has no `phases`."""
    spec, phases = context.spec, context.spec.phases or []
    horizon_s = spec.horizon.years * YEAR_S
    starts = [seconds_from(spec.horizon.start, phase.start) for phase in phases]
    for i, start in enumerate(starts):
        path = f"phases[{i}].start"
        if i == 0 and start != 0:
            context.add_problem(path, Message.of("resolve.first_phase_start").text())
        elif i and start <= starts[i - 1]:
            context.add_problem(path, Message.of("resolve.phases_out_of_order").text())
        else:
            _check_within_horizon(context, start, path)
    for i, phase in enumerate(phases):
        if spec.robust is not None and phase.budget is not None:
            context.add_problem(
                f"phases[{i}].budget",
                Message.of("resolve.phase_budget_beside_robust").text(),
            )
    return tuple(
        PhaseFacts(
            name=phase.name,
            path=f"phases[{i}]",
            start_s=start,
            end_s=end,
            capital=context.ceiling(phase.capital, f"phases[{i}].capital"),
            budget=context.ceiling(phase.budget, f"phases[{i}].budget"),
        )
        for i, (phase, start, end) in enumerate(
            zip(phases, starts, [*starts[1:], horizon_s][: len(starts)], strict=True)
        )
    )


def offer_in_time(context: ResolveContext, facts: OfferFacts, offer: Offer, phases: Sequence[PhaseFacts]) -> OfferFacts:
    """Add availability dates, service life, spot terms, and prices and supply by phase to an offer."""
    path, start = facts.path, context.spec.horizon.start
    from_s, until_s = seconds_from(start, offer.available_from), seconds_from(start, offer.available_until, math.inf)
    if offer.delivery is not None:
        from_s = max(from_s, float(round(offer.delivery.typical)))
        reason = Message.of("resolve.delivery_typical").text()
        context.ledger.assume(f"{path}.delivery", show(offer.delivery.typical, "s"), "s", reason)
    _check_within_horizon(context, from_s, f"{path}.{'available_from' if offer.delivery is None else 'delivery'}")
    if until_s <= from_s:
        context.add_problem(f"{path}.available_until", Message.of("resolve.before_first_delivery").text())
    names = [phase.name for phase in phases]
    _check_phases(context, offer.price_by_phase, names, f"{path}.price_by_phase")
    _check_phases(context, offer.supply_by_phase, names, f"{path}.supply_by_phase")
    prices: list[float | None] = []
    for name in names if offer.price_by_phase else ():
        if (stated := offer.price_by_phase.get(name)) is not None:
            amount, currency = offer_price(stated, offer.how == "buy")
            prices.append(context.convert((amount, currency), f"{path}.price_by_phase.{name}"))
        else:
            prices.append(prices[-1] if prices else None)
    spot = None
    if offer.interruption_interval is not None:
        spot = SpotFacts(offer.interruption_interval, offer.restart, offer.headroom)
    return replace(
        facts,
        from_s=from_s,
        until_s=until_s,
        lead_s=None if offer.delivery is None else offer.delivery.levels,
        life_years=None if offer.life is None else offer.life / YEAR_S,
        price_change=_price_change(context, offer),
        spot=spot,
        phase_prices=tuple(prices),
        phase_supply=tuple(float(offer.supply_by_phase.get(name, math.inf)) for name in names if offer.supply_by_phase),
    )


def _price_change(context: ResolveContext, offer: Offer) -> float:
    """Return the share by which the price of an offer changes per year: its own, else that of rents where it has no commitment."""
    if offer.price_change_per_year or offer.price_by_phase or offer.how not in BY_WINDOW:
        return offer.price_change_per_year
    return context.spec.economics.escalation.rent


def site_from_s(context: ResolveContext, site: Site, path: str) -> float:
    """Resolve when a site is built [s from the start of the horizon]: not before its lead time, where the building is new."""
    begins = seconds_from(context.spec.horizon.start, site.available_from)
    if site.building == "new":
        begins = max(begins, lead_time_s(context, path))
    _check_within_horizon(context, begins, f"{path}.available_from")
    if begins and site.electricity is not None:
        context.add_problem(
            f"{path}.available_from",
            Message.of("resolve.phased_power_beside_electricity").text(),
        )
    return begins


@dataclass(frozen=True, slots=True)
class PowerInTime:
    """Limits on the power of a site: the largest of all, that before any phase changes it, and by phase where one changes it."""

    limit_w: float
    first_w: float = math.inf
    by_phase_w: tuple[float | None, ...] = ()


def power_in_time(context: ResolveContext, site: Site, path: str, phases: Sequence[PhaseFacts]) -> PowerInTime:
    """Resolve the limits on the power of a site, phase by phase."""
    steady = math.inf if site.power is None else site.power
    names = [phase.name for phase in phases]
    _check_phases(context, site.power_by_phase, names, f"{path}.power_by_phase")
    if not site.power_by_phase or not names:
        return PowerInTime(steady)
    if names[0] in site.power_by_phase and site.power is not None:
        context.add_problem(
            f"{path}.power",
            Message.of("resolve.power_beside_first_phase", phase=names[0]).text(),
        )
    stated = tuple(site.power_by_phase.get(name) for name in names)
    ever = [limit for limit in stated if limit is not None] + ([steady] if stated[0] is None else [])
    return PowerInTime(max(ever), steady, stated)


def with_growth(
    context: ResolveContext, workload: ServingFacts, calendar: Calendar, phases: Sequence[PhaseFacts]
) -> ServingFacts:
    """Add the growth of its demand, by year and by phase, to a serving workload."""
    demand = workload.spec.demand
    factors = _demand_factors(context, demand, workload.path, phases)
    growth = demand_growth(calendar, demand.growth_per_year, phases, factors)
    if demand.forecast is not None:
        _book_forecast(context, demand.forecast, f"{workload.path}.demand.forecast")
        typical = typical_demand(demand, context.spec.horizon.start)
        path = demand_factor(calendar.edges_s[:-1] / YEAR_S, typical)[0]
        if (path != 1.0).any():
            growth = path if growth is None else growth * path
    return workload if growth is None else replace(workload, growth=growth)


def _book_forecast(context: ResolveContext, forecast: DemandForecast, path: str) -> None:
    """Book that the forecast counts in scenarios in place of `robust.demand`, and which launches the plan counts."""
    context.ledger.assume(path, "forecast", "-", Message.of("forecast.in_place_of_robust").text())
    for i, launch in enumerate(forecast.launches):
        code = "forecast.launch_counted" if launch.probability >= LIKELY else "forecast.launch_left_out"
        reason = Message.of(code, probability=launch.probability).text()
        context.ledger.assume(f"{path}.launches[{i}]", launch.name, "-", reason)


def demand_borders(spec: PlanSpec) -> Iterator[float]:
    """Yield the dates of the launches that plans count [s], for the calendar."""
    for workload in spec.workloads:
        if isinstance(workload, Serving) and workload.demand.forecast is not None:
            typical = typical_demand(workload.demand, spec.horizon.start)
            dates = (float(launch.years[0]) for launch in typical.launches)
            yield from (years * YEAR_S for years in dates if 0 < years < spec.horizon.years)


def grows(spec: PlanSpec) -> bool:
    """Tell whether a plan counts on a demand that changes from year to year."""
    demands = [workload.demand for workload in spec.workloads if isinstance(workload, Serving)]
    forecasts = [demand.forecast.growth for demand in demands if demand.forecast is not None]
    return any(demand.growth_per_year for demand in demands) or any(growth and growth.typical for growth in forecasts)


def _demand_factors(context: ResolveContext, demand: Demand, path: str, phases: Sequence[PhaseFacts]) -> list[float]:
    """List the factor on a demand in each phase; empty where no phase changes it."""
    where = f"{path}.demand.factor_by_phase"
    _check_phases(context, demand.factor_by_phase, [phase.name for phase in phases], where)
    factors: list[float] = []
    for phase in phases if demand.factor_by_phase else ():
        factors.append(demand.factor_by_phase.get(phase.name, factors[-1] if factors else 1.0))
    return factors


def _check_within_horizon(context: ResolveContext, moment_s: float, path: str) -> None:
    years = context.spec.horizon.years
    if moment_s >= years * YEAR_S:
        message = Message.of("resolve.after_horizon", years=years).text()
        context.add_problem(path, message)


def _check_phases(context: ResolveContext, by_phase: Collection[str], names: Collection[str], path: str) -> None:
    """Add a problem for each key that is not the name of a phase."""
    for name in by_phase:
        if name in names:
            continue
        if names:
            message = Message.of(
                "resolve.unknown_phase", close=close_matches(name, names), known=", ".join(names)
            ).text()
        else:
            message = Message.of("resolve.phases_missing").text()
        context.add_problem(f"{path}.{name}", message)
