"""Tiers of KV cache with which systems are bought: what one system pays for, and what it sees of a pool."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KvTier:
    """One tier of one size; figures are per system."""

    name: str  # dram, cxl, nvme or remote
    share_bytes: float  # what one system pays for: of a pool, its share
    shared_by: int  # systems
    bytes_per_s: float  # rate of one system, no more than its share of the rate of the pool
    latency_s: float
    price: float  # spec's currency
    power_w: float

    def seen_bytes(self, alike: bool) -> float:
        """Return the room that a system sees: its share, or the whole pool where requests of all systems draw `alike` from the same prefixes."""
        return self.share_bytes * self.shared_by if alike else self.share_bytes

    @property
    def pool_bytes(self) -> float:
        """Return the size that was ordered: of the pool where several systems share one."""
        return self.share_bytes * self.shared_by


@dataclass(frozen=True, slots=True)
class KvTierSet:
    """The tiers of one system, the fastest first. `base`: the same system without tiers."""

    path: str  # place of the block in the spec
    base: str
    tiers: tuple[KvTier, ...]

    @property
    def price(self) -> float:
        """Add up the price of the tiers of one system."""
        return math.fsum(tier.price for tier in self.tiers)

    @property
    def power_w(self) -> float:
        """Add up the power of the tiers of one system [W]."""
        return math.fsum(tier.power_w for tier in self.tiers)

    def without(self, name: str) -> KvTierSet:
        """Leave out one tier."""
        return KvTierSet(self.path, self.base, tuple(tier for tier in self.tiers if tier.name != name))
