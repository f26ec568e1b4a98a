"""Memory of a training rank by what fills it, and whether a layout fits. The KV cache of serving is in models/serving/kv_cache.py."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Ints, sum_of
from models.training.adapters import adapters_per_rank
from models.training.constants import DEFAULT_RECIPE, Recipe, TrainingConstants
from models.training.layouts import OFFLOADS_ACTIVATIONS, OFFLOADS_OPTIMIZER, Layouts
from models.training.pipeline import in_flight_stages, stage_layers, weight_copies
from models.training.stages import Contents, layer_parameters, leading_layers, parameters_of, rank_contents
from models.transformer.architecture import Architecture

# Mixed precision with Adam, per parameter: a 16-bit weight, a 32-bit gradient, a 32-bit master weight and two moments.
GATHERED_LAYERS = 2.0  # under ZeRO-3: the layer that computes and the next one
WEIGHT_BYTES, GRADIENT_BYTES, OPTIMIZER_BYTES = 2.0, 4.0, 12.0
ACTIVATION_BYTES, LOGIT_BYTES = 2.0, 4.0
# Tensors of the hidden width that a layer keeps: input of both norms, and their outputs as inputs of the GEMMs; selective recompute
# keeps only the first pair.
NORM_INPUTS, NORM_OUTPUTS = 2.0, 2.0
STATE_TENSORS = 4.0  # inputs of gate and scan, convolution, output
SCORE_BYTES = 5.0  # softmax output, its dropout mask and the dropped scores, where attention is not fused
OFFLOAD_LAYERS = 2.0  # layers whose activations are on the chip while they travel: one in use, one on its way
TIGHT, IMPOSSIBLE = 0.9, 1.1  # memory over capacity


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Memory of the fullest rank by part; arrays [byte]."""

    weights: Floats
    gradients: Floats
    optimizer: Floats
    activations: Floats
    logits: Floats
    runtime: Floats  # fragmentation, runtime and communication buffers
    gathered: Floats  # whole layers and gradients that a rank holds for a moment

    @property
    def total(self) -> Floats:
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.activations
            + self.logits
            + self.runtime
            + self.gathered
        )


def parameters_per_rank(arch: Architecture, layouts: Layouts, mtp_layers: int = 0) -> tuple[Floats, Floats]:
    """Count (dense, expert) parameters of the rank with the most of both together.

    Of `stages.rank_contents`, by `stages.parameters_of`: layers / tp, once for each copy that the schedule keeps; experts / ep, or / tp where ep
    is 1; the vocabulary matrices on the first and last stage.
    Shapes: one axis. Units: [1].
    Reference: Narayanan et al., arXiv:2104.04473, section 2; Singh et al., arXiv:2303.06318, section 3 (experts).

    >>> from models.transformer.architecture import parameter_counts
    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> dense, expert = parameters_per_rank(arch, Layouts.of(tp=[1, 8]))
    >>> float(dense[0]) == parameter_counts(arch).total, float(dense[0] / dense[1]), float(expert[0])
    (True, 8.0, 0.0)
    """
    found = [parameters_of(arch, layouts, rank) for rank in rank_contents(arch, layouts, mtp_layers)]
    dense, expert = found[0]
    for other_dense, other_expert in found[1:]:
        fuller = other_dense + other_expert > dense + expert
        dense, expert = np.where(fuller, other_dense, dense), np.where(fuller, other_expert, expert)
    return dense, expert


def trained_per_rank(arch: Architecture, layouts: Layouts, recipe: Recipe = DEFAULT_RECIPE) -> tuple[Floats, Floats]:
    """Count (dense, expert) parameters of the fullest rank that have gradients: all, or the parameters of the adapters.

    Shapes: one axis. Units: [1]. Reference: Hu et al., LoRA, arXiv:2106.09685, section 4.2 (no states of frozen weights).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> [float(trained_per_rank(arch, Layouts.of(), recipe)[0][0]) for recipe in (Recipe(), Recipe(adapter_rank=16))]
    [8029995008.0, 9437184.0]
    """
    if recipe.adapter_rank:
        return adapters_per_rank(arch, layouts, recipe)
    return parameters_per_rank(arch, layouts, recipe.mtp_layers)


def state_bytes(
    arch: Architecture, layouts: Layouts, recipe: Recipe = DEFAULT_RECIPE, contents: Contents | None = None
) -> tuple[Floats, Floats, Floats]:
    """Compute (weights, gradients, optimizer state) of a rank of these contents, else of the one with the most parameters.

    2, 4 and 12 bytes per parameter with Adam, others as the recipe has them; ZeRO-1 divides the optimizer state by the data-parallel degree, ZeRO-2 also the gradients,
    ZeRO-3 also the weights. That degree is dp cp for dense parameters and tp cp dp / ep for experts that are not split by tp; copies
    of the weights share one optimizer state. Frozen weights have neither gradients nor optimizer state, but their adapters do. An
    offloaded optimizer state takes no memory of the chip.
    Shapes: one axis. Units: [byte].
    Reference: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5 and figure 1 (with 32-bit gradients: 18 instead of 16 bytes).

    >>> from models.transformer.architecture import parameter_counts
    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> sum(float(part[0]) for part in state_bytes(arch, Layouts.of(zero=0))) / parameter_counts(arch).total
    18.0
    """
    every = (
        parameters_per_rank(arch, layouts, recipe.mtp_layers)
        if contents is None
        else parameters_of(arch, layouts, contents)
    )
    trained = adapters_per_rank(arch, layouts, recipe) if recipe.adapter_rank else every
    dense_ranks = (layouts.dp * layouts.cp).astype(float)
    expert_ranks = np.where(layouts.ep > 1, layouts.tp * dense_ranks / layouts.ep, dense_ranks)

    def held(bytes_each: float, from_level: int, parts: tuple[Floats, Floats], copies: Floats | float = 1.0) -> Floats:
        dense, expert = parts
        sharded = dense / (dense_ranks * copies) + expert / (expert_ranks * copies)
        return bytes_each * np.where(layouts.zero >= from_level, sharded, dense + expert)

    weights = held(recipe.weight_bytes, 3, trained)
    if recipe.adapter_rank:
        weights = weights + held(recipe.operand_bytes, 3, every)
    optimizer = held(recipe.optimizer_bytes, 1, trained, np.asarray(weight_copies(layouts.schedule), float))
    on_host = (layouts.offload & OFFLOADS_OPTIMIZER) > 0
    return weights, held(recipe.gradient_bytes, 2, trained), np.where(on_host, 0.0, optimizer)


def gathered_bytes(arch: Architecture, layouts: Layouts, recipe: Recipe = DEFAULT_RECIPE) -> Floats:
    """Compute what a rank holds whole for a moment under ZeRO-3: two layers of weights (one computes, the next arrives) and a layer's gradients.

    (2 + 1) x 2 bytes per parameter of the largest kind of layer on its tensor and expert ranks; frozen weights have no gradients. 0 below ZeRO-3.
    Shapes: one axis. Units: [byte].
    Reference: Zhao et al., PyTorch FSDP, arXiv:2304.11277, sections 3.2 and 3.3 (units gathered, one ahead).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> (gathered_bytes(arch, Layouts.of(dp=8, zero=[1, 3])) / 1e9).round(2).tolist()
    [0.0, 1.31]
    """
    tp, ep = layouts.tp.astype(float), layouts.ep
    leading, rest, routed = layer_parameters(arch, tp)
    dense, experts = rest / tp, routed / np.where(ep > 1, ep, tp)
    dense = dense + np.maximum(np.where(leading_layers(arch) > 0, leading / tp, 0.0) - dense - experts, 0.0)
    held = (
        GATHERED_LAYERS * recipe.operand_bytes
        if recipe.adapter_rank
        else GATHERED_LAYERS * WEIGHT_BYTES + ACTIVATION_BYTES
    )
    return np.where(layouts.zero >= 3, held * (dense + experts), 0.0)


def activation_bytes_per_token(
    arch: Architecture,
    layouts: Layouts,
    sequence_tokens: ArrayLike,
    recipe: Recipe = DEFAULT_RECIPE,
    moe_share: ArrayLike | None = None,
) -> Floats:
    """Compute the activations that a layer keeps for backward, mean over the layers, or where `moe_share` of them have experts, per token of a rank.

    None recomputed: 2 bytes of 4 hidden tensors (divided by tp with sequence parallelism), of query, key, value and core output,
    and of gates and product of the feed-forward block, / tp; with k experts the routed width k f and the k dispatched inputs.
    Without fused attention 5 a s / tp on top. Selective: no norm outputs, no product of the activation, no scores, and with
    MLA the latents instead of query, key and value. Full: only the layer's input. The input of a frozen matrix without an adapter is
    not kept, since its weights need no gradient. Norm outputs, product and dispatched inputs, which are kept for the gradients of
    weights alone, take the bytes of an operand; the gates do where the software keeps them so.
    Shapes: one axis. Units: sequence [token], result [byte/token].
    Reference: Korthikanti et al., arXiv:2205.05198, equations 1-4 and section 5, with the width of gated and grouped-query blocks.

    >>> arch = Architecture(96, 12288, 96, 96, 128, 49152, 51200, gated=False)
    >>> per_token = activation_bytes_per_token(arch, Layouts.of(tp=8, recompute=[0, 1, 2]), 2048)
    >>> (per_token / (2 * 12288 / 8)).round(2).tolist()
    [16.0, 10.0, 1.0]
    """
    tp = layouts.tp.astype(float)
    split = np.where(layouts.sequence_parallel > 0, tp, 1.0)
    selective, full = layouts.recompute == 1, layouts.recompute == 2
    unneeded = float(recipe.adapter_rank > 0 and not recipe.adapts_ffn)  # inputs of the feed-forward matrices
    # Shares of the layers with each block: 1 each in a plain transformer, less where a layer is one block.
    mixing, feeding = arch.attention_blocks / arch.layers, arch.ffn_layers / arch.layers
    state_share = arch.state_blocks / arch.layers
    narrow = recipe.operand_bytes / ACTIVATION_BYTES
    norms = NORM_INPUTS + np.where(selective, 0.0, narrow * (NORM_OUTPUTS - unneeded))
    hidden = arch.hidden * norms / split * (mixing + feeding + state_share) / 2.0
    # The core needs its output at 16 bit, the projection after it at the width of its operands.
    output = mixing * arch.heads * arch.v_dim / tp * (1.0 + (narrow if narrow < 1.0 else 0.0))
    key_values = arch.heads * (arch.qk_dim + arch.v_dim) if arch.mla else arch.kv_heads * (arch.qk_dim + arch.v_dim)
    operands = (arch.heads * arch.qk_dim + key_values) / tp
    if arch.mla:
        operands = np.where(selective, (arch.q_lora_rank + arch.kv_lora_rank + arch.qk_rope_dim) / split, operands)
    operands = mixing * operands + state_share * (STATE_TENSORS * arch.state_width + arch.state_inputs) / tp
    moe_share = arch.moe_layers / arch.layers if moe_share is None else np.asarray(moe_share, float)
    width = (feeding - moe_share) * arch.ffn + moe_share * (arch.topk * arch.expert_ffn + arch.shared_width)
    up = (arch.ffn_matrices - 1.0) * width * (narrow if recipe.narrow_activations else 1.0)
    dispatched = moe_share * arch.topk * arch.expert_input
    product = np.where(selective, 0.0, width) * (1.0 - unneeded)
    kept = hidden + operands + output + (up + narrow * (product + dispatched)) / tp
    attending = (arch.full_layers + arch.windowed_layers) / arch.layers
    every_score = (
        0.0
        if recipe.fused_attention
        else SCORE_BYTES * arch.heads * np.asarray(sequence_tokens, float) * attending / tp
    )
    scores = np.where(selective, 0.0, every_score)
    return np.where(full, ACTIVATION_BYTES * arch.hidden / split, ACTIVATION_BYTES * kept + scores)


def training_memory(
    arch: Architecture, layouts: Layouts, *, global_batch_sequences: float, sequence_tokens: int, constants: TrainingConstants,
    recipe: Recipe = DEFAULT_RECIPE,
) -> TrainingMemory:  # fmt: skip
    """Predict the peak memory of the fullest rank.

    Of the ranks of `stages.rank_contents`, the one with the most: its state + activations of the micro-batches in flight on it (full recompute:
    also the activations of the layer being repeated) + where it has the head, 4-byte logits with their 2-byte copy, once more for each further token
    predicted. Fragmentation multiplies all that is sharded and kept; the runtime adds a constant.
    Shapes: one axis. Units: batch [1], sequence [token], result [byte]. About 7 % median error on published peaks.
    Reference: Korthikanti et al., arXiv:2205.05198, section 4; Rajbhandari et al., arXiv:1910.02054, section 5.

    >>> from models.serving.examples import DENSE
    >>> from models.training.examples import TRAINING
    >>> layouts = Layouts.of(dp=64, zero=[0, 1, 2, 3])
    >>> memory = training_memory(DENSE, layouts, global_batch_sequences=64, sequence_tokens=4096, constants=TRAINING)
    >>> (memory.total / 2**30).round().tolist()
    [164.0, 71.0, 40.0, 26.0]
    """
    tokens = layouts.micro_batch * np.asarray(sequence_tokens, float) / layouts.cp
    micro_batches = np.maximum(1.0, layouts.micro_batches(global_batch_sequences) / recipe.flushes)
    repeated = activation_bytes_per_token(arch, _with_recompute(layouts, 0), sequence_tokens, recipe)
    again = np.where(layouts.recompute == 2, tokens * repeated, 0.0)
    kept = _kept_by_kind(arch, layouts, sequence_tokens, recipe)
    on_host = (layouts.offload & OFFLOADS_ACTIVATIONS) > 0
    logits = tokens * arch.vocab / layouts.tp * (LOGIT_BYTES + ACTIVATION_BYTES) * (1.0 + recipe.mtp_layers)
    gathered, copies = gathered_bytes(arch, layouts, recipe), np.asarray(weight_copies(layouts.schedule), float)
    fullest: TrainingMemory | None = None
    for rank in rank_contents(arch, layouts, recipe.mtp_layers):
        state = state_bytes(arch, layouts, recipe, rank)
        stage = (
            tokens
            * sum_of(count * part for count, part in zip(rank.by_kind, kept, strict=True) if count.any())
            / copies
        )
        held = in_flight_stages(layouts.pp, micro_batches, layouts.vpp, layouts.schedule, rank.rank)
        on_chip = np.minimum(held, OFFLOAD_LAYERS * copies / np.maximum(sum_of(rank.by_kind), 1.0))
        activations = stage * np.where(on_host, on_chip, held) + again
        here = rank.head * logits
        runtime = constants.runtime_bytes + (constants.fragmentation - 1.0) * (sum_of(state) + activations + here)
        fullest = _fuller(TrainingMemory(*state, activations, here, runtime, gathered), fullest)
    assert fullest is not None
    return fullest


def _kept_by_kind(
    arch: Architecture, layouts: Layouts, sequence_tokens: ArrayLike, recipe: Recipe
) -> tuple[Floats, Floats, Floats]:
    """Compute what a (leading dense, other, predicting) layer keeps per token [byte]; the last also keeps its projection's input of 2 h."""
    leading = leading_layers(arch)
    if not np.any(leading):
        other = first = kept_bytes_per_token(arch, layouts, sequence_tokens, recipe)
    else:
        share = arch.moe_layers / np.maximum(arch.layers - leading, 1.0)
        first, other = (kept_bytes_per_token(arch, layouts, sequence_tokens, recipe, part) for part in (0.0, share))
    split = np.where(layouts.sequence_parallel > 0, layouts.tp, 1)
    return first, other, other + 2.0 * ACTIVATION_BYTES * arch.hidden / split


def _fuller(one: TrainingMemory, other: TrainingMemory | None) -> TrainingMemory:
    """Take the parts of the rank with more memory in all, by layout."""
    if other is None:
        return one
    more = one.total > other.total
    return TrainingMemory(
        *(np.where(more, getattr(one, f.name), getattr(other, f.name)) for f in fields(TrainingMemory))
    )


def kept_bytes_per_token(
    arch: Architecture,
    layouts: Layouts,
    sequence_tokens: ArrayLike,
    recipe: Recipe = DEFAULT_RECIPE,
    moe_share: ArrayLike | None = None,
) -> Floats:
    """Compute the activations of `activation_bytes_per_token` less the share that the software drops beyond the level of recompute.

    Shapes: one axis. Units: sequence [token], result [byte/token].
    Reference: Korthikanti et al., arXiv:2205.05198, section 5 (activations by module).

    >>> arch = Architecture(96, 12288, 96, 96, 128, 49152, 51200, gated=False)
    >>> [float(kept_bytes_per_token(arch, Layouts.of(), 2048, Recipe(forgotten=share))[0]) / 12288 for share in (0.0, 0.5, 1.0)]
    [32.0, 17.0, 2.0]
    """
    per_token = activation_bytes_per_token(arch, layouts, sequence_tokens, recipe, moe_share)
    if not np.any(recipe.forgotten):
        return per_token
    dropped = activation_bytes_per_token(arch, _with_recompute(layouts, 2), sequence_tokens, recipe, moe_share)
    return np.minimum(per_token, per_token + np.asarray(recipe.forgotten, float) * (dropped - per_token))


def host_bytes(
    arch: Architecture, layouts: Layouts, *, global_batch_sequences: float, sequence_tokens: int, recipe: Recipe = DEFAULT_RECIPE
) -> Floats:  # fmt: skip
    """Compute what a rank keeps in the memory of its host: its offloaded optimizer state and activations.

    Shapes: one axis. Units: batch [1], sequence [token], result [byte].
    Reference: Ren et al., ZeRO-Offload, arXiv:2101.06840, section 4; `training_memory` for the rest on the chip.

    >>> from models.serving.examples import DENSE
    >>> layouts = Layouts.of(dp=64, zero=1, offload=[0, 1])
    >>> host_bytes(DENSE, layouts, global_batch_sequences=64, sequence_tokens=4096).round(-8).tolist()
    [0.0, 1500000000.0]
    """
    plain = Layouts(**{f.name: getattr(layouts, f.name) for f in fields(Layouts)} | {"offload": 0 * layouts.offload})
    optimizer = state_bytes(arch, plain, recipe)[2]
    tokens = layouts.micro_batch * np.asarray(sequence_tokens, float) / layouts.cp
    micro_batches = np.maximum(1.0, layouts.micro_batches(global_batch_sequences) / recipe.flushes)
    held = in_flight_stages(layouts.pp, micro_batches, layouts.vpp, layouts.schedule)
    stage = (
        tokens * kept_bytes_per_token(arch, layouts, sequence_tokens, recipe) * stage_layers(arch.layers, layouts.pp)
    )
    return np.where((layouts.offload & OFFLOADS_OPTIMIZER) > 0, optimizer, 0.0) + np.where(
        (layouts.offload & OFFLOADS_ACTIVATIONS) > 0, stage * held, 0.0
    )


def _with_recompute(layouts: Layouts, level: int) -> Layouts:
    return Layouts.of(tp=layouts.tp, sequence_parallel=layouts.sequence_parallel, recompute=level)


def fits(memory_bytes: ArrayLike, capacity_bytes: ArrayLike) -> Bools | bool:
    """Tell whether a rank's memory is within the chip's capacity: what a planner may choose.

    Shapes: broadcast. Units: [byte], result boolean. The estimate is good to some 7 %, see `tightness`.
    Reference: capacity as printed by the vendor; error of the estimate from published training measurements.

    >>> bool(fits(79e9, 80e9)), bool(fits(81e9, 80e9))
    (True, False)
    """
    within: Bools | bool = (np.asarray(memory_bytes, float) <= np.asarray(capacity_bytes, float))[()]
    return within


def tightness(memory_bytes: ArrayLike, capacity_bytes: ArrayLike) -> Ints | int:
    """Grade how sure the fit is: 0 comfortable (below 0.9 of capacity), 1 tight (to 1.1), 2 impossible.

    Shapes: broadcast. Units: [byte], result code [1].
    Reference: error of the estimate from published training measurements (peaks within about 10 %).

    >>> [int(tightness(m, 80e9)) for m in (60e9, 80e9, 90e9)]
    [0, 1, 2]
    """
    share = np.asarray(memory_bytes, float) / np.asarray(capacity_bytes, float)
    code: Ints | int = np.where(share > IMPOSSIBLE, 2, np.where(share >= TIGHT, 1, 0))[()]
    return code
