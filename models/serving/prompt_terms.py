"""Terms of a prompt's latency under continuous batching: how many share a step, how their times spread, TTFT without a queue, and how TTFT scatters in runs of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result, sum_of
from models.queueing.cumulants import Cumulants, delayed_cumulants, either, gamma_cumulants, mixture_quantile_s
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.prefill import PrefillTime, fullest_lane
from models.serving.prefix_cache import CachedPrefill
from models.serving.workload import Lengths
from models.transformer.architecture import Architecture

UNIFORM_SCV = 1.0 / 3.0  # squared coefficient of variation of a time that is uniform from 0 on


def prompts_together(arriving: ArrayLike, layouts: ServingLayouts) -> Result:
    """Compute the mean number of prompts in the fullest micro-batch of a rank and a round that has any:  m / (1 - exp(-v)),  v = a/dp of a that arrive.

    Each request of n steps starts once in n rounds, whatever their time: a = b/n. m as `prefill.fullest_lane`, v with one stage.
    Shapes: broadcast [1]. Reference: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 3rd ed. (2005), chapter 4 (Poisson
    without its zero).

    >>> from models.serving.examples import ONE
    >>> round(float(prompts_together(1.0, ONE)), 3)
    1.582
    """
    of_rank = np.asarray(arriving, float) / layouts.dp
    return as_result(fullest_lane(of_rank, layouts.pp) / -np.expm1(-of_rank))


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
        sum_of(prompt.breakdown.get(name, 0.0) for name in ("dense_memory", "expert_memory", "launch", "host"))
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


def overhead_s(arch: Architecture, constants: ServingConstants) -> Result:
    """Return the time that front end and scheduler take of every first token, t_F (x f for MoE) [s].

    Reference: as `unloaded_ttft_s`.

    >>> from models.serving import examples
    >>> round(float(overhead_s(examples.DENSE, examples.SERVING)), 6), round(float(overhead_s(examples.MOE, examples.SERVING)), 6)
    (0.015, 0.045)
    """
    return as_result(constants.first_token_s * (constants.moe_first_token_factor if np.any(arch.experts) else 1.0))


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
    constant = overhead_s(arch, constants)
    steps = np.asarray(prompt_tokens, float) / constants.interleave_tokens + constants.steps_waited
    return as_result(constant + np.asarray(prefill_latency_s, float) + steps * np.asarray(step_s, float))


def first_token_parts(point: Any) -> dict[str, Result]:
    """Split the mean time to first token of a serving point into its parts, which add up to it.

    overhead: front end and scheduler; prefill: the prompt itself (with separate pools also the move of its cache, or the encoding of its media); chunking: the end of
    the step under way and the decode steps that its chunks ride with; prefill_wait: the wait for the prompts before it, and for an encoder; slot_wait: the
    wait for a place in the batch. Shapes: as the point; result [s].
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024 (chunked prefill); `steady_state.SteadyState.ttft`.

    >>> from models.serving import examples
    >>> parts = first_token_parts(examples.POINT)
    >>> bool(abs(sum(parts.values()) - examples.POINT.ttft_s) < 1e-12), bool(min(parts.values()) >= 0.0)
    (True, True)
    """
    return {
        "overhead_s": point.overhead_s,
        "prefill_s": point.prompt_s + point.encoding_s,
        "chunking_s": point.unloaded_ttft_s - point.overhead_s - point.prompt_s,
        "prefill_wait_s": point.prefill_wait_s + point.encoder_wait_s,
        "slot_wait_s": point.slot_wait_s,
    }


@dataclass(frozen=True, slots=True)
class FirstToken:
    """TTFT of a run as a sum of independent times [s]: a constant, the prompt, the end of a step, a wait with an atom at 0, and a burst for some.

    `wait_s` and `burst_s` are means over all requests; of the share `burst_share` the burst is uniform from 0 on.
    """

    constant_s: Result  # mean of all but waits, half of the step under way included
    step_s: Result  # an arrival waits for the end of a step, up to this long
    wait_s: Result
    wait_probability: Result
    wait_scv: Result  # waits above zero [1]
    burst_s: Result = 0.0
    burst_share: Result = 0.0
    prompt_s: Result = 0.0  # the part of the constant that goes with the prompt
    prompt_scv: Result = 0.0  # time of a prompt [1]

    def mixture(self) -> tuple[Floats, Cumulants]:
        """Describe it as (weights, cumulants) of requests outside a burst and in one, which are the first axis."""
        wait = delayed_cumulants(self.wait_s, self.wait_probability, self.wait_scv)
        constant, step = np.asarray(self.constant_s, float), np.asarray(self.step_s, float)
        prompt = gamma_cumulants(self.prompt_s, self.prompt_scv)
        least = np.maximum(
            constant - 0.5 * step - (np.asarray(self.prompt_scv) > 0.0) * prompt.mean, 0.5 * (constant - prompt.mean)
        )
        variance, third = wait.variance + prompt.variance + step**2 / 12.0, wait.third + prompt.third
        alone = Cumulants(constant + wait.mean, variance, third, least)
        mean = np.asarray(self.burst_s, float) / np.maximum(self.burst_share, 1e-12)
        return either(self.burst_share, alone, Cumulants(mean, UNIFORM_SCV * mean**2, 0.0))

    def quantile_s(self, quantile: float) -> Result:
        """Compute a quantile of the TTFT of all requests [s]; quantile [1] from 0.5 up to below 1."""
        return as_result(mixture_quantile_s(quantile, *self.mixture()))
