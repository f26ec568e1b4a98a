"""Attention, KV cache and state of a network by kinds of layers: what a query reads, what a sequence holds, and the FLOPs of both.

Every function is a sum over `attention_kinds`, plus the state of layers that keep one. How fast a chip computes them is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result, sum_of
from models.transformer.architecture import Architecture, parameter_counts, window_shape

INDEX_BYTES = 132.0 / 128.0  # bytes of an element of an index key: 8 bit, and a scale of 4 bytes for 128 of them
STATE_BYTES = 4.0  # bytes of an element of state: engines keep states at 32 bit
STATE_FLOPS = 6.0  # per element of state and token: decay, update and read-out, a product and a sum each


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """Layers whose queries attend in one way. Sizes are per layer; counts [1]."""

    layers: Result
    heads: Result
    kv_heads: Result
    qk_dim: Result
    v_dim: Result
    entry: Result  # elements of a cached entry
    reach: Result  # entries that a query attends to, at most; may be infinite
    held: Result  # tokens whose entries stay in the cache, at most; may be infinite
    ratio: Result = 1.0  # tokens that one entry stands for
    index: Result = 0.0  # elements of the index key of an entry
    index_heads: Result = 0.0

    def attended(self, context: Floats) -> Floats:
        """Count the entries that a query at the end of a context attends to."""
        return np.minimum(context / self.ratio, self.reach)

    def kept(self, context: Floats) -> Floats:
        """Count the entries that a sequence with this context holds."""
        return np.minimum(context, self.held) / self.ratio

    def pairs(self, tokens: Floats) -> Floats:
        """Count the pairs of a whole causal sequence: the sum of `attended` over its queries, as an integral."""
        within = np.minimum(tokens, self.reach * self.ratio)
        return within * (tokens - 0.5 * within) / self.ratio

    def scored(self, tokens: Floats) -> Floats:
        """Count the pairs that an indexer scores in a whole causal sequence: all of them."""
        return 0.5 * tokens * tokens / self.ratio


def attention_kinds(arch: Architecture) -> tuple[AttentionKind, ...]:
    """List the kinds of softmax attention that occur in an architecture, each with its shape, reach and cache.

    Entries: 2 a_kv d elements; r_kv + d_rope with a latent; d where layers cache compressed entries. A sparse layer holds index keys
    of all entries, or uses the choice of a layer before it and holds none. Layers with compressed entries also attend to a window, which is a kind of its own here.
    Shapes: a scalar architecture, or arrays in its fields. Units: [1].
    Reference: Shazeer, arXiv:1911.02150; DeepSeek-V2, arXiv:2405.04434, table 1; Beltagy et al., Longformer, arXiv:2004.05150,
    section 3.1; DeepSeek-V3.2, arXiv:2512.02556, section 2.1; DeepSeek-V4 technical report (2026), section 2.

    >>> arch = Architecture(2, 64, 4, 2, 16, 256, 1000, window_tokens=8, window_layers=1)
    >>> [(kind.layers, kind.entry, float(kind.reach)) for kind in attention_kinds(arch)]
    [(1, 64.0, inf), (1, 64.0, 8.0)]
    """
    try:
        return _kinds_of_one(arch)
    except TypeError:  # arrays in its fields
        return tuple(_kinds(arch))


def _kinds(arch: Architecture) -> Iterator[AttentionKind]:
    """Yield the kinds that occur, as `attention_kinds` states them."""
    shape = arch.heads, arch.kv_heads, arch.qk_dim, arch.v_dim
    if arch.mla:
        entry = 1.0 * (arch.kv_lora_rank + arch.qk_rope_dim)
    elif arch.compressed:
        entry = 1.0 * arch.head_dim
    else:
        entry = 1.0 * arch.kv_heads * (arch.qk_dim + arch.v_dim)
    most = as_result(np.where(np.asarray(arch.sparse_topk) > 0, arch.sparse_topk, np.inf))
    index = arch.index_dim, arch.index_heads
    indexed = arch.full_layers
    if arch.partly_sparse:
        indexed = arch.indexed_layers
        for layers, reach in (
            (arch.full_layers - arch.chosen_layers, np.inf),
            (arch.chosen_layers - indexed, most),
        ):
            if np.any(layers):
                yield AttentionKind(layers, *shape, entry, reach, np.inf)
    if np.any(indexed):
        yield AttentionKind(indexed, *shape, entry, most, np.inf, 1.0, *index)
    if np.any(arch.csa_layers):
        yield AttentionKind(arch.csa_layers, *shape, entry, most, np.inf, arch.csa_ratio, *index)
    if np.any(arch.hca_layers):
        yield AttentionKind(arch.hca_layers, *shape, entry, np.inf, np.inf, arch.hca_ratio)
    if np.any(arch.windowed_layers):
        own = window_shape(arch)
        cached = entry if arch.mla or arch.compressed else 1.0 * own[1] * (own[2] + own[3])
        yield AttentionKind(arch.windowed_layers, *own, cached, arch.window_tokens, arch.window_tokens)


@lru_cache(maxsize=256)
def _kinds_of_one(arch: Architecture) -> tuple[AttentionKind, ...]:
    """List the kinds of one network, which every step of a search asks for."""
    return tuple(_kinds(arch))


def is_latent(arch: Architecture) -> bool:
    """Tell whether all query heads share one cached vector, which each tensor rank copies and which attention reads absorbed.

    Shapes: a scalar. Units: [1]. Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1; DeepSeek-V4 technical report (2026), section 2.

    >>> is_latent(Architecture(32, 4096, 32, 8, 128, 14336, 128256))
    False
    """
    return arch.mla or arch.compressed


def state_elements(arch: Architecture) -> Result:
    """Count the elements of state that a sequence holds, whatever its length:  L_state (w n + c).

    Inner width w, n elements of state for each (`state_dim`), c of the convolution. Shapes: a scalar, or as its fields. Units: [1].
    Reference: Dao and Gu, Mamba-2, arXiv:2405.21060, section 7; Yang et al., Gated Delta Networks, arXiv:2412.06464, equation 10.

    >>> arch = Architecture(64, 5120, 24, 4, 256, 17408, 248320, linear_layers=48, state_width=6144, state_inputs=4192, state_dim=128,
    ...     state_conv=30720)
    >>> round(float(state_elements(arch)) * STATE_BYTES / 1e6, 1)
    156.9
    """
    return as_result(arch.state_blocks * (1.0 * arch.state_width * arch.state_dim + arch.state_conv))


def state_bytes(arch: Architecture) -> Result:
    """Compute the state of one sequence:  4 bytes an element.

    Shapes: as `state_elements`. Units: [byte]. Reference: Dao and Gu, Mamba-2, arXiv:2405.21060, section 7 (32-bit states).

    >>> float(state_bytes(Architecture(32, 4096, 32, 8, 128, 14336, 128256)))
    0.0
    """
    return as_result(STATE_BYTES * np.asarray(state_elements(arch), float))


def kv_bytes_per_token(arch: Architecture, bytes_per_element: ArrayLike) -> Result:
    """Compute the growth of the KV cache with one more token of a long context: the layers that hold all of it.

    Sum of L (e b + i) / r over the kinds, with e elements and i bytes of index key per entry, and r tokens an entry. Windows are full by
    then and states constant. Shapes: as bytes_per_element. Units: bytes per element [byte], result [byte].
    Reference: Pope et al., arXiv:2211.05102, section 2; DeepSeek-V2, arXiv:2405.04434, table 1.

    >>> float(kv_bytes_per_token(Architecture(32, 4096, 32, 8, 128, 14336, 128256), 2))
    131072.0
    """
    width = np.asarray(bytes_per_element, float)
    growing = [kind for kind in attention_kinds(arch) if np.all(np.isinf(kind.held))]
    return as_result(
        sum_of((k.layers * (k.entry * width + k.index * INDEX_BYTES) / k.ratio for k in growing), 0.0 * width)
    )


def kv_bytes(arch: Architecture, context_tokens: ArrayLike, bytes_per_element: ArrayLike) -> Result:
    """Compute the memory of one sequence:  sum of L min(c, held) / r (e b + i) over the kinds, plus its state.

    Shapes: broadcast. Units: context [token], bytes per element [byte], result [byte].
    Reference: Pope et al., arXiv:2211.05102, section 2; Beltagy et al., arXiv:2004.05150, section 3.1.

    >>> float(kv_bytes(Architecture(32, 4096, 32, 8, 128, 14336, 128256), 8192, 2)) / 2**30
    1.0
    """
    return kv_bytes_per_rank(arch, context_tokens, bytes_per_element, 1)


def kv_bytes_per_rank(
    arch: Architecture, context_tokens: ArrayLike, bytes_per_element: ArrayLike, tp: ArrayLike
) -> Result:
    """Compute the memory of one sequence on each tensor rank:  caches / min(tp, KV heads), a latent and index keys whole, state / tp.

    Shapes: broadcast. Units: context [token], bytes per element [byte], tp [1], result [byte].
    Reference: Pope et al., MLSys 2023, section 3.3; DeepSeek-V2, arXiv:2405.04434, section 2.1 (a latent is copied).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> float(kv_bytes_per_rank(arch, 8192, 2, 16)) == float(kv_bytes(arch, 8192, 2)) / 8
    True
    """
    context, width = np.asarray(context_tokens, float), np.asarray(bytes_per_element, float)
    held = np.asarray(state_bytes(arch), float) / np.asarray(tp, float) + 0.0 * (context * width)
    for kind in attention_kinds(arch):
        entries = kind.layers * kind.kept(context)
        held = held + entries * (kind.entry * width / _ranks(arch, kind, tp) + kind.index * INDEX_BYTES)
    return as_result(held)


def read_bytes_per_rank(
    arch: Architecture, context_tokens: ArrayLike, bytes_per_element: ArrayLike, tp: ArrayLike
) -> Result:
    """Compute what one decoding query reads and writes on each tensor rank: the entries that it attends to, all index keys, its state twice.

    Shapes: broadcast. Units: context [token], bytes per element [byte], tp [1], result [byte].
    Reference: Pope et al., MLSys 2023, section 3.3; DeepSeek-V3.2, arXiv:2512.02556, section 2.1; Dao and Gu, Mamba-2,
    arXiv:2405.21060, section 7 (a step reads and writes the state).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> float(read_bytes_per_rank(arch, 8192, 2, 1)) == float(kv_bytes(arch, 8192, 2))
    True
    """
    context, width = np.asarray(context_tokens, float), np.asarray(bytes_per_element, float)
    moved = 2.0 * np.asarray(state_bytes(arch), float) / np.asarray(tp, float) + 0.0 * (context * width)
    for kind in attention_kinds(arch):
        attended = kind.layers * kind.attended(context) * kind.entry * width / _ranks(arch, kind, tp)
        moved = moved + attended + kind.layers * kind.kept(context) * kind.index * INDEX_BYTES
    return as_result(moved)


def query_flops(arch: Architecture, context_tokens: ArrayLike) -> Result:
    """Count the FLOPs of one decoding query over its context: scores and weighted values, the indexer, and the update of states.

    2 a (d_qk + d_v) per attended entry, 2 a (2 r_kv + d_rope) with an absorbed latent, 4 a d with compressed entries; 2 n_i d_i per entry
    that an indexer scores; 6 per element of state. Shapes: as context. Units: [token], result [FLOP].
    Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1 (absorbed latent); DeepSeek-V3.2, arXiv:2512.02556, section 2.1.

    >>> float(query_flops(Architecture(1, 64, 4, 4, 16, 256, 1000), 100)) == 2 * 4 * (16 + 16) * 100
    True
    """
    context = np.asarray(context_tokens, float)
    flops = STATE_FLOPS * np.asarray(state_elements(arch), float) + 0.0 * context
    for kind in attention_kinds(arch):
        per_pair = 2.0 * arch.kv_lora_rank + arch.qk_rope_dim if arch.mla else kind.qk_dim + kind.v_dim
        indexed = 2.0 * kind.index_heads * kind.index * kind.kept(context)
        flops = flops + kind.layers * (kind.attended(context) * 2.0 * kind.heads * per_pair + indexed)
    return as_result(flops)


def attended_tokens(arch: Architecture, context: ArrayLike) -> Result:
    """Count the entries that a query at the end of a context attends to, summed over the layers:  sum of L min(c / r, reach).

    Shapes: as context. Units: context [token], result [1]. Layers with a state count zero.
    Reference: Beltagy et al., Longformer, arXiv:2004.05150, section 3.1 (sliding window).

    >>> float(attended_tokens(Architecture(2, 64, 4, 4, 16, 256, 1000, window_tokens=10, window_layers=1), 100))
    110.0
    """
    context = np.asarray(context, float)
    return as_result(sum_of((kind.layers * kind.attended(context) for kind in attention_kinds(arch)), 0.0 * context))


def causal_pairs(arch: Architecture, tokens: ArrayLike) -> Result:
    """Count the query-key pairs of a whole causal sequence, summed over the layers:  L (s w - w^2/2) / r,  w = min(s, r reach).

    The continuous sum, exact for long sequences: s^2/2 where a layer attends to all.
    Shapes: as tokens. Units: tokens [token], result [1].
    Reference: Dao, FlashAttention-2, arXiv:2307.08691, section 4.1 (half of the square); Beltagy et al., arXiv:2004.05150.

    >>> float(causal_pairs(Architecture(1, 64, 4, 4, 16, 256, 1000), 100))
    5000.0
    """
    s = np.asarray(tokens, float)
    return as_result(sum_of((kind.layers * kind.pairs(s) for kind in attention_kinds(arch)), 0.0 * s))


def attention_flops(arch: Architecture, query_tokens: ArrayLike, context_tokens: ArrayLike) -> Result:
    """Count the FLOPs of the attention core for the last `query_tokens` of a context, forward, all layers, with indexers and states.

    2 a (d_qk + d_v) pairs of each kind, with the pairs of the context less the pairs of its part before the queries; an indexer adds
    2 n_i d_i for each pair, whether it keeps it or not; states 6 per element and query token.
    Shapes: broadcast. Units: tokens [token], result [FLOP]. Valid for query_tokens <= context_tokens; unabsorbed MLA, as in
    training and prefill.
    Reference: Dao, FlashAttention-2, arXiv:2307.08691, section 4.1; Narayanan et al., arXiv:2104.04473, appendix; DeepSeek-V3.2,
    arXiv:2512.02556, section 2.1.

    >>> arch = Architecture(1, 64, 4, 4, 16, 256, 1000)
    >>> float(attention_flops(arch, 100, 100)) == 2 * 4 * (16 + 16) * 100**2 / 2
    True
    """
    context, queries = np.asarray(context_tokens, float), np.asarray(query_tokens, float)
    before = context - queries
    flops = STATE_FLOPS * np.asarray(state_elements(arch), float) * queries + core_flops(arch, queries, context)
    for kind in attention_kinds(arch):
        if np.any(kind.index_heads):
            indexed = 2.0 * kind.index_heads * kind.index * (kind.scored(context) - kind.scored(before))
            flops = flops + kind.layers * indexed
    return as_result(flops)


def core_flops(arch: Architecture, query_tokens: ArrayLike, context_tokens: ArrayLike) -> Result:
    """Count the FLOPs of scores and weighted values alone for the last `query_tokens` of a context:  2 a (d_qk + d_v) pairs of each kind.

    Shapes, units and validity: as `attention_flops` [token], [FLOP]. Reference: as `attention_flops`.

    >>> arch = Architecture(1, 64, 4, 4, 16, 256, 1000)
    >>> bool(core_flops(arch, 100, 100) == attention_flops(arch, 100, 100))
    True
    """
    context = np.asarray(context_tokens, float)
    before = context - np.asarray(query_tokens, float)
    flops = 0.0 * context
    for kind in attention_kinds(arch):
        pairs = kind.layers * (kind.pairs(context) - kind.pairs(before))
        flops = flops + 2.0 * kind.heads * (kind.qk_dim + kind.v_dim) * pairs
    return as_result(flops)


def latent_widening(arch: Architecture) -> tuple[float, float]:
    """Compare the two forms of latent attention: (FLOPs of a pair when absorbed over those when expanded, FLOPs of expanding one cached token in all layers).

    (2 r_kv + d_rope) / (d_qk + d_v), and 2 r_kv a (d_nope + d_v) for each layer. What both need for a query is the same: its keys and
    values are made of its own latent, or its query and its result pass the same matrices. Shapes: a scalar. Units: [1], [FLOP].
    Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix C.

    >>> arch = Architecture(1, 7168, 128, 128, 128, 18432, 129280, mla=True, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_head_dim=128)
    >>> latent_widening(arch) == (3.4, 2 * 512 * 128 * 256)
    True
    """
    wider = (2.0 * arch.kv_lora_rank + arch.qk_rope_dim) / (arch.qk_dim + arch.v_dim)
    expanded = 2.0 * arch.kv_lora_rank * arch.heads * (arch.qk_nope_dim + arch.v_dim)
    return wider, arch.attention_blocks * expanded


def forward_flops_per_token(arch: Architecture, context_tokens: ArrayLike) -> Result:
    """Count the FLOPs of a forward pass per token, mean over a causal sequence of `context_tokens`:  2 n_active + attention / s.

    Shapes: as context_tokens. Units: context [token], result [FLOP/token]. A training step is three times this, hence
    6 n_active per token where the context is short.
    Reference: Kaplan et al., arXiv:2001.08361, table 1 and section 2.1; Narayanan et al., arXiv:2104.04473, equation 3.

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> round(float(forward_flops_per_token(arch, 8192)) / (2 * parameter_counts(arch).active), 3)
    1.143
    """
    context = np.asarray(context_tokens, float)
    return as_result(2.0 * parameter_counts(arch).active + attention_flops(arch, context, context) / context)


def _ranks(arch: Architecture, kind: AttentionKind, tp: ArrayLike) -> Floats:
    """Count the tensor ranks over which the cache of a kind is spread."""
    return np.asarray(1.0) if is_latent(arch) else np.minimum(np.asarray(tp, float), kind.kv_heads)
