"""Work of one pass of a network by operator: FLOPs and bytes, and from them arithmetic intensity. No chip occurs here.

Times are in models/serving and models/training, with the efficiencies of real chips; this is what a workload asks of any chip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.formats import element_bytes, stored
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import attention_flops, kv_bytes, query_flops, read_bytes_per_rank
from models.transformer.encoder import Encoder, encoder_flops

ACTIVATION_BYTES = 2.0
BACKWARD = 2.0  # work of a backward pass over that of the forward pass, for matrix products


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs and bytes of one operator in one pass of the whole network."""

    flop: Result
    weight_bytes: Result
    other_bytes: Result  # activations in and out, and KV cache

    @property
    def moved_bytes(self) -> Result:
        """All bytes that pass the memory [byte]."""
        return self.weight_bytes + self.other_bytes

    @property
    def intensity(self) -> Result:
        """Arithmetic intensity [FLOP/byte]; 0 of an operator that moves nothing."""
        moved = np.asarray(self.moved_bytes, float)
        return as_result(np.where(moved > 0, np.asarray(self.flop, float) / np.where(moved > 0, moved, 1.0), 0.0))


def touched_experts(arch: Architecture, tokens: ArrayLike) -> Result:
    """Compute the mean number of experts of a layer that a batch touches, drawn evenly:  E (1 - (1 - k/E)^m).

    Shapes: as tokens. Units: [1]; 0 for a dense network. Skewed routing touches fewer (`models.serving.decode.experts_touched`).
    Reference: Feller, An Introduction to Probability Theory, volume 1, section IV.2 (occupancy).

    >>> from models.serving import examples
    >>> [round(float(touched_experts(examples.MOE, m)), 1) for m in (1, 16, 10000)]
    [8.0, 82.4, 128.0]
    """
    if not arch.experts:
        return 0.0
    miss = 1.0 - arch.topk / arch.experts
    return as_result(arch.experts * (1.0 - miss ** np.asarray(tokens, float)))


def products(arch: Architecture, tokens: ArrayLike, logits: ArrayLike, weights: str) -> dict[str, Work]:
    """Count the work of the matrix products of a pass over m tokens, of which `logits` go through the head.

    FLOPs 2 m N, weights w N read once, each part as the checkpoint stores it (of the experts those touched), activations 2 bytes x (inputs + outputs) per token.
    Shapes: tokens and logits broadcast. Units: tokens [token], result [FLOP] and [byte].
    Reference: Pope et al., arXiv:2211.05102, section 2; Williams, Waterman and Patterson, CACM 52 (2009) (intensity).

    >>> from models.serving import examples
    >>> one = products(examples.DENSE, 1, 1, "bf16")["feed-forward"]
    >>> bool(0.99 < one.intensity <= 1.0)
    True
    """
    m, out = np.asarray(tokens, float), np.asarray(logits, float)
    counts, width = parameter_counts(arch), stored(arch.checkpoints, weights)
    layers, h = arch.attending_layers, 1.0 * arch.hidden
    projected = arch.heads * (arch.qk_dim + arch.v_dim) + (
        arch.kv_lora_rank + arch.qk_rope_dim if arch.mla else 2.0 * arch.kv_heads * arch.head_dim
    )
    dense = arch.ffn_layers - arch.moe_layers
    inner = dense * (2.0 * h + arch.ffn_matrices * arch.ffn) + arch.moe_layers * (
        (2.0 * h + arch.ffn_matrices * arch.shared_width) if arch.shared_width else 0.0
    )
    found = {
        "attention projections": _product(counts.attention, m, layers * (2.0 * h + projected), width.attention),
        "feed-forward": _product(counts.dense_ffn, m, inner, width.ffn),
    }
    if arch.experts:
        each = counts.per_expert * counts.moe_layers
        moved = counts.moe_layers * arch.topk * (2.0 * arch.expert_input + arch.ffn_matrices * arch.expert_ffn)
        read = touched_experts(arch, m) * each * width.experts
        found["experts"] = Work(2.0 * m * arch.topk * each, read, ACTIVATION_BYTES * m * moved)
        found["router"] = _product(counts.router, m, counts.moe_layers * (h + arch.experts), ACTIVATION_BYTES)
    found["head"] = _product(h * arch.vocab, out, h + arch.vocab, width.tables)
    return {name: work for name, work in found.items() if np.any(np.asarray(work.flop) > 0)}


def decode_work(
    arch: Architecture, batch: ArrayLike, context_tokens: ArrayLike, precisions: Precisions
) -> dict[str, Work]:
    """Count the work of one decode step of b sequences, each with a context of c tokens.

    Attention reads what each attends to (`attention.read_bytes_per_rank`), with the FLOPs of `attention.query_flops`.
    Shapes: broadcast. Units: batch [sequence], context [token], result [FLOP] and [byte].
    Reference: Pope et al., arXiv:2211.05102, section 2; DeepSeek-V2, arXiv:2405.04434, section 2.1 (absorbed latent).

    >>> from models.serving import examples
    >>> found = decode_work(examples.DENSE, 1, 4096, examples.BF16)
    >>> round(float(found["attention"].intensity), 1)
    4.0
    """
    b = np.asarray(batch, float)
    assert isinstance(precisions.weights, str)
    found = products(arch, b, b, precisions.weights)
    flop = b * np.asarray(query_flops(arch, context_tokens))
    cache = b * np.asarray(read_bytes_per_rank(arch, context_tokens, element_bytes(precisions.kv_cache), 1))
    found["attention"] = Work(flop, 0.0, cache)
    return found


def prefill_work(
    arch: Architecture, prompt_tokens: ArrayLike, precisions: Precisions, cached_tokens: ArrayLike = 0.0
) -> dict[str, Work]:
    """Count the work of the prefill of one prompt of s tokens, of which a cache holds the first c: products and queries of s - c, causal attention without score traffic.

    Shapes: broadcast. Units: [token], result [FLOP] and [byte]; the cache of all s passes the memory, the held part is read.
    Reference: Dao et al., FlashAttention, NeurIPS 2022 (queries, keys, values and outputs pass the memory once).

    >>> from models.serving import examples
    >>> found = prefill_work(examples.DENSE, 4096, examples.BF16)
    >>> bool(found["feed-forward"].intensity > 1000)
    True
    """
    prompt = np.asarray(prompt_tokens, float)
    s = prompt - np.asarray(cached_tokens, float)
    assert isinstance(precisions.weights, str)
    found = products(arch, s, np.ones_like(s), precisions.weights)
    read = ACTIVATION_BYTES * s * arch.attending_layers * arch.heads * 1.0 * (arch.qk_dim + arch.v_dim)
    cache = np.asarray(kv_bytes(arch, prompt, element_bytes(precisions.kv_cache)))
    found["attention"] = Work(attention_flops(arch, s, prompt), 0.0, read + cache)
    return found


def encoding_work(encoder: Encoder, items: ArrayLike = 1.0) -> dict[str, Work]:
    """Count the work of encoding items of media one by one: FLOPs of `encoder_flops`, weights read for each, activations of layers with an inner width of 4 h.

    16 h elements in and out of the products of a layer per token. Shapes: as items. Units: items [1], result [FLOP] and [byte].
    Reference: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021 (shape of a layer); Williams et al., CACM 52 (2009).

    >>> found = encoding_work(Encoder(0.3e9, 24, 1024, 576, 576))["encoder"]
    >>> bool(found.intensity > 100)
    True
    """
    n = np.asarray(items, float)
    moved = 16.0 * encoder.hidden * encoder.layers * encoder.input_tokens
    return {"encoder": Work(encoder_flops(encoder, n), n * encoder.weight_bytes, ACTIVATION_BYTES * n * moved)}


def training_work(arch: Architecture, tokens: ArrayLike, sequence_tokens: ArrayLike) -> dict[str, Work]:
    """Count the work of a training step over m tokens in sequences of s: three times the forward pass in FLOPs, weights read three times.

    Shapes: broadcast. Units: [token], result [FLOP] and [byte]; 16-bit weights and activations, no recomputation.
    Reference: Kaplan et al., arXiv:2001.08361, section 2.1; Narayanan et al., arXiv:2104.04473, equation 3.

    >>> from models.serving import examples
    >>> from models.transformer.attention import forward_flops_per_token
    >>> work = training_work(examples.DENSE, 8192, 8192)
    >>> round(float(sum(w.flop for w in work.values()) / (3 * 8192 * forward_flops_per_token(examples.DENSE, 8192))), 6)
    1.0
    """
    m, s = np.asarray(tokens, float), np.asarray(sequence_tokens, float)
    found = products(arch, m, m, "bf16")
    read = ACTIVATION_BYTES * m * arch.attending_layers * arch.heads * 2.0 * (arch.qk_dim + arch.v_dim)
    found["attention"] = Work(np.asarray(attention_flops(arch, s, s)) * m / s, 0.0, read)
    times = 1.0 + BACKWARD
    return {
        name: Work(times * work.flop, times * work.weight_bytes, times * work.other_bytes)
        for name, work in found.items()
    }


def critical_tokens(flop_per_s: ArrayLike, bytes_per_s: ArrayLike, weights: str) -> Result:
    """Compute the tokens in a pass from which dense products are bound by arithmetic:  m = (P / beta) w / 2.

    Shapes: broadcast. Units: rates [FLOP/s] and [byte/s], result [token]; activations left out.
    Reference: Pope et al., arXiv:2211.05102, section 2 (memory-bound below some batch).

    >>> float(critical_tokens(990e12, 3.3e12, "bf16"))
    300.0
    """
    return as_result(np.divide(flop_per_s, bytes_per_s) * 0.5 * np.asarray(element_bytes(weights), float))


def _product(parameters: float, tokens: Result, elements: Result, width: Result) -> Work:
    """Work of products with a number of parameters: weights read once where any token passes, `elements` in and out per token."""
    m = np.asarray(tokens, float)
    return Work(2.0 * m * parameters, np.where(m > 0, width * parameters, 0.0)[()], ACTIVATION_BYTES * m * elements)
