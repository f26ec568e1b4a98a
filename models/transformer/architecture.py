"""Parameters, FLOPs and KV cache bytes of a transformer from its shape. How fast a chip computes them is in the other modules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.transformer.routing import Routing


def _given(count: ArrayLike) -> bool:
    """Tell whether any entry is not zero, without an array for a plain number, the usual case."""
    return count != 0 if type(count) is int else bool(np.any(count))


@dataclass(frozen=True, slots=True)
class Architecture:
    """Shape of a network; counts throughout [1].

    With experts, the first `dense_layers` have a dense feed-forward block of width `ffn` and the others `experts` of width
    `expert_ffn`, of which a token visits `topk`, besides `shared_experts` that all tokens visit. `window_layers` attend to
    the last `window_tokens` only; `linear_layers` keep a state of constant size instead of a KV cache; the rest attend to all.
    Where `attention_layers` is set, a layer is one block: so many of attention, `state_layers` of a state space of inner width
    `state_width` with `state_inputs` further inputs, the rest feed-forward. `expert_hidden` is the width at which routed experts
    work, where it is not `hidden`; `shared_ffn` the width of all shared experts, where it is not shared_experts expert_ffn. The gate
    sends a token to experts of at most `routed_groups` groups, which are laid out one per scale-up domain (0: no limit). `routing`:
    what is stated of how it loads experts in serving.
    Fields may be arrays of one shape (many networks of one kind at once); flags may not.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = True
    tied: bool = False
    experts: int = 0
    topk: int = 0
    shared_experts: int = 0
    expert_ffn: int = 0
    dense_layers: int = 0
    mla: bool = False
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_dim: int = 0
    qk_rope_dim: int = 0
    v_head_dim: int = 0
    window_tokens: int = 0
    window_layers: int = 0
    linear_layers: int = 0
    attention_layers: int = 0
    state_layers: int = 0
    state_width: int = 0
    state_inputs: int = 0
    expert_hidden: int = 0
    shared_ffn: int = 0
    routed_groups: int = 0
    routing: Routing | None = None

    def __post_init__(self) -> None:
        needed = ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab")
        problems = [f"{name} must be at least 1" for name in needed if np.any(getattr(self, name) < 1)]
        if np.any(self.full_layers < 0):
            problems.append("window_layers and linear_layers together exceed layers")
        if np.any((np.asarray(self.window_layers) > 0) & (np.asarray(self.window_tokens) < 1)):
            problems.append("window_layers needs window_tokens")
        routed = (
            np.asarray(self.topk) >= 1,
            np.asarray(self.topk) <= self.experts,
            np.asarray(self.expert_ffn) > 0,
            self.dense_layers <= self.ffn_layers,
        )
        if np.any(self.experts) and not all(np.all(part) for part in routed):
            problems.append("experts needs topk between 1 and experts, expert_ffn, and dense_layers within layers")
        if self.mla and np.any(
            np.minimum.reduce([self.kv_lora_rank, self.qk_nope_dim, self.qk_rope_dim, self.v_head_dim]) < 1
        ):
            problems.append("mla needs kv_lora_rank, qk_nope_dim, qk_rope_dim and v_head_dim")
        if np.any(self.state_layers) and not np.all(
            (np.asarray(self.attention_layers) > 0) & (np.asarray(self.state_width) > 0) & (self.ffn_layers >= 0)
        ):
            problems.append("state_layers needs attention_layers, state_width, and all of them within layers")
        if problems:
            raise ValueError(f"architecture: {'; '.join(problems)}")

    @property
    def attending_layers(self) -> int:
        """Layers with an attention block."""
        return self.attention_layers if _given(self.attention_layers) else self.layers

    @property
    def ffn_layers(self) -> int:
        """Layers with a feed-forward block, dense or of experts."""
        return self.layers - self.attention_layers - self.state_layers if _given(self.attention_layers) else self.layers

    @property
    def expert_input(self) -> int:
        """Width at which routed experts take and give tokens."""
        return self.expert_hidden if _given(self.expert_hidden) else self.hidden

    @property
    def shared_width(self) -> int:
        """Inner width of all shared experts of a layer together."""
        return self.shared_ffn if _given(self.shared_ffn) else self.shared_experts * self.expert_ffn

    @property
    def moe_layers(self) -> int:
        return self.ffn_layers - self.dense_layers if _given(self.experts) else 0

    @property
    def full_layers(self) -> int:
        """Layers that attend to the whole context."""
        return self.attending_layers - self.window_layers - self.linear_layers

    @property
    def qk_dim(self) -> int:
        """Elements of a query or key head."""
        return self.qk_nope_dim + self.qk_rope_dim if self.mla else self.head_dim

    @property
    def v_dim(self) -> int:
        """Elements of a value head."""
        return self.v_head_dim if self.mla else self.head_dim

    @property
    def ffn_matrices(self) -> int:
        """Weight matrices of a feed-forward block: gate, up and down, or up and down."""
        return 3 if self.gated else 2


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters by part [1]; `attention`, `dense_ffn` and `router` over all layers, `per_expert` of one expert in one layer."""

    total: float
    active: (
        float  # weights that multiply a token's activations: no embedding table, but the vocabulary head even if tied
    )
    attention: float  # and state-space blocks
    dense_ffn: float  # dense layers, shared experts, and the projections to and from the width of routed experts
    per_expert: float
    router: float
    embedding: float
    head: float  # 0 where it is tied to the embedding
    moe_layers: int
    dense_non_expert: float  # all but the routed experts


def attention_parameters_per_layer(arch: Architecture) -> float:
    """Count the weights of one attention block.

    MHA, GQA, MQA: h d (2 a + 2 a_kv). MLA: query h r_q + r_q a (d_nope + d_rope), or h a (d_nope + d_rope) without a query
    latent; latent h (r_kv + d_rope) + r_kv a (d_nope + d_v); output a d_v h. Biases and norms (below 0.1 %) are left out.
    Shapes: a scalar. Units: [1]. Linear-attention layers are counted as if they were full ones.
    Reference: Ainslie et al., GQA, arXiv:2305.13245; DeepSeek-V2, arXiv:2405.04434, equations 9-19.

    >>> attention_parameters_per_layer(Architecture(32, 4096, 32, 8, 128, 14336, 128256)) / 2**20
    40.0
    """
    h, a = 1.0 * arch.hidden, 1.0 * arch.heads
    if not arch.mla:
        return h * arch.head_dim * 2.0 * (a + arch.kv_heads)
    query = arch.q_lora_rank * (h + a * arch.qk_dim) if _given(arch.q_lora_rank) else h * a * arch.qk_dim
    latent = h * (arch.kv_lora_rank + arch.qk_rope_dim) + arch.kv_lora_rank * a * (arch.qk_nope_dim + arch.v_head_dim)
    return query + latent + a * arch.v_head_dim * h


def parameter_counts(arch: Architecture) -> ParameterCounts:
    """Count the parameters of an architecture by part.

    total = attention + dense FFN + L_moe E n_expert + router + h V (+ h V if untied), with n_ffn = (3 if gated else 2) h f.
    Shapes: scalars. Units: [1]. Biases and norms (below 0.1 %) are left out.
    Reference: Narayanan et al., arXiv:2104.04473, equation 2 (dense); Fedus et al., Switch Transformers, arXiv:2101.03961 (experts).

    >>> counts = parameter_counts(Architecture(32, 4096, 32, 8, 128, 14336, 128256))
    >>> round(counts.total / 1e9, 2)
    8.03
    """
    try:
        return _counts_of_one(arch)
    except TypeError:  # several at once, whose arrays have no hash
        return _counts(arch)


def _counts(arch: Architecture) -> ParameterCounts:
    per_matrix = arch.ffn_matrices * 1.0 * arch.hidden
    per_expert = arch.ffn_matrices * 1.0 * arch.expert_input * arch.expert_ffn
    state = arch.state_layers * 1.0 * arch.hidden * (3.0 * arch.state_width + arch.state_inputs)
    attention = arch.attending_layers * attention_parameters_per_layer(arch) + state
    latent = 2.0 * arch.hidden * arch.expert_hidden
    dense_ffn = (arch.ffn_layers - arch.moe_layers) * per_matrix * arch.ffn + arch.moe_layers * (
        per_matrix * arch.shared_width + latent
    )
    router = 1.0 * arch.moe_layers * arch.hidden * arch.experts
    embedding = 1.0 * arch.hidden * arch.vocab
    head = 0.0 if arch.tied else embedding
    body = attention + dense_ffn + router
    return ParameterCounts(
        total=body + arch.moe_layers * arch.experts * per_expert + embedding + head,
        active=body + arch.moe_layers * arch.topk * per_expert + embedding,
        attention=attention,
        dense_ffn=dense_ffn,
        per_expert=per_expert,
        router=router,
        embedding=embedding,
        head=head,
        moe_layers=arch.moe_layers,
        dense_non_expert=body + embedding + head,
    )


_counts_of_one = lru_cache(maxsize=256)(_counts)


def kv_elements_per_layer(arch: Architecture) -> float:
    """Count the elements that a token leaves in the KV cache of one attention layer:  2 a_kv d, or with MLA the latent r_kv + d_rope.

    Shapes: a scalar. Units: [1].
    Reference: Shazeer, arXiv:1911.02150; DeepSeek-V2, arXiv:2405.04434, table 1.

    >>> kv_elements_per_layer(Architecture(32, 4096, 32, 8, 128, 14336, 128256))
    2048.0
    """
    return 1.0 * (arch.kv_lora_rank + arch.qk_rope_dim) if arch.mla else 2.0 * arch.kv_heads * arch.head_dim


def kv_bytes_per_token(arch: Architecture, bytes_per_element: ArrayLike) -> Result:
    """Compute the growth of the KV cache with one more token of a long context: the layers that attend to all of it.

    L_full e b, with e elements per layer and token. Windows are full by then and linear layers hold a constant state.
    Shapes: as bytes_per_element. Units: bytes per element [byte], result [byte].
    Reference: Pope et al., arXiv:2211.05102, section 2; DeepSeek-V2, arXiv:2405.04434, table 1.

    >>> float(kv_bytes_per_token(Architecture(32, 4096, 32, 8, 128, 14336, 128256), 2))
    131072.0
    """
    return as_result(arch.full_layers * kv_elements_per_layer(arch) * np.asarray(bytes_per_element, float))


def attended_tokens(arch: Architecture, context: ArrayLike) -> Result:
    """Count the tokens that a query at the end of a context attends to, summed over the layers:  L_full c + L_window min(c, w).

    Shapes: as context. Units: context [token], result [token]. Linear layers count zero.
    Reference: Beltagy et al., Longformer, arXiv:2004.05150, section 3.1 (sliding window).

    >>> float(attended_tokens(Architecture(2, 64, 4, 4, 16, 256, 1000, window_tokens=10, window_layers=1), 100))
    110.0
    """
    context = np.asarray(context, float)
    return as_result(arch.full_layers * context + arch.window_layers * np.minimum(context, arch.window_tokens))


def kv_bytes(arch: Architecture, context_tokens: ArrayLike, bytes_per_element: ArrayLike) -> Result:
    """Compute the KV cache of one sequence, windows respected:  e b (L_full c + L_window min(c, w)).

    Shapes: broadcast. Units: context [token], bytes per element [byte], result [byte]. The constant state of linear
    layers (below 1 % of the weights) is left out.
    Reference: Pope et al., arXiv:2211.05102, section 2; Beltagy et al., arXiv:2004.05150, section 3.1.

    >>> float(kv_bytes(Architecture(32, 4096, 32, 8, 128, 14336, 128256), 8192, 2)) / 2**30
    1.0
    """
    return (attended_tokens(arch, context_tokens) * kv_elements_per_layer(arch) * np.asarray(bytes_per_element, float))[
        ()
    ]


def causal_pairs(arch: Architecture, tokens: ArrayLike) -> Result:
    """Count the query-key pairs of a whole causal sequence, summed over the layers.

    L_full s^2/2 + L_window (s^2/2 for s <= w, else w s - w^2/2): the continuous sum, exact for long sequences.
    Shapes: as tokens. Units: tokens [token], result [1].
    Reference: Dao, FlashAttention-2, arXiv:2307.08691, section 4.1 (half of the square); Beltagy et al., arXiv:2004.05150.

    >>> float(causal_pairs(Architecture(1, 64, 4, 4, 16, 256, 1000), 100))
    5000.0
    """
    s = np.asarray(tokens, float)
    w = np.minimum(s, arch.window_tokens)
    return as_result(arch.full_layers * 0.5 * s * s + arch.window_layers * w * (s - 0.5 * w))


def attention_flops(arch: Architecture, query_tokens: ArrayLike, context_tokens: ArrayLike) -> Result:
    """Count the FLOPs of the attention core (scores and weighted values) for the last `query_tokens` of a context, forward, all layers.

    2 a (d_qk + d_v) pairs, with the pairs of the context less those of its part before the queries.
    Shapes: broadcast. Units: tokens [token], result [FLOP]. Valid for query_tokens <= context_tokens; unabsorbed MLA, as in
    training and prefill. Linear layers count zero.
    Reference: Dao, FlashAttention-2, arXiv:2307.08691, section 4.1; Narayanan et al., arXiv:2104.04473, appendix.

    >>> arch = Architecture(1, 64, 4, 4, 16, 256, 1000)
    >>> float(attention_flops(arch, 100, 100)) == 2 * 4 * (16 + 16) * 100**2 / 2
    True
    """
    context = np.asarray(context_tokens, float)
    pairs = causal_pairs(arch, context) - causal_pairs(arch, context - np.asarray(query_tokens, float))
    return as_result(2.0 * arch.heads * (arch.qk_dim + arch.v_dim) * pairs)


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
