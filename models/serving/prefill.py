"""What a prompt costs an engine: the time it takes from the decode of others, and its own latency. Queues are in queueing.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts, StepTime, step_time
from models.transformer.architecture import Architecture


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """`occupancy_s`: engine time that one prompt takes; `latency_s`: from its first chunk to its last, alone;
    `steps`: steps' worth of chunk budget that it fills (a fraction for a short prompt, which shares its step)."""

    occupancy_s: Result
    latency_s: Result
    steps: Result
    breakdown: dict[str, Result]  # of the occupancy


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def prefill_time(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    *,
    prompt_tokens: ArrayLike,
    decode: StepTime | None,
    decode_sequences: ArrayLike,
    context_tokens: ArrayLike,
    weight_precision: str,
    kv_precision: str,
    constants: ServingConstants,
    cached_tokens: ArrayLike = 0.0,
    tokens_per_sequence: ArrayLike = 1.0,
    prompts_together: ArrayLike = 1.0,
    prompt_scv: ArrayLike = 0.0,
) -> PrefillTime:
    """Prefill of a prompt in chunks that ride along with decode steps.

    occupancy = (I/C) [T(C dp prefill + b decode) - T(b decode)] / (pp dp),  C = min(chunk, I);  without decode the whole T(C dp).
    A mixed step reads the weights once, and each attention rank takes a chunk of a prompt of its own: a prompt alone gains
    nothing from the others. Latency: n = I/C chunks through the stages, occupancy dp (n + pp - 1)/n.
    `decode` is the step of the same decode_sequences (of one micro-batch) without prefill, or None where nothing decodes.
    Shapes: layouts, prompt_tokens [token], decode_sequences [sequence], context_tokens [token] broadcast; result [s].
    Where more prompts wait, `prompts_together` of them fill a chunk, C = min(chunk, n I). Lengths of squared coefficient of variation
    `prompt_scv` [1] about the mean attend over 1 + scv times as much, since pairs go with the square. Of a prompt whose first
    `cached_tokens` [token] are in the cache only the others are computed, one at least; each decoding sequence brings
    `tokens_per_sequence` [token]. Valid for prompt_tokens >= 1.
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024, section 4 (chunked prefill with stall-free batching).

    >>> from models.serving import examples
    >>> alone = prefill_time(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), prompt_tokens=1000, decode=None,
    ...     decode_sequences=0, context_tokens=0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> bool(alone.occupancy_s == alone.latency_s > 0)
    True
    """
    prompt = np.asarray(prompt_tokens, float)
    computed = np.maximum(prompt - cached_tokens, 1.0)
    chunk = np.minimum(constants.chunk_tokens, computed * prompts_together)
    chunks = computed / chunk
    mixed = step_time(
        arch, chip, layouts, decode_sequences=decode_sequences, prefill_tokens=chunk * layouts.dp, context_tokens=context_tokens,
        prompt_tokens=prompt * (1.0 + np.asarray(prompt_scv, float)), weight_precision=weight_precision, kv_precision=kv_precision, constants=constants,
        cached_tokens=cached_tokens, tokens_per_sequence=tokens_per_sequence,
    )  # fmt: skip
    per_stage = chunks / (layouts.pp * layouts.dp)
    extra = {name: part if decode is None else part - decode.breakdown[name] for name, part in mixed.breakdown.items()}
    total = mixed.total_s if decode is None else mixed.total_s - decode.total_s
    occupancy = total * per_stage
    # Prompts that share a chunk all end with it.
    latency = occupancy * layouts.dp * (np.maximum(chunks, 1.0) + np.asarray(layouts.pp) - 1.0) / chunks
    return PrefillTime(
        occupancy,
        latency,
        computed / (constants.chunk_tokens * layouts.dp),
        {name: part * per_stage for name, part in extra.items()},
    )
