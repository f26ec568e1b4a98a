"""Time of one engine step that carries decode tokens and, mixed in, prefill tokens. Rates over time live in continuous_batching.py.

A step passes every layer once. Its parts, of decode.py, add up: published runs show no overlap of compute and memory across a real layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, sum_of
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import (
    GATHERED_RANKS,
    ServingLayouts,
    communication_s,
    decode_attention_s,
    dense_times_s,
    expert_exchange_s,
    expert_times_s,
    launch_s,
    prefill_attention_s,
)
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture
from models.transformer.routing import EVEN

HALVES = (
    2.0  # halves of a batch, one of which may compute while the other exchanges, where its experts lie on many ranks
)
HOST = "host"  # the part of a step that is prepared once for all that runs in it


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a step and of its parts, which add up to it."""

    total_s: Result
    breakdown: dict[str, Result]


@dataclass(frozen=True, slots=True)
class StepLoad:
    """The tokens that one pass of a micro-batch carries: tokens in decode and, mixed in, tokens of a prompt in prefill."""

    decode_sequences: ArrayLike  # in decode, of all attention ranks [1]
    context_tokens: ArrayLike = 0.0  # that each of them attends to [token]
    prefill_tokens: ArrayLike = 0.0  # all attention ranks together [token]
    prompt_tokens: ArrayLike = 0.0  # the whole prompt that is in prefill, on average [token]
    prompt_scv: ArrayLike = 0.0  # squared coefficient of variation of that length, by what is computed of it [1]
    cached_tokens: ArrayLike = 0.0  # first part of the prompt, found in a prefix cache and not computed [token]
    tokens_per_sequence: ArrayLike = 1.0  # a sequence in decode; more than one where drafts are verified [token]
    fullest_tokens: ArrayLike | None = None  # prefill on the rank that has most; None: an even share [token]


def step_time(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    load: StepLoad,
    *,
    precisions: Precisions,
    constants: ServingConstants,
) -> StepTime:
    """Predict the latency of one pass of a micro-batch through all stages:  T = sum of the parts below.

    dense_compute + dense_memory + expert_compute + expert_memory + kv_memory + prefill_attention + communication +
    launch + host. With pp stages in flight a stage is occupied T / pp. Where experts lie on more than 8 ranks, the halves of the
    batch may take turns, if that is faster: T = 2 max(parts of a half, its exchange) + host, weights read and layers launched twice.
    Shapes: layouts and the entries of `load` [sequence], [token] broadcast; result [s].
    Valid for decode_sequences >= 0 and prefill_tokens >= 0.
    Reference: Williams, Waterman and Patterson, Roofline, CACM 52 (2009); Pope et al., Efficiently Scaling Transformer
    Inference, MLSys 2023, section 2; DeepSeek-V3, arXiv:2412.19437, section 3.4 (two micro-batches); the parts' own references.

    >>> from models.serving import examples
    >>> step = step_time(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), StepLoad(1, context_tokens=1024),
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(abs(sum(step.breakdown.values()) - step.total_s) < 1e-12)
    True
    """
    whole = _at_once(arch, chip, layouts, load, precisions, constants)
    spread = np.asarray(layouts.stage_chips) > GATHERED_RANKS
    if not np.any(arch.experts) or not np.any(spread) or not (arch.routing or EVEN).two_batches:
        return whole
    turns = _in_turns(arch, chip, layouts, load, precisions, constants)
    faster = spread & (turns.total_s < whole.total_s)
    parts: dict[str, Result] = {
        name: np.where(faster, part, whole.breakdown[name])[()] for name, part in turns.breakdown.items()
    }
    return StepTime(np.where(faster, turns.total_s, whole.total_s)[()], parts)


def _at_once(
    arch: Architecture, chip: ChipRates, layouts: ServingLayouts, load: StepLoad, precisions: Precisions, constants: ServingConstants
) -> StepTime:  # fmt: skip
    """Predict a pass of the whole batch: computing waits for each exchange."""
    parts, exchange = _parts(arch, chip, layouts, load, precisions, constants)
    parts["communication"] = parts["communication"] + exchange
    return StepTime(sum_of(parts.values()), parts)


def _in_turns(
    arch: Architecture, chip: ChipRates, layouts: ServingLayouts, load: StepLoad, precisions: Precisions, constants: ServingConstants
) -> StepTime:  # fmt: skip
    """Predict a pass in two halves, of which one computes while the other exchanges; the host prepares them together."""
    half = replace(
        load,
        decode_sequences=np.asarray(load.decode_sequences, float) / HALVES,
        prefill_tokens=np.asarray(load.prefill_tokens, float) / HALVES,
        fullest_tokens=None if load.fullest_tokens is None else np.asarray(load.fullest_tokens, float) / HALVES,
    )
    parts, exchange = _parts(arch, chip, layouts, half, precisions, constants)
    busy = sum_of(part for name, part in parts.items() if name != HOST)
    parts["communication"] = parts["communication"] + np.maximum(exchange - busy, 0.0)
    twice = {name: HALVES * part for name, part in parts.items()}
    twice[HOST] = _host_s(layouts, load.decode_sequences, constants)
    return StepTime(sum_of(twice.values()), twice)


def _parts(
    arch: Architecture, chip: ChipRates, layouts: ServingLayouts, load: StepLoad, precisions: Precisions, constants: ServingConstants
) -> tuple[dict[str, Result], Result]:  # fmt: skip
    """Predict the parts of a pass, and apart from them the exchange of tokens between experts [s]."""
    decode, prefill = np.asarray(load.decode_sequences, float), np.asarray(load.prefill_tokens, float)
    decoded = decode * load.tokens_per_sequence
    tokens, weights = decoded + prefill, precisions.weights
    # What ranks do for themselves takes as long as on the one with most of the prompts; experts have the tokens of all.
    own = prefill if load.fullest_tokens is None else np.asarray(load.fullest_tokens, float) * layouts.dp
    dense_compute, dense_memory = dense_times_s(arch, chip, layouts, weights, constants, decoded + own, logits=decoded)
    expert_compute, expert_memory = expert_times_s(arch, chip, layouts, weights, constants, tokens)
    parts: dict[str, Result] = {
        "dense_compute": dense_compute,
        "dense_memory": dense_memory,
        "expert_compute": expert_compute,
        "expert_memory": expert_memory,
        "kv_memory": decode_attention_s(
            arch, chip, layouts, decode, load.context_tokens, precisions.kv_cache, constants, load.tokens_per_sequence
        ),
        "prefill_attention": prefill_attention_s(
            arch, chip, layouts, own, load.prompt_tokens, constants, load.cached_tokens, load.prompt_scv, weights
        ),
        "communication": communication_s(arch, chip, layouts, decoded + own, constants),
        "launch": launch_s(arch, prefill, constants),
        HOST: _host_s(layouts, decode, constants),
    }
    return parts, expert_exchange_s(arch, chip, layouts, weights, constants, tokens, prefill)


def _host_s(layouts: ServingLayouts, sequences: ArrayLike, constants: ServingConstants) -> Result:
    return constants.host_step_s + constants.host_request_s * np.asarray(sequences, float) / layouts.dp
