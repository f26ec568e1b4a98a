"""Blocks of a spec about serving: prefix sharing, cache tiers, speculation, selling prices."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, field_validator, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import (
    WHOLE,
    Amount,
    ByteRate,
    Bytes,
    Fraction,
    Rate,
    Real,
    Seconds,
    SecondsFromStart,
    TokenPrice,
)

HBM = "hbm"
BY_PREFIX: Final = "prefix"  # a way to route prefixes
AT_RANDOM: Final = "random"


Tier = Literal["hbm", "dram", "cxl", "nvme", "remote"]
TIERS: tuple[Tier, ...] = get_args(Tier)


class SellingPrice(Block):
    """Price at which the tokens of a workload are sold; tokens without a price are free."""

    input: TokenPrice = (0.0, "USD")
    """Per token of the prompts."""
    output: TokenPrice = (0.0, "USD")
    """Per token of the answers."""

    @model_validator(mode="after")
    def _some(self) -> SellingPrice:
        if not self.model_fields_set:
            raise ValueError(Message.of("spec.priced_tokens_expected").text())
        return self


class CacheTier(Block):
    """A tier of KV caches, per system."""

    name: Tier
    """Memory of the chips, of their host, pooled behind a switch, solid-state disks, or a store elsewhere."""
    capacity: Bytes
    """Capacity per system. A tier in the memory of the chips takes it from the running requests."""
    bandwidth: ByteRate | None = None
    """Rate at which all chips of one system together read; needed except for the memory of the chips."""
    latency: SecondsFromStart = 0.0
    """Time to the first byte."""
    price: Amount | None = None
    """Price of the tier per system; for `estimate` only: in a plan it belongs to the price of the system."""


class Reuse(Block):
    """How requests share prefixes: `prefixes` with `zipf`, or sessions of `requests` with a `gap`."""

    prefixes: Rate | None = None
    """Different prefixes that requests to one system draw from; to all of them, where the cache states a `routing`."""
    zipf: Annotated[Real, Field(ge=0, le=5)] | None = None
    """Zipf exponent of their popularity: the k-th is requested in proportion to k to the power of minus this."""
    requests: Annotated[Real, Field(ge=1, le=1e6)] | None = None
    """Mean requests of a session, each with the context of the one before it as its prefix."""
    gap: Seconds | None = None
    """Mean time between two requests of a session."""

    @model_validator(mode="after")
    def _one(self) -> Reuse:
        given = {name for name in ("prefixes", "zipf", "requests", "gap") if getattr(self, name) is not None}
        if given not in ({"prefixes", "zipf"}, {"requests", "gap"}):
            raise ValueError(Message.of("spec.reuse_stated_two_ways").text())
        if self.prefixes is not None and self.prefixes < 1:
            raise ValueError(Message.of("spec.prefix_needed").text())
        return self


PrefixRouting = Literal["random", "prefix"]
ROUTERS: tuple[PrefixRouting, ...] = get_args(PrefixRouting)


class PrefixSharing(Block):
    """Prefix caching: with a given `hit_rate`, or with one that follows from `reuse` and the size of the `tiers`."""

    prefix_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Tokens of a prompt that may be cached; the others are always computed."""
    hit_rate: Fraction | None = None
    """Share of requests whose prefix is cached, in the one tier named or, without one, in the memory of the chips."""
    reuse: Reuse | None = None
    """How requests share prefixes, from which the hit rate of each tier follows."""
    tiers: Annotated[list[CacheTier], Field(max_length=len(TIERS))] = []
    """Tiers of the cache, the fastest first; each evicts to the next. With `reuse` there is at least one, or the block `kv_tiers` of the spec."""
    routing: PrefixRouting | None = None
    """How requests are divided over `workers`, with which `prefixes` are those of all of them: "random", so that each needs every prefix, or
    "prefix", to the one that holds it. Prefixes of `reuse` are those of one system, and sessions stay where they are, if omitted."""
    workers: Annotated[int, Field(ge=1, le=4096), WHOLE] | None = None
    """Systems over which the requests are divided, as many as the plan is expected to have; with `routing`."""

    @field_validator("routing", mode="before")
    @classmethod
    def _known_router(cls, routing: object) -> object:
        if isinstance(routing, str) and routing not in ROUTERS:
            raise ValueError(Message.of("spec.routing_expected", routing=routing).text())
        return routing

    @field_validator("tiers")
    @classmethod
    def _in_order(cls, tiers: list[CacheTier]) -> list[CacheTier]:
        names = [tier.name for tier in tiers]
        if len(set(names)) < len(names):
            raise ValueError(Message.of("spec.tier_twice").text())
        if HBM in names[1:]:
            raise ValueError(Message.of("spec.tier_not_first", tier=HBM).text())
        if slow := [tier.name for tier in tiers if tier.name != HBM and tier.bandwidth is None]:
            raise ValueError(Message.of("spec.tier_bandwidth_missing", tiers=", ".join(slow)).text())
        return tiers

    @model_validator(mode="after")
    def _one(self) -> PrefixSharing:
        if (self.hit_rate is None) == (self.reuse is None):
            raise ValueError(Message.of("spec.hit_rate_or_reuse").text())
        if self.hit_rate is not None and len(self.tiers) > 1:
            raise ValueError(Message.of("spec.hit_rate_of_one_tier").text())
        if (self.routing is None) != (self.workers is None):
            raise ValueError(Message.of("spec.routing_needs_workers").text())
        if self.routing is not None and self.reuse is None:
            raise ValueError(Message.of("spec.routing_needs_reuse").text())
        return self


class Drafting(Block):
    """Speculative decoding: tokens drafted ahead and verified together."""

    draft_tokens: Annotated[int, Field(ge=1, le=32), WHOLE]
    """Tokens drafted per step."""
    acceptance: Fraction
    """Probability that a drafted token is accepted, given that those before it were."""
    draft_share: Fraction | None = None
    """Time of drafting one token over that of a step; if omitted, a draft is one more layer of the architecture
    (multi-token prediction)."""
