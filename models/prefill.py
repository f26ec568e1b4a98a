"""What a prompt costs an engine: the time it takes from the decode of others, and its own latency. Queues are in queueing.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.decode import ServingLayouts, StepTime, step_time
from models.operators import Architecture
from models.roofline import ChipRates
from models.serving_constants import ServingConstants

Result = np.ndarray | float


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
) -> PrefillTime:
    """Prefill of a prompt in chunks that ride along with decode steps.

    occupancy = (I/C) [T(C prefill + b decode) - T(b decode)] / pp,  C = min(chunk, I);  without decode the whole T(C).
    A mixed step reads the weights once. Latency: n = I/C chunks through the stages, occupancy (n + pp - 1)/n.
    `decode` is the step of the same decode_sequences (of one micro-batch) without prefill, or None where nothing decodes.
    Shapes: layouts, prompt_tokens [token], decode_sequences [sequence], context_tokens [token] broadcast; result [s].
    Valid for prompt_tokens >= 1.
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024, section 4 (chunked prefill with stall-free batching).

    >>> from models import examples
    >>> alone = prefill_time(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), prompt_tokens=1000, decode=None,
    ...     decode_sequences=0, context_tokens=0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> bool(alone.occupancy_s == alone.latency_s > 0)
    True
    """
    prompt = np.asarray(prompt_tokens, float)
    chunk = np.minimum(constants.chunk_tokens, prompt)
    chunks = prompt / chunk
    mixed = step_time(
        arch, chip, layouts, decode_sequences=decode_sequences, prefill_tokens=chunk, context_tokens=context_tokens,
        prompt_tokens=prompt, weight_precision=weight_precision, kv_precision=kv_precision, constants=constants,
    )  # fmt: skip
    per_stage = chunks / layouts.pp
    extra = {name: part if decode is None else part - decode.breakdown[name] for name, part in mixed.breakdown.items()}
    total = mixed.total_s if decode is None else mixed.total_s - decode.total_s
    occupancy = total * per_stage
    latency = occupancy * (1.0 + (np.asarray(layouts.pp) - 1.0) / chunks)
    return PrefillTime(occupancy, latency, prompt / constants.chunk_tokens, {name: part * per_stage for name, part in extra.items()})
