"""Parts of the time of an engine step: products, experts, attention, communication, launch. The step itself is in step.py.

A replica is pp stages of tp x dp chips: tensor parallel tp inside an attention rank, dp attention ranks with a batch and
a KV cache each; experts are spread over all tp x dp chips of a stage, ep of them as whole-expert ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from catalog.units import GIGA
from models.arrays import Floats, Ints, Result, as_result
from models.formats import Precision, element_bytes, stored
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.workload import gemm_bits, products_s, read_bytes
from models.transformer.architecture import Architecture, attention_on_ranks, parameter_counts
from models.transformer.attention import attention_flops, core_flops, latent_widening, query_flops, read_bytes_per_rank
from models.transformer.moe import dispatch_copies, distinct_destinations
from models.transformer.routing import EVEN, largest_excess

# Activations travel in 16 bit.
ACTIVATION_BYTES = 2.0
# Up to so many ranks, engines gather the tokens of all and scatter the sums. Beyond, a token goes to the ranks of its experts, which are
# placed by their load.
GATHERED_RANKS = 8
# Slower scale-up links than this are those of the host.
HOST_LINK_BYTES_PER_S = 100 * GIGA
# What picks layouts along their axes.
Index = int | slice | Ints | tuple[int | slice | Ints | None, ...]
REFERENCE_EXPERTS = 128.0  # for which the launch of a MoE layer is stated


@dataclass(frozen=True, slots=True)
class ServingLayouts:
    """Parallel layouts of a serving replica; four arrays of one shape, or four numbers."""

    tp: Ints | int
    pp: Ints | int
    dp: Ints | int
    ep: Ints | int

    @property
    def stage_chips(self) -> Ints | int:
        """Chips of one pipeline stage."""
        return self.tp * self.dp

    @property
    def chips(self) -> Ints | int:
        """Chips of one replica."""
        return self.tp * self.dp * self.pp

    def in_stage(self, requests: ArrayLike) -> Floats:
        """Compute the requests of a micro-batch as one of them sees it [1]: itself whole, and its share of the others,  1 + (n - 1)/pp."""
        found: Floats = 1.0 + (np.asarray(requests, float) - 1.0) / self.pp
        return found

    def __len__(self) -> int:
        return np.size(self.tp)

    def take(self, index: Index) -> ServingLayouts:
        """Pick the layouts at `index`; `take((slice(None), None))` adds an axis for the batch."""
        return ServingLayouts(*(np.asarray(a)[index] for a in (self.tp, self.pp, self.dp, self.ep)))


def dense_times_s(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    weight_precision: Precision,
    constants: ServingConstants,
    tokens: ArrayLike,
    logits: ArrayLike,
) -> tuple[Result, Result]:
    """Predict (compute, memory) seconds of everything but experts and attention core.

    compute = 2 [N_d (m + s m / (m + s)) + N_h (b + 1)] / (tp F e_c),  s = s0 (F/B) / I0;  memory = (sum w_p N_p + N_h w_h) / (tp B e_m)
    with m, b tokens and logits per attention rank, N_p with the copies on tensor ranks (`architecture.attention_on_ranks`; routers are whole on each); what the checkpoint leaves in 16 bit is computed at the rate of 16 bit. Shapes: tokens [token], logits [token] of the whole micro-batch and
    layouts broadcast; result [s]. The head is never read below 8 bit.
    Reference: Pope et al., MLSys 2023, section 2; saturation term: first fit on published serving measurements.

    >>> from models.serving import examples
    >>> compute, memory = dense_times_s(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), "bf16", examples.SERVING, 1, 1)
    >>> bool(memory > compute > 0)
    True
    """
    count, width = parameter_counts(arch), stored(arch.checkpoints, weight_precision)
    rank_tokens = _fullest_rank(layouts, tokens, constants)
    head = 1.0 * arch.hidden * arch.vocab
    saturation = constants.dense_saturation_tokens * _intensity(chip, constants)
    effective = rank_tokens + saturation * rank_tokens / (rank_tokens + saturation)
    attention = attention_on_ranks(arch, layouts.tp)
    routers: Result = count.router * np.asarray(layouts.tp, float)
    parts = {"attention": attention, "ffn": count.dense_ffn, "router": routers}
    flops = {part: 2.0 * weights * effective for part, weights in parts.items()}
    flops["tables"] = 2.0 * head * (np.asarray(logits, float) / layouts.dp + 1.0)
    compute = products_s(chip, width, weight_precision, constants, flops) / layouts.tp
    read = read_bytes(chip, width, weight_precision, constants, {**parts, "tables": head})
    return compute, as_result(read / (layouts.tp * chip.hbm_bytes_per_s * constants.memory_efficiency))


def held_experts(arch: Architecture, layouts: ServingLayouts) -> Result:
    """Count the experts of a layer that all expert-parallel ranks hold:  ceil((E + r) / ep) ep, of which those beyond E are second copies.

    r redundant copies where the architecture's routing states them, and there is more than one rank.
    Shapes: as layouts; result [1]. Valid for ep up to E.
    Reference: DeepSeek-V3, arXiv:2412.19437, section 3.4.2 (redundant experts).

    >>> from models.serving import examples
    >>> examples.MOE.experts, held_experts(examples.MOE, ServingLayouts(1, 1, np.array([8, 48]), np.array([8, 48]))).tolist()
    (128, [128.0, 144.0])
    """
    ep = np.asarray(layouts.ep, float)
    more = np.where(ep > 1.0, (arch.routing or EVEN).redundant, 0.0)
    return as_result(np.ceil((arch.experts + more) / ep) * ep)


def experts_touched(experts: Result, topk: float, tokens: ArrayLike, skew: float) -> Result:
    """Compute the mean number of experts that a batch touches:  E max(k/E, 1 - (1 + lambda/a)^-a),  lambda = m k / E.

    Tokens per expert are negative binomial with mean lambda and shape a; a -> infinity gives balls in bins.
    Shapes: as tokens [token]; experts, topk, skew [1]; result [1]. Valid for tokens >= 0; at least k, at most E.
    Reference: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 3rd ed. (2005), chapter 5 (zero class).

    >>> float(experts_touched(256, 8, 1, 4.1)), float(round(experts_touched(256, 8, 1e6, 4.1), 3))
    (8.0, 256.0)
    """
    mean = np.asarray(tokens, float) * topk / experts
    return as_result(np.maximum(topk, -experts * np.expm1(-skew * np.log1p(mean / skew))))


def expert_times_s(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    weight_precision: Precision,
    constants: ServingConstants,
    tokens: ArrayLike,
    even: bool = False,
) -> tuple[Result, Result]:
    """Predict (compute, memory) seconds of the routed experts; (0, 0) for a dense architecture. `even`: as if all ranks had the mean.

    compute = 2 m k P_e L_m (1 + s_e/(m_e + s_e)) imb / (R F e_c e_x);  memory = touched P_e L_m w imb_m / (R B e_m)
    with R = tp dp, m_e = m k / touched, e_x falling with the width f of an expert as 1 / (1 + f0 / f). All wait for the fullest rank: imb is
    1 + e, e = (i - 1) ln(min(ep, 8)), i >= 1, and what tokens happen to add (`routing.with_chance`), imb_m = 1 + sqrt(e^2/4 + d^2), d that of touched experts.
    Beyond 8 ranks experts are placed by their load, so that the fullest rank is no fuller than that of 8; copies of experts that fill up
    the ranks (`held_experts`) are read as well. Where the architecture's routing states it, imb is that of the popularity of experts, and
    tokens beyond their capacity are left out. Shapes: tokens [token] and layouts broadcast; result [s].
    Reference: Rajbhandari et al., DeepSpeed-MoE, ICML 2022, section 5; DeepSeek-V3, arXiv:2412.19437, section 3.4 (redundant
    experts); constants: first fit on published serving measurements.

    >>> from models.serving import examples
    >>> expert_times_s(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), "bf16", examples.SERVING, 1)
    (0.0, 0.0)
    """
    if not np.any(arch.experts):
        return 0.0, 0.0
    count = parameter_counts(arch)
    routing = arch.routing or EVEN
    tokens = np.asarray(tokens, float)
    tokens = tokens * routing.kept(arch.experts, arch.topk, tokens)
    ranks, held = layouts.stage_chips, held_experts(arch, layouts)
    touched = experts_touched(held, arch.topk, tokens, constants.expert_skew)
    fitted = 1.0 + np.maximum(constants.rank_imbalance - 1.0, 0.0) * np.log(np.minimum(layouts.ep, GATHERED_RANKS))
    imbalance: Result = 1.0
    most: Result = 0.0
    if not even:
        imbalance = routing.with_chance(fitted, arch.experts, arch.topk, held, layouts.ep, tokens)
        lasting = np.asarray(routing.fullest(fitted, arch.experts, held, layouts.ep), float)
        chance = _chance_of_experts(touched, held, layouts.ep) if routing.imbalance is None else 0.0
        most = np.hypot(0.5 * (lasting - 1.0), chance)
    saturation = constants.expert_saturation_tokens * _intensity(chip, constants)
    per_expert = tokens * arch.topk / touched
    weights = count.per_expert * count.moe_layers
    flops = 2.0 * tokens * arch.topk * weights * (1.0 + saturation / (per_expert + saturation)) * imbalance
    shape = 1.0 + constants.expert_width / np.asarray(arch.expert_ffn, float)
    width = stored(arch.checkpoints, weight_precision)
    evenly = products_s(chip, width, weight_precision, constants, {"experts": flops})
    compute = evenly * shape / (ranks * constants.expert_efficiency)
    every = read_bytes(chip, width, weight_precision, constants, {"experts": touched * weights})
    read = every * (1.0 + most)
    return compute, as_result(read / (ranks * chip.hbm_bytes_per_s * constants.memory_efficiency))


def _chance_of_experts(touched: Result, held: Result, ep: ArrayLike) -> Result:
    """Compute by how much the rank with most touched experts exceeds the mean of the ranks, over it: one expert at least, and never more than it holds."""
    ranks = np.asarray(ep, float)
    left = np.maximum(1.0 - touched / held, 0.0)
    excess = np.asarray(largest_excess(touched / ranks, ranks)) * np.sqrt((1.0 - 1.0 / ranks) * left)
    return as_result(np.minimum(np.maximum(excess, ranks / touched - 1.0), np.maximum(held / touched - 1.0, 0.0)))


def decode_attention_s(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    sequences: ArrayLike,
    context_tokens: ArrayLike,
    kv_precision: Precision,
    constants: ServingConstants,
    queries: ArrayLike = 1.0,
) -> Result:
    """Predict the attention of decoding sequences, which reads their caches, index keys and states:  b x bytes of a rank / (B e_kv).

    Bytes as in `attention.read_bytes_per_rank`. Bound by max(memory, compute), compute = b n FLOPs of a query / (tp F e_a), F that of 16 bit
    or, where the chip multiplies a cache of 8 bit as it is, that of 8 bit: a latent, which all heads share, or grouped heads with several
    queries on a chip with little arithmetic. The n queries of a sequence read it once.
    Shapes: sequences [sequence, all ranks], context [token], queries n [token] and layouts broadcast; result [s].
    Reference: Pope et al., MLSys 2023, section 3.3; DeepSeek-V2, arXiv:2405.04434, section 2.1 (latent attention).

    >>> from models.serving import examples
    >>> float(decode_attention_s(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 0, 1024, "bf16", examples.SERVING))
    0.0
    """
    rank_sequences = _fullest_rank(layouts, sequences, constants)
    moved = read_bytes_per_rank(arch, context_tokens, element_bytes(kv_precision), layouts.tp)
    memory = moved / (chip.hbm_bytes_per_s * constants.kv_efficiency)
    flops = np.asarray(query_flops(arch, context_tokens), float) * np.asarray(queries, float)
    narrow = (element_bytes(kv_precision) <= 1.0) & (np.asarray(chip.attention8_flop_per_s) > 0.0)
    rate = np.where(narrow, chip.attention8_flop_per_s, chip.flop16_per_s)
    compute = flops / (layouts.tp * rate * _attention_efficiency(arch, constants))
    return as_result(rank_sequences * np.maximum(memory, compute))


def prefill_attention_s(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    prefill_tokens: ArrayLike,
    prompt_tokens: ArrayLike,
    constants: ServingConstants,
    cached_tokens: ArrayLike = 0.0,
    prompt_scv: ArrayLike = 0.0,
    weight_precision: Precision = "bf16",
) -> Result:
    """Predict the attention core of prefill tokens spread evenly over causal prompts:  m x FLOPs of a query of them / (tp F16 e_a).

    The FLOPs count all pairs of a prompt over its tokens, so that every chunk is charged the mean of the prompts. The first c tokens of
    prompts of mean s and variance v s^2 lie in the cache: E[s^2 - c^2]/2 pairs for s - c queries, as many as one prompt has
    of c + n (1 + v s^2/n^2) tokens, n = s - c. A latent that earlier passes left is multiplied as it is (absorbed), or expanded to keys and
    values by each chunk anew, whichever is faster. Shapes: prefill and prompt tokens [token], variation v [1] and layouts broadcast; result [s].
    Reference: Dao et al., FlashAttention, NeurIPS 2022 (no score traffic); Korthikanti et al., MLSys 2023, section 4 (count);
    DeepSeek-V2, arXiv:2405.04434, section 2.1 (both forms of latent attention).

    >>> from models.serving import examples
    >>> args = examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1)
    >>> round(float(prefill_attention_s(*args, 10, 200, examples.SERVING) / prefill_attention_s(*args, 10, 100, examples.SERVING)), 9)
    2.0
    """
    if not np.ndim(prefill_tokens) and prefill_tokens == 0.0:
        return 0.0
    prompt = np.maximum(np.asarray(prompt_tokens, float), 1.0)
    cached = np.minimum(cached_tokens, prompt - 1.0)
    computed = prompt - cached
    attending = computed + np.asarray(prompt_scv, float) * prompt**2 / computed
    each = np.asarray(attention_flops(arch, attending, cached + attending), float) / attending
    rank_tokens = np.asarray(prefill_tokens, float) / layouts.dp
    rate = chip.flop16_per_s * _attention_efficiency(arch, constants)
    query_s = each / rate
    if arch.mla:
        chunk = np.minimum(constants.chunk_tokens, attending)
        earlier = core_flops(arch, attending, cached + attending) / attending - core_flops(arch, chunk, chunk) / chunk
        wider, expansion = latent_widening(arch)
        again = cached / np.minimum(computed, chunk) + 0.5 * (attending - chunk) / chunk
        width = stored(arch.checkpoints, weight_precision)
        expanding = products_s(chip, width, weight_precision, constants, {"attention": expansion * again})
        query_s = query_s + np.minimum(np.maximum(earlier, 0.0) * (wider - 1.0) / rate, expanding)
    seconds: Floats = rank_tokens * query_s / layouts.tp
    return seconds


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def communication_s(
    arch: Architecture, chip: ChipRates, layouts: ServingLayouts, tokens: ArrayLike, constants: ServingConstants
) -> Result:
    """Predict the communication of a step that computing waits for: all-reduces of tensor parallelism, hand-over between stages.

    all-reduce (tp > 1): one for each of the 2 L blocks [a (1 + log2 tp_in)/2 + n log2 D + 4 m h (tp - 1)/tp / (W e)];  stages: (pp - 1)[a + 2 m h / W].
    Blocks of experts have none where dispatch and combine (dp > 1, `expert_exchange_s`) take its place: the tensor ranks scatter the sums of
    attention, exchange a part each, and gather what comes back, which is one all-reduce for both blocks.
    W is the scale-up rate inside the scale-up domain (over the links of a host falling with the group), else the smaller of both. An
    all-reduce over D domains starts in each, and then n and the latency of the network for each doubling of them; that latency adds to a
    stage's start as well. A group of one costs nothing.
    Shapes: tokens [token of the micro-batch] and layouts broadcast; result [s].
    Reference: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) (ring and tree costs); Shoeybi et al., Megatron-LM,
    arXiv:1909.08053, section 3 (two all-reduces per layer).

    >>> from models.serving import examples
    >>> float(communication_s(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 100, examples.SERVING))
    0.0
    """
    vector = np.asarray(tokens, float) / layouts.dp * arch.hidden  # elements of an activation per attention rank
    tp, pp, ranks = (np.asarray(a, float) for a in (layouts.tp, layouts.pp, layouts.stage_chips))
    by_link = np.where(
        np.asarray(chip.scaleup_bytes_per_s) < HOST_LINK_BYTES_PER_S,
        constants.all_reduce_start_host_s,
        constants.all_reduce_start_s,
    )
    across = np.log2(_domains(chip, tp))
    start = by_link * 0.5 * (1.0 + np.log2(tp) - across)
    start = start + (constants.all_reduce_start_network_s + chip.scaleout_latency_s) * across
    moved = 2.0 * ACTIVATION_BYTES * vector * (tp - 1.0) / tp
    reduced = arch.blocks - np.where(np.asarray(layouts.dp) > 1, arch.moe_layers, 0)
    total = np.where(tp > 1, reduced * (start + _transfer_s(chip, tp, moved / constants.all_reduce_efficiency)), 0.0)
    way_s = np.where(_domains(chip, ranks * pp) > 1.0, chip.scaleout_latency_s, 0.0)
    hop = constants.pipeline_hop_s + way_s + _transfer_s(chip, ranks * pp, ACTIVATION_BYTES * vector)
    return as_result(total + np.where(pp > 1, (pp - 1.0) * hop, 0.0))


def exchange_bytes(bits: ArrayLike) -> Result:
    """Compute the bytes of an element that experts exchange, mean of dispatch and combine:  (1 or 2, and 2) / 2.

    Tokens are dispatched as the products of experts take them, in 8 bit where those are of 8 `bits` or fewer, and combined in 16.
    Shapes: as the bits [bit]; result [byte]. Reference: DeepSeek-V3, arXiv:2412.19437, section 3.3.3 (low-precision dispatch).

    >>> exchange_bytes([4, 8, 16]).tolist()
    [1.5, 1.5, 2.0]
    """
    dispatched = np.where(np.asarray(bits) <= 8, 1.0, ACTIVATION_BYTES)
    return as_result(0.5 * (dispatched + ACTIVATION_BYTES))


@np.errstate(invalid="ignore")  # as above
def expert_exchange_s(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    weight_precision: Precision,
    constants: ServingConstants,
    tokens: ArrayLike,
    prefill_tokens: ArrayLike = 0.0,
) -> Result:
    """Predict the dispatch and combine of tokens between experts (dp > 1):  2 L_m [a (1, or 2 and the latency of the network beyond the domain) + max(inside, outside)].

    inside = q h m n_in / (R W_up e), outside = q h m n_out / (R W_out e_out), at once on their own links, with q bytes (`exchange_bytes`) and h
    the width at which experts take tokens. Each of R = tp dp ranks sends its m/R tokens, so that the total is the same whatever tp is.
    Up to 8 ranks tokens are gathered, n = other ranks; beyond, n = k/R for each other rank, k copies of a token in all. `prefill_tokens`
    of them cross to a domain once and are passed on inside (`moe.dispatch_copies`), to as many as the gate's groups allow; where routing
    limits the domains of a token to M, all do: n_out = min(distinct, M) (D - 1)/D. R ranks lie evenly on D = ceil(R / domain) domains.
    Shapes: tokens [token of the micro-batch] and layouts broadcast; result [s].
    Reference: Lepikhin et al., GShard, arXiv:2006.16668, section 3.2; DeepEP's published times for e_out, see the catalog.

    >>> from models.serving import examples
    >>> wide, near = (ServingLayouts(1, 1, n, n) for n in (16, 8))
    >>> run = lambda layout, tokens: expert_exchange_s(examples.MOE, examples.CHIP, layout, "bf16", examples.SERVING, tokens)
    >>> bool(run(wide, 1600) > run(near, 800)), bool(run(ServingLayouts(2, 1, 8, 16), 1600) == run(wide, 1600))
    (True, True)
    """
    if not np.any(arch.experts):
        return 0.0
    ranks = np.asarray(layouts.stage_chips, float)
    domains = _domains(chip, ranks)
    here = ranks / domains  # attention ranks in a domain
    limit = (arch.routing or EVEN).most_domains
    gathered, kept = ranks <= GATHERED_RANKS, (arch.routing or EVEN).kept(arch.experts, arch.topk, tokens)
    to_each = np.where(gathered, 1.0, np.minimum(arch.topk / ranks, 1.0) * kept)
    inside, across = to_each * (here - 1.0), to_each * (ranks - here)  # copies of a token
    if limit:
        crossed = np.minimum(distinct_destinations(arch.topk, domains), limit) * (domains - 1.0) / domains
        across = np.where(gathered, across, np.minimum(crossed * kept, across))
    every, first = np.asarray(tokens, float), np.asarray(prefill_tokens, float)
    once_inside, once_across = dispatch_copies(
        arch.topk, arch.experts, ranks, here, deduplicated=True, domain_limit=limit or arch.routed_groups
    )
    inside = (every - first) * inside + first * np.where(gathered, inside, once_inside * kept)
    across = (every - first) * across + first * np.where(gathered, across, np.minimum(once_across * kept, across))
    vector = exchange_bytes(gemm_bits(chip, weight_precision)) * arch.expert_input / ranks
    up = chip.scaleup_bytes_per_s * constants.all_to_all_efficiency
    out = np.minimum(chip.scaleup_bytes_per_s, chip.scaleout_bytes_per_s) * constants.all_to_all_network_efficiency
    with np.errstate(divide="ignore", invalid="ignore"):
        within, outside = (
            np.where(copies > 0, vector * copies / rate, 0.0) for copies, rate in ((inside, up), (across, out))
        )
    start = constants.all_to_all_start_s * _start_factor(chip, ranks)
    once = start + np.where(domains > 1.0, chip.scaleout_latency_s, 0.0) + np.maximum(within, outside)
    return as_result(np.where(np.asarray(layouts.dp) > 1, 2.0 * arch.moe_layers * once, 0.0))


def launch_s(arch: Architecture, prefill_tokens: ArrayLike, constants: ServingConstants) -> Result:
    """Predict the launch time of the layers of a step:  L t_L + L_m t_Lm, and L t_Lc + L_m t_Lmc more where the step carries prefill.

    Times of a MoE layer are those with 128 experts, and grow with their number to a power: sorting tokens and small products.
    Shapes: as prefill_tokens [token]; result [s].
    Reference: fit on published serving measurements, see the catalog.

    >>> from models.serving import examples
    >>> bool(launch_s(examples.DENSE, 512, examples.SERVING) > launch_s(examples.DENSE, 0, examples.SERVING))
    True
    """
    routed = arch.moe_layers * (np.maximum(arch.experts, 1.0) / REFERENCE_EXPERTS) ** constants.moe_launch_exponent
    base = arch.layers * constants.layer_launch_s + routed * constants.moe_layer_launch_s
    eager = arch.layers * constants.prefill_layer_launch_s + routed * constants.prefill_moe_layer_launch_s
    return as_result(base + np.where(np.asarray(prefill_tokens) > 0, eager, 0.0))


def _intensity(chip: ChipRates, constants: ServingConstants) -> float:
    """Compute peak over bandwidth, relative to the chip at which the saturation constants are stated."""
    return chip.flop_per_s / chip.hbm_bytes_per_s / constants.reference_intensity


def _fullest_rank(layouts: ServingLayouts, sequences: ArrayLike, constants: ServingConstants) -> Result:
    """Count the sequences, or tokens, of the fullest attention rank, for which all wait; one that is there lies whole on its rank.

    The largest of dp normal deviations is near sqrt(2 ln dp) of them, and the n sequences of a rank vary by at most their root.
    """
    every = np.asarray(sequences, float)
    each = every / layouts.dp
    excess = 1.0 + constants.attention_imbalance * np.sqrt(2.0 * np.log(layouts.dp) / np.maximum(each, 1.0))
    return as_result(np.maximum(each * excess, np.minimum(every, 1.0)))


def _attention_efficiency(arch: Architecture, constants: ServingConstants) -> Result:
    return constants.attention_efficiency * (constants.mla_attention_efficiency if arch.mla else 1.0)


def _transfer_s(chip: ChipRates, group: Floats, moved_bytes: Result) -> Result:
    """Compute the transfer time at the scale-up rate inside the domain, else at the slower of both; infinite without a network.

    Chips that exchange over the links of their host share them: the rate falls as (g / 2)^-c with the group.
    """
    inside = np.minimum(group, chip.scaleup_chips)
    scaleup = chip.scaleup_bytes_per_s * np.maximum(inside / 2.0, 1.0) ** -np.asarray(chip.scaleup_crowding)
    rate = np.where(group <= chip.scaleup_chips, scaleup, np.minimum(scaleup, chip.scaleout_bytes_per_s))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(moved_bytes) > 0, moved_bytes / rate, 0.0)


def _domains(chip: ChipRates, group: Floats) -> Floats:
    """Count the scale-up domains over which a group lies."""
    return np.ceil(group / chip.scaleup_chips)


def _start_factor(chip: ChipRates, group: Floats) -> Result:
    return np.where(group <= chip.scaleup_chips, 1.0, 2.0)
