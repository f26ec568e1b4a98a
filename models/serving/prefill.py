"""Prefill: the engine time that a prompt takes from the decode of others, and its own latency. Queues are in models/queueing/queues.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.step import StepLoad, StepTime, step_time
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture

_TERMS = 12  # of the series for the fullest micro-batch, beyond which it has the mean


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """Time of the prefill of one prompt."""

    occupancy_s: Result  # engine time that the prompt takes
    latency_s: Result  # from its first chunk to its last, alone
    steps: Result  # of chunk budget that it fills; a fraction for a short prompt, which shares its step [1]
    breakdown: dict[str, Result]  # of the occupancy
    chunk_s: Result = 0.0  # that a full chunk adds to a step
    turn: Result = 1.0  # share of the occupancy after which the next prompt may begin, in the first stage [1]

    def mixed(self, other: PrefillTime, share: Result, latency_s: Result) -> PrefillTime:
        """Average prompts of two kinds, `share` of which are of the other; the latency is given, as it may count what is loaded."""

        def mean(one: Result, another: Result) -> Result:
            return (1.0 - share) * one + share * another

        return PrefillTime(
            mean(self.occupancy_s, other.occupancy_s),
            latency_s,
            mean(self.steps, other.steps),
            {name: mean(part, other.breakdown[name]) for name, part in self.breakdown.items()},
            mean(self.chunk_s, other.chunk_s),
            mean(self.turn, other.turn),
        )


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts of one workload as they come to an engine."""

    tokens: ArrayLike  # of one, on average [token]
    scv: ArrayLike = 0.0  # squared coefficient of variation of their length, by what is computed of it [1]
    together: ArrayLike = 1.0  # waiting at once, which fill a chunk together [1]
    arriving: ArrayLike = np.inf  # while all micro-batches take a step; infinite: each of them has a chunk [1]


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

    occupancy = s (I/C) [T(C dp prefill + b decode) - T(b decode)],  C = min(chunk, n I);  without decode the whole T(C dp).
    A mixed step reads the weights once, and each attention rank takes a chunk of a prompt of its own: a prompt alone gains nothing from the
    other ranks. No micro-batch passes another, so that all wait for the fullest. Of a = `prompts.arriving` max(I/chunk, 1)/dp chunks of a rank
    in a round each is charged s dp = max(m/a, 1/pp) of a pass, m those of the fullest (`fullest_lane`): 1/pp where all have one.
    Latency: I/C chunks through the stages, [T - T] (max(I/C, 1) + pp - 1)/pp.
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
    extra = mixed.breakdown
    if decode is not None:
        extra = {name: part - decode.step.breakdown[name] for name, part in extra.items()}
    share = _charged_share(layouts, prompts.arriving, computed / constants.chunk_tokens)
    total, charged = sum(extra.values()), chunks * share
    # Prompts that share a chunk all end with it.
    latency = total * (np.maximum(chunks, 1.0) + np.asarray(layouts.pp) - 1.0) / layouts.pp
    return PrefillTime(
        total * charged,
        latency,
        computed / (constants.chunk_tokens * layouts.dp * (1 if decode is None else layouts.pp)),
        {name: part * charged for name, part in extra.items()},
        total * constants.chunk_tokens / chunk,
        as_result(1.0 / (share * layouts.pp * layouts.dp)),
    )


def fullest_lane(arriving: ArrayLike, stages: ArrayLike) -> Result:
    """Compute the mean prompts in the fullest of so many micro-batches, of a Poisson number in a round:  E[max] = sum (1 - F^stages).

    Micro-batches take what has come since the one before, at random. Shapes: broadcast [1].
    Reference: David and Nagaraja, Order Statistics, 3rd ed. (2003), section 3.1.

    >>> [round(float(fullest_lane(a, 1)), 6) for a in (0.1, 10.0)], round(float(fullest_lane(1.0, 2)), 2), round(float(fullest_lane(1e-6, 4)) * 1e6, 3)
    ([0.1, 10.0], 0.84, 1.0)
    """
    arriving, stages = np.asarray(arriving, float), np.asarray(stages, float)
    if not np.any(stages > 1):
        return as_result(arriving)
    each = arriving / stages
    chance = below = np.exp(-each)
    total = -np.expm1(stages * np.log(np.maximum(below, 1e-300)))
    for count in range(1, _TERMS):
        chance = chance * each / count
        below = np.minimum(below + chance, 1.0)
        total = total + (1.0 - below**stages)
    return as_result(np.where(stages > 1, np.maximum(total, each), arriving))


def _charged_share(layouts: ServingLayouts, arriving: ArrayLike, chunks: Result) -> Result:
    """Compute the share of a pass that each chunk of a round is charged [1]. A micro-batch has one chunk at a time, which holds so many prompts."""
    pp, dp = np.asarray(layouts.pp, float), np.asarray(layouts.dp, float)
    known = np.isfinite(arriving)
    if not np.any(known) or not np.any(pp > 1):
        return as_result(1.0 / (pp * dp))
    passes = np.where(known, arriving, 1.0) / dp * np.maximum(chunks, 1.0)
    most = -np.expm1(-passes) * np.maximum(1.0 / np.asarray(chunks, float), 1.0)
    fullest = np.maximum(np.minimum(fullest_lane(passes, pp), most) / passes, 1.0 / pp)
    return as_result(np.where(known, fullest, 1.0 / pp) / dp)
