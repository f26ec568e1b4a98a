"""The shape of a network and its parameters by part. Attention, cache and FLOPs follow from it in `models.transformer.attention`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.formats import Checkpoints
from models.transformer.routing import Routing


def _given(count: ArrayLike) -> bool:
    """Tell whether any entry is not zero, without an array for a plain number, the usual case."""
    return count != 0 if type(count) is int else bool(np.any(count))


@dataclass(frozen=True, slots=True)
class Architecture:
    """Shape of a network; counts throughout [1].

    Feed-forward blocks. With experts, the first `dense_layers` (with `spread_dense` 1 as many among the others) have a dense block of width `ffn` and the others `experts` of width
    `expert_ffn`, of which a token visits `topk`, besides `shared_experts` that all tokens visit. `expert_hidden` is the width at which
    routed experts work, where it is not `hidden`; `shared_ffn` the width of all shared experts, where it is not shared_experts expert_ffn.
    The gate sends a token to experts of at most `routed_groups` groups, which are laid out one per scale-up domain (0: no limit).

    Layers by their way to mix tokens. `window_layers` attend to the last `window_tokens` only, with `window_heads`, `window_kv_heads`
    and `window_head_dim` where these differ from the others'; `linear_layers` keep a state of constant size; `csa_layers` and `hca_layers`
    cache one entry for `csa_ratio` or `hca_ratio` tokens beside their window; the rest attend to all. Of all that a layer could see,
    `sparse_topk` entries are kept by an indexer of `index_heads` of width `index_dim` (full and csa layers; `sparse_layers` and
    `index_layers` where only some of the full layers are sparse, or have an indexer of their own). Where `attention_layers` is
    set, a layer is one block: the stated number of attention, `state_layers` of a state space, the rest feed-forward. A layer with a state has inner
    width `state_width`, `state_inputs` further outputs of its input projection, `state_dim` elements of state for each inner element and
    `state_conv` elements of convolution state. `output_gate` 1: the output of full attention is gated, by a projection of its width;
    `shared_kv` 1: full layers have no value projection; csa and hca layers cache one vector as key and value.
    `o_lora_rank`, `o_groups`: the output projection in two steps, the first by groups of heads.

    `routing`: statements on how it loads experts in serving. `checkpoints`: what its published weights leave in 16 bit, by format.
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
    spread_dense: int = 0
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
    state_dim: int = 0
    state_conv: int = 0
    expert_hidden: int = 0
    shared_ffn: int = 0
    routed_groups: int = 0
    output_gate: int = 0
    shared_kv: int = 0
    window_heads: int = 0
    window_kv_heads: int = 0
    window_head_dim: int = 0
    sparse_topk: int = 0
    index_heads: int = 0
    index_dim: int = 0
    sparse_layers: int = 0
    index_layers: int = 0
    csa_layers: int = 0
    csa_ratio: int = 0
    hca_layers: int = 0
    hca_ratio: int = 0
    o_lora_rank: int = 0
    o_groups: int = 0
    routing: Routing | None = None
    checkpoints: Checkpoints = ()

    def __post_init__(self) -> None:
        needed = ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab")
        problems = [f"{name} must be at least 1" for name in needed if np.any(getattr(self, name) < 1)]
        if np.any(self.full_layers < 0):
            problems.append("window_layers, linear_layers, csa_layers and hca_layers together exceed layers")
        if np.any((np.asarray(self.windowed_layers) > 0) & (np.asarray(self.window_tokens) < 1)):
            problems.append("window_layers needs window_tokens")
        if self.partly_sparse and np.any(
            (np.asarray(self.sparse_layers) > self.full_layers) | (np.asarray(self.index_layers) > self.chosen_layers)
        ):
            problems.append("sparse_layers exceeds the layers that attend to all, or index_layers the sparse ones")
        for kind, ratio in (("csa_layers", "csa_ratio"), ("hca_layers", "hca_ratio")):
            if np.any((np.asarray(getattr(self, kind)) > 0) & (np.asarray(getattr(self, ratio)) < 1)):
                problems.append(f"{kind} needs {ratio}")
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
        """Layers that may attend to the whole context, or to what an indexer keeps of it."""
        return self.attending_layers - self.window_layers - self.linear_layers - self.csa_layers - self.hca_layers

    @property
    def partly_sparse(self) -> bool:
        """Whether some full layers are sparse and others not, or some use the choice of another's indexer."""
        return _given(self.sparse_layers) or _given(self.index_layers)

    @property
    def chosen_layers(self) -> int:
        """Layers among `full_layers` that attend to what an indexer keeps."""
        return self.sparse_layers if _given(self.sparse_layers) else self.full_layers

    @property
    def indexed_layers(self) -> int:
        """Layers among `chosen_layers` with an indexer and index keys of their own."""
        return self.index_layers if _given(self.index_layers) else self.chosen_layers

    @property
    def windowed_layers(self) -> int:
        """Layers that attend to the last tokens as they are: those with a window alone, and those with compressed entries beside it."""
        return self.window_layers + self.csa_layers + self.hca_layers

    @property
    def state_blocks(self) -> int:
        """Layers with a state of known shape: state spaces, and linear attention where its widths are stated."""
        return self.state_layers + self.linear_layers if _given(self.state_width) else self.state_layers

    @property
    def attention_blocks(self) -> int:
        """Layers whose mixer is counted as softmax attention."""
        return self.attending_layers - self.linear_layers if _given(self.state_width) else self.attending_layers

    @property
    def compressed(self) -> bool:
        """Whether layers cache one vector as key and value, some of them one for several tokens."""
        return _given(self.csa_layers) or _given(self.hca_layers)

    @property
    def blocks(self) -> int:
        """Mixers and feed-forward blocks together, each of which ends in an exchange between tensor ranks."""
        return self.layers if _given(self.attention_layers) else 2 * self.layers

    @property
    def qk_dim(self) -> int:
        """Elements of a query or key head."""
        return self.qk_nope_dim + self.qk_rope_dim if self.mla else self.head_dim

    @property
    def v_dim(self) -> int:
        """Elements of a value head."""
        return self.v_head_dim if self.mla or _given(self.v_head_dim) else self.head_dim

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
    """Count the weights of one block of full attention.

    MHA, GQA, MQA: h (a d + a_kv d + a_kv d_v + a d_v). MLA: query h r_q + r_q a (d_nope + d_rope), or h a (d_nope + d_rope) without a query
    latent; latent h (r_kv + d_rope) + r_kv a (d_nope + d_v); output a d_v h. An output gate adds h a d_v. Biases and norms (below 0.1 %)
    are left out. Shapes: a scalar. Units: [1].
    Reference: Ainslie et al., GQA, arXiv:2305.13245; DeepSeek-V2, arXiv:2405.04434, equations 9-19; Qiu et al., Gated Attention for
    Large Language Models, arXiv:2505.06708 (output gate).

    >>> attention_parameters_per_layer(Architecture(32, 4096, 32, 8, 128, 14336, 128256)) / 2**20
    40.0
    """
    h, a = 1.0 * arch.hidden, 1.0 * arch.heads
    gate = arch.output_gate * h * a * arch.v_dim
    if not arch.mla:
        values = 0.0 if _given(arch.shared_kv) else arch.kv_heads * arch.v_dim
        return h * (a * (arch.qk_dim + arch.v_dim) + arch.kv_heads * arch.qk_dim + values) + gate
    query = arch.q_lora_rank * (h + a * arch.qk_dim) if _given(arch.q_lora_rank) else h * a * arch.qk_dim
    latent = h * (arch.kv_lora_rank + arch.qk_rope_dim) + arch.kv_lora_rank * a * (arch.qk_nope_dim + arch.v_head_dim)
    return query + latent + a * arch.v_head_dim * h + gate


def indexer_parameters(arch: Architecture) -> float:
    """Count the weights of the indexer of one sparse layer:  r_q n_i d_i (queries) + h d_i (one key) + h n_i (weights of the heads).

    Without a query latent the queries come from the hidden state. Shapes: a scalar. Units: [1]; 0 without an indexer.
    Reference: DeepSeek-V3.2, arXiv:2512.02556, section 2.1 (lightning indexer).

    >>> indexer_parameters(Architecture(2, 64, 4, 4, 16, 256, 1000))
    0.0
    """
    source = arch.q_lora_rank if _given(arch.q_lora_rank) else arch.hidden
    return 1.0 * source * arch.index_heads * arch.index_dim + 1.0 * arch.hidden * (arch.index_dim + arch.index_heads)


def window_parameters_per_layer(arch: Architecture) -> float:
    """Count the weights of one block of attention with a window, whose heads may have a shape of their own.

    h (a_w d_w + 2 a_w,kv d_w) + a_w d_w h. Shapes: a scalar. Units: [1].
    Reference: Gemma 3 report, arXiv:2503.19786, section 2 (local layers); Ainslie et al., GQA, arXiv:2305.13245.

    >>> arch = Architecture(2, 64, 4, 4, 16, 256, 1000, window_tokens=8, window_layers=1, window_head_dim=8)
    >>> window_parameters_per_layer(arch) / attention_parameters_per_layer(arch)
    0.5
    """
    if not (_given(arch.window_heads) or _given(arch.window_kv_heads) or _given(arch.window_head_dim)):
        whole = attention_parameters_per_layer(arch)
        return whole + 1.0 * arch.hidden * arch.kv_heads * arch.v_dim if _given(arch.shared_kv) else whole
    heads, kv_heads, qk, v = window_shape(arch)
    return 1.0 * arch.hidden * (heads * (qk + v + arch.output_gate * v) + kv_heads * (qk + v))


def window_shape(arch: Architecture) -> tuple[int, int, int, int]:
    """Return (heads, KV heads, query width, value width) of layers with a window: their own, else as in the other layers.

    Shapes: a scalar. Units: [1]. Reference: Gemma 3 report, arXiv:2503.19786, section 2.

    >>> window_shape(Architecture(2, 64, 4, 2, 16, 256, 1000, window_tokens=8, window_layers=1, window_kv_heads=4))
    (4, 4, 16, 16)
    """
    own = _given(arch.window_head_dim)
    return (
        arch.window_heads if _given(arch.window_heads) else arch.heads,
        arch.window_kv_heads if _given(arch.window_kv_heads) else arch.kv_heads,
        arch.window_head_dim if own else arch.qk_dim,
        arch.window_head_dim if own and not _given(arch.v_head_dim) else arch.v_dim,
    )


def state_parameters_per_layer(arch: Architecture) -> float:
    """Count the weights of one block with a state:  h (2 w + i) into it and w h out of it, with inner width w and further inputs i.

    State space (Mamba-2): i = 2 groups d_state + heads. Gated delta net: i = 2 heads_k d_k + 2 heads_v. Lightning: i = 2 w.
    Shapes: a scalar. Units: [1]. The convolution (below 0.1 %) is left out.
    Reference: Dao and Gu, Mamba-2, arXiv:2405.21060, section 8; Yang et al., Gated Delta Networks, arXiv:2412.06464, section 3.4;
    MiniMax-01, arXiv:2501.08313, section 2.2.

    >>> arch = Architecture(2, 64, 4, 4, 16, 256, 1000, linear_layers=1, state_width=128, state_inputs=32)
    >>> state_parameters_per_layer(arch) == 64 * (3 * 128 + 32)
    True
    """
    return arch.hidden * (3.0 * arch.state_width + arch.state_inputs)


def compressed_parameters_per_layer(arch: Architecture, ratio: int, indexed: bool) -> float:
    """Count the weights of one block whose cache holds one vector, as key and value, for several tokens.

    Query h r_q + r_q a d; entry h d; output a d r_o + g r_o h (or a d h); compression of overlapping series h 4 d with an indexer and
    h 2 d without (each a value and a gate), of the index keys h 4 d_i. Shapes: a scalar. Units: [1]; ratio 0: a window alone.
    Reference: DeepSeek-V4 technical report (2026), section 2 (compressed sparse attention, heavily compressed attention).

    >>> arch = Architecture(2, 64, 4, 1, 16, 256, 1000, window_tokens=8, csa_layers=1, csa_ratio=4, hca_layers=1, hca_ratio=128)
    >>> compressed_parameters_per_layer(arch, 128, False) > compressed_parameters_per_layer(arch, 0, False)
    True
    """
    h, wide = 1.0 * arch.hidden, 1.0 * arch.heads * arch.head_dim
    query = arch.q_lora_rank * (h + wide) if _given(arch.q_lora_rank) else h * wide
    output = arch.o_lora_rank * (wide + arch.o_groups * h) if _given(arch.o_lora_rank) else wide * h
    series = (4.0 if indexed else 2.0) if _given(ratio) else 0.0
    index = (indexer_parameters(arch) + 3.0 * h * arch.index_dim) if indexed else 0.0
    return query + h * arch.head_dim + output + series * h * arch.head_dim + index


def _mixer_parameters(arch: Architecture) -> float:
    """Count the weights of all blocks that mix tokens: attention of each kind, and states."""
    states = arch.state_blocks * state_parameters_per_layer(arch)
    if arch.compressed:
        plain = arch.full_layers + arch.window_layers
        return (
            plain * compressed_parameters_per_layer(arch, 0, False)
            + arch.csa_layers * compressed_parameters_per_layer(arch, arch.csa_ratio, True)
            + arch.hca_layers * compressed_parameters_per_layer(arch, arch.hca_ratio, False)
            + states
        )
    full = attention_parameters_per_layer(arch)
    unknown = (
        0 if _given(arch.state_width) else arch.linear_layers
    )  # linear attention of unstated widths: as full attention
    index = arch.indexed_layers * indexer_parameters(arch) if _given(arch.index_heads) else 0.0
    windows = arch.window_layers * window_parameters_per_layer(arch)
    return (arch.full_layers + unknown) * full + windows + index + states


def attention_on_ranks(arch: Architecture, tp: ArrayLike) -> Result:
    """Count the attention weights that tp tensor ranks hold together, copies included:  N + (tp - 1) N_whole + (tp / min(tp, a_kv) - 1) N_kv.

    Heads are divided. Whole on each rank: the projections down to a latent of queries, and of keys and values with the rotary key (or to the one vector
    that compressed layers cache), and indexers. Ranks beyond the KV heads hold copies of their projections. Shapes: as tp; a scalar architecture. Units: [1].
    Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1; vLLM and SGLang, deepseek_v2 (replicated linear layers); Shoeybi et al.,
    arXiv:1909.08053, section 3 (heads by rank).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> (attention_on_ranks(arch, np.array([1, 8, 16])) / parameter_counts(arch).attention).tolist()
    [1.0, 1.0, 1.2]
    """
    ranks = np.asarray(tp, float)
    found = parameter_counts(arch).attention + (ranks - 1.0) * _whole_on_each_rank(arch)
    if arch.mla or arch.compressed:
        return as_result(found)
    values = 0.0 if _given(arch.shared_kv) else 1.0 * arch.v_dim
    unknown = 0 if _given(arch.state_width) else arch.linear_layers
    _, kv_heads, qk, v = window_shape(arch)
    for layers, held, width in (
        (arch.full_layers + unknown, arch.kv_heads, arch.qk_dim + values),
        (arch.window_layers, kv_heads, qk + v),
    ):
        if _given(layers) and np.any(ranks > held):
            found = found + (np.maximum(ranks / held, 1.0) - 1.0) * layers * arch.hidden * held * width
    return as_result(found)


def _whole_on_each_rank(arch: Architecture) -> float:
    """Count the attention weights that are not divided by heads."""
    index = arch.indexed_layers * indexer_parameters(arch) if _given(arch.index_heads) else 0.0
    if arch.mla:
        return index + arch.attention_blocks * arch.hidden * (
            1.0 * arch.q_lora_rank + arch.kv_lora_rank + arch.qk_rope_dim
        )
    if not arch.compressed:
        return index
    # A layer without heads has what is left: the projections down, to the entries and to their series, and the indexer.
    each = 1.0 * arch.heads * arch.head_dim
    query = arch.q_lora_rank * each if _given(arch.q_lora_rank) else arch.hidden * each
    output = arch.o_lora_rank * (each + arch.o_groups * arch.hidden) if _given(arch.o_lora_rank) else each * arch.hidden
    return (
        _mixer_parameters(arch)
        - arch.attention_blocks * (query + output)
        - arch.state_blocks * (state_parameters_per_layer(arch))
    )


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
    attention = _mixer_parameters(arch)
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
