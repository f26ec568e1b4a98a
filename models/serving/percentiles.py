"""Percentiles of the latencies of a serving point, limits held against them, and the share of requests within limits (goodput).

The points come from continuous_batching.py and disaggregation.py, curves of sums and mixtures from models/queueing/cumulants.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Result, as_result
from models.queueing.cumulants import (
    Cumulants,
    MixtureShares,
    delayed_cumulants,
    either,
    gamma_cumulants,
    length_nodes,
    mixture_quantile_s,
    mixture_share,
)
from models.serving.continuous_batching import ServingPoint
from models.serving.sessions import Task

METRICS = ("ttft", "tpot", "e2e")
TASK = "task"  # metric of several calls, with the time between them
BY_COST = ("ttft", "e2e", "tpot", TASK)
MEAN = "mean"
Quantile = float | str


class _Chosen:
    """The points of a mask, whose arrays are gathered when they are first asked for; plain numbers stay what they are."""

    def __init__(self, point: ServingPoint, mask: Bools):
        self._point, self._shape, self._places = point, mask.shape, np.flatnonzero(mask)

    def __getattr__(self, name: str) -> Result:
        value: Result = getattr(self._point, name)
        if isinstance(value, np.ndarray) and value.ndim:
            value = np.broadcast_to(value, self._shape).reshape(-1)[self._places]
        setattr(self, name, value)
        return value


Points = ServingPoint | _Chosen


def first_token_cumulants(point: Points, encoders: bool = True) -> Cumulants:
    """Describe the time to first token (TTFT) without the wait for a slot:  unloaded + wait for prefill, from independent parts.

    Prompt: gamma of its squared coefficient of variation; the end of the step under way: uniform; the wait: an atom at 0 and a
    gamma part. A pool of encoders adds its service and its wait likewise. Shapes: as the point; result [s], [s^2], [s^3]. Reference: Kleinrock, Queueing Systems 1 (1975), chapter 5.

    >>> from models.serving import examples
    >>> point = examples.POINT
    >>> bool(abs(first_token_cumulants(point).mean - (point.ttft_s - point.slot_wait_s)) < 1e-12)
    True
    """
    prompt = gamma_cumulants(point.prompt_s, point.input_scv)
    wait = delayed_cumulants(point.prefill_wait_s, point.prefill_wait_probability, point.prefill_wait_scv)
    variance = prompt.variance + wait.variance + np.asarray(point.boundary_s) ** 2 / 12.0
    # Half of what does not go with the prompt is left where the step under way is about to end.
    least = 0.5 * np.maximum(point.unloaded_ttft_s - point.prompt_s, 1e-3 * point.unloaded_ttft_s)
    found = Cumulants(point.unloaded_ttft_s + point.prefill_wait_s, variance, prompt.third + wait.third, least)
    if not encoders or not _encodes_apart(point):
        return found
    service = gamma_cumulants(point.encoding_s, point.encoding_scv)
    queue = delayed_cumulants(point.encoder_wait_s, point.encoder_wait_probability, point.encoder_wait_scv)
    return found + service + queue


def _encodes_apart(point: Points) -> bool:
    return bool(np.any(point.encoding_s))


def output_token_mixture(point: Points) -> tuple[Floats, Cumulants]:
    """Describe the time per output token (TPOT) as (weights, cumulants) of requests of several lengths, which are the first axis.

    A request of n = x N steps (N the mean): mean tpot + e (1/n - 1/N), e the time that prompts behind it take; variance
    s^2 psi(r x) + v/n + (2/u - 1) (e/n)^2, s by the number in decode, whose swings fade at r and average out by psi(y) = 2 (y - 1 + exp(-y))/y^2
    over the stay; v of one step by the prompts that come in; u the share of time that prompts take. Third cumulants likewise.
    Shapes: nodes x point. Units: [1] and [s]. Reference: Takács (1962), chapter 1 (delay cycles); Cox and Miller, Theory of
    Stochastic Processes (1965), chapter 7 (variance of an average).

    >>> from models.serving import examples
    >>> point = examples.SPREAD_POINT
    >>> time = output_token_mixture(point)[1]
    >>> time.mean.shape, bool(time.variance[0] > time.variance[-1])
    ((6,), True)
    """
    weights, lengths = length_nodes(point.output_scv)
    shape = (-1,) + (1,) * (np.ndim(point.tpot_s) + 1 - lengths.ndim)
    if lengths.ndim == 1:
        weights, lengths = weights.reshape((*weights.shape, *shape[1:])), lengths.reshape((*lengths.shape, *shape[1:]))
    averaged = np.sqrt(_averaged(point.relaxation * lengths))
    if not any(np.any(part) for part in (point.tpot_chunk_s, point.tpot_burst_s, point.tpot_behind_s)):
        return weights, _token_cumulants_without_prompts(point, point.tpot_deviation_s * averaged)
    inverse = 1.0 / np.maximum(point.steps * lengths, 1.0)
    slow, alone = point.tpot_deviation_s * averaged, point.tpot_step_deviation_s * averaged
    # No step carries more than a chunk, which bounds what prompts add to the mean of a few steps, and its variance.
    room = np.maximum(point.tpot_chunk_s - point.tpot_prompt_s, 1e-12)
    burst = point.tpot_burst_s**2 * inverse
    by_prompts = burst + slow**2 - alone**2
    kept = 1.0 / (1.0 + by_prompts / (point.tpot_prompt_s * room + 1e-100))
    behind = point.tpot_behind_s * inverse
    behind = behind / (1.0 + behind / room)
    chance = np.clip(np.asarray(point.prefill_utilisation, float), 1e-3, 1.0)
    variance = alone**2 + kept * by_prompts + np.minimum((2.0 / chance - 1.0) * behind, room) * behind
    third = (
        point.tpot_skew * alone**3
        + (point.tpot_burst_skew * burst**1.5 * np.sqrt(inverse) + point.tpot_skew * (slow**3 - alone**3)) * kept**3
    )
    alone_s = point.step_s * point.steps / (point.output_tokens - 1.0)
    mean = point.tpot_s + behind - (weights * lengths * behind).sum(axis=0) / (weights * lengths).sum(axis=0)
    # No step is shorter than one in an engine that is nearly empty, and none is on average than one without prompts.
    least = np.clip(point.relaxation, 0.02, 0.9) * alone_s
    return weights, Cumulants(np.maximum(mean, alone_s), variance, third, least)


def _token_cumulants_without_prompts(point: Points, deviation_s: Result) -> Cumulants:
    """Describe the time per output token where no step carries prompts: only the number in decode varies it, with a deviation at each length."""
    alone_s = point.step_s * point.steps / (point.output_tokens - 1.0)
    mean = np.broadcast_to(np.maximum(point.tpot_s, alone_s), np.shape(deviation_s))
    least = np.clip(point.relaxation, 0.02, 0.9) * alone_s
    return Cumulants(mean, deviation_s**2, point.tpot_skew * deviation_s**3, least)


def _averaged(stay: ArrayLike) -> Result:
    """psi(y) = 2 (y - 1 + exp(-y))/y^2, which is 1 at 0 and 2/y far out."""
    y = np.maximum(np.asarray(stay, float), 1e-3)
    return as_result(2.0 * (y + np.expm1(-y)) / (y * y))


def decode_cumulants(point: Points) -> Cumulants:
    """Describe the time from first to last token over requests of all lengths:  n t for n steps of mean time t, gamma n.

    Variance E[n^2] s^2 psi + E[n] v + var(n) t^2; the third cumulant with the moments of the gamma distribution and the terms in which
    both vary. Shapes: as the point; result [s], [s^2], [s^3]. Reference: Brillinger, Annals of the Institute of Statistical
    Mathematics 21 (1969) (cumulants by conditioning).

    >>> from models.serving import examples
    >>> point = examples.SPREAD_POINT
    >>> bool(abs(decode_cumulants(point).mean - 199 * point.tpot_s) < 1e-12)
    True
    """
    c, tokens = np.asarray(point.output_scv, float), point.output_tokens - 1.0
    slow = point.tpot_deviation_s * np.sqrt(_averaged(point.relaxation * (1.0 + c)))
    burst = point.tpot_burst_s / np.sqrt(point.steps)  # a request of mean length
    relative, scattered = (slow / point.tpot_s) ** 2, (burst / point.tpot_s) ** 2
    variance = c + (1.0 + c) * relative + scattered
    third = (
        2.0 * c * c
        + (1.0 + c) * (1.0 + 2.0 * c) * point.tpot_skew * relative**1.5
        + point.tpot_burst_skew / np.sqrt(point.steps) * scattered**1.5
        + 3.0 * c * (2.0 * (1.0 + c) * relative + scattered)
    )
    mean = tokens * point.tpot_s
    return Cumulants(mean, variance * mean**2, third * mean**3)


def task_cumulants(point: Points, encoders: bool = True) -> Cumulants:
    """Describe the time of a task of N calls R and N - 1 waits Z, all independent:  mean n R + (n - 1) Z.

    Variance n var R + (n - 1) var Z + var N (R + Z)^2; the third cumulant likewise, with N - 1 gamma. A call waits for a slot with some
    chance; how long its prompt takes differs between calls of one place in their tasks only, since the others add up to the same in each.
    Shapes: as the point; result [s], [s^2], [s^3]. Valid for a point of a task. Reference: Brillinger, Annals of the Institute of
    Statistical Mathematics 21 (1969) (cumulants of random sums); Feller, An Introduction to Probability Theory 1 (1968), chapter 12.

    >>> from dataclasses import replace
    >>> from models.serving import examples
    >>> point = replace(examples.POINT, task=Task(3.0, wait_s=10.0))
    >>> bool(abs(task_cumulants(point).mean - (3 * latency_s(point, "e2e", "mean") + 20)) < 1e-9)
    True
    """
    task = _task(point)
    between = gamma_cumulants(point.prompt_s, point.input_scv)
    same_place = gamma_cumulants(point.prompt_s, point.prompt_scv)
    chance, each = np.asarray(point.slot_wait_probability, float), point.slot_wait_s
    slot = delayed_cumulants(each, chance, point.slot_wait_scv)
    plain = first_token_cumulants(point, encoders) + decode_cumulants(point)
    call = Cumulants(
        plain.mean + slot.mean,
        plain.variance - between.variance + same_place.variance + slot.variance,
        plain.third - between.third + same_place.third + slot.third,
        plain.least,
    )
    wait, n = gamma_cumulants(task.wait_s, task.wait_scv), task.calls
    more, spread = n - 1.0, task.calls_scv * n**2
    skew = 2.0 * spread**2 / more if more > 0.0 else 0.0
    cycle, scatter = call.mean + wait.mean, call.variance + wait.variance
    return Cumulants(
        n * call.mean + more * wait.mean,
        n * call.variance + more * wait.variance + spread * cycle**2,
        n * call.third + more * wait.third + 3.0 * spread * cycle * scatter + skew * cycle**3,
        call.least,
    )


Mixture = tuple[Floats, Cumulants]


def latency_mixture(point: Points, metric: str) -> Mixture:
    """Describe a latency as (weights, cumulants) of its components, which are the first axis:  "ttft", "tpot" or "e2e".

    "ttft" and "e2e" have two, without and with a wait for a slot (exponential); "tpot" one for each of several lengths.
    Shapes: components x point. Units: [1] and [s]. Reference: as the parts.

    >>> from models.serving import examples
    >>> point = examples.POINT
    >>> [latency_mixture(point, metric)[1].mean.shape for metric in ("ttft", "tpot")]
    [(2,), (1,)]
    """
    return _mixtures(point, metric)[0]


def _mixtures(point: Points, metric: str) -> tuple[Mixture, ...]:
    """Describe a latency as mixtures of which the slowest counts: no request ends before its first token, nor sooner for a stage before it, whatever the fit of each."""
    _check_metric(point, metric)
    if metric == "tpot":
        return (output_token_mixture(point),)
    if _encodes_apart(point):
        return _of_stages(point, metric) + _of_stages(point, metric, encoders=False)
    return _of_stages(point, metric)


def _of_stages(point: Points, metric: str, encoders: bool = True) -> tuple[Mixture, ...]:
    """Describe a time to the first token, to the last, or of a task, by all stages of the point, or all but encoders apart."""
    if metric == TASK and _task(point).calls > 1.0:
        time = task_cumulants(point, encoders)
        whole = np.broadcast_arrays(time.mean, time.variance, time.third, time.least)
        return ((np.ones((1, *whole[0].shape)), Cumulants(*(part[None] for part in whole))),)
    base = first_token_cumulants(point, encoders)
    chance = np.asarray(point.slot_wait_probability, float)
    wait = gamma_cumulants(point.slot_wait_s / np.maximum(chance, 1e-300), point.slot_wait_scv)
    first = either(chance, base, wait)
    return (first,) if metric == "ttft" else (either(chance, base + decode_cumulants(point), wait), first)


def _check_metric(point: Points, metric: str) -> None:
    """Raise ValueError for an unknown latency, or the task of requests that belong to none."""
    if metric not in (*METRICS, TASK):
        raise ValueError(f"unknown latency {metric!r}; known: {', '.join((*METRICS, TASK))}")
    if metric == TASK:
        _task(point)


def _task(point: Points) -> Task:
    """Return the task of a point's calls. Raises ValueError for requests that belong to none."""
    task: Task | None = point.task  # type: ignore[assignment]  # the chosen points have it too, as a plain value
    if task is None:
        raise ValueError("requests that belong to no task have no time of a task")
    return task


@np.errstate(invalid="ignore", over="ignore")  # infinity less infinity, where there is no network to cross
def latency_s(point: Points, metric: str, quantile: Quantile) -> Result:
    """Predict the mean or a quantile of a latency of a point:  "ttft", "tpot", "e2e" (arrival to last token, all waits counted) or "task".

    Quantiles come from `latency_mixture`, of "e2e" no less than of "ttft". Shapes: as the point; result [s]. Units: quantile [1] from 0.5 up to below 1, or "mean".
    Against an event simulation of the same engine (benchmarks/percentiles.md), Poisson arrivals, utilisation up to 0.85: median error of
    each figure within 10 % at most (of p99 of TTFT 16 %), 86 % of all figures within 10 %. Beyond that: TTFT with fewer than about 50
    slots at 0.85, where the wait for a slot sets the tail (factor 2 and more); TPOT of prompts that take several chunks before answers of
    some ten tokens (up to 90 % high); clumped arrivals, ca^2 = 3, p99 of TPOT 14 % low at light load. At 0.92 TTFT is 10-30 % off.
    Coefficients of variation of both lengths from 1 to 3: E2E from p90 on within 10 %, its median within 25 %, TTFT within 35 %, TPOT of the
    many short answers up to twice as high as simulated. Beyond 3 the order of the percentiles holds, and little else: TTFT at 10 is 3 times high.
    Reference: the parts' own; `cumulants` for curves of sums and mixtures.

    >>> from models.serving import examples
    >>> point = examples.POINT
    >>> bool(latency_s(point, "ttft", 0.99) > latency_s(point, "ttft", 0.9) >= latency_s(point, "ttft", 0.5))
    True
    """
    _check_metric(point, metric)
    if quantile != MEAN and not (isinstance(quantile, float) and 0.5 <= quantile < 1.0):
        raise ValueError(f'expected "mean" or a quantile from 0.5 up to below 1, got {quantile!r}')
    if quantile == MEAN:
        mean = {
            "ttft": point.ttft_s,
            "tpot": point.tpot_s,
            "e2e": point.ttft_s + (point.output_tokens - 1.0) * point.tpot_s,
        }
        if metric == TASK:
            task = _task(point)
            mean[TASK] = task.calls * mean["e2e"] + (task.calls - 1.0) * task.wait_s
        return mean[metric]
    found = reduce(np.maximum, [mixture_quantile_s(float(quantile), *part) for part in _mixtures(point, metric)])
    return as_result(np.where(_known(point, metric), np.minimum(found, _ceiling_s(point, metric)), np.inf))


@np.errstate(invalid="ignore", over="ignore")
def share_within(point: ServingPoint, metric: str, limit_s: ArrayLike) -> Result:
    """Predict the share of requests whose latency is within a limit; the inverse of `latency_s`.

    Shapes: limit broadcasts to the point. Units: limit [s], result [1]. Reference: as `latency_s`.

    >>> from models.serving import examples
    >>> point = examples.POINT
    >>> round(float(share_within(point, "tpot", latency_s(point, "tpot", 0.9))), 6)
    0.9
    """
    limit = np.asarray(limit_s, float)
    share = reduce(np.minimum, [mixture_share(limit, *part) for part in _mixtures(point, metric)])
    share = np.where(limit >= _ceiling_s(point, metric), 1.0, share)
    return as_result(np.where(_known(point, metric), share, 0.0))


def _known(point: Points, metric: str) -> Bools:
    return np.asarray(np.isfinite(point.tpot_s if metric == "tpot" else point.ttft_s))


def _ceiling_s(point: Points, metric: str) -> Result:
    """Bound TPOT from above by a step beside a full chunk of prompts, with twice the deviation of the number in decode."""
    if metric != "tpot":
        return np.inf
    alone = point.tpot_s - point.tpot_prompt_s
    full = np.maximum(alone + point.tpot_chunk_s, point.tpot_s) + 2.0 * point.tpot_step_deviation_s
    return np.where(np.asarray(point.tpot_chunk_s) > 0, full, np.inf)


def goodput(point: ServingPoint, ttft_s: ArrayLike, tpot_s: ArrayLike) -> Result:
    """Predict the share of requests that meet a limit on TTFT and one on TPOT together:  P(ttft) x P(tpot), as if independent.

    Both are worse in a busy spell, so the true share is at least this, and at most the smaller of the two.
    Shapes: limits broadcast to the point. Units: limits [s], result [1].
    Reference: Zhong et al., DistServe, OSDI 2024, section 2 (goodput); Lehmann, Annals of Mathematical Statistics 37 (1966)
    (quadrant dependence).

    >>> from models.serving import examples
    >>> point = examples.POINT
    >>> 0.0 < goodput(point, 0.1, 0.015) < min(share_within(point, "ttft", 0.1), share_within(point, "tpot", 0.015)) <= 1.0
    np.True_
    """
    return share_within(point, "ttft", ttft_s) * share_within(point, "tpot", tpot_s)


@np.errstate(invalid="ignore", over="ignore")
def within_slo(point: ServingPoint, slo: Mapping[str, Sequence[tuple[Quantile, float]]]) -> Bools:
    """Tell which points meet every limit; `slo` maps "ttft", "tpot", "e2e" to (quantile, limit [s]).

    satisfied = fits, waits are finite, and latency(metric, q) <= limit for all; the rate of such a point is its capacity under the SLO.
    Shapes: as the point; limits [s]. Reference: Zhong et al., DistServe, OSDI 2024, section 2.

    >>> from models.serving import examples
    >>> point = examples.POINT
    >>> bool(within_slo(point, {})), bool(within_slo(point, {"ttft": [("mean", 1e-6)]}))
    (True, False)
    """
    shape = np.shape(point.requests_per_s)
    satisfied = np.broadcast_to(np.asarray(point.fits) & np.isfinite(point.ttft_s), shape).copy()
    for metric, limits in slo.items():
        for limit in (limit for quantile, limit in limits if quantile == MEAN):
            satisfied &= latency_s(point, metric, MEAN) <= limit
    # What costs least first, since each is asked only of those that meet all limits so far.
    for metric in sorted(slo, key=BY_COST.index):
        tails = _tails(slo[metric])
        if tails and satisfied.any():
            left = _Chosen(point, satisfied)
            satisfied[satisfied] = _below_limits(left, metric, tails, _shares(left, metric))
    meeting: Bools = satisfied[()]
    return meeting


def _tails(limits: Sequence[tuple[Quantile, float]]) -> list[tuple[float, float]]:
    """Select the limits on quantiles, without those on means."""
    return [(float(quantile), limit) for quantile, limit in limits if quantile != MEAN]


def _shares(point: Points, metric: str) -> list[MixtureShares]:
    """Prepare the shares of requests below limits, of all mixtures of a latency."""
    return [MixtureShares(*mixture) for mixture in _mixtures(point, metric)]


def _below_limits(
    point: Points, metric: str, tails: Sequence[tuple[float, float]], shares: Sequence[MixtureShares]
) -> Bools:
    """Tell whether quantiles are below their limits; one evaluation each, where the quantile itself takes several."""
    ceiling = np.asarray(_ceiling_s(point, metric))
    below: Bools = np.logical_and.reduce(
        [(limit >= ceiling) | (each.below(limit) >= quantile) for each in shares for quantile, limit in tails]
    )
    return below & _known(point, metric)


class SloScreen:
    """Points that meet the limits common to all requests, to be checked against the further limits of each origin.

    The distributions of the latencies are worked out once for all origins.
    """

    def __init__(self, point: ServingPoint, common: Mapping[str, Sequence[tuple[Quantile, float]]]):
        self._point, self._mask = point, np.asarray(within_slo(point, common))
        self._left = _Chosen(point, self._mask)
        self._shares: dict[str, list[MixtureShares]] = {}

    @np.errstate(invalid="ignore", over="ignore")
    def satisfied(self, slo: Mapping[str, Sequence[tuple[Quantile, float]]]) -> Bools:
        """Tell which points also meet further limits, in the shape of the points. Units: limits [s]."""
        found = self._mask.copy()
        if not found.any():
            return found
        good = np.ones(np.count_nonzero(found), dtype=bool)
        for metric, limits in slo.items():
            tails = _tails(limits)
            for limit in (limit for quantile, limit in limits if quantile == MEAN):
                good &= latency_s(self._left, metric, MEAN) <= limit
            if tails:
                if metric not in self._shares:
                    self._shares[metric] = _shares(self._left, metric)
                good &= _below_limits(self._left, metric, tails, self._shares[metric])
        found[found] = good
        return found
