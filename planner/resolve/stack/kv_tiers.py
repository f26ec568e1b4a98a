"""Resolve the block `kv_tiers`: each size of each tier makes a kind of system that can be bought beside the one without tiers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from catalog.units import TERA, show
from planner.messages import Message
from planner.problem.economics import Economics
from planner.problem.facts import OfferFacts, SiteFacts, SystemFacts
from planner.problem.kv_tiers import KvTier, KvTierSet
from planner.resolve.context import ResolveContext
from planner.spec.serving import HBM
from planner.spec.stack.kv_tiers import KvTiersOnOffer, TierOffer
from planner.spec.workloads import Serving

MOST_VARIANTS = 24  # variants of a block: each is evaluated as a kind of system of its own

Resolved = tuple[list[SiteFacts], list[OfferFacts], dict[str, SystemFacts], Economics]


def with_kv_tiers(
    context: ResolveContext,
    sites: Sequence[SiteFacts],
    offers: Sequence[OfferFacts],
    systems: Mapping[str, SystemFacts],
    money: Economics,
) -> Resolved:
    """Add the kinds of systems with tiers, their offers after all others, and let the sites that list a system take it with tiers too.

    A system with tiers costs and draws as the one without, with the tiers on top, changes its price and depreciates as that one does, and
    counts against the supply of the same offer.
    """
    result: Resolved = list(sites), list(offers), dict(systems), money
    blocks = context.spec.kv_tiers or []
    _check_caches(context)
    covered: dict[tuple[str, str], str] = {}  # (system, region): block
    for i, block in enumerate(blocks):
        path = f"kv_tiers[{i}]"
        if sets := _tier_sets(context, block, path):
            result = _with_block(context, result, (block, path, i), sets, covered)
    return result


def _check_caches(context: ResolveContext) -> None:
    """Check that prefixes have somewhere to be kept, and that no workload states a tier that the plan decides."""
    decided, reusing = bool(context.spec.kv_tiers), False
    for i, workload in enumerate(context.spec.workloads):
        cache = workload.cache if isinstance(workload, Serving) else None
        if cache is None or cache.reuse is None:
            continue
        reusing = True
        path = f"workloads[{i}].cache.tiers"
        if not decided and not cache.tiers:
            context.add_problem(path, Message.of("resolve.reuse_without_tiers").text())
        elif decided and (stated := [tier.name for tier in cache.tiers if tier.name != HBM]):
            context.add_problem(path, Message.of("resolve.tiers_decided", tiers=", ".join(stated), tier=HBM).text())
    if decided and not reusing:
        context.add_problem("kv_tiers", Message.of("resolve.kv_tiers_without_reuse").text())


def _tier_sets(context: ResolveContext, block: KvTiersOnOffer, path: str) -> list[tuple[KvTier, ...]]:
    """List every combination of sizes but that without any tier; none, with a problem, where there are too many."""
    choices = []
    for t, tier in enumerate(block.tiers):
        where = f"{path}.tiers[{t}]"
        price = context.convert(tier.price, path=f"{where}.price")
        context.assume_stated(f"{where}.price", price, f"{context.spec.currency}/byte")
        context.assume_stated(f"{where}.bandwidth", tier.bandwidth, "byte/s")
        if tier.power_per_tb is None:
            context.ledger.assume(f"{where}.power_per_tb", 0.0, "W", Message.of("resolve.none_stated").text())
        choices.append([None, *(_tier(tier, size, price) for size in sorted(set(tier.sizes) - {0.0}))])
    if (count := math.prod(map(len, choices)) - 1) > MOST_VARIANTS:
        context.add_problem(
            f"{path}.tiers",
            Message.of("resolve.too_many_sizes", count=count, most=MOST_VARIANTS).text(),
        )
        return []
    sets = [found for sizes in product(*choices) if (found := tuple(tier for tier in sizes if tier is not None))]
    if len({name_with(KvTierSet(path, "", tiers), 0) for tiers in sets}) < len(sets):
        context.add_problem(f"{path}.tiers", Message.of("resolve.sizes_alike").text())
        return []
    return sets


def _tier(offer: TierOffer, size: float, price: float) -> KvTier:
    """Build a tier of a size, as one system has it."""
    share = size / offer.shared_by
    rate = min(offer.bandwidth, (offer.pool_bandwidth or math.inf) / offer.shared_by)
    return KvTier(
        offer.name, share, offer.shared_by, rate, offer.latency, share * price, share / TERA * (offer.power_per_tb or 0.0)
    )  # fmt: skip


def _with_block(
    context: ResolveContext,
    known: Resolved,
    stated: tuple[KvTiersOnOffer, str, int],
    sets: Sequence[tuple[KvTier, ...]],
    covered: dict[tuple[str, str], str],
) -> Resolved:
    """Add the kinds of systems of one block."""
    sites, offers, systems, money = known
    block, path, i = stated
    named = context.find_all("systems", block.systems or [], f"{path}.systems")
    regions = context.find_all("regions", block.sites or [], f"{path}.sites")
    if named is None or regions is None:
        return known
    here = {region.name for region in regions} or {site.region for site in sites}
    if unknown := sorted(here - {site.region for site in sites}):
        context.add_problem(
            f"{path}.sites", Message.of("resolve.kv_tiers_site_unknown", site=", ".join(unknown)).text()
        )
    able = list(_bought(offers, {record.name for record in named}, here))
    for record in named:
        if record.name not in {offer.system for offer in able}:
            context.add_problem(f"{path}.systems", Message.of("resolve.kv_tiers_not_bought", system=record.name).text())
    own = dict.fromkeys((offer.system, region) for offer in able for region in sorted(here & set(offer.prices)))
    for system, region in own:
        if (other := covered.setdefault((system, region), path)) and other != path:
            context.add_problem(
                path, Message.of("resolve.kv_tiers_twice", system=system, site=region, place=other).text()
            )
    for offer in able:
        base = systems.get(offer.system)
        if base is None:  # a figure of it is missing, which is reported
            continue
        for tiers in sets:
            chosen = KvTierSet(path, offer.system, tiers)
            name = name_with(chosen, i)
            systems[name] = _system_with(base, chosen, name)
            offers.append(_offer_with(offer, chosen, name, here))
            if money.residual is not None and offer.system in money.residual:
                money = replace(money, residual={**money.residual, name: money.residual[offer.system]})
            sites = [
                replace(site, systems=tuple(dict.fromkeys((*site.systems, name))))
                if offer.system in site.systems
                else site
                for site in sites
            ]
    return sites, offers, systems, money


def _bought(offers: Sequence[OfferFacts], named: set[str], here: set[str]) -> Iterator[OfferFacts]:
    """Yield the purchases that may come with tiers."""
    for offer in offers:
        new = offer.how == "buy" and offer.owned is None and not offer.stated_at
        if new and here & set(offer.prices) and (not named or offer.system in named):
            yield offer


def name_with(chosen: KvTierSet, block: int) -> str:
    """Name a system with its tiers; names in further blocks carry the number of the block."""
    sizes = (
        f"{tier.name} {show(tier.pool_bytes, 'byte')}{f' for {tier.shared_by}' if tier.shared_by > 1 else ''}"
        for tier in chosen.tiers
    )
    return f"{chosen.base} + {' + '.join(sizes)}{f' ({block + 1})' if block else ''}"


def _system_with(base: SystemFacts, chosen: KvTierSet, name: str) -> SystemFacts:
    """Give a system its tiers, which draw their power whether it works or not."""
    more = chosen.power_w
    rack = base.rack and replace(base.rack, least_rack_w=base.rack.least_rack_w + more)
    return replace(base, name=name, power_w=base.power_w + more, idle_w=base.idle_w + more, rack=rack, kv_tiers=chosen)


def _offer_with(offer: OfferFacts, chosen: KvTierSet, name: str, here: set[str]) -> OfferFacts:
    """Offer a system with its tiers, at the price of both."""
    added = chosen.price
    sizes = name.removeprefix(f"{chosen.base} + ")
    return replace(
        offer,
        path=f"{offer.path} + {sizes}",
        system=name,
        prices={region: price + added for region, price in offer.prices.items() if region in here},
        phase_prices=tuple(None if price is None else price + added for price in offer.phase_prices),
        stated_at=offer.path,
    )
