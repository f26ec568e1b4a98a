"""Block of a spec about KV caches that engines of two vendors exchange."""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import Amount, ByteRate


class KvExchange(Block):
    """Exchange of KV caches between prefill and decode on chips of two vendors, whose engines lay caches out differently."""

    conversion: ByteRate
    """Rate at which one chip converts a cache to the layout of the other engine; a cache is converted after it was sent, at this rate for
    each link that carries it."""
    porting: Amount
    """One-off cost of connecting both engines, paid at the start of the horizon if any deployment of the workload exchanges caches so;
    "0 USD" where that is done."""
    note: str = ""
