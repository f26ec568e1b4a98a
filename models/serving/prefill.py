"""Prefill: the engine time that a prompt takes from the decode of others, and its own latency. Queues are in models/queueing/queues.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.step import StepLoad, StepTime, step_time
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """Time of the prefill of one prompt."""

    occupancy_s: Result  # engine time that the prompt takes
    latency_s: Result  # from its first chunk to its last, alone
    steps: Result  # of chunk budget that it fills; a fraction for a short prompt, which shares its step [1]
    breakdown: dict[str, Result]  # of the occupancy


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts of one workload as they come to an engine."""

    tokens: ArrayLike  # of one, on average [token]
    scv: ArrayLike = 0.0  # squared coefficient of variation of their length, by what is computed of it [1]
    together: ArrayLike = 1.0  # waiting at once, which fill a chunk together [1]


@dataclass(frozen=True, slots=True)
class DecodeBatch:
    """The decode that prefill is mixed into: a micro-batch, and the step that it takes without prefill."""

    step: StepTime
    sequences: ArrayLike  # of the micro-batch, over all attention ranks [1]
    context_tokens: ArrayLike  # of one [token]
    tokens_per_sequence: ArrayLike = 1.0  # more than one where drafts are verified [token]


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def prefill_time(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    prompts: Prompts,
    decode: DecodeBatch | None,
    *,
    precisions: Precisions,
    constants: ServingConstants,
    cached_tokens: ArrayLike = 0.0,
) -> PrefillTime:
    """Predict the prefill of a prompt in chunks that ride along with decode steps.

    occupancy = (I/C) [T(C dp prefill + b decode) - T(b decode)] / (pp dp),  C = min(chunk, n I);  without decode the whole T(C dp).
    A mixed step reads the weights once, and each attention rank takes a chunk of a prompt of its own: a prompt alone gains
    nothing from the others. Latency: I/C chunks through the stages, occupancy dp (I/C + pp - 1) C/I.
    n = `prompts.together` of the prompts that wait fill a chunk. Of a prompt whose first `cached_tokens` [token] are in the cache
    only the others are computed, one at least. Lengths of squared coefficient of variation `prompts.scv` [1] about the mean attend
    over more, since pairs go with the square (`decode.prefill_attention_s`). `decode` is None where nothing decodes.
    Shapes: layouts, the entries of `prompts` [token], [1] and of `decode` [sequence], [token] broadcast; result [s].
    Valid for prompts of at least one token.
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024, section 4 (chunked prefill with stall-free batching).

    >>> from models.serving import examples
    >>> alone = prefill_time(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Prompts(1000), None,
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(alone.occupancy_s == alone.latency_s > 0)
    True
    """
    prompt = np.asarray(prompts.tokens, float)
    computed = np.maximum(prompt - cached_tokens, 1.0)
    chunk = np.minimum(constants.chunk_tokens, computed * prompts.together)
    chunks = computed / chunk
    load = StepLoad(
        0.0,
        prefill_tokens=chunk * layouts.dp,
        prompt_tokens=prompt,
        prompt_scv=prompts.scv,
        cached_tokens=cached_tokens,
    )
    if decode is not None:
        load = replace(
            load,
            decode_sequences=decode.sequences,
            context_tokens=decode.context_tokens,
            tokens_per_sequence=decode.tokens_per_sequence,
        )
    mixed = step_time(arch, chip, layouts, load, precisions=precisions, constants=constants)
    total, extra = mixed.total_s, mixed.breakdown
    if decode is not None:
        total = total - decode.step.total_s
        extra = {name: part - decode.step.breakdown[name] for name, part in extra.items()}
    per_stage = chunks / (layouts.pp * layouts.dp)
    occupancy = total * per_stage
    # Prompts that share a chunk all end with it.
    latency = occupancy * layouts.dp * (np.maximum(chunks, 1.0) + np.asarray(layouts.pp) - 1.0) / chunks
    return PrefillTime(
        occupancy,
        latency,
        computed / (constants.chunk_tokens * layouts.dp),
        {name: part * per_stage for name, part in extra.items()},
    )
