"""Break the decode rate down from the bandwidth roofline to the prediction, cause by cause. The times themselves are in step.py and continuous_batching.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.formats import element_bytes, stored
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts, decode_attention_s, dense_times_s, expert_times_s
from models.serving.speculation import Speculation, decode_step
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import kv_bytes

ROOFLINE = "bandwidth roofline of one request"
COMMUNICATION, LAUNCH, HOST = "communication", "launch", "host"


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Seconds per output token of one request: the roofline, what each cause adds (or saves), and what they add up to."""

    roofline_s: Result
    causes: dict[str, Result]
    predicted_s: Result

    def rates(self) -> dict[str, Result]:
        """Compute the decode rate of one request once the causes up to each are counted [token/s]."""
        reached, found = self.roofline_s, {ROOFLINE: 1.0 / self.roofline_s}
        for name, added in self.causes.items():
            reached = reached + added
            found[name] = 1.0 / reached
        return found


def roofline_s(
    arch: Architecture,
    chip: ChipRates,
    chips: ArrayLike,
    context_tokens: ArrayLike,
    precisions: Precisions,
    caches: ArrayLike = 1.0,
) -> Result:
    """Compute the bandwidth roofline of one request's decode: the weights it visits and its KV cache, read once by all chips at full bandwidth.

    (sum of w_p N_p over the parts that a token visits + c q kv(ctx)) / (n B), with the vocabulary head at 8 bit or more, and c < 1 `caches` where a step reads less than one on
    average. Shapes: chips n [1], context [token] and caches [1] broadcast; result [s]. Reference: Williams, Waterman and Patterson, Roofline, CACM 52 (2009); Pope et al., MLSys 2023, section 2.

    >>> from models.serving import examples
    >>> one, eight = (roofline_s(examples.DENSE, examples.CHIP, n, 1000, Precisions("bf16", "bf16")) for n in (1, 8))
    >>> round(float(one / eight), 9), round(1 / float(one))
    (8.0, 218)
    """
    count, head = parameter_counts(arch), 1.0 * arch.hidden * arch.vocab
    width = stored(arch.checkpoints, precisions.weights)
    read = (
        width.attention * count.attention
        + width.ffn * count.dense_ffn
        + width.router * count.router
        + width.experts * count.moe_layers * arch.topk * count.per_expert
        + width.tables * head
        + np.asarray(caches, float) * kv_bytes(arch, context_tokens, element_bytes(precisions.kv_cache))
    )
    return as_result(read / (np.asarray(chips, float) * chip.hbm_bytes_per_s))


def decode_waterfall(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    point: ServingPoint,
    *,
    input_tokens: ArrayLike,
    precisions: Precisions,
    constants: ServingConstants,
    speculation: Speculation | None = None,
) -> Waterfall:
    """Break down the time of an output token, from the roofline of one request to the mean TPOT and the waits spread over its tokens.

    In this order, each cause on top of those before it: copies of weights and latent caches on ranks, and stages passed in turn;
    experts that the batch touches beyond one request's; KV caches of the batch; memory below its peak; the fullest rank's excess;
    arithmetic; communication; launch; host; drafts and their verification less the tokens they gain; prompts between the
    steps; waits for prefill and for a slot. They add up to predicted = TPOT + waits / (O - 1) exactly. All but the drafts' are >= 0; where
    less than one request decodes on average, the step holds that part of its cache, and so does the roofline.
    `point` is of these layouts, of one pool or of a decode pool. Shapes: layouts broadcast with the point; result [s].
    Reference: Williams, Waterman and Patterson, Roofline, CACM 52 (2009), section 5 (ceilings); the step's parts as in decode.py.

    >>> from models.serving import examples
    >>> from models.serving.continuous_batching import aggregated
    >>> from models.serving.workload import Lengths
    >>> kinds = dict(precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> one = ServingLayouts(1, 1, 1, 1)
    >>> point = aggregated(examples.DENSE, examples.CHIP, one, 16, lengths=Lengths(1000, 200), **kinds)
    >>> fall = decode_waterfall(examples.DENSE, examples.CHIP, one, point, input_tokens=1000, **kinds)
    >>> bool(abs(fall.roofline_s + sum(fall.causes.values()) - fall.predicted_s) < 1e-12 and fall.predicted_s > point.tpot_s)
    True
    """
    tokens = np.asarray(point.output_tokens, float) - 1.0
    context = np.asarray(input_tokens, float) + 0.5 * tokens * (1.0 + np.asarray(point.output_scv, float))
    batch = layouts.in_stage(point.seen)
    at_peak = replace(constants, memory_efficiency=1.0, kv_efficiency=1.0, widened_efficiency=1.0)

    def weights_s(sequences: ArrayLike, even: bool = True) -> Result:
        read = arch, chip, layouts, precisions.weights, at_peak, sequences
        return dense_times_s(*read, sequences)[1] + expert_times_s(*read, even)[1]

    def cache_s(of: ServingConstants, sequences: ArrayLike) -> Result:
        return decode_attention_s(arch, chip, layouts, sequences, context, precisions.kv_cache, of)

    _, plain = decode_step(
        arch, chip, layouts, None, decode_sequences=batch, context_tokens=context, precisions=precisions, constants=constants
    )  # fmt: skip
    parts, step, tpot = plain.breakdown, np.asarray(point.step_s, float), np.asarray(point.tpot_s, float)
    gained: Result = 1.0 if speculation is None else speculation.in_answer(tokens)
    alone = roofline_s(arch, chip, layouts.chips, context, precisions, np.minimum(batch, 1.0))
    few = np.minimum(batch, 1.0)
    lone = weights_s(1.0) + cache_s(at_peak, few)
    memory = parts["dense_memory"] + parts["expert_memory"] + parts["kv_memory"]
    caches, every = cache_s(at_peak, batch), weights_s(batch, even=False)
    causes = {
        "copies on ranks, stages in turn": lone - alone,
        "experts touched by the batch": weights_s(batch) - weights_s(1.0),
        "KV caches of the batch": caches - cache_s(at_peak, few),
        "fullest rank of experts": every - weights_s(batch),
        "memory below its peak": memory - every - caches,
        "arithmetic": parts["dense_compute"] + parts["expert_compute"],
        COMMUNICATION: parts["communication"],
        LAUNCH: parts["launch"],
        HOST: parts["host"],
        "drafts, less the tokens they gain": step / gained - plain.total_s,
        "prompts between the steps": tpot - step / gained,
        "waits for prefill and for a slot": (point.prefill_wait_s + point.slot_wait_s) / tokens,
    }
    return Waterfall(alone, causes, tpot + (point.prefill_wait_s + point.slot_wait_s) / tokens)
