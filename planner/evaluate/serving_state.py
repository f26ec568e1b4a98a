"""Convert the prefix cache, the sessions and the speculation of a spec into the form that the closed forms take."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from models.arrays import sum_of
from models.formats import Precision
from models.serving import sessions as serving_sessions
from models.serving import workload as serving_media
from models.serving.decode import ServingLayouts
from models.serving.prefix_cache import Given, PrefixCache, Routed, Sessions, Tier, Zipf, tier_hits, tier_places
from models.serving.sessions import Reuse
from models.serving.speculation import Speculation
from models.transformer.encoder import Encoder
from planner.messages import Message
from planner.problem.facts import ServingFacts, SystemFacts
from planner.problem.kv_tiers import KvTierSet
from planner.spec.load.media import Media
from planner.spec.load.sessions import Session
from planner.spec.serving import AT_RANDOM, BY_PREFIX, HBM, CacheTier, Drafting, PrefixRouting, PrefixSharing
from planner.spec.workloads import Serving


def reuse_of(workload: Serving, system: SystemFacts, waiting: str) -> Reuse | None:
    """Convert what a prompt finds computed: the context of its session, whose cache is `waiting` somewhere, or a prefix cache."""
    if workload.session is None:
        return prefix_cache(workload.cache, system.chips, system.kv_tiers)
    return session_of(workload.session, waiting, system)


def media_of(block: Media, apart: bool) -> serving_media.Media:
    """Convert media in prompts, which are encoded `apart` from the engine or beside it."""
    encoder = block.encoder
    window = inf if encoder.window is None else float(encoder.window)
    shape = Encoder(
        encoder.parameters, float(encoder.layers), float(encoder.hidden), float(encoder.input_tokens), float(encoder.output_tokens), window
    )  # fmt: skip
    return serving_media.Media(shape, block.items, block.items_cv**2, apart)


def session_of(block: Session, waiting: str, system: SystemFacts | None) -> serving_sessions.Session:
    """Convert the sessions of a workload on a system, whose host holds the caches that are offloaded; None where that does not matter."""
    task = serving_sessions.Task(block.calls, block.calls_cv**2, block.wait, block.wait_cv**2)
    host = (0.0, 0.0) if system is None else (system.host_bytes, system.host_bytes_per_s)
    return serving_sessions.Session(task, float(block.growth), waiting, *host)


def prefix_cache(block: PrefixSharing | None, system_chips: int, bought: KvTierSet | None = None) -> PrefixCache | None:
    """Convert the prefix cache of a workload, with capacity and bandwidth per chip of systems of `system_chips`.

    `bought`: the tiers with which the systems are bought, below those that the workload states; a stated hit rate does not use them.
    None where prefixes have nowhere to be kept.
    """
    if block is None:
        return None
    tiers = tuple(_tier(tier, system_chips) for tier in block.tiers)
    if block.reuse is not None:
        alike = block.reuse.prefixes is not None and block.routing != BY_PREFIX
        for tier in bought.tiers if bought is not None else ():
            room, rate = tier.seen_bytes(alike) / system_chips, tier.bytes_per_s / system_chips
            tiers += (Tier(room, rate, tier.latency_s, in_hbm=False),)
        if not tiers:
            return None
    default = Tier(0.0, inf, 0.0, in_hbm=True)  # a stated hit rate does not depend on the size
    routed = None if block.workers is None else Routed(block.workers, block.routing == BY_PREFIX)
    return PrefixCache(block.prefix_tokens, _reuse(block), tiers or (default,), system_chips, routed)


def prefix_hits(
    workload: ServingFacts, system: SystemFacts, layout: ServingLayouts, precision: Precision, requests_per_s: float
) -> float:
    """Compute the share of requests that find their prefix in any tier, on workers that each serve a number of requests."""
    cache = prefix_cache(workload.spec.cache, system.chips, system.kv_tiers)
    if cache is None:
        return 0.0
    places = tier_places(workload.architecture, layout, cache, precision)
    rate = requests_per_s * system.chips / float(layout.chips)
    return float(sum_of(tier_hits(cache, places, rate)))


def other_way(block: PrefixSharing) -> PrefixRouting:
    """Return the way to route prefixes that a workload does not take."""
    return AT_RANDOM if block.routing == BY_PREFIX else BY_PREFIX


def routed_by(workload: ServingFacts, policy: PrefixRouting) -> ServingFacts:
    """Return a workload whose prefixes are routed in another way."""
    cache = workload.spec.cache
    assert cache is not None
    changed = {"cache": cache.model_copy(update={"routing": policy})}
    return replace(workload, spec=workload.spec.model_copy(update=changed))


def _tier(tier: CacheTier, system_chips: int) -> Tier:
    in_hbm = tier.name == HBM
    bandwidth = inf if in_hbm or tier.bandwidth is None else tier.bandwidth / system_chips
    return Tier(tier.capacity / system_chips, bandwidth, tier.latency, in_hbm=in_hbm)


def _reuse(block: PrefixSharing) -> Given | Zipf | Sessions:
    """Choose the model of prefix reuse; the spec demands the fields that each of them needs."""
    reuse = block.reuse
    if reuse is None:
        return Given(_required(block.hit_rate))
    if reuse.prefixes is None:
        return Sessions(_required(reuse.requests), _required(reuse.gap))
    return Zipf(reuse.prefixes, _required(reuse.zipf))


def _required(value: float | None) -> float:
    """Narrow a field that the validation of the spec demands."""
    if value is None:
        raise ValueError(Message.of("evaluate.field_is_missing").text())
    return value


def drafting(block: Drafting | None) -> Speculation | None:
    """Convert the speculation of a workload."""
    return None if block is None else Speculation(block.draft_tokens, block.acceptance, block.draft_share)
