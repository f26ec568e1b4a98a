"""The block `kv_tiers` of a case: which sizes of which tiers of KV cache are on offer, at which price (`flopwatt kv-tiers`)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.spec.quantities import WHOLE, Bytes, RequestRate
from planner.spec.serving import Reuse
from planner.spec.stack.case import Case
from planner.spec.stack.kv_tiers import MOST_SIZES, TierOffers
from planner.spec.stack.priced import Priced, SystemPrice


class KvTiers(Priced):
    """Prefixes that requests share, and the tiers in which they may be kept."""

    prefix_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Tokens of a prompt that may be cached; the others are always computed."""
    reuse: Reuse
    """How requests share prefixes. `prefixes` are those of all systems that share a pool, sessions those of one system."""
    hbm: Annotated[list[Bytes], Field(max_length=MOST_SIZES)] = []
    """Memory of the chips of a system that may be kept for prefixes; 0 is always tried."""
    tiers: TierOffers
    """Tiers on offer, the fastest first."""
    price: SystemPrice
    """Purchase of one system such as "310000 USD", or its rent such as "98 USD/h"."""
    demand: RequestRate | None = None
    """Requests per second of all systems, which are then a whole number; without it the cost per token counts."""


class KvTiersCase(Case):
    """A serving case whose tiers of KV cache are chosen."""

    kv_tiers: KvTiers
