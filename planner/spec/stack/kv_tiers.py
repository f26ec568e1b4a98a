"""The block `kv_tiers` of a case: which sizes of which tiers of KV cache are on offer, at which price (`flopwatt kv-tiers`)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from planner.spec.base import Block
from planner.spec.case import Case
from planner.spec.quantities import (
    WHOLE,
    BytePrice,
    ByteRate,
    Bytes,
    EnergyPrice,
    Real,
    RequestRate,
    SecondsFromStart,
    Watts,
    offer_price,
)
from planner.spec.serving import Reuse
from planner.spec.stack.codesign import is_purchase

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


class KvTiers(Block):
    """Prefixes that requests share, and the tiers in which they may be kept."""

    prefix_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Tokens of a prompt that may be cached; the others are always computed."""
    reuse: Reuse
    """How requests share prefixes. `prefixes` are those of all systems that share a pool, sessions those of one system."""
    hbm: Annotated[list[Bytes], Field(max_length=MOST_SIZES)] = []
    """Memory of the chips of a system that may be kept for prefixes; 0 is always tried."""
    tiers: Annotated[list[TierOffer], Field(min_length=1, max_length=len(TIER_ORDER))]
    """Tiers on offer, the fastest first."""
    price: str
    """Purchase of one system such as "310000 USD", or its rent such as "98 USD/h"."""
    demand: RequestRate | None = None
    """Requests per second of all systems, which are then a whole number; without it the cost per token counts."""
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"
    electricity: EnergyPrice | None = None
    """Price of electricity; the catalog's default if omitted."""
    pue: Annotated[Real, Field(ge=1, le=5)] | None = None
    """Power at the meter over power of the systems; the catalog's default if omitted."""

    @field_validator("price")
    @classmethod
    def _readable(cls, price: str) -> str:
        offer_price(price, bought=is_purchase(price))
        return price

    @model_validator(mode="after")
    def _in_order(self) -> KvTiers:
        places = [TIER_ORDER.index(tier.name) for tier in self.tiers]
        if places != sorted(set(places)):
            raise ValueError(f"tiers must differ and stand in the order {', '.join(TIER_ORDER)}")
        return self


class KvTiersCase(Case):
    """A serving case whose tiers of KV cache are chosen."""

    kv_tiers: KvTiers
