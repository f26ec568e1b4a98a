"""Prefix cache (KV caches kept for later requests): hit rates by tier, and whether loading beats recomputing.

Caches drop the least recently used. What the rest of a prompt costs is in prefill.py, queues are in models/queueing/queues.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result, sum_of
from models.formats import Precision, element_bytes
from models.queueing.caches import session_hit_rate, zipf_groups, zipf_hit_rate
from models.queueing.placement import fullest_worker
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import SharedPrefixes, kv_bytes_per_chip, memory_bytes_per_chip, slots
from models.serving.prefill import DecodeBatch, PrefillTime, Prompts, prefill_time
from models.serving.speculation import Speculation, draft_bytes_per_chip
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture
from models.transformer.attention import kv_bytes


@dataclass(frozen=True, slots=True)
class Tier:
    """A place for caches, as one chip's share of it. Hits in the chips' own memory need no loading: an infinite bandwidth."""

    bytes_per_chip: float  # [byte]
    bytes_per_s: float  # at which a chip reads from it [byte/s]
    latency_s: float  # until the first byte [s]
    in_hbm: bool = False  # taken from the memory of the running batch


@dataclass(frozen=True, slots=True)
class Given:
    """A measured share of requests that find their prefix, all in the first tier."""

    hit_rate: float


@dataclass(frozen=True, slots=True)
class Zipf:
    """Requests draw one of a number of prefixes, the k-th most popular in proportion to k^-exponent."""

    prefixes: float
    exponent: float


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of a number of requests on average, each of which finds what the one before it left, `gap_s` earlier on average."""

    requests: float
    gap_s: float


@dataclass(frozen=True, slots=True)
class Routed:
    """How requests are divided over a number of workers, each with tiers of its own: by their prefix, or at random."""

    workers: int
    by_prefix: bool


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """What requests have in common and where it is kept; `domain_chips` share the tiers.

    Without `routed`, prefixes belong to one domain, which finds them all; with it, to all its workers, one of which is a domain.
    """

    prefix_tokens: float
    reuse: Given | Zipf | Sessions
    tiers: tuple[Tier, ...]  # fastest first; what one drops falls to the next
    domain_chips: int
    routed: Routed | None = None

    def __post_init__(self) -> None:
        reuse = self.reuse
        wrong = [words for words, fine in (
            ("prefix_tokens must be at least 1", self.prefix_tokens >= 1),
            ("domain_chips must be at least 1", self.domain_chips >= 1),
            ("at least one tier is needed", len(self.tiers) >= 1),
            ("hit_rate must lie between 0 and 1", not isinstance(reuse, Given) or 0.0 <= reuse.hit_rate <= 1.0),
            ("prefixes must be at least 1 and exponent not negative", not isinstance(reuse, Zipf) or (reuse.prefixes >= 1 and reuse.exponent >= 0)),
            ("workers must be at least 1", self.routed is None or self.routed.workers >= 1),
            ("requests must be at least 1 and gap_s positive", not isinstance(reuse, Sessions) or (reuse.requests >= 1 and reuse.gap_s > 0)),
        ) if not fine]  # fmt: skip
        if wrong:
            raise ValueError(f"prefix cache: {'; '.join(wrong)}")

    @property
    def most_hits(self) -> float:
        """Hit rate of tiers without bounds [1]."""
        if isinstance(self.reuse, Given):
            return self.reuse.hit_rate
        return 1.0 if isinstance(self.reuse, Zipf) else 1.0 - 1.0 / self.session_requests

    @property
    def session_requests(self) -> float:
        """Requests of a session, counted anew wherever the one before went to another worker [1]:  1 / (1 - r/W) at random over W workers."""
        assert isinstance(self.reuse, Sessions)
        if self.routed is None or self.routed.by_prefix:
            return self.reuse.requests
        return 1.0 / (1.0 - (1.0 - 1.0 / self.reuse.requests) / self.routed.workers)

    @property
    def imbalance(self) -> float:
        """Load of the fullest worker over the mean [1]: that of popular prefixes; sessions begin where there is least to do."""
        if self.routed is None or not self.routed.by_prefix or not isinstance(self.reuse, Zipf):
            return 1.0
        return fullest_worker(*zipf_groups(self.reuse.prefixes, self.reuse.exponent), self.routed.workers)

    @property
    def hbm_bytes_per_chip(self) -> float:
        """Memory of a chip that the running batch does without [byte]."""
        return sum_of(tier.bytes_per_chip for tier in self.tiers if tier.in_hbm)


@dataclass(frozen=True, slots=True)
class CachedPrefill:
    """Prefill of a prompt whose prefix is found with some chance. Per tier, arrays of the shape of layouts x batch."""

    mean: PrefillTime  # over hits and misses; its latency counts the loading
    occupancy_moment: Result  # mean square of the occupancy over its squared mean [1]
    latency_moment: Result  # the same of the latency
    computed_share: Result  # prompt tokens that are computed, of all
    hits: tuple[Result, ...]  # share of requests that find their prefix in the tier
    loaded: tuple[
        Result, ...
    ]  # share of those hits that is loaded, the rest is computed again: 0, 1, or what the bandwidth carries
    load_s: tuple[Result, ...]  # with the wait for other loads
    recompute_s: Result  # computing the prefix again

    def occupancy_scv(self, input_scv: ArrayLike) -> Result:
        """Compute the squared coefficient of variation of the occupancy, from that of the prompt's length [1]."""
        return (1.0 + np.asarray(input_scv, float)) * self.occupancy_moment - 1.0

    def latency_scv(self, input_scv: ArrayLike) -> Result:
        """Compute the squared coefficient of variation of the latency, from that of the prompt's length [1]."""
        return (1.0 + np.asarray(input_scv, float)) * self.latency_moment - 1.0


def tier_hits(cache: PrefixCache, places: tuple[ArrayLike, ...], requests_per_s: ArrayLike) -> tuple[Result, ...]:
    """Predict the share of requests that find their prefix in each tier:  H(C_1 + ... + C_j) - H(C_1 + ... + C_{j-1}).

    What a tier drops falls to the next, and a hit lifts it to the first, so that all tiers are one stack in the order of last use.
    W workers routed by prefix hold as many prefixes as one with W times the room, on average over their requests; at random each of
    them needs all prefixes, and finds a session's only if the request before came to it too, with chance 1/W.
    Shapes: places [1] of each tier and rate [1/s], both of the chips that share the tiers, broadcast; result [1].
    Reference: Mattson et al., IBM Systems Journal 9 (1970) (stack algorithms); Che, Tung and Wang, IEEE JSAC 20 (2002).

    >>> cache = PrefixCache(1000, Zipf(1000, 1.0), (Tier(1e9, np.inf, 0.0, True), Tier(1e12, 5e10, 1e-5)), 8)
    >>> near, far = tier_hits(cache, (100.0, 900.0), 1.0)
    >>> round(float(near + far), 9)
    1.0
    """
    reuse = cache.reuse
    if isinstance(reuse, Given):
        return (np.zeros(np.shape(places[0])) + reuse.hit_rate, *(np.zeros(np.shape(room)) for room in places[1:]))
    below: Result = 0.0
    held: Result = 0.0
    workers = cache.routed.workers if cache.routed is not None and cache.routed.by_prefix else 1
    hits = []
    for room in places:
        held = held + np.asarray(room, float)
        if isinstance(reuse, Zipf):
            found = zipf_hit_rate(held * workers, reuse.prefixes, reuse.exponent)
        else:
            found = session_hit_rate(held, requests_per_s, cache.session_requests, reuse.gap_s)
        hits.append(np.maximum(found - below, 0.0))
        below = found
    return tuple(hits)


def tier_places(
    arch: Architecture, layouts: ServingLayouts, cache: PrefixCache, kv_precision: Precision
) -> tuple[Result, ...]:
    """Count the prefixes that the tiers of `domain_chips` chips hold:  capacity / cache of a prefix.

    In the chips' memory tensor ranks beyond the KV heads hold copies, and latent attention a copy on each; elsewhere there is one.
    Shapes: as layouts; result [1]. Reference: Kwon et al., PagedAttention, SOSP 2023, section 4.4 (shared prefixes);
    Qin et al., Mooncake, FAST 2025, section 4 (pool of host memory).

    >>> from models.serving import examples
    >>> cache = PrefixCache(1000, Zipf(1000, 1.0), (Tier(1e9, np.inf, 0.0, True), Tier(1e9, 5e10, 1e-5)), 8)
    >>> inside, outside = tier_places(examples.DENSE, ServingLayouts(16, 1, 1, 1), cache, "bf16")
    >>> round(float(outside / inside), 6)
    2.0
    """
    once = kv_bytes(arch, cache.prefix_tokens, element_bytes(kv_precision))
    copied = np.asarray(kv_bytes_per_chip(arch, layouts, cache.prefix_tokens, kv_precision)) * layouts.chips
    return tuple(
        cache.domain_chips * tier.bytes_per_chip / (copied if tier.in_hbm else once + 0.0 * copied)
        for tier in cache.tiers
    )


def loaded_share(alone_s: ArrayLike, latency_s: ArrayLike, recompute_s: ArrayLike, hits_per_s: ArrayLike) -> Result:
    """Compute the share of hits in a tier that are best loaded, the others recomputed:  min(1, u / (hits a)),  u = 1 - sqrt(a / (R - l)).

    Loads share the bandwidth of the tier, one taking l + a / (1 - u) when they keep it busy for u of the time; that u makes the
    sum of the time saved over computing, u (R - l - a / (1 - u)), largest. 0 where even a load by itself takes longer than R.
    Shapes: broadcast. Units: load by itself a, latency l and recomputing R [s], hits [1/s]; result [1].
    Reference: Kleinrock, Queueing Systems 2 (1976), section 4.4 (processor sharing; any distribution of sizes).

    >>> float(loaded_share(0.01, 0.0, 1.0, 1.0)), float(loaded_share(0.01, 0.0, 1.0, 900.0)), float(loaded_share(2.0, 0.0, 1.0, 1.0))
    (1.0, 0.1, 0.0)
    """
    alone, saved, hits = (
        np.asarray(alone_s, float),
        np.asarray(recompute_s, float) - latency_s,
        np.asarray(hits_per_s, float),
    )
    pays = saved > alone
    busy = 1.0 - np.sqrt(np.divide(alone, saved, out=np.ones(np.broadcast(alone, saved).shape), where=pays))
    asked = hits * alone
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return as_result(np.where(pays, np.where(asked > busy, busy / asked, 1.0), 0.0))


def load_s(alone_s: ArrayLike, latency_s: ArrayLike, loads_per_s: ArrayLike) -> Result:
    """Predict a load from a tier whose bandwidth concurrent loads share:  l + a / (1 - u),  u = loads a.

    Infinite where more is asked for than the tier can give. Shapes: broadcast. Units: load by itself a [s], latency l [s],
    loads [1/s]; result [s].
    Reference: Kleinrock, Queueing Systems 2 (1976), section 4.4 (processor sharing; any distribution of sizes).

    >>> float(load_s(0.1, 0.0, 5.0)), float(load_s(0.1, 0.0, 10.0)), float(load_s(0.0, 0.0, 10.0))
    (0.2, inf, 0.0)
    """
    alone = np.asarray(alone_s, float)
    spare = 1.0 - np.asarray(loads_per_s, float) * alone
    return as_result(
        np.asarray(latency_s, float) + np.where(spare > 0, alone / np.where(spare > 0, spare, 1.0), np.inf)
    )


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def cached_prefill(
    arch: Architecture,
    layouts: ServingLayouts,
    cache: PrefixCache,
    whole: PrefillTime,
    rest: PrefillTime,
    *,
    prompt_tokens: ArrayLike,
    most_requests_per_s: ArrayLike,
    kv_precision: Precision,
) -> CachedPrefill:
    """Predict prefill where a request finds its prefix in tier j with chance h_j, and loads it if that is faster than recomputing it.

    S = S_whole + sum_j h_j d_j (S_rest - S_whole), d_j = `loaded_share` with R = L_whole - L_rest; the second moment likewise over
    the same outcomes; latency of a loaded prefix = load_j + L_rest. Loading keeps the engine free. Hit rates of sessions and the wait
    for other loads are those at `most_requests_per_s` [1/s of a replica], which will not be exceeded, so that both err on the slow side.
    Shapes: layouts and times broadcast; tokens [token]; result [s] and [1].
    Reference: Qin et al., Mooncake, FAST 2025, section 5 (load or recompute); Jin et al., Compute or Load KV Cache? Why Not Both?,
    ICML 2025 (the decision).

    >>> from models.serving import examples
    >>> run = dict(precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> one = ServingLayouts(1, 1, 1, 1)
    >>> times = [prefill_time(examples.DENSE, examples.CHIP, one, Prompts(8000), None, cached_tokens=c, **run) for c in (0, 7000)]
    >>> found = [cached_prefill(examples.DENSE, one, PrefixCache(7000, Given(0.5), (Tier(1e12, rate, 1e-5),), 8), *times,
    ...     prompt_tokens=8000, most_requests_per_s=0.1, kv_precision="bf16") for rate in (5e10, 5e8)]
    >>> [float(f.loaded[0]) for f in found], bool(found[0].mean.occupancy_s < found[1].mean.occupancy_s == times[0].occupancy_s)
    ([1.0, 0.0], True)
    """
    share = cache.domain_chips / np.asarray(layouts.chips, float)
    hits = tier_hits(
        cache, tier_places(arch, layouts, cache, kv_precision), np.asarray(most_requests_per_s, float) * share
    )
    moved = kv_bytes(arch, cache.prefix_tokens, element_bytes(kv_precision))
    recompute = whole.latency_s - rest.latency_s
    alone = tuple(moved / (tier.bytes_per_s * np.asarray(layouts.chips, float)) for tier in cache.tiers)
    asked = tuple(np.asarray(most_requests_per_s, float) * hit for hit in hits)
    chosen = tuple(
        loaded_share(a, tier.latency_s, recompute, rate)
        for a, tier, rate in zip(alone, cache.tiers, asked, strict=True)
    )
    loads = tuple(
        load_s(a, tier.latency_s, rate * part)
        for a, tier, rate, part in zip(alone, cache.tiers, asked, chosen, strict=True)
    )
    taken = sum_of(hit * loaded for hit, loaded in zip(hits, chosen, strict=True))
    left = 1.0 - taken

    def mean(of_whole: Result, of_rest: Result) -> Result:
        return left * of_whole + taken * of_rest

    occupancy, square = mean(whole.occupancy_s, rest.occupancy_s), mean(whole.occupancy_s**2, rest.occupancy_s**2)
    ways = [(hit * loaded, load + rest.latency_s) for hit, loaded, load in zip(hits, chosen, loads, strict=True)]
    latency = left * whole.latency_s + sum_of(chance * time for chance, time in ways)
    latency_square = left * whole.latency_s**2 + sum_of(chance * time**2 for chance, time in ways)
    prompt = np.asarray(prompt_tokens, float)
    return CachedPrefill(
        mean=whole.mixed(rest, taken, latency),
        occupancy_moment=square / occupancy**2,
        latency_moment=latency_square / latency**2,
        computed_share=mean(prompt, np.maximum(prompt - cache.prefix_tokens, 1.0)) / prompt,
        hits=hits,
        loaded=chosen,
        load_s=loads,
        recompute_s=recompute,
    )


def prompt_cost(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    cache: PrefixCache | None,
    most_requests_per_s: Callable[[Result], Result],
    prompts: Prompts,
    decode: DecodeBatch | None,
    *,
    precisions: Precisions,
    constants: ServingConstants,
) -> tuple[PrefillTime, CachedPrefill | None]:
    """Predict (mean prefill of a prompt, its outcomes per tier) with a prefix cache, or for None the plain prefill and None.

    `most_requests_per_s` gives the rate of a replica [1/s] whose prompts occupy it for so long [s]; it is called with the occupancy
    at which every prefix that may be found is loaded. `prompts` and `decode` as in `prefill.prefill_time`.
    Shapes: layouts and prompts [token] broadcast; result [s]. Reference: as `cached_prefill`.

    >>> from models.serving import examples
    >>> plain = prompt_cost(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), None, lambda s: 1.0, Prompts(8000), None,
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(plain[0].occupancy_s > 0), plain[1] is None
    (True, True)
    """

    def prefill(cached_tokens: float) -> PrefillTime:
        return prefill_time(
            arch,
            chip,
            layouts,
            prompts,
            decode,
            precisions=precisions,
            constants=constants,
            cached_tokens=cached_tokens,
        )

    whole = prefill(0.0)
    if cache is None:
        return whole, None
    rest = prefill(cache.prefix_tokens)
    least = whole.occupancy_s + cache.most_hits * (rest.occupancy_s - whole.occupancy_s)
    found = cached_prefill(
        arch,
        layouts,
        cache,
        whole,
        rest,
        prompt_tokens=prompts.tokens,
        most_requests_per_s=most_requests_per_s(least),
        kv_precision=precisions.kv_cache,
    )
    return found.mean, found


def without(chip: ChipRates, held_bytes: ArrayLike, constants: ServingConstants) -> ChipRates:
    """Take `held_bytes` [byte] of the memory that an engine fills from a chip.

    Shapes: as held_bytes; memory M - held / u, with u the share that is filled. Reference: Kwon et al., PagedAttention, SOSP 2023,
    section 4 (the pool of blocks that requests and cached prefixes share).

    >>> from models.serving import examples
    >>> bool(without(examples.CHIP, 1e9, examples.SERVING).hbm_bytes < examples.CHIP.hbm_bytes - 1e9)
    True
    """
    # One byte is left, so that rates stay rates; nothing fits in it.
    return replace(
        chip, hbm_bytes=np.maximum(chip.hbm_bytes - np.asarray(held_bytes, float) / constants.usable_memory, 1.0)[()]
    )


def held_bytes(
    arch: Architecture, layouts: ServingLayouts, weight_precision: Precision, speculation: Speculation | None
) -> Result | None:
    """Sum the memory of a chip that neither weights, caches nor running requests use [byte]: a prediction layer; None without.

    Shapes: as layouts. Reference: as `without`.

    >>> from models.serving import examples
    >>> held_bytes(examples.DENSE, ServingLayouts(1, 1, 1, 1), "bf16", None) is None
    True
    """
    return None if speculation is None else draft_bytes_per_chip(arch, layouts, weight_precision, speculation)


def shared_prefixes(cache: PrefixCache | None) -> SharedPrefixes | None:
    """Describe the prefixes of running requests of one worker and the memory of a chip in which they stay; None where neither is known.

    A session has one request at a time, whose prefix is its own; a prefix that is found in memory is held there and nowhere else. With a stated hit
    rate, that share of requests find theirs among those for which there is room. Routed by prefix, a worker meets fewer of them, which is left out.
    Shapes: none. Units: prefix [token], memory of a chip for them [byte].
    Reference: Kwon et al., PagedAttention, SOSP 2023, section 4.4 (shared prefixes).

    >>> found = shared_prefixes(PrefixCache(8000, Zipf(20, 1.0), (Tier(1e9, np.inf, 0.0, True),), 8))
    >>> round(float(found.in_use(1e6, 7.0)), 6), round(float(found.in_use(1.0, 7.0)), 6)
    (20.0, 1.0)
    """
    if cache is None:
        return None
    kept = cache.hbm_bytes_per_chip
    if isinstance(cache.reuse, Zipf):
        return SharedPrefixes(cache.prefix_tokens, *zipf_groups(cache.reuse.prefixes, cache.reuse.exponent), kept)
    if not kept:
        return None
    found = cache.reuse.hit_rate if isinstance(cache.reuse, Given) and cache.tiers[0].in_hbm else 0.0
    return SharedPrefixes(cache.prefix_tokens, np.empty(0), np.empty(0), kept, found)


def pool_memory(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    batch: ArrayLike,
    held: Result | None,
    *,
    lengths: Lengths,
    precisions: Precisions,
    constants: ServingConstants,
    shared: SharedPrefixes | None = None,
) -> tuple[Result, Result]:
    """Predict (requests that a worker runs at once, memory in use on its fullest chip), beside what `held_bytes` finds and with `shared` prefixes.

    Memory for prefixes that no running request uses gives way, as far as the memory that an engine fills is full.

    Shapes: layouts, batch [request of the worker], held [byte] and lengths [token] broadcast; results [request] and [byte].
    Reference: as `kv_cache.slots` and `kv_cache.memory_bytes_per_chip`.

    >>> from models.serving import examples
    >>> alone, beside = (pool_memory(examples.DENSE, examples.CHIP, examples.ONE, 8, held, lengths=Lengths(1000, 100),
    ...     precisions=examples.BF16, constants=examples.SERVING) for held in (None, 1e9))
    >>> bool(beside[0] < alone[0]), round(float(beside[1] - alone[1]))
    (True, 1000000000)
    """
    left = chip if held is None else without(chip, held, constants)
    kinds: dict[str, Any] = {"lengths": lengths, "precisions": precisions, "constants": constants, "shared": shared}
    places, used = slots(arch, left, layouts, **kinds), memory_bytes_per_chip(arch, layouts, batch, **kinds)
    if shared is not None and shared.kept_bytes:  # which gives way to requests
        kinds["shared"] = replace(shared, kept_bytes=0.0, found=0.0)
        least = memory_bytes_per_chip(arch, layouts, batch, **kinds)
        used = np.minimum(used, np.maximum(least, constants.usable_memory * left.hbm_bytes))
    return places, used + (0.0 if held is None else held)
