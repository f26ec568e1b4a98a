"""Prefill: the engine time that a prompt takes from the decode of others, and its own latency. Queues are in models/queueing/queues.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from models.arrays import Result, as_result, sum_of
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.step import StepLoad, StepTime, step_time
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture

_FEW = 0.05  # prompts per rank up to which hardly any rank has two
OF_ALL_RANKS = ("expert_compute", "expert_memory", "communication")
_TERMS = 12  # terms of the series for the fullest micro-batch, beyond which it has the mean


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """Time of the prefill of one prompt."""

    occupancy_s: Result  # engine time that the prompt takes
    latency_s: Result  # from its first chunk to its last, alone
    steps: Result  # steps of chunk budget that a prompt fills; a fraction for a short prompt, which shares its step [1]
    breakdown: dict[str, Result]  # parts of the occupancy
    chunk_s: Result = 0.0  # that a full chunk adds to a step
    turn: Result = 1.0  # share of the occupancy after which the next prompt may begin, in the first stage [1]
    packed: Result = 1.0  # share of the occupancy that is left where every rank has prompts [1]

    def mixed(self, other: PrefillTime, share: Result, latency_s: Result) -> PrefillTime:
        """Average prompts of two kinds, `share` of which are of the other; the latency is given, as it may count loads from a cache."""

        def mean(one: Result, another: Result) -> Result:
            return (1.0 - share) * one + share * another

        return PrefillTime(
            mean(self.occupancy_s, other.occupancy_s),
            latency_s,
            mean(self.steps, other.steps),
            {name: mean(part, other.breakdown[name]) for name, part in self.breakdown.items()},
            mean(self.chunk_s, other.chunk_s),
            mean(self.turn, other.turn),
            mean(self.packed, other.packed),
        )


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts of one workload as they come to an engine."""

    tokens: ArrayLike  # mean of one prompt [token]
    scv: ArrayLike = 0.0  # squared coefficient of variation of their length, by what is computed of it [1]
    together: ArrayLike = 1.0  # waiting at once, which fill a chunk together [1]
    arriving: ArrayLike = np.inf  # while all micro-batches take a step; infinite: each of them has a chunk [1]
    queued: bool = False  # whether the queue never runs empty, so that all attention ranks have prompts when one has


@dataclass(frozen=True, slots=True)
class DecodeBatch:
    """The decode that prefill is mixed into: a micro-batch, and the step that it takes without prefill."""

    step: StepTime
    sequences: ArrayLike  # sequences of the micro-batch, over all attention ranks [1]
    context_tokens: ArrayLike  # context of one sequence [token]
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

    occupancy = s [T(X prefill, C of them on one rank, + b decode) - T(b decode)],  s = I/X;  without decode the whole T(X).
    A mixed step reads the weights once, and each attention rank takes a chunk of a prompt of its own, C = min(chunk, n I), X = C dp where
    all ranks have one. Ranks end a step together, for experts: of a = `prompts.arriving`/pp prompts that come at random, P = 1 - exp(-a max(I/chunk, 1))
    of the passes carry any, X = min(a I/P, C dp) tokens of them, the fullest rank E[ceil(N/dp)]/P prompts (`fullest_rank_prompts`), as far as a chunk holds: one prompt
    holds up all ranks, and gains nothing from the others. A queue that never runs empty fills all of them.
    No micro-batch passes another, so that all wait for the fullest: s grows by m/a, m chunks of the fullest of pp with a each (`fullest_lane`).
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
    passes = _passes(layouts, prompts, computed, constants.chunk_tokens)
    load = StepLoad(
        0.0,
        prefill_tokens=passes.tokens,
        fullest_tokens=passes.chunk,
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
    chunks = computed / passes.chunk
    total, charged = sum_of(extra.values()), passes.each
    # A part of the pass can be shorter with the prompt in it, so that the shares of all parts are not all between 0 and 1.
    together = np.clip(sum_of(extra[name] for name in OF_ALL_RANKS) / total, 0.0, 1.0)
    # Prompts that share a chunk all end with it.
    latency = total * (np.maximum(chunks, 1.0) + np.asarray(layouts.pp) - 1.0) / layouts.pp
    return PrefillTime(
        total * charged,
        latency,
        computed / (constants.chunk_tokens * layouts.dp * (1 if decode is None else layouts.pp)),
        {name: part * charged for name, part in extra.items()},
        total * constants.chunk_tokens / passes.chunk,
        passes.turn,
        1.0 - (1.0 - passes.filled(layouts.dp)) * (1.0 - together),
    )


def fullest_lane(arriving: ArrayLike, stages: ArrayLike) -> Result:
    """Compute the mean prompts in the fullest of a number of micro-batches, of a Poisson number in a round:  E[max] = sum (1 - F^stages).

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


@dataclass(frozen=True, slots=True)
class _Passes:
    """The passes of a micro-batch that carry prompts."""

    chunk: Result  # on the rank with most [token]
    tokens: Result  # on all ranks [token]
    each: Result  # passes of the replica that a prompt is charged [1]
    turn: Result  # share of them after which the next prompt may begin [1]

    def filled(self, ranks: ArrayLike) -> Result:
        """Compute the tokens as a share of the tokens with every rank as full as the fullest [1]."""
        return as_result(self.tokens / (self.chunk * np.asarray(ranks, float)))


def _passes(layouts: ServingLayouts, prompts: Prompts, computed: Result, most: Result) -> _Passes:
    """Spread prompts over passes of `most` tokens a rank, as `prefill_time` states."""
    pp, dp, arriving = (np.asarray(value, float) for value in (layouts.pp, layouts.dp, prompts.arriving))
    known = np.isfinite(arriving)
    shared = known & (dp > 1.0) & (not prompts.queued)
    chunks, holds = (
        np.maximum(computed / most, 1.0),
        np.maximum(most / computed, 1.0),
    )  # a prompt; prompts of a chunk
    come = np.where(known, arriving, 1.0) / (pp * np.where(shared, 1.0, dp))
    rounds, chunk = come * chunks, np.minimum(most, computed * np.asarray(prompts.together, float))
    tokens = chunk * dp
    if np.any(shared):
        busy = -np.expm1(-rounds)
        spread = np.maximum(np.minimum(fullest_rank_prompts(come, dp), holds * busy), busy)
        chunk = np.where(shared, np.minimum(most, computed * spread / busy), chunk)
        tokens = np.where(shared, np.minimum(come * computed / busy, dp * chunk), tokens)
        rounds = np.where(shared, spread, rounds)
    each = computed / (tokens * pp)
    if not np.any(known & (pp > 1.0)):
        return _Passes(chunk, tokens, each, 1.0)
    # No micro-batch passes another, so that all wait for the fullest.
    held = -np.expm1(-pp * come * chunks) * holds
    longer = np.minimum(fullest_lane(pp * rounds, pp), held) / rounds
    fullest = np.where(known, np.maximum(longer, 1.0), 1.0)
    return _Passes(chunk, tokens, each * fullest, as_result(1.0 / fullest))


def fullest_rank_prompts(prompts: ArrayLike, ranks: ArrayLike) -> Result:
    """Compute the mean prompts on the fullest of R ranks that share a Poisson number evenly:  E[ceil(N/R)] = sum_j P(N > j R).

    Far beyond the ranks it is a/R + (1 - 1/R)/2. Shapes: broadcast; prompts a [1], ranks [1]; result [1].
    Reference: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 3rd ed. (2005), chapter 4 (tail of the Poisson as a gamma integral).

    >>> [round(float(fullest_rank_prompts(a, 4)), 3) for a in (0.1, 4.0, 100.0)]
    [0.095, 1.374, 25.375]
    """
    a, n = np.broadcast_arrays(np.asarray(prompts, float), np.asarray(ranks, float))
    found = np.asarray(-np.expm1(-a))
    many = a > 4.0 * n
    found = np.where(many, a / n + 0.5 * (1.0 - 1.0 / n), found)
    some = ~many & (a > _FEW * n)
    if np.any(some):
        a, n = a[some], n[some]
        found[some] += sum_of(gammainc(j * n + 1.0, a) for j in range(1, _TERMS))
    return as_result(found)
