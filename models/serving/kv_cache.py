"""Memory of serving: weights and KV cache per chip, how many sequences fit, moving a cache between chips.

Per-layer shapes of the cache are in models/transformer/architecture.py; when sequences arrive and leave is in continuous_batching.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result
from models.formats import Precision, element_bytes, stored
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ACTIVATION_BYTES, ServingLayouts, held_experts
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture, attention_on_ranks, parameter_counts
from models.transformer.attention import kv_bytes, kv_bytes_per_rank

# The smooth minimum of two limits; the higher, the sharper its corner.
_CORNER = 3.0
_HALVINGS = 40  # halvings of the interval in which the requests that share prefixes fit


@dataclass(frozen=True, slots=True)
class SharedPrefixes:
    """Prefixes of running requests: their tokens, how many of each chance there are, and the memory in which they stay.

    Where chances are not known, no two requests have one prefix, but for the share of them that are said to find theirs in that memory.
    """

    tokens: float
    number: Floats  # prefixes, by group
    chance: Floats  # that a request begins with one of a group
    kept_bytes: float = 0.0  # memory of a chip for prefixes in use or not [byte]
    found: float = 0.0  # share of requests whose prefix is there, where chances are not known [1]

    def in_use(self, requests: ArrayLike, places: ArrayLike) -> Result:
        """Compute the distinct prefixes of a number of requests [1]:  sum of N_i (1 - (1 - p_i)^n), or n - max(h n - C, 0) of which C `places` are kept."""
        if not self.number.size:
            several = np.asarray(requests, float)
            return as_result(several - np.maximum(self.found * several - np.asarray(places, float), 0.0))
        n = np.asarray(requests, float)[..., None]
        missed = np.log1p(-np.minimum(self.chance, 1.0 - 1e-12))
        return as_result(np.minimum((-np.expm1(n * missed)) @ self.number, np.asarray(requests, float)))


def weight_bytes_per_chip(arch: Architecture, layouts: ServingLayouts, weight_precision: Precision) -> Result:
    """Compute the weights on the fullest chip:  ceil(L/pp)/L [sum w_p N_p / tp + w_e N_e / (tp dp)] + w_h N_h (1 or 2) / tp.

    w by part of the network as the checkpoint stores it (`models.formats.stored`), w_h at least 1 byte, N_p with the copies on tensor ranks (`architecture.attention_on_ranks`), routers whole on each. Dense weights are copied on each attention rank; routed experts N_e are not, but for the copies of `decode.held_experts`. With pp > 1 embedding and head sit on
    different stages, so the fullest holds one of them. Shapes: as layouts; result [byte].
    Reference: Pope et al., MLSys 2023, section 3; Rajbhandari et al., DeepSpeed-MoE, ICML 2022, section 5.

    >>> from models.serving import examples
    >>> whole = weight_bytes_per_chip(examples.DENSE, ServingLayouts(1, 1, 1, 1), "bf16")
    >>> halves = weight_bytes_per_chip(examples.DENSE, ServingLayouts(2, 1, 1, 1), "bf16")
    >>> float(whole / halves)
    2.0
    """
    count = parameter_counts(arch)
    pp = np.asarray(layouts.pp)
    stage = np.ceil(arch.layers / pp) / arch.layers
    width = stored(arch.checkpoints, weight_precision)
    experts = count.per_expert * held_experts(arch, layouts) * count.moe_layers / layouts.stage_chips
    tables = np.where((pp > 1) | bool(arch.tied), 1.0, 2.0) * arch.hidden * arch.vocab * width.tables
    attention = attention_on_ranks(arch, layouts.tp) * width.attention
    dense = attention + count.dense_ffn * width.ffn + count.router * layouts.tp * width.router
    return (stage * (dense / layouts.tp + width.experts * experts) + tables / layouts.tp)[()]


def kv_bytes_per_chip(
    arch: Architecture, layouts: ServingLayouts, context_tokens: ArrayLike, kv_precision: Precision
) -> Result:
    """Compute the KV cache and state of one sequence per chip that holds it, spread over the attention ranks:  bytes of a tensor rank / (pp dp).

    A cache lies on min(tp, KV heads) ranks, a latent on every tensor rank (`attention.kv_bytes_per_rank`). Times the sequences of
    the replica this is the cache of a chip. Shapes: layouts and context [token] broadcast; result [byte].
    Reference: Pope et al., MLSys 2023, section 3.3; DeepSeek-V2, arXiv:2405.04434, section 2.1.

    >>> from models.serving import examples
    >>> one = kv_bytes_per_chip(examples.DENSE, ServingLayouts(1, 1, 1, 1), 1000, "bf16")
    >>> float(one / kv_bytes_per_chip(examples.DENSE, ServingLayouts(2, 1, 2, 1), 1000, "bf16"))
    4.0
    """
    stage = np.ceil(arch.layers / np.asarray(layouts.pp)) / arch.layers
    held = kv_bytes_per_rank(arch, context_tokens, element_bytes(kv_precision), layouts.tp)
    return as_result(np.asarray(held, float) * stage / layouts.dp)


def held_context_tokens(lengths: Lengths, constants: ServingConstants) -> Result:
    """Compute the tokens that a running request holds in the KV cache when memory is full:  I + max(u O, (O - 1)(1 + cv^2)/2).

    Blocks are reserved ahead, hence u O. No step reads a token that is not held: long answers stay longest, so that the mean over those that
    run is `Lengths.running_context_tokens`, cv^2 that of the answers. Shapes: as the lengths; result [token].
    Reference: Kwon et al., PagedAttention, SOSP 2023, section 4; Cox, Renewal Theory (1962), chapter 5 (length-biased sampling); u: first fit.

    >>> from models.serving import examples
    >>> even, spread = (float(held_context_tokens(Lengths(1000, 101, output_scv=scv), examples.SERVING)) for scv in (0.0, 4.0))
    >>> even > 1050, spread
    (True, 1250.0)
    """
    reserved = lengths.prompt + constants.output_held * lengths.output
    return as_result(np.maximum(reserved, lengths.running_context_tokens))


def reserve_bytes(arch: Architecture, layouts: ServingLayouts, constants: ServingConstants) -> Result:
    """Compute what an engine sets aside on a chip beside weights and cache:  runtime + max(2 T [3 (f + k f_e) / tp + (3 + k) h], b S V).

    Activations of a step of T tokens (two inputs and the output of the widest feed-forward block, three vectors of the hidden width, k of
    them for experts), or logits of S requests with b bytes each: both are profiled, one after the other. Shapes: as layouts; result [byte].
    Reference: vLLM, gpu_worker.determine_available_memory (peak of a dummy step); the count agrees with logged peaks, see tests.

    >>> from models.serving import examples
    >>> bool(reserve_bytes(examples.DENSE, examples.ONE, examples.SERVING) == examples.SERVING.runtime_bytes)
    True
    """
    if not np.any(constants.step_tokens):
        return constants.runtime_bytes
    inner = np.maximum(arch.ffn, arch.topk * arch.expert_ffn + arch.shared_width)
    each = ACTIVATION_BYTES * (3.0 * inner / np.asarray(layouts.tp) + (3.0 + arch.topk) * arch.hidden)
    logits = constants.logit_bytes * constants.step_requests * arch.vocab
    return as_result(constants.runtime_bytes + np.maximum(constants.step_tokens * each, logits))


def cache_bytes_per_chip(
    arch: Architecture, chip: ChipRates, layouts: ServingLayouts, weight_precision: Precision, constants: ServingConstants
) -> Result:  # fmt: skip
    """Compute the bytes that a chip has for KV caches:  s max(u M - weights - reserve, 0).

    Shapes: as layouts; result [byte]. s: TensorRT-LLM gives 0.9 of the rest, other engines all.
    Reference: Kwon et al., PagedAttention, SOSP 2023, section 4.

    >>> from models.serving import examples
    >>> bool(0 < cache_bytes_per_chip(examples.DENSE, examples.CHIP, examples.ONE, "bf16", examples.SERVING) < examples.CHIP.hbm_bytes)
    True
    """
    usable = constants.usable_memory * chip.hbm_bytes - reserve_bytes(arch, layouts, constants)
    free = np.maximum(usable - weight_bytes_per_chip(arch, layouts, weight_precision), 0.0)
    return as_result(constants.cache_share * free)


def slots(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    *,
    lengths: Lengths,
    precisions: Precisions,
    constants: ServingConstants,
    shared: SharedPrefixes | None = None,
) -> Result:
    """Compute how many requests a replica runs at once, by memory and by the engine's cap:  (n_kv^-3 + n_cap^-3)^(-1/3).

    n_kv = s (u M - weights - reserve) / (cache and state of a request), n_cap = cap x dp; 0 where not one request fits. Prefixes that requests
    share are held once on each attention rank: n own tokens and D(n) prefixes, no less of them than are kept, fill the memory. The kept prefixes give way
    where more requests would run without it. An engine that keeps a
    pool of states takes share a of the memory for it: n_kv = min(a / (states of a request), (1 - a) / cache) of the rest.
    Shapes: layouts and lengths [token] broadcast; result [request].
    Reference: Kwon et al., PagedAttention, SOSP 2023, section 4; smooth minimum and cap: first fit.

    >>> from models.serving import examples
    >>> n = slots(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), lengths=Lengths(1000, 100),
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(0 < n < examples.SERVING.batch_cap)
    True
    """
    free = cache_bytes_per_chip(arch, chip, layouts, precisions.weights, constants)
    context = held_context_tokens(lengths, constants)
    held = kv_bytes_per_chip(arch, layouts, context, precisions.kv_cache)
    room, own = free, held
    most: Result = np.inf
    if np.any(arch.state_blocks) and np.any(constants.state_share):
        state = kv_bytes_per_chip(arch, layouts, 0.0, precisions.kv_cache)  # without a token only the state is left
        pooled = np.asarray(constants.state_share) > 0.0
        most = np.where(pooled, constants.state_share * free / (constants.state_slots * state), np.inf)
        room, own = (1.0 - constants.state_share) * free, np.where(pooled, np.maximum(held - state, 1.0), held)
    by_memory = room / own
    if shared is not None:
        prefix = _prefix_bytes(arch, layouts, shared, precisions)
        by_memory = _sharing(room, constants.cache_share * shared.kept_bytes, own - prefix, prefix, shared, layouts.dp)
    by_memory = np.minimum(by_memory, most)
    cap = constants.batch_cap * np.asarray(layouts.dp, float)
    smooth = by_memory / (1.0 + (by_memory / cap) ** _CORNER) ** (1.0 / _CORNER)
    # A replica that cannot hold one request per attention rank does not run at all.
    return as_result(np.where(by_memory >= layouts.dp, smooth, 0.0))


def _prefix_bytes(
    arch: Architecture, layouts: ServingLayouts, shared: SharedPrefixes, precisions: Precisions
) -> Result:
    """Compute the cache of a prefix per chip, without the state that each request has of its own [byte]."""
    whole, state = (kv_bytes_per_chip(arch, layouts, n, precisions.kv_cache) for n in (shared.tokens, 0.0))
    return whole - state


def _sharing(
    room: Result, kept: Result, own: Result, prefix: Result, shared: SharedPrefixes, ranks: ArrayLike
) -> Result:
    """Find the most requests whose own caches fit beside the kept prefixes, and beside the prefixes that they use, by bisection [1].

    No fewer than hold a prefix each, in all of the memory: an engine drops what no request uses before a request waits.
    """
    beside, every = np.asarray(np.maximum(room - kept, 0.0) / own, float), np.asarray(room / own, float)
    dp, relative = np.asarray(ranks, float), np.asarray(prefix / own, float)
    places = kept / (prefix * dp)  # prefixes on a rank
    low, high = np.zeros(every.shape), every
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        fits = middle + np.asarray(shared.in_use(middle / dp, places), float) * dp * relative <= every
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return as_result(np.maximum(np.minimum(beside, low), every / (1.0 + relative)))


def memory_bytes_per_chip(
    arch: Architecture,
    layouts: ServingLayouts,
    sequences: ArrayLike,
    *,
    lengths: Lengths,
    precisions: Precisions,
    constants: ServingConstants,
    shared: SharedPrefixes | None = None,
) -> Result:
    """Compute the memory in use on the fullest chip:  weights + sequences x cache + reserve; shared prefixes once, and no less than is kept of them.

    Shapes: layouts, sequences [request of the replica] and lengths [token] broadcast; result [byte].
    Reference: Kwon et al., PagedAttention, SOSP 2023, section 4.

    >>> from models.serving import examples
    >>> use = lambda n: memory_bytes_per_chip(examples.DENSE, ServingLayouts(1, 1, 1, 1), n, lengths=Lengths(1000, 100),
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(use(2) > use(1) > use(0) > examples.SERVING.runtime_bytes)
    True
    """
    context = held_context_tokens(lengths, constants)
    each = kv_bytes_per_chip(arch, layouts, context, precisions.kv_cache)
    cache: Result = np.asarray(sequences, float) * each
    if shared is not None:
        prefix = _prefix_bytes(arch, layouts, shared, precisions)
        places = shared.kept_bytes / (prefix * layouts.dp)
        once = shared.in_use(np.asarray(sequences, float) / layouts.dp, places) * layouts.dp * prefix
        cache = np.asarray(sequences, float) * (each - prefix) + np.maximum(once, shared.kept_bytes)
    return weight_bytes_per_chip(arch, layouts, precisions.weights) + cache + reserve_bytes(arch, layouts, constants)


def transfer_s(
    arch: Architecture,
    tokens: ArrayLike,
    kv_precision: Precision,
    bytes_per_s: ArrayLike,
    links: ArrayLike,
    start_s: ArrayLike,
) -> Result:
    """Predict the transfer of a prompt's KV cache from prefill to decode chips:  start + bytes / (links x rate).

    Shapes: broadcast. Units: tokens [token], rate of a link [byte/s], links used at once [1], start [s], result [s].
    No overlap with prefill is assumed. Reference: Zhong et al., DistServe, OSDI 2024, section 3; Qin et al., Mooncake, FAST 2025.

    >>> from models.serving import examples
    >>> float(transfer_s(examples.DENSE, 0, "bf16", 50e9, 8, 0.001))
    0.001
    """
    moved = np.asarray(kv_bytes(arch, tokens, element_bytes(kv_precision)), float)
    rate = np.asarray(bytes_per_s, float) * links
    with np.errstate(divide="ignore", invalid="ignore"):
        return as_result(np.asarray(start_s, float) + np.where(moved > 0, moved / rate, 0.0))
