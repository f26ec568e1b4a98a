"""Caches and drafts of a spec as the closed forms take them."""

from __future__ import annotations

from math import inf

from models.serving.prefix_cache import Given, PrefixCache, Sessions, Tier, Zipf
from models.serving.speculation import Speculation
from planner.spec.serving import HBM, Drafting, PrefixSharing


def prefix_cache(block: PrefixSharing | None, system_chips: int) -> PrefixCache | None:
    """The cache as the closed forms take it, on systems of so many chips."""
    if block is None:
        return None
    tiers = tuple(
        Tier(
            bytes_per_chip=tier.capacity / system_chips,
            bytes_per_s=inf if tier.name == HBM else tier.bandwidth / system_chips,
            latency_s=tier.latency,
            in_hbm=tier.name == HBM,
        )
        for tier in block.tiers
    )
    reuse = block.reuse
    if reuse is None:
        how = Given(block.hit_rate)
    else:
        how = Sessions(reuse.requests, reuse.gap) if reuse.prefixes is None else Zipf(reuse.prefixes, reuse.zipf)
    return PrefixCache(block.prefix_tokens, how, tiers or (Tier(0.0, inf, 0.0, in_hbm=True),), system_chips)


def drafting(block: Drafting | None) -> Speculation | None:
    """The speculation as the closed forms take it."""
    return None if block is None else Speculation(block.draft_tokens, block.acceptance, block.draft_share)
