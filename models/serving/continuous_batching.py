"""Continuous batching at a steady load: rate, TPOT and TTFT of a replica that mixes prefill and decode.

One prompt costs the engine S, one step of b decoding requests T(b); requests arrive as a Poisson stream. Times of a
single step are in decode.py, of a prompt in prefill.py, queues in queueing.py, separate pools in disaggregation.py,
percentiles in percentiles.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.queueing.queues import (
    clumped_wait_probability,
    delayed_scv,
    left_behind_s,
    place_wait,
    shared_rate,
    wait_mean_s,
)
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import memory_bytes_per_chip, slots
from models.serving.prefill import PrefillTime
from models.serving.prefix_cache import PrefixCache, held_bytes, prompt_cost, without
from models.serving.speculation import Speculation, decode_step
from models.transformer.architecture import Architecture

# Parts of a step by what they wait for.
BOUNDS = {
    "compute": ("dense_compute", "expert_compute", "prefill_attention"),
    "memory": ("dense_memory", "expert_memory", "kv_memory"),
    "communication": ("communication",),
    "host": ("launch", "host"),
}


@dataclass(frozen=True, slots=True)
class ServingPoint:
    """Steady state of one replica; every array has the broadcast shape of layouts x batch."""

    batch: Result  # mean requests in decode
    slots: Result  # most requests that run at once
    fits: Result  # whether the batch fits in memory and under the engine's cap
    memory_bytes: Result  # of the fullest chip
    requests_per_s: Result
    output_tokens: Result  # per request
    steps: Result  # of decode per request
    step_s: Result  # decode step without prefill
    prefill_s: Result  # engine time of a prompt
    prefill_utilisation: Result  # share of time that prompts take from decode
    tpot_s: Result  # mean
    tpot_deviation_s: Result  # standard deviation by the number in decode
    tpot_step_deviation_s: Result  # the part of it that is not by prompts, which take longer beside more requests
    tpot_skew: Result  # skewness of both [1]
    tpot_burst_s: (
        Result  # standard deviation, by the prompts that happen to come in, of a request of one step; falls as its root
    )
    tpot_burst_skew: Result  # skewness of the same [1]
    tpot_behind_s: Result  # what prompts behind a request take from its decode
    tpot_prompt_s: Result  # mean part of TPOT that prompts of others take
    tpot_chunk_s: Result  # most that prompts can add to a step: a full chunk of them
    relaxation: Result  # how fast swings of the number in decode fade, against requests that leave one by one [1]
    unloaded_ttft_s: Result  # time to first token without a queue
    prompt_s: Result  # the part of it that is proportional to the prompt
    prefill_wait_s: Result  # mean wait for prefill
    prefill_wait_probability: Result
    prefill_wait_scv: Result  # squared coefficient of variation of those waits that are not 0
    boundary_s: Result  # an arrival waits for the end of a step, up to this long
    slot_wait_s: Result  # mean wait for a slot
    slot_wait_probability: Result
    input_scv: (
        Result  # squared coefficient of variation of prompt_s: of the prompt length, and of hits and misses in a cache
    )
    output_scv: Result  # of the output length
    computed_share: Result  # of a prompt's tokens; the others are found in a cache
    shares: dict[str, Result]  # of the engine's time by part; they add up to one

    def pick(self, index: tuple[int, ...] | np.ndarray) -> ServingPoint:
        """The points at an index of the broadcast shape, without the shares of their time; plain numbers stay what they are."""
        shape = np.shape(self.requests_per_s)
        return ServingPoint(*(_picked(getattr(self, name), shape, index) for name in _NUMBERS), shares={})

    @property
    def tokens_per_s(self) -> Result:
        """Output tokens per second of the replica."""
        return self.requests_per_s * self.output_tokens

    @property
    def ttft_s(self) -> Result:
        """Mean time to first token."""
        return self.unloaded_ttft_s + self.prefill_wait_s + self.slot_wait_s

    def bound_shares(self) -> dict[str, Result]:
        """Shares of the engine's time by what it waits for; they add up to one."""
        return {name: sum(self.shares[part] for part in parts) for name, parts in BOUNDS.items()}


_NUMBERS = tuple(f.name for f in fields(ServingPoint) if f.name != "shares")


def _picked(value: Result, shape: tuple[int, ...], index) -> Result:
    if not np.ndim(value):
        return value
    return (value if value.shape == shape else np.broadcast_to(value, shape))[index]


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def aggregated(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    batch: ArrayLike,
    *,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    input_scv: ArrayLike,
    output_scv: ArrayLike,
    weight_precision: str,
    kv_precision: str,
    constants: ServingConstants,
    speculation: Speculation | None = None,
    cache: PrefixCache | None = None,
    arrival_scv: ArrayLike = 1.0,
) -> ServingPoint:
    """One pool that prefills and decodes, at the arrival rate that keeps `batch` requests in decode on average.

    rate: `queueing.shared_rate`, whose first term is  b = rate x [(O - 1) T(b) + b S];  TPOT = b / (rate (O - 1)) (Little).
    S is the cost of a prompt among the b/(O - 1) that come in per step and share its fixed part.
    TTFT = constant + prefill + whole steps of the prompt and k + 1/2 more, T(b)/(1 - u) under load + wait (G/G/1 with service
    S + (I/C) T(b)) + wait for a slot (`queueing.place_wait`).
    The number in decode swings slowly by s, and the load of that server with it, r = rate (I/C) T'(b) s/(1 - load): wait x (1 + r^2).
    Prompts that share a step all end with it, so the wait is no less than that of gated service, u = rate S:
    u T/(2 (1 - u)) + (1/2 + u) rate S^2 (ca^2 + cs^2)/(1 - u^2).
    TPOT varies with the number in decode and with the prompts that happen to come in:
    the decode of X = (O - 1) T is a delay cycle of variance  rate S^2 (ca^2 + cs^2) X / (1 - u)^3.
    Shapes: layouts and batch [request of the replica] broadcast, e.g. layouts [n, 1] x batch [m]; tokens [token];
    squared coefficients of variation of the lengths and of the gaps between arrivals [1]. With `speculation` a request takes (O - 1)/E steps of E tokens; with `cache`
    S and its second moment are those over hits and misses. Valid for batch > 0, output_tokens > 1, stationary load. Where a
    layout needs a network that the chip lacks (rate 0) the times are infinite or undefined, and meet no limit.
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024; Takács, Introduction to the Theory of Queues (1962), chapter 1
    (delay cycles); Takagi, Queueing Analysis 1 (1991), chapter 2 (gated service); models/queueing/queues.py for the waits.

    >>> from models.serving import examples
    >>> point = aggregated(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 16, input_tokens=1000, output_tokens=200,
    ...     input_scv=0.0, output_scv=0.0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> bool(abs(point.requests_per_s * 199 * point.tpot_s - 16) < 1e-9)
    True
    """
    lengths = dict(input_tokens=input_tokens, output_tokens=output_tokens)
    kinds = dict(weight_precision=weight_precision, kv_precision=kv_precision, constants=constants)
    prompt, tokens = np.asarray(input_tokens, float), np.asarray(output_tokens, float) - 1.0
    per_step, passed = (1.0, 1.0) if speculation is None else (speculation.tokens_per_step, speculation.verified_tokens)
    steps = tokens / per_step
    b, by_length, by_output = np.asarray(batch, float), np.asarray(input_scv, float), np.asarray(output_scv, float)
    in_stage = b / layouts.pp
    # Long answers are met more often among those that run.
    running = dict(context_tokens=prompt + 0.5 * tokens * (1.0 + by_output), **kinds)
    mixed, step = decode_step(arch, chip, layouts, speculation, decode_sequences=in_stage, **running)
    swing = np.sqrt(b)
    _, more = decode_step(arch, chip, layouts, speculation, decode_sequences=(b + swing) / layouts.pp, **running)
    slope = (more.total_s - step.total_s) / swing
    prompts, found = prompt_cost(
        arch, chip, layouts, cache, lambda occupancy_s: b / (steps * step.total_s + b * occupancy_s),
        prompt_tokens=prompt, decode=mixed, decode_sequences=in_stage, tokens_per_sequence=passed,
        prompts_together=prompts_together(b, steps, layouts.dp), prompt_scv=by_length, **running,
    )  # fmt: skip
    service = prompts.occupancy_s
    by_time = time_scv(prompts, by_length, prompt / constants.chunk_tokens)
    by_occupancy, by_latency = (
        (by_time, by_time) if found is None else (found.occupancy_scv(by_time), found.latency_scv(by_time))
    )
    computed = prompt if found is None else prompt * found.computed_share

    rate, variance = shared_rate(
        b, steps, step.total_s, slope, service, by_occupancy, prompts.steps, by_output, arrival_scv
    )
    utilisation = rate * service
    decode_share = 1.0 - utilisation
    paced = step.total_s / decode_share  # a step under load
    deviation = np.sqrt(variance)
    variety = arrival_scv + by_occupancy
    burst = rate * service**2 * variety * step.total_s / decode_share**3
    cubes = rate * service**3 * (1.0 + by_occupancy) * (1.0 + 2.0 * by_occupancy) * step.total_s / decode_share**4
    third = cubes + 3.0 * burst**2 * decode_share / step.total_s

    server = service + prompts.steps * step.total_s
    load = np.minimum(rate * server, 1.0)
    swung = np.minimum(rate * prompts.steps * slope * deviation / np.maximum(1.0 - load, 1e-9), 1.0)
    queue = (1.0 + swung**2) * wait_mean_s(rate, server, by_occupancy, 1, load, arrival_scv)
    gathered = 0.5 * (paced - step.total_s) + (0.5 + utilisation) * rate * service**2 * variety / (1.0 - utilisation**2)
    wait = np.maximum(queue, gathered)
    held = held_bytes(arch, layouts, weight_precision, speculation, cache)
    places = slots(arch, chip if held is None else without(chip, held, constants), layouts, **lengths, **kinds)
    # An arrival sits out steps as they are under load, with the prompts of others in them; its own prompt takes whole steps.
    taken = computed / constants.interleave_tokens
    unloaded = unloaded_ttft_s(arch, prompts.latency_s, step.total_s, computed, constants)
    unloaded = (
        unloaded
        + (whole_steps(taken, by_length) - taken - 0.5) * step.total_s
        + constants.steps_waited * (paced - step.total_s)
    )
    inside = b + rate * (prompts.latency_s + np.where(load < 1.0, wait, 0.0) + 0.5 * paced)
    at_least_one = np.maximum(places, 1.0)
    full = np.maximum(at_least_one - (inside - b), 0.5)
    full_rate = full / (steps * np.maximum(step.total_s + slope * (full - b), 0.0) + full * service)
    no_slot, slot_wait = place_wait(
        inside, np.maximum(variance, inside), at_least_one, rate, full_rate, arrival_scv + by_output
    )
    shares = {
        name: decode_share / step.total_s * part + rate * prompts.breakdown[name]
        for name, part in step.breakdown.items()
    }
    return ServingPoint(
        batch=b + np.zeros(np.shape(rate)),
        slots=places + np.zeros(np.shape(rate)),
        fits=b <= places,
        memory_bytes=memory_bytes_per_chip(arch, layouts, b, **lengths, **kinds) + (0.0 if held is None else held),
        requests_per_s=rate,
        output_tokens=tokens + 1.0,
        steps=steps,
        step_s=step.total_s,
        prefill_s=service,
        prefill_utilisation=utilisation,
        tpot_s=b / (rate * tokens),
        tpot_deviation_s=slope * deviation / (decode_share * per_step),
        tpot_step_deviation_s=slope * deviation / per_step,
        tpot_skew=2.0 * deviation / b,
        tpot_burst_s=np.sqrt(burst) / per_step,
        tpot_burst_skew=third / np.maximum(burst, 1e-100) ** 1.5,
        tpot_behind_s=left_behind_s(utilisation, service, by_occupancy, arrival_scv, prompts.steps) / per_step,
        tpot_prompt_s=(paced - step.total_s) / per_step,
        tpot_chunk_s=np.maximum(service / prompts.steps, paced - step.total_s) / per_step,
        relaxation=np.clip(1.0 - b * slope / step.total_s, 0.0, 1.0),
        unloaded_ttft_s=unloaded,
        prompt_s=prompts.latency_s,
        prefill_wait_s=wait,
        prefill_wait_probability=clumped_wait_probability(load, arrival_scv),
        prefill_wait_scv=delayed_scv(load, by_occupancy),
        boundary_s=paced,
        slot_wait_s=no_slot * slot_wait,
        slot_wait_probability=no_slot,
        input_scv=by_latency,
        output_scv=by_output,
        computed_share=1.0 if found is None else found.computed_share,
        shares=shares,
    )


def prompts_together(batch: ArrayLike, steps: ArrayLike, ranks: ArrayLike) -> Result:
    """Mean number of prompts in a step of an attention rank that has any:  v / (1 - exp(-v)),  v = b / (n ranks) for b requests of n steps.

    Each request starts once in n steps, whatever their time. Shapes: broadcast [1]. Reference: Johnson, Kemp and Kotz, Univariate
    Discrete Distributions, 3rd ed. (2005), chapter 4 (Poisson without its zero).

    >>> round(float(prompts_together(100.0, 100.0, 1.0)), 3)
    1.582
    """
    arriving = np.asarray(batch, float) / (np.asarray(steps, float) * ranks)
    return (arriving / -np.expm1(-arriving))[()]


def time_scv(prompt: PrefillTime, length_scv: ArrayLike, chunks: ArrayLike) -> Result:
    """Squared coefficient of variation of the time of a prompt, from that of its length:  c^2 (1 + a - f (1 - w))^2.

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
    return (np.asarray(length_scv, float) * np.maximum(elasticity, 0.0) ** 2)[()]


def whole_steps(steps: ArrayLike, scv: ArrayLike) -> Result:
    """Mean of the whole steps that a prompt takes, whose length is x steps on average:  1/(1 - exp(-1/x)), or x rounded up if all are equal.

    The first is exact for exponential lengths and close from a coefficient of variation of 0.3; below the two are blended.
    Shapes: broadcast. Units: x [step], squared coefficient of variation [1], result [step].
    Reference: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 3rd ed. (2005), chapter 5 (rounded exponential).

    >>> float(whole_steps(0.25, 0.0)), round(float(whole_steps(0.25, 1.0)), 3)
    (1.0, 1.019)
    """
    x = np.maximum(steps, 1e-9)
    varied = np.minimum(np.asarray(scv, float) / 0.1, 1.0)
    return ((1.0 - varied) * np.ceil(x - 1e-9) + varied / -np.expm1(-1.0 / x))[()]


def unloaded_ttft_s(
    arch: Architecture,
    prefill_latency_s: ArrayLike,
    step_s: ArrayLike,
    prompt_tokens: ArrayLike,
    constants: ServingConstants,
) -> Result:
    """Time to first token with no queue:  t_F (x f for MoE) + prefill + (I / i + k) T(b).

    Shapes: broadcast. Units: seconds and tokens; result [s].
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024 (interleaving); constants: first fit on published serving measurements.

    >>> from models.serving import examples
    >>> round(float(unloaded_ttft_s(examples.DENSE, 0.1, 0.01, 2048, examples.SERVING)), 6)
    0.135
    """
    constant = constants.first_token_s * (constants.moe_first_token_factor if np.any(arch.experts) else 1.0)
    steps = np.asarray(prompt_tokens, float) / constants.interleave_tokens + constants.steps_waited
    return constant + np.asarray(prefill_latency_s, float) + steps * step_s
