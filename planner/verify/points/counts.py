"""Count weights and caches of a network by hand, from below: parts not counted here only add to both. Uses no model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from models.transformer.architecture import Architecture
from planner.messages import Message

BITS_OF_BYTE = 8


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a network [1]: weights that each token passes, a table of tokens, and all routed experts."""

    passed: float
    table: float
    experts: float
    one_token: float  # experts of one token


def weights_of(arch: Architecture) -> Weights:
    """Count the projections of attention over all of the context, or within a window, the feed-forward blocks and the experts, and one table."""
    heads, width, hidden = arch.heads, arch.head_dim, arch.hidden
    value = arch.v_head_dim or width
    if arch.mla:
        latent = arch.kv_lora_rank * (hidden + heads * (arch.qk_nope_dim + arch.v_head_dim)) + hidden * arch.qk_rope_dim
        query = heads * arch.qk_dim
        asked = arch.q_lora_rank * (hidden + query) if arch.q_lora_rank else hidden * query
        attention = asked + latent + (0 if arch.o_lora_rank else heads * arch.v_head_dim * hidden)
    else:
        outputs = (0 if arch.o_lora_rank else heads) + (0 if arch.shared_kv else arch.kv_heads)
        attention = hidden * (width * (heads + arch.kv_heads) + value * outputs)
    alike = not (arch.window_heads or arch.window_kv_heads or arch.window_head_dim)
    plain = arch.full_layers + (arch.window_layers if alike else 0)
    blocks = 3 if arch.gated else 2
    expert = blocks * arch.expert_input * arch.expert_ffn
    with_experts = arch.moe_layers
    shared = with_experts * blocks * min(arch.expert_input, hidden) * (arch.shared_width if with_experts else 0)
    dense = (arch.ffn_layers - with_experts) * blocks * hidden * arch.ffn
    return Weights(
        passed=float(plain * attention + dense + shared),
        table=float(hidden * arch.vocab),
        experts=float(with_experts * arch.experts * expert),
        one_token=float(with_experts * arch.topk * expert),
    )


def weight_bytes(precision: str) -> float:
    """Read the bytes of a weight off the name of its format, "nvfp4" as 0.5; scales and what stays wider are not counted."""
    found = re.search(r"[0-9]+$", precision)
    if found is None:
        raise ValueError(Message.of("verify.bits_unknown", precision=precision).text())
    return int(found.group()) / BITS_OF_BYTE


def cache_bytes_per_token(arch: Architecture, precision: str, read: bool = False) -> float:
    """Count the cache of a token in the layers that keep all of the context [byte]; `read`: in those that read all of it at each step.

    Layers with a window, a state or compressed entries are not counted.
    """
    layers = arch.full_layers
    if read and arch.sparse_topk:
        layers -= arch.chosen_layers
    value = 0 if arch.shared_kv else arch.v_head_dim or arch.head_dim
    element = arch.kv_lora_rank + arch.qk_rope_dim if arch.mla else arch.kv_heads * (arch.head_dim + value)
    return float(layers * element * weight_bytes(precision))
