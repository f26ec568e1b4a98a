"""Limits of sites: power, permitted systems, and their networks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.lookup import Catalog
from catalog.units import show
from planner.candidates.fleet_options import build_fleet_options
from planner.limits.limit import Limit
from planner.messages import Message, enumerated, listed
from planner.problem.fabrics import largest_of
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import power_limits
from planner.spec.document import at
from planner.spec.fabrics import DEFAULT_FABRICS, FABRIC_DESIGNS

NETWORK_PARTS = (
    "radix",
    "port_bytes_per_s",
    "switch_price",
    "link_price_one_tier",
    "link_price_two_tier",
    "switch_power_w",
    "optic_power_w",
)


def site_power_limits(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the power limit of our own systems at each site, by phase where it changes."""
    for limit in power_limits(problem):
        region = problem.sites[limit.site].region
        shown = {"site": region, "power": show(limit.most_w, "W")}
        if limit.until:
            words = Message.of("limit.power_before_words", phase=limit.until, **shown).text()
        elif limit.since:
            words = Message.of("limit.power_from_words", phase=limit.since, **shown).text()
        else:
            words = Message.of("limit.power_words", **shown).text()
        yield Limit(limit.path, limit.name, words, at(document, limit.path), is_row=True, unit="W", amount=limit.most_w)


def site_limits(problem: ResolvedSpec, catalog: Catalog) -> Iterator[Limit]:
    """Yield the lists of permitted systems and networks of each site."""
    own = [site for site in problem.sites if site.api is None]
    offered = list(
        dict.fromkeys(offer.system for offer in problem.offers if any(site.region in offer.prices for site in own))
    )
    for i, site in enumerate(own):
        path, missing = f"{site.path}.systems", [name for name in offered if site.systems and name not in site.systems]
        if missing:
            choices = tuple(((path, [*site.systems, name]),) for name in missing)
            words = Message.of(
                "limit.site_systems_words", systems=enumerated(site.systems, "or"), site=site.region
            ).text()
            name, written = Message.of("limit.site_systems", site=site.region).text(), list(site.systems)
            yield Limit(path, name, words, written, loose=((path, None),), choices=choices)
        yield _network(problem, catalog, i)


def _network(problem: ResolvedSpec, catalog: Catalog, i: int) -> Limit:
    """Describe the network designs that a site may use, and how many systems each of them joins."""
    site = problem.sites[i]
    path, missing = f"{site.path}.topologies", [design for design in FABRIC_DESIGNS if design not in site.topologies]
    sizes: dict[tuple[str, float], dict[str, None]] = {}
    for option in build_fleet_options(problem)[0]:
        if option.site is site and option.plant is not None and site.fabric is not None:
            key = (option.fabric, largest_of(option.fabric, option.system, site.fabric))
            sizes.setdefault(key, {})[option.system.name] = None
    told = {"site": site.region, "fabrics": enumerated(site.topologies, "or")}
    joins = listed(
        Message.of("limit.network_joins", design=design, count=f"{most:,.0f}", systems=enumerated(systems, "or")).text()
        for (design, most), systems in sizes.items()
    )
    words = Message.of("limit.site_networks_words", **told).text()
    if joins:
        words = Message.of("limit.site_networks_joining_words", joins=joins, **told).text()
    radix = math.inf if site.fabric is None else site.fabric.radix
    larger = [name for name in catalog.names("fabrics") if _is_larger(catalog, name, radix)]
    choices = (
        *(((path, [*site.topologies, design]),) for design in missing),
        *(((f"{site.path}.fabric", name),) for name in larger),
    )
    every = list(dict.fromkeys((*site.topologies, *DEFAULT_FABRICS, *FABRIC_DESIGNS)))
    name, written = Message.of("limit.site_networks", site=site.region).text(), list(site.topologies)
    return Limit(path, name, words, written, loose=((path, every),), network_of=i, choices=choices)


def _is_larger(catalog: Catalog, name: str, radix: float) -> bool:
    """Tell whether a network of the catalog is fully known and has switches of more ports."""
    record = catalog.get("fabrics", name)
    return all(record.get(part) for part in NETWORK_PARTS) and record.value("radix") > radix
