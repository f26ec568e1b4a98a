"""Limits of halls: rack positions, power of a rack, cooling; and the sole tenancy and audit classes that workloads demand."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from catalog.units import KILO, show
from planner.limits.limit import Limit, of_the_spec
from planner.messages import Message, enumerated, named
from planner.problem.facility import RackFacts
from planner.problem.facts import (
    OfferFacts,
    ResolvedSpec,
    SiteFacts,
    WorkloadFacts,
    assured_at,
    is_assured,
    permitted,
)
from planner.problem.limit_labels import rack_positions, rack_power
from planner.spec.document import Edits, at
from planner.spec.facility import COOLING


def facility_limits(document: Mapping[str, Any], problem: ResolvedSpec, names: Collection[str]) -> Iterator[Limit]:
    """Yield the limits of each hall, and what these workloads demand of where they run."""
    for site in problem.sites:
        yield from _hall(document, problem, site)
    for workload in (*of_the_spec(problem.serving), *of_the_spec(problem.training)):
        if workload.asked in names:
            yield from _demands(problem, workload)


def _hall(document: Mapping[str, Any], problem: ResolvedSpec, site: SiteFacts) -> Iterator[Limit]:
    """Yield the rack positions of a hall, and its rack power and cooling where they bar or thin out a system on offer."""
    if math.isfinite(site.hall.positions):
        (path, name), most = rack_positions(site), site.hall.positions
        words = Message.of("limit.rack_positions_words", site=site.region, count=f"{most:,.0f}").text()
        yield Limit(path, name, words, at(document, path), is_row=True, unit="rack", amount=most)
    racks = _racks(problem, site)
    if enough := _rack_powers(site, racks):
        path, name = rack_power(site)
        words = Message.of("limit.rack_power_words", site=site.region, power=show(site.hall.rack_w, "W")).text()
        choices = tuple(((path, f"{watts / KILO:.12g} kW"),) for watts in enough)
        written = at(document, path)
        yield Limit(path, name, words, written, loose=((path, None),), choices=choices)
    missing = [kind for kind in COOLING if kind not in site.hall.cooling]
    helped = [kind for kind in missing if any(kind in rack.cooling for rack in racks.values())]
    if helped:
        path, has = f"{site.path}.cooling", list(site.hall.cooling)
        more: tuple[Edits, ...] = tuple(((path, [*has, kind]),) for kind in helped)
        barred = [name for name, rack in racks.items() if not set(rack.cooling) & set(has)]
        code = "limit.cooling_bars" if barred else "limit.cooling_only"
        told = {"systems": enumerated(barred)} if barred else {}
        words = Message.of(code, site=site.region, kinds=enumerated(has, "or"), **told).text()
        yield Limit(
            path, Message.of("limit.cooling", site=site.region).text(), words, has, loose=((path, None),), choices=more
        )


def _racks(problem: ResolvedSpec, site: SiteFacts) -> dict[str, RackFacts]:
    """Return the racks of the systems that are sold for the site, by their names."""
    sold = [offer.system for offer in problem.offers if offer.how == "buy" and site.region in offer.prices]
    known = {name: problem.systems[name].rack for name in sold if not site.systems or name in site.systems}
    return {name: rack for name, rack in known.items() if rack is not None}


def _rack_powers(site: SiteFacts, racks: Mapping[str, RackFacts]) -> list[float]:
    """List the powers of a rack from which on a system fits, or more of them fit into one rack; only those above the limit."""
    if math.isinf(site.hall.rack_w):
        return []
    steps = {rack.least_rack_w * (count + 1) for rack in racks.values() for count in range(rack.in_rack)}
    return sorted(watts for watts in steps if not _same_room(site, racks, watts))


def _same_room(site: SiteFacts, racks: Mapping[str, RackFacts], watts: float) -> bool:
    """Tell whether racks of a given power hold no more than the site's."""
    wider = replace(site.hall, rack_w=watts)
    return watts <= site.hall.rack_w or all(
        wider.refusal(rack) == site.hall.refusal(rack)
        and wider.systems_in_rack(rack) == site.hall.systems_in_rack(rack)
        for rack in racks.values()
    )


def _demands(problem: ResolvedSpec, workload: WorkloadFacts) -> Iterator[Limit]:
    """Yield the sole tenancy and the audit classes that a workload demands, where they bar a place."""
    places = [
        (site, offer)
        for site in problem.sites
        if permitted(workload, site)
        for offer in problem.offers
        if site.region in offer.prices
    ]
    barred = [(site, offer) for site, offer in places if not is_assured(workload, site, offer)]
    demanded = workload.demanded
    alone = [place for place in barred if not assured_at(*place).sole_tenant]
    if demanded.sole_tenant and alone:
        path = f"{workload.path}.sole_tenant"
        words = Message.of("limit.sole_tenant_words", workload=workload.name, places=_places(alone)).text()
        give_up: Edits = ((path, False),)
        yield Limit(
            path,
            Message.of("limit.sole_tenant", workload=workload.name).text(),
            words,
            True,
            loose=give_up,
            choices=(give_up,),
        )
    unaudited = [place for place in barred if set(demanded.audit) - set(assured_at(*place).audit)]
    if unaudited:
        path, asked = f"{workload.path}.audit", list(demanded.audit)
        code = "limit.audit_classes_words" if len(asked) > 1 else "limit.audit_class_words"
        words = Message.of(code, workload=workload.name, names=enumerated(asked), places=_places(unaudited)).text()
        fewer = (
            tuple(((path, [kept for kept in asked if kept != given_up]),) for given_up in asked)
            if len(asked) > 1
            else ()
        )
        yield Limit(
            path,
            Message.of("limit.audit", workload=workload.name).text(),
            words,
            asked,
            loose=((path, []),),
            choices=(*fewer, ((path, []),)),
        )


def _places(places: list[tuple[SiteFacts, OfferFacts]]) -> str:
    """Name the places: sites for systems of our own, and systems that are rented."""
    own = dict.fromkeys(
        Message.of("limit.in_site", site=site.region).text() for site, offer in places if offer.how == "buy"
    )
    rented = dict.fromkeys(
        Message.of("limit.of_system", system=offer.system, how=named("obtained", offer.how)).text()
        for _, offer in places
        if offer.how != "buy"
    )
    return enumerated([*own, *rented])
