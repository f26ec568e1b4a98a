"""Variants of an architecture for co-design with a chip: other attention, other experts, another width. Times are elsewhere.

Nothing here says how well a variant answers: its total and active parameters are all that is known of it before it is trained.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from models.transformer.architecture import Architecture, parameter_counts

TILE = 64  # widths are rounded to whole tiles of matrix units


def with_heads(arch: Architecture, kv_heads: int) -> Architecture:
    """Give all attention layers `kv_heads` heads of keys and values: all for MHA, some for GQA, one for MQA.

    Of an architecture with latent attention, a head takes the width of its values. Shapes: scalars. Units: [1].
    Raises ValueError where `kv_heads` does not divide the heads.
    Reference: Shazeer, arXiv:1911.02150 (MQA); Ainslie et al., GQA, arXiv:2305.13245, section 2.2.

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> with_heads(arch, 1).kv_heads, with_heads(arch, 32) == replace(arch, kv_heads=32)
    (1, True)
    """
    if kv_heads < 1 or arch.heads % kv_heads:
        raise ValueError(f"{kv_heads} heads of keys and values do not divide the {arch.heads} heads")
    return replace(
        arch, kv_heads=kv_heads, head_dim=arch.v_dim, mla=False,
        q_lora_rank=0, kv_lora_rank=0, qk_nope_dim=0, qk_rope_dim=0, v_head_dim=0,
    )  # fmt: skip


def with_latent(arch: Architecture, kv_lora_rank: int = 0, q_lora_rank: int = 0) -> Architecture:
    """Give all attention layers latent attention (MLA): r_kv = 4 d and d_rope = d / 2 for heads of width d, unless a rank is stated.

    Without `q_lora_rank` queries have no latent. Shapes: scalars. Units: [1].
    Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1 and 3.1.2 (d_c = 4 d_h, d_h^R = d_h / 2).

    >>> found = with_latent(Architecture(32, 4096, 32, 8, 128, 14336, 128256))
    >>> found.mla, found.kv_lora_rank, found.qk_rope_dim
    (True, 512, 64)
    """
    d = arch.v_dim
    return replace(
        arch, mla=True, kv_heads=arch.heads, head_dim=d, q_lora_rank=q_lora_rank, kv_lora_rank=kv_lora_rank or 4 * d,
        qk_nope_dim=d, qk_rope_dim=max(d // 2, 1), v_head_dim=d,
    )  # fmt: skip


def with_windows(arch: Architecture, share: float, window_tokens: int) -> Architecture:
    """Let a share of the attention layers see only the last `window_tokens`; those with linear attention stay.

    Shapes: scalars. Units: share [1], window [token]. Raises ValueError where no layer would see the whole context or have a window.
    Reference: Beltagy et al., Longformer, arXiv:2004.05150, section 3.1; Gemma 2, arXiv:2408.00118, section 2 (alternating layers).

    >>> with_windows(Architecture(32, 4096, 32, 8, 128, 14336, 128256), 0.75, 1024).window_layers
    24
    """
    count = round(share * arch.attending_layers)
    if not 0 < count <= arch.attending_layers - arch.linear_layers:
        raise ValueError(f"windows in {share:.0%} of the layers leave none with a window, or are more than it has")
    return replace(arch, window_layers=count, window_tokens=window_tokens)


def with_linear(arch: Architecture, share: float) -> Architecture:
    """Give a share of the attention layers linear attention, whose state does not grow; the others see the whole context.

    Shapes: scalars. Units: share [1]. Raises ValueError where no layer would be linear.
    Reference: Katharopoulos et al., arXiv:2006.16236; MiniMax-01, arXiv:2501.08313, section 2.2 (seven of eight layers).

    >>> with_linear(Architecture(32, 4096, 32, 8, 128, 14336, 128256), 0.875).linear_layers
    28
    """
    count = round(share * arch.attending_layers)
    if not 0 < count <= arch.attending_layers:
        raise ValueError(f"linear attention in {share:.0%} of the layers leaves none with it")
    return replace(arch, linear_layers=count, window_layers=0, window_tokens=0)


def active_ffn(arch: Architecture) -> int:
    """Return the inner width of the feed-forward block that a token passes: f, or k f_e of routed experts.

    Shapes: scalars. Units: [1]. Reference: Fedus et al., Switch Transformers, arXiv:2101.03961, section 2.

    >>> from models.serving import examples
    >>> active_ffn(examples.MOE) == examples.MOE.topk * examples.MOE.expert_ffn
    True
    """
    return arch.topk * arch.expert_ffn if arch.experts else arch.ffn


def with_experts(arch: Architecture, experts: int, topk: int, expert_ffn: int = 0) -> Architecture:
    """Give the feed-forward layers `experts` experts, `topk` of them for a token; 0 experts make them dense.

    Without `expert_ffn` the width that a token passes stays: f_e = k0 f_e0 / k (f / k of a dense network), in whole tiles; with as many
    experts times as wide, E f_e is constant and so are the parameters. Shared experts stay; a dense layer is as wide as them and k experts together.
    Shapes: scalars. Units: [1]. Raises ValueError for a top-k that is not between 1 and the number of experts.
    Reference: DeepSeekMoE, arXiv:2401.06066, section 3.1 (fine-grained segmentation); Krajewski et al., arXiv:2402.07871 (granularity).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> moe = with_experts(arch, 8, 2)
    >>> moe.expert_ffn, with_experts(moe, 0, 0).ffn
    (7168, 14336)
    """
    width = active_ffn(arch)
    if not experts:
        dense = width + (arch.shared_width if arch.experts else 0)
        return replace(
            arch, ffn=dense, experts=0, topk=0, expert_ffn=0, shared_experts=0, dense_layers=0, routed_groups=0,
            expert_hidden=0, shared_ffn=0,
        )  # fmt: skip
    if not 1 <= topk <= experts:
        raise ValueError(f"top-{topk} of {experts} experts; expected from 1 to {experts}")
    each, shared = expert_ffn or _tiles(width / topk), arch.shared_width
    kept = 0 if shared == arch.shared_experts * each else shared  # its width stays, whatever a routed expert's is
    return replace(arch, experts=experts, topk=topk, expert_ffn=each, shared_ffn=kept)


def with_width(arch: Architecture, factor: float) -> Architecture:
    """Make a network wider and shallower (factor > 1), or narrower and deeper, at nearly the same parameters.

    Hidden width, heads and feed-forward widths x factor, in whole tiles and whole groups of heads; layers so that the parameters
    without embeddings stay closest. Shapes: scalars. Units: factor [1].
    Reference: Kaplan et al., arXiv:2001.08361, section 3.2 (loss depends little on the aspect ratio at fixed size).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> wide = with_width(arch, 1.25)
    >>> wide.hidden, wide.heads, wide.layers
    (5120, 40, 21)
    """
    group = arch.kv_heads if 1 < arch.kv_heads < arch.heads else gcd(arch.heads, 8)
    heads = max(round(arch.heads * factor / group), 1) * group
    wide = replace(
        arch,
        hidden=_tiles(arch.hidden * factor),
        heads=heads,
        kv_heads=heads if arch.kv_heads == arch.heads else arch.kv_heads,
        ffn=_tiles(arch.ffn * factor),
        expert_ffn=_tiles(arch.expert_ffn * factor),
        shared_ffn=_tiles(arch.shared_ffn * factor),
        expert_hidden=_tiles(arch.expert_hidden * factor),
    )
    layers = max(round(arch.layers * _body(arch) / _body(wide)), arch.dense_layers + 1, 1)
    return replace(wide, layers=layers, **{
        name: round(getattr(arch, name) * layers / arch.layers)
        for name in ("window_layers", "linear_layers", "attention_layers", "state_layers")
    })  # fmt: skip


def _body(arch: Architecture) -> float:
    counts = parameter_counts(arch)
    return counts.total - counts.embedding - counts.head


def _tiles(width: float) -> int:
    return max(round(width / TILE), 1) * TILE if width else 0
