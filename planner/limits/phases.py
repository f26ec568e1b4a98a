"""Limits of phases and on dates: budgets, supplies, deliveries and lives. Their rows: `planner.formulate.limits`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.units import DAY_S, YEAR_S, show
from planner.limits.limit import Limit, money_limit, way
from planner.limits.offers import supply_limit
from planner.messages import Message
from planner.problem.facts import OfferFacts, ResolvedSpec, SiteFacts
from planner.problem.limit_labels import phase_budget, phase_capital
from planner.problem.phases import delivered_s, phases_or_whole, retired_s
from planner.spec.document import Edits, at


def phase_limits(document: Mapping[str, Any], problem: ResolvedSpec) -> list[Limit]:
    """List budgets and supplies of phases, and the dates of offers and sites."""
    return [
        *_money(document, problem),
        *_supplies(document, problem),
        *_dates(document, problem),
        *_lives(document, problem),
    ]


def _money(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the limits on purchases and payments in each phase."""
    for phase in problem.phases:
        for key, held, words in (
            (phase_capital(phase), phase.capital, "limit.phase_capital_words"),
            (
                phase_budget(phase),
                phase.budget,
                "limit.phase_budget_words",
            ),
        ):
            if math.isfinite(held):
                yield money_limit(document, problem, key, held, words, phase=phase.name)


def _supplies(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the supply limit of each offer in each phase."""
    for offer in (offer for offer in problem.offers if not offer.stated_at and offer.owned is None):
        for phase, most in zip(problem.phases, offer.phase_supply, strict=False):  # none may be stated
            if math.isfinite(most):
                path = f"{offer.path}.supply_by_phase.{phase.name}"
                supply = Message.of(
                    "limit.supply", system=offer.system, how=Message.of(f"how.{offer.how}").text()
                ).text()
                name = Message.of("limit.supply_in", supply=supply, phase=phase.name).text()
                words = Message.of(
                    "limit.supply_words_in",
                    count=f"{most:,.0f}",
                    system=offer.system,
                    way=way(offer.how),
                    phase=phase.name,
                ).text()
                yield supply_limit(document, problem, path, name, words, most)


def _dates(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield first and last deliveries and first days of sites: a first one may move to the start of an earlier phase."""
    starts = [phase.start_s for phase in phases_or_whole(problem.phases, problem.economics.years)]
    for site in problem.sites:
        if at(document, f"{site.path}.building") == "new":
            yield _unbuilt(site)
        path = f"{site.path}.available_from"
        if site.from_s and at(document, path) is not None:
            code = "limit.first_day_words" if site.api is None else "limit.first_day_of_api_words"
            words = Message.of(code, site=site.region, date=at(document, path)).text()
            yield _earlier(
                path,
                Message.of("limit.first_day", site=site.region).text(),
                words,
                at(document, path),
                site.from_s,
                starts,
            )
    for i, offer in enumerate(problem.offers[: len(problem.spec.offers or ())]):
        if offer.from_s:
            path, also = _first_delivery(problem, i, offer)
            words = Message.of(
                "limit.first_delivery_words", system=offer.system, way=way(offer.how), date=at(document, path)
            ).text()
            yield _earlier(
                path,
                Message.of(
                    "limit.first_delivery", system=offer.system, how=Message.of(f"how.{offer.how}").text()
                ).text(),
                words,
                at(document, path),
                offer.from_s,
                starts,
                also,
            )
        if math.isfinite(offer.until_s):
            path = f"offers[{i}].available_until"
            always: Edits = ((path, None),)
            words = Message.of(
                "limit.last_delivery_words", system=offer.system, way=way(offer.how), date=at(document, path)
            ).text()
            yield Limit(
                path,
                Message.of(
                    "limit.last_delivery", system=offer.system, how=Message.of(f"how.{offer.how}").text()
                ).text(),
                words,
                at(document, path),
                loose=always,
                choices=(always,),
            )


def _first_delivery(problem: ResolvedSpec, i: int, offer: OfferFacts) -> tuple[str, Edits]:
    """Return the place that states the first delivery of an offer, the later of both, and what else must give way with it."""
    lead = (problem.spec.offers or [])[i].delivery
    if lead is None or round(lead.typical) < offer.from_s:
        return f"offers[{i}].available_from", ()
    return f"offers[{i}].delivery.typical", () if lead.low is None else ((f"offers[{i}].delivery.low", None),)


def _unbuilt(site: SiteFacts) -> Limit:
    """State that a building must be built first; it gives way where another stands already."""
    path = f"{site.path}.building"
    standing: Edits = ((path, "standing"),)
    words = Message.of("limit.building_words", site=site.region, time=show(site.from_s, "s")).text()
    return Limit(
        path, Message.of("limit.building", site=site.region).text(), words, "new", loose=standing, choices=(standing,)
    )


def _earlier(
    path: str, name: str, words: str, written: Any, moment_s: float, starts: Sequence[float], also: Edits = ()
) -> Limit:
    earlier = [f"{start / DAY_S:g} d" for start in sorted(starts, reverse=True) if start < moment_s]
    choices = tuple(((path, when), *also) for when in earlier)
    return Limit(path, name, words, written, loose=((path, "0 d"), *also), choices=choices)


def _lives(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the lives that end within the horizon, after which only another purchase keeps the capacity."""
    money, horizon_s = problem.economics, problem.economics.years * YEAR_S
    for i, offer in enumerate(problem.offers[: len(problem.spec.offers or ())] if problem.phases else ()):
        if any(gone < horizon_s for gone in _ends(problem, offer)):
            path = f"offers[{i}].life"
            longer: Edits = ((path, f"{money.years} years"),)
            words = Message.of("limit.life_words", system=offer.system, time=show(offer.life_s(money), "s")).text()
            yield Limit(
                path,
                Message.of("limit.life", system=offer.system).text(),
                words,
                at(document, path),
                loose=longer,
                choices=(longer,),
            )


def _ends(problem: ResolvedSpec, offer: OfferFacts) -> Iterator[float]:
    """Yield when systems of an offer retire [s], by phase and site of their delivery."""
    for phase in problem.phases:
        for site in problem.sites:
            if (came := delivered_s(phase, offer, site)) is not None:
                yield retired_s(came, offer, problem.economics, True)
