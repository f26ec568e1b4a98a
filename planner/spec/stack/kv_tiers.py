"""Tiers of KV cache on offer: `tiers` of `flopwatt kv-tiers`, and the block `kv_tiers` of a spec."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, BytePrice, ByteRate, Bytes, Name, SecondsFromStart, Watts

MOST_SIZES = 12
Sizes = Annotated[list[Bytes], Field(min_length=1, max_length=MOST_SIZES)]
TIER_ORDER = ("dram", "cxl", "nvme", "remote")


class TierOffer(Block):
    """A tier that may be bought in one of several sizes, or not at all."""

    name: Literal["dram", "cxl", "nvme", "remote"]
    """Memory of the host, memory pooled behind a switch, solid-state disks, or a store elsewhere."""
    sizes: Sizes
    """Sizes on offer: of one system, or of the pool where several share it."""
    bandwidth: ByteRate
    """Rate at which one system reads from it."""
    latency: SecondsFromStart = 0.0
    """Time to the first byte."""
    price: BytePrice
    """Purchase of a byte, such as "4 USD/GB"."""
    power_per_tb: Watts | None = None
    """Power of 10^12 bytes of it; none if omitted."""
    shared_by: Annotated[int, Field(ge=1, le=64), WHOLE] = 1
    """Systems that share one pool."""
    pool_bandwidth: ByteRate | None = None
    """Rate at which all systems together read from a pool; as much as they ask for if omitted."""


def _in_order(tiers: list[TierOffer]) -> list[TierOffer]:
    places = [TIER_ORDER.index(tier.name) for tier in tiers]
    if places != sorted(set(places)):
        raise ValueError(Message.of("spec.tiers_out_of_order", order=", ".join(TIER_ORDER)).text())
    return tiers


TierOffers = Annotated[
    list[TierOffer], Field(min_length=1, max_length=len(TIER_ORDER)), AfterValidator(_in_order)
]  # the fastest first


class KvTiersOnOffer(Block):
    """Tiers of KV cache with which systems may be bought; the plan chooses a size of each, or none, for each kind of system at each site."""

    systems: Annotated[list[Name], Field(min_length=1, max_length=100)] | None = None
    """Systems that may have them; all that can be bought if omitted."""
    sites: Annotated[list[Name], Field(min_length=1, max_length=100)] | None = None
    """Regions of the sites where they may stand; all if omitted."""
    tiers: TierOffers
    """Tiers on offer, the fastest first."""
