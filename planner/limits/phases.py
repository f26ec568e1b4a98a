"""Limits of phases and on dates: budgets, supplies, deliveries and lives. Their rows: `planner.formulate.limits`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.units import DAY_S, YEAR_S, show
from planner.limits.limit import WAYS, Limit, money_limit
from planner.limits.offers import supply_limit
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
            (phase_capital(phase), phase.capital, f"what is bought in {phase.name} may cost at most"),
            (
                phase_budget(phase),
                phase.budget,
                f"what is paid in {phase.name}, purchases and running costs, may be at most",
            ),
        ):
            if math.isfinite(held):
                yield money_limit(document, problem, key, held, words)


def _supplies(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the supply limit of each offer in each phase."""
    for offer in (offer for offer in problem.offers if not offer.stated_at):
        for phase, most in zip(problem.phases, offer.phase_supply, strict=False):  # none may be stated
            if math.isfinite(most):
                path = f"{offer.path}.supply_by_phase.{phase.name}"
                name = f"supply of {offer.system} ({offer.how}) in {phase.name}"
                words = f"at most {most:,.0f} {offer.system} can be {WAYS[offer.how]} in {phase.name}"
                yield supply_limit(document, problem, path, name, words, most)


def _dates(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield first and last deliveries and first days of sites: a first one may move to the start of an earlier phase."""
    starts = [phase.start_s for phase in phases_or_whole(problem.phases, problem.economics.years)]
    for site in problem.sites:
        if at(document, f"{site.path}.building") == "new":
            yield _unbuilt(site)
        path = f"{site.path}.available_from"
        if site.from_s and at(document, path) is not None:
            words = (
                f"nothing {'stands in' if site.api is None else 'comes from'} {site.region} before {at(document, path)}"
            )
            yield _earlier(path, f"first day of {site.region}", words, at(document, path), site.from_s, starts)
    for i, offer in enumerate(problem.offers[: len(problem.spec.offers or ())]):
        if offer.from_s:
            path = f"offers[{i}].available_from"
            words = f"{offer.system} cannot be {WAYS[offer.how]} before {at(document, path)}"
            yield _earlier(
                path, f"first delivery of {offer.system} ({offer.how})", words, at(document, path), offer.from_s, starts
            )
        if math.isfinite(offer.until_s):
            path = f"offers[{i}].available_until"
            always: Edits = ((path, None),)
            words = f"{offer.system} cannot be {WAYS[offer.how]} from {at(document, path)} on"
            yield Limit(
                path,
                f"last delivery of {offer.system} ({offer.how})",
                words,
                at(document, path),
                loose=always,
                choices=(always,),
            )


def _unbuilt(site: SiteFacts) -> Limit:
    """State that a building must be built first; it gives way where another stands already."""
    path = f"{site.path}.building"
    standing: Edits = ((path, "standing"),)
    words = f"nothing stands in {site.region} before its new building is finished after {show(site.from_s, 's')}"
    return Limit(path, f"building in {site.region}", words, "new", loose=standing, choices=(standing,))


def _earlier(path: str, name: str, words: str, written: Any, moment_s: float, starts: Sequence[float]) -> Limit:
    choices = tuple(((path, f"{start / DAY_S:g} d"),) for start in sorted(starts, reverse=True) if start < moment_s)
    return Limit(path, name, words, written, loose=((path, "0 d"),), choices=choices)


def _lives(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the lives that end within the horizon, after which only another purchase keeps the capacity."""
    money, horizon_s = problem.economics, problem.economics.years * YEAR_S
    for i, offer in enumerate(problem.offers[: len(problem.spec.offers or ())] if problem.phases else ()):
        if any(gone < horizon_s for gone in _ends(problem, offer)):
            path = f"offers[{i}].life"
            longer: Edits = ((path, f"{money.years} years"),)
            words = f"{offer.system} is retired {show(offer.life_s(money), 's')} after it is bought"
            yield Limit(path, f"life of {offer.system}", words, at(document, path), loose=longer, choices=(longer,))


def _ends(problem: ResolvedSpec, offer: OfferFacts) -> Iterator[float]:
    """Yield when systems of an offer retire [s], by phase and site of their delivery."""
    for phase in problem.phases:
        for site in problem.sites:
            if (came := delivered_s(phase, offer, site)) is not None:
                yield retired_s(came, offer, problem.economics, True)
