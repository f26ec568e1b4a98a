"""Continuous batching at a steady load: rate, TPOT and TTFT of a replica that mixes prefill and decode, and their quantiles.

One prompt costs the engine S, one step of b decoding requests T(b); requests arrive as a Poisson stream. Times of a
single step are in decode.py, of a prompt in prefill.py, queues in queueing.py, separate pools in disaggregation.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.decode import ServingLayouts, step_time
from models.kvcache import memory_bytes_per_chip, slots
from models.operators import Architecture
from models.prefill import prefill_time
from models.queueing import erlang_c, gamma_quantile, normal_deviate, occupancy_variance, wait_mean_s, wait_quantile_s
from models.roofline import ChipRates
from models.serving_constants import ServingConstants

Result = np.ndarray | float
METRICS = ("ttft", "tpot", "e2e")
MEAN = "mean"
Quantile = float | str
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
    step_s: Result  # decode step without prefill
    prefill_s: Result  # engine time of a prompt
    prefill_utilisation: Result  # share of time that prompts take from decode
    tpot_s: Result  # mean
    tpot_deviation_s: Result  # standard deviation over requests of mean length
    unloaded_ttft_s: Result  # time to first token without a queue
    prompt_s: Result  # the part of it that is proportional to the prompt
    prefill_wait_s: Result  # mean wait for prefill
    prefill_wait_probability: Result
    slot_wait_s: Result  # mean wait for a slot
    slot_wait_probability: Result
    input_scv: Result  # squared coefficient of variation of the prompt length
    output_scv: Result  # of the output length
    shares: dict[str, Result]  # of the engine's time by part; they add up to one

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


@dataclass(frozen=True, slots=True)
class SloCapacity:
    """Points of layouts x batch, whether each meets all limits, and the latency at each asked (metric, quantile)."""

    satisfied: Result
    point: ServingPoint
    latency_s: dict[tuple[str, Quantile], Result]


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
) -> ServingPoint:
    """One pool that prefills and decodes, at the arrival rate that keeps `batch` requests in decode on average.

    b = rate x (O - 1) TPOT and TPOT = T(b) / (1 - rate S) give  rate = b / ((O - 1) T(b) + b S).
    TTFT = constant + prefill + (I/i) T(b) + k TPOT + wait (M/G/1 with service S + (I/C) T(b)) + wait for a slot (M/G/c).
    Prompts that share a step all end with it, which lengthens the wait by (1 + 2 u)/(1 + u), u = rate S (gated service).
    TPOT varies with the number in decode, whose variance is rate / X'(b), and with the prompts that happen to come in:
    the decode of X = (O - 1) T is a delay cycle of variance  rate E[S^2] X / (1 - rate S)^3.
    Shapes: layouts and batch [request of the replica] broadcast, e.g. layouts [n, 1] x batch [m]; tokens [token];
    squared coefficients of variation of the lengths [1]. Valid for batch > 0, output_tokens > 1, stationary load. Where a
    layout needs a network that the chip lacks (rate 0) the times are infinite or undefined, and meet no limit.
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024; Takács, Introduction to the Theory of Queues (1962), chapter 1
    (delay cycles); Takagi, Queueing Analysis 1 (1991), chapter 2 (gated service); models/queueing.py for the waits.

    >>> from models import examples
    >>> point = aggregated(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 16, input_tokens=1000, output_tokens=200,
    ...     input_scv=0.0, output_scv=0.0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> bool(abs(point.requests_per_s * 199 * point.tpot_s - 16) < 1e-9)
    True
    """
    lengths = dict(input_tokens=input_tokens, output_tokens=output_tokens)
    kinds = dict(weight_precision=weight_precision, kv_precision=kv_precision, constants=constants)
    prompt, steps = np.asarray(input_tokens, float), np.asarray(output_tokens, float) - 1.0
    b = np.asarray(batch, float)
    in_stage = b / layouts.pp
    running = dict(context_tokens=prompt + 0.5 * steps, **kinds)
    step = step_time(arch, chip, layouts, decode_sequences=in_stage, prefill_tokens=0.0, prompt_tokens=0.0, **running)
    more = step_time(
        arch, chip, layouts, decode_sequences=(b + np.sqrt(b)) / layouts.pp, prefill_tokens=0.0, prompt_tokens=0.0, **running
    )
    prompts = prefill_time(arch, chip, layouts, prompt_tokens=prompt, decode=step, decode_sequences=in_stage, **running)

    rate = b / (steps * step.total_s + b * prompts.occupancy_s)
    utilisation = rate * prompts.occupancy_s
    tpot = step.total_s / (1.0 - utilisation)
    second_moment = prompts.occupancy_s**2 * (1.0 + np.asarray(input_scv, float))
    cycle_variance = rate * second_moment * steps * step.total_s / (1.0 - utilisation) ** 3
    # Means over a swing of sqrt(b) stand for the derivatives: they stay finite where T has a corner.
    swing = np.sqrt(b)
    more_rate = (b + swing) / (steps * more.total_s + (b + swing) * prompts.occupancy_s)
    variance = occupancy_variance(rate, b, (more_rate - rate) / swing)
    by_batch = (more.total_s - step.total_s) / swing * np.sqrt(variance) / (1.0 - utilisation)

    server = prompts.occupancy_s + prompts.steps * step.total_s
    gathered = 1.0 + utilisation / (1.0 + utilisation) * np.maximum(1.0 - prompts.steps, 0.0)
    places = slots(arch, chip, layouts, **lengths, **kinds)
    # An arrival sits out steps as they are under load, with the prompts of others in them.
    unloaded = unloaded_ttft_s(arch, prompts.latency_s, step.total_s, prompt, constants) + constants.steps_waited * (tpot - step.total_s)
    stay = steps * tpot + prompts.latency_s
    at_least_one = np.maximum(places, 1.0)
    decode_share = (1.0 - utilisation) / step.total_s
    shares = {name: decode_share * part + rate * prompts.breakdown[name] for name, part in step.breakdown.items()}
    return ServingPoint(
        batch=b + np.zeros(np.shape(rate)),
        slots=places + np.zeros(np.shape(rate)),
        fits=b <= places,
        memory_bytes=memory_bytes_per_chip(arch, layouts, b, **lengths, **kinds),
        requests_per_s=rate,
        output_tokens=steps + 1.0,
        step_s=step.total_s,
        prefill_s=prompts.occupancy_s,
        prefill_utilisation=utilisation,
        tpot_s=tpot,
        tpot_deviation_s=np.sqrt(by_batch**2 + cycle_variance / steps**2),
        unloaded_ttft_s=unloaded,
        prompt_s=prompts.latency_s,
        prefill_wait_s=gathered * wait_mean_s(rate, server, input_scv),
        prefill_wait_probability=np.minimum(rate * server, 1.0),
        slot_wait_s=wait_mean_s(rate, stay, output_scv, at_least_one),
        slot_wait_probability=erlang_c(at_least_one, rate * stay),
        input_scv=np.asarray(input_scv, float),
        output_scv=np.asarray(output_scv, float),
        shares=shares,
    )


def unloaded_ttft_s(
    arch: Architecture, prefill_latency_s: ArrayLike, step_s: ArrayLike, prompt_tokens: ArrayLike, constants: ServingConstants
) -> Result:
    """Time to first token with no queue:  t_F (x f for MoE) + prefill + (I / i + k) T(b).

    Shapes: broadcast. Units: seconds and tokens; result [s].
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024 (interleaving); constants: first fit on published serving measurements.

    >>> from models import examples
    >>> round(float(unloaded_ttft_s(examples.DENSE, 0.1, 0.01, 2048, examples.SERVING)), 6)
    0.135
    """
    constant = constants.first_token_s * (constants.moe_first_token_factor if arch.experts else 1.0)
    steps = np.asarray(prompt_tokens, float) / constants.interleave_tokens + constants.steps_waited
    return constant + np.asarray(prefill_latency_s, float) + steps * step_s


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def latency_s(point: ServingPoint, metric: str, quantile: Quantile) -> Result:
    """Mean or quantile of a latency of a point:  "ttft", "tpot" or "e2e" (first to last token).

    ttft: unloaded + prompt x (g_q - 1) + quantiles of both waits, added up (an upper value for independent waits).
    tpot: mean + z_q x deviation, for a request of mean length. e2e: mean + excesses of TTFT, TPOT and length over their
    means, combined as the root of the sum of squares; a negative excess of length (median below mean) is added plainly.
    g_q is the gamma quantile of the lengths. Shapes: as the point; result [s]. Units: quantile [1] from 0.5 up to below 1,
    or "mean". Against an event simulation of the same engine: TPOT and E2E mean and p95 within 10 %, TTFT within 30 %;
    p99 of TPOT at exponential output lengths is up to 40 % low, because short outputs average over few steps.
    Reference: normal approximation of delay cycles and occupancy, exponential tail of waits: see models/queueing.py.

    >>> from models import examples
    >>> point = aggregated(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 16, input_tokens=1000, output_tokens=200,
    ...     input_scv=0.0, output_scv=0.0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> bool(latency_s(point, "ttft", 0.99) > latency_s(point, "ttft", 0.9) >= latency_s(point, "ttft", 0.5))
    True
    """
    if metric not in METRICS:
        raise ValueError(f"unknown latency {metric!r}; known: {', '.join(METRICS)}")
    if quantile != MEAN and not (isinstance(quantile, float) and 0.5 <= quantile < 1.0):
        raise ValueError(f'expected "mean" or a quantile from 0.5 up to below 1, got {quantile!r}')
    steps = point.output_tokens - 1.0
    if quantile == MEAN:
        return {"ttft": point.ttft_s, "tpot": point.tpot_s, "e2e": point.ttft_s + steps * point.tpot_s}[metric]
    z = normal_deviate(quantile)
    tpot_excess = z * point.tpot_deviation_s
    if metric == "tpot":
        return point.tpot_s + tpot_excess
    waits = wait_quantile_s(quantile, point.prefill_wait_probability, point.prefill_wait_s)
    waits = waits + wait_quantile_s(quantile, point.slot_wait_probability, point.slot_wait_s)
    ttft = point.unloaded_ttft_s + (gamma_quantile(quantile, point.input_scv) - 1.0) * point.prompt_s + waits
    if metric == "ttft":
        return ttft
    length_excess = (gamma_quantile(quantile, point.output_scv) - 1.0) * steps * point.tpot_s
    # inf - inf would be undefined; an infinite wait makes every quantile infinite anyway.
    finite = np.isfinite(point.ttft_s)
    mean_ttft = np.where(finite, point.ttft_s, 0.0)
    ttft_excess = np.where(finite, np.maximum(ttft - mean_ttft, 0.0), np.inf)
    excess = np.sqrt(ttft_excess**2 + (steps * tpot_excess) ** 2 + np.maximum(length_excess, 0.0) ** 2)
    return (mean_ttft + steps * point.tpot_s + np.minimum(length_excess, 0.0) + excess)[()]


def slo_capacity(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    batch: ArrayLike,
    *,
    slo: Mapping[str, Sequence[tuple[Quantile, float]]],
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    input_scv: ArrayLike,
    output_scv: ArrayLike,
    weight_precision: str,
    kv_precision: str,
    constants: ServingConstants,
) -> SloCapacity:
    """Which points of layouts x batch fit and meet every limit; `slo` maps "ttft", "tpot", "e2e" to (quantile, limit [s]).

    satisfied = fits, waits are finite, and latency(metric, q) <= limit for all. The rate of such a point is its capacity
    under the SLO.
    Shapes: as `aggregated`. Units: limits [s]. Reference: Zhong et al., DistServe, OSDI 2024, section 2 (goodput under an SLO).

    >>> from models import examples
    >>> found = slo_capacity(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), np.array([1, 64]),
    ...     slo={"tpot": [(0.95, 0.015)]}, input_tokens=1000, output_tokens=200, input_scv=0.0, output_scv=0.0,
    ...     weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> found.satisfied.tolist()
    [True, False]
    """
    point = aggregated(
        arch, chip, layouts, batch, input_tokens=input_tokens, output_tokens=output_tokens, input_scv=input_scv,
        output_scv=output_scv, weight_precision=weight_precision, kv_precision=kv_precision, constants=constants,
    )  # fmt: skip
    return within_slo(point, slo)


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def within_slo(point: ServingPoint, slo: Mapping[str, Sequence[tuple[Quantile, float]]]) -> SloCapacity:
    """The limits held against points that are already known, so that another set of limits costs little.

    Shapes: as the point; limits [s]. Reference: Zhong et al., DistServe, OSDI 2024, section 2.

    >>> from models import examples
    >>> point = aggregated(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 16, input_tokens=1000, output_tokens=200,
    ...     input_scv=0.0, output_scv=0.0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> bool(within_slo(point, {}).satisfied), bool(within_slo(point, {"ttft": [("mean", 1e-6)]}).satisfied)
    (True, False)
    """
    latencies = {(metric, q): latency_s(point, metric, q) for metric, limits in slo.items() for q, _ in limits}
    satisfied = np.asarray(point.fits) & np.isfinite(point.ttft_s)
    for metric, limits in slo.items():
        for quantile, limit in limits:
            satisfied = satisfied & (latencies[metric, quantile] <= limit)
    return SloCapacity(satisfied[()], point, latencies)
