"""Time of one transformer layer and of the vocabulary head on one rank for one micro-batch, by effect.

Each kernel is a function of its own that gives the forward time; `layer_times` puts them together with the exchanges of
exchange.py, with backward and recompute. Pipeline, data parallelism and the whole step are in step.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.arrays import Floats, Result
from models.formats import element_bytes
from models.roofline import gemm_s
from models.training.adapters import Matrix, feed_forward_matrices, mixer_matrices
from models.training.exchange import (
    context_parallel_s,
    expert_exchange_s,
    launch_excess_s,
    moe_host_s,
    tensor_parallel_s,
)
from models.training.pipeline import DUALPIPE
from models.training.run import ACTIVATION_BYTES, Run
from models.transformer.attention import attention_flops
from models.transformer.routing import EVEN

Times = dict[str, Floats]
PARTS = ("compute", "attention", "elementwise", "tp", "cp", "ep", "overhead")
# Memory traffic per token that no fusion removes, in bytes at 16 bit: norm and residual addition of a block per
# hidden element, rotary embedding and its transposition per query, key and value element, permuting tokens to experts
# and back per hidden element, casting an operand to 8 bits.
RESIDUAL_BYTES, QKV_BYTES, PERMUTE_BYTES, CAST_BYTES = 7.0, 6.0, 24.0, 3.0
SUM_BYTES = 6.0  # two 16-bit elements read and one written where an adapter's output is added
BACKWARD_GEMMS = 2.0  # gradients of the inputs and of the weights
UNFUSED_ATTENTION_BACKWARD = (2.0, 1.5)  # arithmetic, score traffic
REFERENCE_HEAD_DIM = 128.0
VOCABULARY_MULTIPLE = 128.0  # to which software pads the vocabulary of a rank
FORGOTTEN_EXPONENT = 1.5  # cheap modules are dropped first


def _gemm(run: Run, m: Floats, n: Floats | float, k: Floats | float) -> Floats:
    width = element_bytes(run.precision)
    seconds = gemm_s(
        m, n, k, run.gemm_flop_per_s, run.memory_bytes_per_s, width, run.half_size, run.constants.misalignment
    )
    return np.asarray(seconds, float)


def attention_gemms_s(run: Run) -> Floats:
    """Predict the projections of an attention block, forward: query, key, value and output; with MLA through its latents.

    Column- and row-split by tp; the down-projections of MLA are not split but work on the rank's share of the sequence.
    Shapes: one axis. Units: [s].
    Reference: Shoeybi et al., arXiv:1909.08053, section 3; DeepSeek-V2, arXiv:2405.04434, equations 9-19; `roofline.gemm_s`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(tp=[1, 8]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(np.diff(attention_gemms_s(run))[0] < 0)
    True
    """
    arch, tp = run.arch, run.tp
    values = arch.heads * arch.v_dim / tp
    output = _gemm(run, run.tokens, arch.hidden, values)
    if not arch.mla:
        return output + _gemm(run, run.tokens, (arch.heads + 2.0 * arch.kv_heads) * arch.head_dim / tp, arch.hidden)
    own = run.tokens / run.sequence_split
    queries = arch.heads * arch.qk_dim / tp
    key_values = arch.heads * (arch.qk_nope_dim + arch.v_head_dim) / tp
    time = output + _gemm(run, own, arch.kv_lora_rank + arch.qk_rope_dim, arch.hidden)
    time = time + _gemm(run, run.tokens, key_values, arch.kv_lora_rank)
    if not np.any(arch.q_lora_rank):
        return time + _gemm(run, run.tokens, queries, arch.hidden)
    return time + _gemm(run, own, arch.q_lora_rank, arch.hidden) + _gemm(run, run.tokens, queries, arch.q_lora_rank)


def dense_ffn_s(run: Run, width: float) -> Floats:
    """Predict a feed-forward block of a given width, split by tp, forward.

    Shapes: one axis. Units: width [1], result [s].
    Reference: Shoeybi et al., arXiv:1909.08053, section 3, equation 3; `roofline.gemm_s`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> dense_ffn_s(run, 0).tolist()
    [0.0]
    """
    if not np.any(width):
        return np.zeros_like(run.tokens)
    up = (run.arch.ffn_matrices - 1.0) * width / run.tp
    return _gemm(run, run.tokens, up, run.arch.hidden) + _gemm(run, run.tokens, run.arch.hidden, width / run.tp)


def routed_experts_s(run: Run) -> Floats:
    """Predict the grouped GEMMs of the routed experts of a rank, forward.

    e = E / EP local experts see T k / e tokens each; with EP 1 an expert is split by tp instead. Slower than a dense GEMM
    by the fitted expert efficiency, and by the imbalance of the fullest rank: as the architecture's routing states it, or as fitted. Tokens beyond
    a capacity are left out.
    Shapes: one axis. Units: [s].
    Reference: Gale et al., MegaBlocks, arXiv:2211.15841, section 4; fitted factors see the catalog.

    >>> from models.serving.examples import CHIP, MOE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(MOE, CHIP, Layouts.of(dp=8, ep=[1, 8]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(np.diff(routed_experts_s(run))[0] < 0)  # fewer and larger GEMMs
    True
    """
    arch, c = run.arch, run.constants
    local = arch.experts / run.layouts.ep
    split = np.where(run.layouts.ep > 1, 1.0, run.tp)
    rows = run.expert_tokens * run.layouts.ep * arch.topk / arch.experts
    # The tokens of the other ranks of the group come to this rank's experts: each rank keeps T k in all.
    up = _gemm(run, rows, (arch.ffn_matrices - 1.0) * arch.expert_ffn / split, arch.expert_input)
    down = _gemm(run, rows, arch.expert_input, arch.expert_ffn / split)
    efficiency = c.expert_efficiency_xla if run.recipe.framework == "xla" else c.expert_efficiency
    imbalance = (arch.routing or EVEN).fullest(c.expert_imbalance, arch.experts, arch.experts, run.layouts.ep)
    time = local * (up + down) * imbalance / efficiency
    if np.any(arch.expert_hidden):
        time = (
            time
            + _gemm(run, run.expert_tokens, arch.expert_hidden, arch.hidden)
            + _gemm(run, run.expert_tokens, arch.hidden, arch.expert_hidden)
        )
    return time


def state_gemms_s(run: Run) -> Floats:
    """Predict the projections into and out of a state-space block, split by tp, forward; its scan counts as element-wise traffic.

    Shapes: one axis. Units: [s].
    Reference: Dao and Gu, Mamba-2, arXiv:2405.21060, section 7.1; `roofline.gemm_s`.

    >>> from models.serving.examples import CHIP
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import HYBRID, TRAINING
    >>> run = Run.of(HYBRID, CHIP, Layouts.of(tp=[1, 8]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(np.diff(state_gemms_s(run))[0] < 0)
    True
    """
    arch = run.arch
    inner = _gemm(run, run.tokens, (2.0 * arch.state_width + arch.state_inputs) / run.tp, arch.hidden)
    return inner + _gemm(run, run.tokens, arch.hidden, arch.state_width / run.tp)


def attention_core_s(run: Run) -> tuple[Floats, Floats]:
    """Predict (forward, backward) of scores, softmax and weighted values, mean over the layers; within the examples of a packed sequence.

    Fused: causal FLOPs at the fitted share of the 16-bit peak, backward 2.5 times. Not fused: the whole square, and the
    traffic of the scores; backward twice the arithmetic and 1.5 times the traffic.
    Shapes: one axis. Units: [s].
    Reference: Dao, FlashAttention-2, arXiv:2307.08691, section 4.1; Korthikanti et al., arXiv:2205.05198, section 4.1 (score traffic).

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> args = DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper"
    >>> fused, plain = (attention_core_s(Run.of(*args, Recipe(fused_attention=f)))[0] for f in (True, False))
    >>> bool(plain > 2 * fused)
    True
    """
    arch, c, s = run.arch, run.constants, np.asarray(run.sequence_tokens, float)
    head = np.minimum(1.0, arch.qk_dim / REFERENCE_HEAD_DIM) ** c.small_head_exponent
    rate = (
        run.chip.flop16_per_s
        * c.attention_efficiency
        * c.generation_factors(run.family)[1]
        * run.profile.attention
        * head
    )
    share = run.layouts.micro_batch / (run.tp * run.layouts.cp * arch.attention_blocks)
    seen = run.attended_tokens
    if run.recipe.fused_attention:
        forward = attention_flops(arch, seen, seen) * (s / seen) * share / rate
        return forward, c.attention_backward * forward
    layers = arch.full_layers + arch.windowed_layers
    flop = 2.0 * arch.heads * (arch.qk_dim + arch.v_dim) * s * seen * layers * share / rate
    scores = c.score_bytes * arch.heads * s * seen * layers * share / run.memory_bytes_per_s
    return flop + scores, UNFUSED_ATTENTION_BACKWARD[0] * flop + UNFUSED_ATTENTION_BACKWARD[1] * scores


def elementwise_s(run: Run, moe: bool, mixer: str = "attention", ffn: bool = True) -> Floats:
    """Predict norms, residuals, rotary embedding, activation, casts and permutation: bytes over bandwidth, forward.

    Per token: 14 h (divided by tp with sequence parallelism), 6 bytes per query, key and value element / tp,
    2 (gates + 1) bytes per feed-forward element / tp, 3 bytes per operand cast to 8 bits or fewer; with experts
    24 k h for permuting. A layer of one block alone has half the residual traffic; a state-space block moves a fitted number of bytes per inner element.
    Shapes: one axis. Units: [s].
    Reference: Ivanov et al., Data Movement Is All You Need, arXiv:2007.00072, table 1; fitted factors see the catalog.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(tp=8, sequence_parallel=[0, 1]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(np.diff(elementwise_s(run, False))[0] < 0)
    True
    """
    arch, c, tp = run.arch, run.constants, run.tp
    blocks = float(bool(mixer)) + float(ffn)
    split: Result = 0.0
    cast: Result = 0.0
    if mixer == "attention":
        key_values = arch.heads * (arch.qk_dim + arch.v_dim) if arch.mla else arch.kv_heads * (arch.qk_dim + arch.v_dim)
        split, cast = QKV_BYTES * (arch.heads * arch.qk_dim + key_values), arch.heads * arch.v_dim
    elif mixer == "state":
        split, cast = c.state_bytes * arch.state_width, arch.state_width
    if ffn:
        topk = arch.topk * run.kept  # experts of a token
        width = arch.shared_width + topk * arch.expert_ffn * c.expert_activation_factor if moe else arch.ffn
        split = split + 2.0 * arch.ffn_matrices * width
        cast = cast + (topk * (arch.expert_input + arch.expert_ffn) + arch.shared_width if moe else arch.ffn)
    per_token = RESIDUAL_BYTES * blocks * arch.hidden / run.sequence_split + split / tp
    if element_bytes(run.precision) < ACTIVATION_BYTES:
        per_token = per_token + CAST_BYTES * (blocks * arch.hidden / run.sequence_split + cast / tp)
    moved = run.tokens * per_token * c.elementwise_factor
    if moe:
        # DualPipe comes with a dispatcher that permutes while it sends.
        fused = np.where(run.recipe.fused_dispatch | (run.layouts.schedule == DUALPIPE), c.permute_fused, 1.0)
        moved = moved + PERMUTE_BYTES * run.expert_tokens * arch.topk * arch.expert_input * c.permute_factor * fused
    return moved / run.memory_bytes_per_s


def adapters_s(run: Run, moe: bool, mixer: str = "attention", ffn: bool = True) -> tuple[Floats, Floats]:
    """Predict (products, element-wise traffic) of the adapters of a layer, forward; backward is twice and 1.7 times that.

    Two thin products per adapted matrix, M x r x inputs and M x outputs x r, and their sum with the output of the frozen matrix: both
    read, one written.
    Shapes: one axis. Units: [s]. Zero without adapters.
    Reference: Hu et al., LoRA, arXiv:2106.09685, equation 3; `roofline.gemm_s`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = lambda rank: Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe(adapter_rank=rank))
    >>> bool(adapters_s(run(64), False)[0] > adapters_s(run(16), False)[0] > 0.0)
    True
    """
    arch, rank = run.arch, float(run.recipe.adapter_rank)
    products, outputs = np.zeros_like(run.tokens), np.zeros_like(run.tokens)
    groups: list[tuple[tuple[Matrix, ...], Floats, Floats, Result]] = []
    if mixer:
        groups.append((mixer_matrices(arch, mixer), run.tokens, run.tp, 1.0))
    if ffn and run.recipe.adapts_ffn and moe:
        rows = run.expert_tokens * run.layouts.ep * arch.topk / arch.experts
        unsplit, local = np.where(run.layouts.ep > 1, 1.0, run.tp), arch.experts / run.layouts.ep
        groups.append((feed_forward_matrices(arch, arch.expert_ffn, arch.expert_input), rows, unsplit, local))
        groups.append((feed_forward_matrices(arch, arch.shared_width), run.tokens, run.tp, 1.0))
    elif ffn and run.recipe.adapts_ffn:
        groups.append((feed_forward_matrices(arch, arch.ffn), run.tokens, run.tp, 1.0))
    for matrices, tokens, tp, count in groups:
        for matrix in matrices:
            wide, high = matrix.sides(tp)
            both = _gemm(run, tokens, rank, wide) + _gemm(run, tokens, high, rank)
            # A block of width 0, such as shared experts that a network has not, has no adapters either.
            there = (wide > 0.0) & (high > 0.0)
            products = products + count * np.where(there, both, 0.0)
            outputs = outputs + count * np.where(there, tokens * high, 0.0)
    return products, SUM_BYTES * outputs / run.memory_bytes_per_s


def layer_times(run: Run, moe: bool, mixer: str = "attention", ffn: bool = True) -> tuple[Times, Times]:
    """Predict (forward, backward with recompute) of one layer for one micro-batch, by part.

    A layer is a mixer ("attention", "state" or none) and a feed-forward block (dense or of experts), or one of the two.

    Backward: twice the GEMMs (once for frozen weights, and twice their adapters), 2.5 times the fused attention core, 1.7 times the element-wise traffic, the same exchanges.
    Recompute: full repeats forward with its exchanges; selective repeats a share of the kernels (without a fused core: the core).
    Shapes: one axis per part. Units: [s].
    Reference: Korthikanti et al., arXiv:2205.05198, section 5; Narayanan et al., arXiv:2104.04473, section 3.5.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> forward, backward = layer_times(Run.of(DENSE, CHIP, Layouts.of(recompute=2), 4096, "bf16", TRAINING, "hopper", Recipe()), False)
    >>> bool(np.isclose(backward["compute"] / forward["compute"], 3.0)[0])
    True
    """
    arch, c, zero = run.arch, run.constants, np.zeros_like(run.tokens)
    core, core_backward = attention_core_s(run) if mixer == "attention" else (zero, zero)
    blocks: Result = float(bool(mixer))
    compute = zero
    if mixer:
        compute = attention_gemms_s(run) if mixer == "attention" else state_gemms_s(run)
    if ffn and moe:
        compute = compute + routed_experts_s(run) + dense_ffn_s(run, arch.shared_width)
        # With expert parallelism an expert is not split by tp: only attention and shared experts exchange activations.
        blocks = blocks + np.where(run.layouts.ep > 1, np.asarray(arch.shared_width) > 0, 1.0)
    elif ffn:
        compute, blocks = compute + dense_ffn_s(run, arch.ffn), blocks + 1.0
    tp = tensor_parallel_s(run, blocks)
    moved = elementwise_s(run, moe, mixer, ffn)
    frozen = run.recipe.adapter_rank > 0
    added, summed = adapters_s(run, moe, mixer, ffn) if frozen else (0.0, 0.0)
    moved = moved + summed
    host = moe_host_s(run) if moe else zero
    # Keys and values travel while the core runs or waits for the host; without the wait a faster chip could lose time.
    waiting = launch_excess_s(run, compute + added + core + moved + tp, moe)
    forward = {
        "compute": compute + added, "attention": core, "elementwise": moved, "tp": tp, "cp": context_parallel_s(run, core + waiting, 1.0) if mixer == "attention" else zero,
        "ep": expert_exchange_s(run, compute + added + core + moved) if moe else zero, "overhead": host + waiting,
    }  # fmt: skip
    once = {
        "compute": (BACKWARD_GEMMS - frozen) * compute + BACKWARD_GEMMS * added,
        "attention": core_backward,
        "elementwise": c.elementwise_backward * moved,
    }
    waiting = launch_excess_s(run, once["compute"] + once["attention"] + once["elementwise"] + tp, moe)
    once |= {
        "tp": tp,
        "cp": context_parallel_s(run, core_backward + waiting, 2.0) if mixer == "attention" else zero,
        "ep": expert_exchange_s(run, once["compute"] + once["attention"] + once["elementwise"]) if moe else zero,
        "overhead": 2.0 * host + waiting,
    }
    selective = c.recompute_selective_moe if moe else c.recompute_selective
    full, some = run.layouts.recompute == 2, run.layouts.recompute == 1
    whole = c.recompute_full_fsdp if run.recipe.framework == "fsdp" else 1.0
    repeated = dict.fromkeys(PARTS, full * whole)
    # Cheap modules go first, so that dropping a share of the activations repeats a smaller share of the forward pass.
    extra = (
        np.where(full, 0.0, np.asarray(run.recipe.forgotten, float) ** FORGOTTEN_EXPONENT)
        if np.any(run.recipe.forgotten)
        else None
    )
    if run.recipe.fused_attention:
        repeated |= {
            part: np.where(some, selective, repeated[part]) for part in ("compute", "attention", "elementwise")
        }
    else:
        repeated["attention"] = (full | some).astype(float)
    if extra is not None:
        repeated = {part: np.maximum(share, extra) for part, share in repeated.items()}
    return forward, {part: once[part] + repeated[part] * forward[part] for part in PARTS}


def projection_s(run: Run) -> Floats:
    """Predict the projection of 2 h to h in front of a layer that predicts a further token, split by tp, forward.

    Shapes: one axis. Units: [s]. Reference: DeepSeek-V3, arXiv:2412.19437, section 2.2, equation 21; `roofline.gemm_s`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(tp=[1, 8]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(np.diff(projection_s(run))[0] < 0)
    True
    """
    return _gemm(run, run.tokens, run.arch.hidden / run.tp, 2.0 * run.arch.hidden)


def head_s(run: Run) -> Floats:
    """Predict the vocabulary head for one micro-batch, forward (backward is twice that), at 16 bit.

    One M x V/t x h product with V/t rounded up to a multiple of 128, and one more per layer that predicts further tokens.
    Shapes: one axis. Units: [s].
    Reference: Narayanan et al., arXiv:2104.04473, appendix (logit layer 6 B s h V); DeepSeek-V3, arXiv:2412.19437, section 2.2.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> head_s(Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe())).round(4).tolist()
    [0.0063]
    """
    at_16_bit = replace(run.chip, flop_per_s=run.chip.flop16_per_s)
    run = Run.of(
        run.arch,
        at_16_bit,
        run.layouts,
        run.sequence_tokens,
        "bf16",
        run.constants,
        run.family,
        run.recipe,
        run.scaleout,
    )
    padded = VOCABULARY_MULTIPLE * np.ceil(run.arch.vocab / (VOCABULARY_MULTIPLE * run.tp))
    once = _gemm(run, run.tokens, padded, run.arch.hidden)
    return once * (1.0 + run.recipe.mtp_layers)
