"""The block `kv_tiers` of a case: which sizes of which tiers of KV cache are on offer, at which price (`flopwatt kv-tiers`)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Bytes, EnergyPrice, Real, RequestRate, is_purchase, offer_price
from planner.spec.serving import Reuse
from planner.spec.stack.case import Case
from planner.spec.stack.kv_tiers import MOST_SIZES, TierOffers


class KvTiers(Block):
    """Prefixes that requests share, and the tiers in which they may be kept."""

    prefix_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Tokens of a prompt that may be cached; the others are always computed."""
    reuse: Reuse
    """How requests share prefixes. `prefixes` are those of all systems that share a pool, sessions those of one system."""
    hbm: Annotated[list[Bytes], Field(max_length=MOST_SIZES)] = []
    """Memory of the chips of a system that may be kept for prefixes; 0 is always tried."""
    tiers: TierOffers
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
        offer_price(price, is_purchase(price), chips=1)
        return price


class KvTiersCase(Case):
    """A serving case whose tiers of KV cache are chosen."""

    kv_tiers: KvTiers
