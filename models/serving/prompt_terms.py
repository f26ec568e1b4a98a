"""Terms of a prompt's latency under continuous batching: how many share a step, how their times spread, and TTFT without a queue."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.serving.constants import ServingConstants
from models.serving.prefill import PrefillTime
from models.serving.prefix_cache import CachedPrefill
from models.serving.workload import Lengths
from models.transformer.architecture import Architecture


def prompts_together(batch: ArrayLike, steps: ArrayLike, ranks: ArrayLike) -> Result:
    """Compute the mean number of prompts in a step of an attention rank that has any:  v / (1 - exp(-v)),  v = b / (n ranks) for b requests of n steps.

    Each request starts once in n steps, whatever their time. Shapes: broadcast [1]. Reference: Johnson, Kemp and Kotz, Univariate
    Discrete Distributions, 3rd ed. (2005), chapter 4 (Poisson without its zero).

    >>> round(float(prompts_together(100.0, 100.0, 1.0)), 3)
    1.582
    """
    arriving = np.asarray(batch, float) / (np.asarray(steps, float) * ranks)
    return as_result(arriving / -np.expm1(-arriving))


def time_scv(prompt: PrefillTime, length_scv: ArrayLike, chunks: ArrayLike) -> Result:
    """Compute the squared coefficient of variation of the time of a prompt from that of its length:  c^2 (1 + a - f (1 - w))^2.

    a: share of attention, which goes with the square of the length; f: share of what a step takes however many tokens it carries,
    w = e/(x (1 - e)), e = exp(-1/x), how far that goes with the length where it fills x chunks. Shapes: broadcast [1].
    Reference: Oehlert, The American Statistician 46 (1992) (delta method); parts as in models/serving/prefill.py.

    >>> prompt = PrefillTime(1.0, 1.0, 1.0, {"dense_compute": 0.5, "dense_memory": 0.2, "prefill_attention": 0.3})
    >>> round(float(time_scv(prompt, 1.0, 0.01)), 3)
    1.21
    """
    fixed = (
        sum(prompt.breakdown.get(name, 0.0) for name in ("dense_memory", "expert_memory", "launch", "host"))
        / prompt.occupancy_s
    )
    rest = np.exp(-1.0 / np.maximum(chunks, 1e-3))
    follows = rest / (np.maximum(chunks, 1e-3) * (1.0 - rest))
    elasticity = 1.0 + prompt.breakdown["prefill_attention"] / prompt.occupancy_s - fixed * (1.0 - follows)
    return as_result(np.asarray(length_scv, float) * np.maximum(elasticity, 0.0) ** 2)


def prompt_scvs(
    prompts: PrefillTime, found: CachedPrefill | None, lengths: Lengths, constants: ServingConstants
) -> tuple[Result, Result]:
    """Compute the squared coefficients of variation of (occupancy, latency) of a prompt: by its length, and by hits and misses in a prefix cache.

    Shapes: as the prompts; result [1]. Reference: as `time_scv`.

    >>> from models.serving import examples
    >>> prompt = PrefillTime(1.0, 1.0, 1.0, {"prefill_attention": 0.0})
    >>> [float(scv) for scv in prompt_scvs(prompt, None, Lengths(1000, 200, input_scv=0.5), examples.SERVING)]
    [0.5, 0.5]
    """
    by_time = time_scv(prompts, lengths.scv_of_input, lengths.prompt / constants.chunk_tokens)
    return (by_time, by_time) if found is None else (found.occupancy_scv(by_time), found.latency_scv(by_time))


def whole_steps(steps: ArrayLike, scv: ArrayLike) -> Result:
    """Compute the mean number of whole steps that a prompt of x steps on average takes:  1/(1 - exp(-1/x)), or x rounded up if all are equal.

    The first is exact for exponential lengths and close from a coefficient of variation of 0.3; below the two are blended.
    Shapes: broadcast. Units: x [step], squared coefficient of variation [1], result [step].
    Reference: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 3rd ed. (2005), chapter 5 (rounded exponential).

    >>> float(whole_steps(0.25, 0.0)), round(float(whole_steps(0.25, 1.0)), 3)
    (1.0, 1.019)
    """
    x = np.maximum(steps, 1e-9)
    varied = np.minimum(np.asarray(scv, float) / 0.1, 1.0)
    return as_result((1.0 - varied) * np.ceil(x - 1e-9) + varied / -np.expm1(-1.0 / x))


def unloaded_ttft_s(
    arch: Architecture,
    prefill_latency_s: ArrayLike,
    step_s: ArrayLike,
    prompt_tokens: ArrayLike,
    constants: ServingConstants,
) -> Result:
    """Predict the time to first token (TTFT) without a queue:  t_F (x f for MoE) + prefill + (I / i + k) T(b).

    Shapes: broadcast. Units: seconds and tokens; result [s].
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024 (interleaving); constants: first fit on published serving measurements.

    >>> from models.serving import examples
    >>> round(float(unloaded_ttft_s(examples.DENSE, 0.1, 0.01, 2048, examples.SERVING)), 6)
    0.135
    """
    constant = constants.first_token_s * (constants.moe_first_token_factor if np.any(arch.experts) else 1.0)
    steps = np.asarray(prompt_tokens, float) / constants.interleave_tokens + constants.steps_waited
    return as_result(constant + np.asarray(prefill_latency_s, float) + steps * np.asarray(step_s, float))
