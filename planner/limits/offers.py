"""Limits of offers: supplies, regions and export control; and further offers of the catalog."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from catalog.errors import MissingFigure
from catalog.exchange import usd_of_one
from catalog.lookup import Catalog
from catalog.units import YEAR_S, show
from planner.facts.exports import export_rule, export_status
from planner.limits.limit import UNLIMITED_SUPPLY, Limit, way
from planner.messages import Message, enumerated
from planner.problem.facts import ResolvedSpec, ServingFacts, exportable
from planner.problem.phases import supply_name, supply_path
from planner.resolve.ledger import Ledger
from planner.resolve.systems import system_facts
from planner.spec.document import Edits, at

DEVICE, SERVER, RACK = "device", "server", "rack"
DEVICE_FORMS = ("module", "card", "board", "computer", "edge")
SERVER_FORMS = ("", "node", "node part", "cloud node")


def supply_limits(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the supply limit of each offer."""
    for offer in problem.offers:
        if math.isfinite(offer.supply) and not offer.stated_at:
            words = Message.of(
                "limit.supply_words", count=f"{offer.supply:,.0f}", system=offer.system, way=way(offer.how)
            ).text()
            yield supply_limit(document, problem, supply_path(offer), supply_name(offer), words, offer.supply)


def least_limits(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the least count of each offer that has one; it is relaxed by smaller counts."""
    for offer in problem.offers:
        if offer.least > 1 and not offer.stated_at:
            path = f"{offer.path}.least"
            words = Message.of("limit.least_words", count=offer.least, system=offer.system, way=way(offer.how)).text()
            counts = sorted({offer.least * part // 4 for part in (1, 2, 3)} - {0, offer.least}, reverse=True)
            fewer = tuple(((path, count),) for count in [*counts, 1])
            name = Message.of("limit.least", system=offer.system, how=Message.of(f"how.{offer.how}").text()).text()
            yield Limit(path, name, words, at(document, path), loose=((path, None),), choices=fewer)


def supply_limit(
    document: Mapping[str, Any], problem: ResolvedSpec, path: str, name: str, words: str, most: float
) -> Limit:
    """Describe a limit on a count of systems; a job may be no wider than the supply, so its points depend on it too."""
    loose = ((path, UNLIMITED_SUPPLY),) if problem.training else ()
    return Limit(path, name, words, at(document, path), is_row=True, loose=loose, unit="system", amount=most)


def region_limits(problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the offers that are restricted to some of the regions."""
    regions = [site.region for site in problem.sites if site.api is None]
    for i, offer in enumerate(problem.spec.offers or ()):
        missing = [region for region in regions if offer.regions and region not in problem.offers[i].prices]
        if missing and offer.regions:
            path, written = f"offers[{i}].regions", list(offer.regions)
            choices = tuple(((path, [*written, region]),) for region in missing)
            words = Message.of(
                "limit.regions_words", system=offer.system, way=way(offer.how), sites=enumerated(written, "or")
            ).text()
            name = Message.of("limit.regions", system=offer.system, how=Message.of(f"how.{offer.how}").text()).text()
            yield Limit(path, name, words, written, loose=((path, None),), choices=choices)


def export_limits(document: Mapping[str, Any], problem: ResolvedSpec, catalog: Catalog) -> Iterator[Limit]:
    """Yield export control where it bars an offer; licences, other systems or its removal relax it."""
    limits = problem.spec.limits
    barred: dict[tuple[str, str], str] = {}
    for site in problem.sites:
        for offer in problem.offers:
            system = problem.systems[offer.system]
            if site.region in offer.prices and not exportable(system, site, limits):
                barred[system.name, system.export_cn] = site.region
    if not barred:
        return
    path, held = "limits.licences", list(limits.licences)
    licensable = [name for name, status in barred if status == "licence"]
    choices: list[Edits] = [((path, [*held, name]),) for name in licensable]
    if len(licensable) > 1:
        choices.append(((path, [*held, *licensable]),))
    if document.get("offers") is not None:
        kinds = {_kind(catalog, name) for name, _ in barred}

        def free(name: str) -> bool:
            chip = catalog.get("chips", catalog.get("systems", name).words("chip"))
            return export_status(chip) in ("domestic", "allowed") and _kind(catalog, name) in kinds

        choices += [(("offers", [*document["offers"], way]),) for way in _catalog_ways(problem, catalog, free)]
    switch: Edits = (("limits.export_control", False),)
    systems, regions = [name for name, _ in barred], dict.fromkeys(barred.values())
    words = Message.of(
        "limit.export_control_words",
        systems=enumerated(systems),
        sites=enumerated(regions),
        rules=enumerated(_export_rules(catalog, systems)),
    ).text()
    yield Limit(
        "limits.export_control",
        Message.of("limit.export_control").text(),
        words,
        True,
        loose=switch,
        choices=(*choices, switch),
    )


def further_offers(problem: ResolvedSpec, catalog: Catalog) -> list[dict[str, str]]:
    """List the offers of the catalog that the spec does not make, at the catalog's price, the cheapest system first.

    Where only devices are on offer, none but devices.
    """
    devices = bool(problem.systems) and all(_kind(catalog, name) == DEVICE for name in problem.systems)
    return _catalog_ways(problem, catalog, lambda system: not devices or _kind(catalog, system) == DEVICE)


def nothing_fits(
    document: Mapping[str, Any], problem: ResolvedSpec, names: Collection[str], offer: Edits, able: Collection[str]
) -> Limit:
    """Describe the systems on offer as a limit, relaxed by one more `offer`; `able`: systems that run the workloads, in too small numbers."""
    words, written = _why_not(problem, names, able), document["offers"]
    return Limit("offers", Message.of("limit.offers").text(), words, written, loose=offer, choices=(offer,))


def nothing_runs(problem: ResolvedSpec, names: Collection[str], able: Collection[str]) -> Limit:
    """Describe the architecture as the limit, where no relaxation of the others gives a plan; `able` as for `nothing_fits`."""
    workload = next(w for w in (*problem.serving, *problem.training) if w.asked in names)
    path, name = f"{workload.path}.architecture", Message.of("limit.architecture", workload=workload.asked).text()
    return Limit(path, name, _why_not(problem, names, able), workload.spec.architecture)


def _catalog_ways(problem: ResolvedSpec, catalog: Catalog, wanted: Callable[[str], bool]) -> list[dict[str, str]]:
    """List offers of the catalog, for wanted systems at sites of the spec, that the spec does not make: the cheapest first."""
    made = {(offer.system, offer.how) for offer in problem.offers}
    prices: dict[tuple[str, str], float] = {}
    for record in catalog.records("offers"):
        system, how = record.words("system"), record.words("how")
        here = [
            site
            for site in problem.sites
            if record.words("region") in ("", site.region) and record.words("zone") in ("", *site.zones)
        ]
        if how != "spot" and (system, how) not in made and here and wanted(system) and _is_complete(catalog, system):
            usd = usd_of_one(catalog, record.figure("price")) or math.inf  # last, where its currency has no rate
            price = record.value("price") * usd * (1.0 if how == "buy" else YEAR_S)
            prices[system, how] = min(prices.get((system, how), math.inf), price)
    return [{"system": system, "how": how} for system, how in sorted(prices, key=prices.__getitem__)]


def _kind(catalog: Catalog, system: str) -> str:
    """Return how a system is sold, as one of three sizes: a device, a server, or what fills a rack and more."""
    form = catalog.get("systems", system).words("form") if catalog.has("systems", system) else ""
    return DEVICE if form in DEVICE_FORMS else SERVER if form in SERVER_FORMS else RACK


def _export_rules(catalog: Catalog, systems: Collection[str]) -> list[str]:
    """List the rules that bar systems, each with its date."""
    chips = [catalog.get("chips", catalog.get("systems", name).words("chip")) for name in systems]
    found = [catalog.source(rule) for rule in dict.fromkeys(map(export_rule, chips)) if rule]
    return [f"{source.id} ({source.date})" for source in found] or [Message.of("limit.stated_status").text()]


def _is_complete(catalog: Catalog, system: str) -> bool:
    """Tell whether the catalog knows every figure of a system that a plan needs."""
    try:
        system_facts(catalog.get("systems", system), Ledger(catalog))
    except MissingFigure:
        return False
    return True


def _why_not(problem: ResolvedSpec, names: Collection[str], able: Collection[str]) -> str:
    """Say that the `able` systems are too few, or compare the memory on offer with the weights of the first of these workloads."""
    workload = next(w for w in (*problem.serving, *problem.training) if w.asked in names)
    if able:
        asked = {"workload": workload.asked, "architecture": str(workload.spec.architecture)}
        return Message.of("limit.too_little_of_it", systems=enumerated(sorted(able)), **asked).text()
    system = max(problem.systems.values(), key=lambda s: s.hbm_bytes * s.chips, default=None)
    if system is None:
        return Message.of("limit.no_offer").text()
    told = {
        "workload": workload.asked, "architecture": str(workload.spec.architecture), "system": system.name,
        "memory": show(system.hbm_bytes * system.chips, "byte"),
    }  # fmt: skip
    if isinstance(workload, ServingFacts):
        return Message.of("limit.memory_for_weights", weights=show(workload.weights_bytes, "byte"), **told).text()
    return Message.of("limit.memory_of_largest", **told).text()
