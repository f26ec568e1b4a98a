"""Build-out over time: dates of delivery and retirement, prices, and the share of a price that falls into the horizon.

A system obtained in a phase is delivered at the start of the phase or, where the offer or the site comes later, as soon as both are
available, and is held until its life or the horizon ends. Without phases everything is delivered as soon as it is available.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from catalog.units import DAY_S, YEAR_S
from models.arrays import Bools, Floats
from models.economics import discount_factor
from planner.messages import Message
from planner.problem.calendar import BORDER_TOL_S, Calendar
from planner.problem.economics import NO_CHARGES, Charges, Economics, charges, charges_of_owned
from planner.problem.facts import OfferFacts, PhaseFacts, ResolvedSpec, SiteFacts
from planner.problem.owned import RentedFacts

BY_WINDOW, API = ("on_demand", "spot"), "api"  # rented anew in each window; bought as tokens
TOKENS_PER_S = "token/s"  # unit in which an API is counted
SLOT_TOL = 1e-9  # share of a slot: rounding of a least run that lasts a whole number of slots


@dataclass(frozen=True, slots=True)
class Term:
    """A holding of systems from an offer at a site, from window `first` to `last`.

    `price`: of a system, per second when rented. `charges`: present value over the horizon per unit of purchase price.
    """

    phase: int  # position among the phases of the problem; 0 where it has none
    first: int
    last: int
    price: float
    charges: Charges
    owed_s: float  # rent on leaving before the end of a commitment
    owed_worth_s: float  # the same at present value
    dated: bool  # whether time plays a part: there are phases, or the offer or the site comes later
    extended: int | None = None  # first window beyond the end of a contract that is extended
    extension_price: float = 0.0  # per second, from then on

    def mask(self, calendar: Calendar) -> Bools:
        """Return the mask of the slots in which it is held."""
        return (calendar.window >= self.first) & (calendar.window <= self.last)


def seconds_from(start: date, moment: date | float | None, otherwise: float = 0.0) -> float:
    """Convert a moment of a spec to whole seconds from the start of the horizon."""
    if moment is None:
        return otherwise
    return max((moment - start).days * DAY_S, 0.0) if isinstance(moment, date) else float(round(moment))


def phases_or_whole(phases: Sequence[PhaseFacts], years: int) -> tuple[PhaseFacts, ...]:
    """Return the phases; without any, one that lasts the whole horizon."""
    return tuple(phases) or (PhaseFacts("", "", 0.0, years * YEAR_S, math.inf),)


def delivered_s(phase: PhaseFacts, offer: OfferFacts, site: SiteFacts) -> float | None:
    """Return when a system obtained in a phase is delivered [s]; None where none can be in that phase."""
    comes = max(phase.start_s, offer.ready_s(site))
    return comes if comes < min(phase.end_s, offer.until_s) else None


def price_in(offer: OfferFacts, region: str, phase: int, when_s: float) -> float:
    """Return the price of a system delivered `when_s` after the start of the horizon."""
    stated = offer.phase_prices[phase] if offer.phase_prices else None
    if stated is not None:
        return stated
    return offer.prices[region] * float((1.0 + offer.price_change) ** (when_s / YEAR_S))


def retired_s(came_s: float, offer: OfferFacts, money: Economics, phased: bool) -> float:
    """Return when a bought system is retired [s]; without phases it is replaced by its like, and never retired.

    A system owned at the start is kept for the whole horizon, or to the end of its lease.
    """
    if offer.owned is not None:
        return offer.owned.until_s
    return came_s + float(round(offer.life_s(money))) if phased and offer.how == "buy" else math.inf


def owed_s(offer: OfferFacts, held_s: float) -> float:
    """Return the time for which rent is owed on leaving a commitment after `held_s`: the fee's share of the rest of its term [s]."""
    return offer.exit_fee * max(offer.term_s - held_s, 0.0)


def borders(
    phases: Sequence[PhaseFacts],
    offers: Sequence[OfferFacts],
    sites: Sequence[SiteFacts],
    money: Economics,
    yearly: bool,
) -> Iterator[float]:
    """Yield the times of deliveries, retirements and changes, for the calendar [s]."""
    yield from (phase.start_s for phase in phases)
    yield from (site.from_s for site in sites)
    yield from (year * YEAR_S for year in range(1, money.years if yearly else 1))
    for offer in offers:
        yield from (
            moment for moment in (offer.from_s, offer.until_s) if offer.how in BY_WINDOW or moment == offer.from_s
        )
        for phase in phases:
            for site in sites:
                if (came := delivered_s(phase, offer, site)) is not None:
                    yield retired_s(came, offer, money, True)
        if offer.owned is not None:
            yield offer.owned.until_s
            yield from (offer.ready_s(site) for site in sites if site.region in offer.prices)
        if offer.rented is not None:
            yield from (offer.rented.earliest_s, offer.rented.until_s)


def terms_of(problem: ResolvedSpec, site: SiteFacts, offer: OfferFacts) -> tuple[Term, ...]:
    """List the holdings that an offer allows at a site: one for each phase, one for each window where it is rented on demand, or one for
    each date on which rented systems may go back."""
    if offer.rented is not None:
        return _returns(problem, site, offer, offer.rented)
    calendar, money = problem.calendar, problem.economics
    phased, edges, last = bool(problem.phases), calendar.edges_s, calendar.windows - 1
    found = []
    for p, phase in enumerate(phases_or_whole(problem.phases, money.years)):
        came = delivered_s(phase, offer, site)
        if came is None or came >= retired_s(came, offer, money, phased):
            continue
        first = window_at(calendar, came)
        if offer.how in BY_WINDOW:
            for w in range(first, calendar.windows):
                if edges[w] < min(phase.end_s, offer.until_s) - BORDER_TOL_S:
                    found.append(
                        Term(p, w, w, price_in(offer, site.region, p, float(edges[w])), NO_CHARGES, 0.0, 0.0, False)
                    )
            continue
        gone = retired_s(came, offer, money, phased)
        until = last if gone > edges[-1] - BORDER_TOL_S else window_at(calendar, gone) - 1
        held = float(edges[first] / YEAR_S), float(edges[until + 1] / YEAR_S)
        charged = _charges(money, offer, site, held)
        dated = phased or (first, until) != (0, last)
        owed = owed_s(offer, float(edges[until + 1] - edges[first]))
        owed_worth = owed * float(discount_factor(money.discount_rate, held[1]))
        price = price_in(offer, site.region, p, came)
        found.append(Term(p, first, until, price, charged, owed, owed_worth, dated))
        if offer.how == API:  # it is there from then on and costs nothing to hold
            break
    return tuple(found)


def _returns(problem: ResolvedSpec, site: SiteFacts, offer: OfferFacts, rented: RentedFacts) -> tuple[Term, ...]:
    """List the holdings of systems that are rented already: from the start to each border of the calendar at which they may go back."""
    calendar, found = problem.calendar, []
    edges, rate = calendar.edges_s, problem.economics.discount_rate
    for last, gone in enumerate(edges[1:].tolist()):
        ends = last == calendar.windows - 1
        if (gone < rented.earliest_s - BORDER_TOL_S and not ends) or gone > rented.latest_s + BORDER_TOL_S:
            continue
        owed = owed_s(offer, gone)
        extended = window_at(calendar, rented.until_s) if gone > rented.until_s + BORDER_TOL_S else None
        found.append(
            Term(
                0, 0, last, price_in(offer, site.region, 0, 0.0), NO_CHARGES, owed,
                owed * float(discount_factor(rate, gone / YEAR_S)), bool(problem.phases) or not ends,
                extended, rented.extension_price or 0.0,
            )
        )  # fmt: skip
    return tuple(found)


def counted_by_hour(problem: ResolvedSpec, offer: OfferFacts) -> bool:
    """Tell whether systems of an offer are paid for slot by slot: those on demand and on the spot market.

    They are held, and paid for, throughout where what they cost in an hour is not known beforehand: in scenarios, and where a zone may fail at
    any hour, for which systems must stand ready.
    """
    survives = any(w.spec.spread is not None and w.spec.spread.survive for w in problem.serving)
    return offer.how in BY_WINDOW and problem.spec.robust is None and not survives


def least_slots(problem: ResolvedSpec, offer: OfferFacts) -> int:
    """Count the slots for which a system of an offer runs at least, once it has started."""
    return max(math.ceil(offer.least_run_s / float(problem.calendar.step_s.min()) - SLOT_TOL), 1)


def _charges(money: Economics, offer: OfferFacts, site: SiteFacts, held: tuple[float, float]) -> Charges:
    """Compute the charges of a system of an offer at a site that is held between two years."""
    life_years = offer.life_s(money) / YEAR_S
    if offer.owned is not None:
        return charges_of_owned(money, offer.system, life_years, *held, offer.owned, site.region)
    return charges(money, offer.system, life_years, *held, offer.price_change) if offer.how == "buy" else NO_CHARGES


def window_at(calendar: Calendar, moment_s: float) -> int:
    """Return the window that begins at a border of the calendar."""
    return int(np.searchsorted(calendar.edges_s, moment_s - BORDER_TOL_S))


@dataclass(frozen=True, slots=True)
class Supply:
    """A limit on the systems held from an offer, with tiers of KV cache or without, or on those obtained in a phase."""

    path: str
    name: str
    offer: OfferFacts
    phase: int | None
    most: float

    @property
    def is_stated(self) -> bool:
        """Whether the spec has a key for the limit: it has none for phases of owned systems, which are all there at the start."""
        return self.phase is None or self.offer.owned is None


def supply_path(offer: OfferFacts) -> str:
    """Return the key of the spec that states how many systems there are: the count of an entry that is held already, else the supply."""
    return f"{offer.path}.{'supply' if offer.owned is None and offer.rented is None else 'count'}"


def supply_name(offer: OfferFacts) -> str:
    """Name the limit on the supply of an offer, or on the count of an entry of systems that are owned or rented already."""
    how = "owned" if offer.owned is not None else "rented" if offer.rented is not None else offer.how
    return Message.of("limit.supply", system=offer.system, how=Message.of(f"how.{how}").text()).text()


def supplies(problem: ResolvedSpec) -> list[Supply]:
    """List every limit on a supply."""
    found = []
    for offer in problem.offers:
        if offer.stated_at:
            continue
        name = supply_name(offer)
        if math.isfinite(offer.supply):
            found.append(Supply(supply_path(offer), name, offer, None, offer.supply))
        for p, most in enumerate(offer.phase_supply):
            if math.isfinite(most):
                phase = problem.phases[p].name
                found.append(
                    Supply(
                        f"{offer.path}.supply_by_phase.{phase}",
                        Message.of("limit.supply_in", supply=name, phase=phase).text(),
                        offer,
                        p,
                        most,
                    )
                )
    return found


@dataclass(frozen=True, slots=True)
class PowerLimit:
    """A limit on the power of a site; `windows`: the first and last in which it holds, None where it holds throughout."""

    path: str
    name: str
    site: int
    most_w: float
    windows: tuple[int, int] | None = None
    until: str = ""  # phase with whose start it ends, where that is not the horizon's end
    since: str = ""  # phase from whose start it holds

    def mask(self, calendar: Calendar) -> Bools:
        """Return the mask of the slots in which it holds."""
        first, last = self.windows or (0, calendar.windows - 1)
        return (calendar.window >= first) & (calendar.window <= last)


def power_limits(problem: ResolvedSpec) -> list[PowerLimit]:
    """List every limit on the power of a site; one of a phase holds until the next one that is stated."""
    found = []
    for r, site in enumerate(problem.sites):
        name, path = Message.of("limit.power", site=site.region).text(), f"{site.path}.power"
        stated = [(phase, limit) for phase, limit in zip(problem.phases, site.phase_power_w) if limit is not None]
        if not stated:
            found.append(PowerLimit(path, name, r, site.power_limit_w))
            continue
        borders = [*(window_at(problem.calendar, phase.start_s) for phase, _ in stated), problem.calendar.windows]
        if borders[0]:
            found.append(PowerLimit(path, name, r, site.first_power_w, (0, borders[0] - 1), until=stated[0][0].name))
        for (phase, limit), begins, ends in zip(stated, borders, borders[1:]):
            inside = f"{site.path}.power_by_phase.{phase.name}"
            later = Message.of("limit.power_from", site=site.region, phase=phase.name).text()
            found.append(PowerLimit(inside, later, r, limit, (begins, ends - 1), since=phase.name))
    return [limit for limit in found if math.isfinite(limit.most_w)]


def demand_growth(
    calendar: Calendar, per_year: float, phases: Sequence[PhaseFacts], factors: Sequence[float]
) -> Floats | None:
    """Compute the factor on the demand in each window; None where it is the same throughout."""
    if not per_year and not any(factor != 1.0 for factor in factors):
        return None
    begin = calendar.edges_s[:-1]
    growth = (1.0 + per_year) ** np.floor((begin + BORDER_TOL_S) / YEAR_S)
    if len(factors):
        growth = (
            growth
            * np.asarray(factors)[
                np.searchsorted([phase.start_s for phase in phases], begin + BORDER_TOL_S, side="right") - 1
            ]
        )
    return growth
