"""Separate pools for prefill and decode: rates, latencies and how many workers of each belong together.

A group is n_p prefill workers and n_d decode workers that share a stream of requests; it is to two pools what a replica is
to one, and is described by the same ServingPoint. One pool for both is in batching.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.queueing.queues import (
    clumped_wait_probability,
    delayed_scv,
    departure_scv,
    erlang_c,
    place_wait,
    wait_mean_s,
)
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint, time_scv
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import memory_bytes_per_chip, slots, transfer_s
from models.serving.prefix_cache import PrefixCache, held_bytes, prompt_cost, without
from models.serving.speculation import Speculation, decode_step
from models.transformer.architecture import Architecture


@dataclass(frozen=True, slots=True)
class DisaggregatedPoint:
    """A group of two pools. `point` is per group: its batch, slots, step, memory and shares are those of a decode worker."""

    point: ServingPoint
    prefill_workers: Result
    decode_workers: Result
    prefill_chips: Result  # of the group
    decode_chips: Result  # of the group
    prefill_shares: dict[str, Result]  # of a prefill worker's time by part; what is left of one is idle
    prefill_memory_bytes: Result  # of the fullest chip of a prefill worker
    transfer_s: Result  # moving the cache of a prompt

    @property
    def chips(self) -> Result:
        return self.prefill_chips + self.decode_chips


def worker_ratios(most: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (n_p, n_d) of at most so many workers each that are no multiple of a smaller pair.

    A multiple of a pair serves the multiple of its rate, so only the smallest need be looked at: a plan takes any number
    of groups. Shapes: two arrays of one length. Units: [1]. Their number grows as 6/pi^2 x most^2.
    Reference: Zhong et al., DistServe, OSDI 2024, section 4.2 (matching the rates of both pools).

    >>> [a.tolist() for a in worker_ratios(2)]
    [[1, 1, 2], [1, 2, 1]]
    """
    pairs = [(p, d) for p in range(1, most + 1) for d in range(1, most + 1) if gcd(p, d) == 1]
    return np.array([p for p, _ in pairs]), np.array([d for _, d in pairs])


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def disaggregated(
    arch: Architecture,
    prefill_chip: ChipRates,
    decode_chip: ChipRates,
    prefill_layouts: ServingLayouts,
    decode_layouts: ServingLayouts,
    batch: ArrayLike,
    prefill_workers: ArrayLike,
    decode_workers: ArrayLike,
    *,
    link_bytes_per_s: ArrayLike,
    link_start_s: ArrayLike,
    input_tokens: ArrayLike,
    output_tokens: ArrayLike,
    input_scv: ArrayLike,
    output_scv: ArrayLike,
    weight_precision: str,
    kv_precision: str,
    constants: ServingConstants,
    speculation: Speculation | None = None,
    cache: PrefixCache | None = None,
    prefill_constants: ServingConstants | None = None,
    arrival_scv: ArrayLike = 1.0,
) -> DisaggregatedPoint:
    """A group at the rate that keeps `batch` requests in each decode worker:  rate = n_d b / ((O - 1) T(b)).

    Prefill is G/G/n_p with service S; where rate S >= n_p the decode side outruns it, the wait is infinite and the point
    meets no limit: the group's rate is the smaller of both sides. TPOT = T(b), without prefill in between;
    TTFT = f (constant + S + transfer + wait) + wait for a slot + half a step, with f the measured overhead of two pools: the first
    token is out when its request joins the decode of the worker that holds fewest, so the swings of all workers are shared.
    The cache moves over min(tp pp of both workers) links at `link_bytes_per_s` per chip and direction.
    `speculation` is done by the decode workers; `cache` stands with the prefill workers. Both as in `batching.aggregated`.
    `prefill_constants` are those of the prefill workers where they differ.
    Shapes: both layouts, batch [request of a decode worker], workers [1] and tokens [token] broadcast, e.g. prefill
    [p, 1, 1, 1], decode [d, 1, 1], batch [b, 1], workers [r]. Valid for batch > 0, output_tokens > 1, stationary load.
    Reference: Zhong et al., DistServe, OSDI 2024, sections 3-4; Patel et al., Splitwise, ISCA 2024; models/queueing/queues.py.

    >>> from models.serving import examples
    >>> both = disaggregated(examples.DENSE, examples.CHIP, examples.CHIP, ServingLayouts(1, 1, 1, 1), ServingLayouts(2, 1, 1, 1), 32,
    ...     np.array([1, 2]), 1, link_bytes_per_s=25e9, link_start_s=0.0, input_tokens=1000, output_tokens=200, input_scv=0.0,
    ...     output_scv=0.0, weight_precision="bf16", kv_precision="bf16", constants=examples.SERVING)
    >>> both.chips.tolist(), bool(both.point.ttft_s[1] < both.point.ttft_s[0])
    ([3, 4], True)
    """
    kinds = dict(weight_precision=weight_precision, kv_precision=kv_precision, constants=constants)
    first = kinds | dict(constants=prefill_constants or constants)
    lengths = dict(input_tokens=input_tokens, output_tokens=output_tokens)
    prompt, tokens = np.asarray(input_tokens, float), np.asarray(output_tokens, float) - 1.0
    per_step = 1.0 if speculation is None else speculation.tokens_per_step
    steps = tokens / per_step
    b, n_p, n_d = np.asarray(batch, float), np.asarray(prefill_workers), np.asarray(decode_workers)
    by_length, by_output = np.asarray(input_scv, float), np.asarray(output_scv, float)
    running = dict(context_tokens=prompt + 0.5 * tokens * (1.0 + by_output), **kinds)
    _, step = decode_step(
        arch, decode_chip, decode_layouts, speculation, decode_sequences=b / decode_layouts.pp, **running
    )
    _, more = decode_step(
        arch, decode_chip, decode_layouts, speculation, decode_sequences=(b + np.sqrt(b)) / decode_layouts.pp, **running
    )
    stay = steps * step.total_s
    prompts, found = prompt_cost(
        arch, prefill_chip, prefill_layouts, cache, lambda _: n_d * b / stay / n_p,  # the decode side alone sets the rate
        prompt_tokens=prompt, decode=None, decode_sequences=0.0, context_tokens=0.0, prompt_scv=by_length, **first,
    )  # fmt: skip
    by_time = time_scv(prompts, by_length, prompt / first["constants"].chunk_tokens)
    by_occupancy, by_latency = (
        (by_time, by_time) if found is None else (found.occupancy_scv(by_time), found.latency_scv(by_time))
    )

    slope = (more.total_s - step.total_s) / np.sqrt(b)
    everywhere = np.zeros(np.broadcast_shapes(np.shape(stay), np.shape(prompts.occupancy_s), n_p.shape, n_d.shape))
    rate = n_d * b / stay + everywhere
    links = np.minimum(prefill_layouts.tp * prefill_layouts.pp, decode_layouts.tp * decode_layouts.pp)
    moving = transfer_s(arch, prompt, kv_precision, link_bytes_per_s, links, link_start_s)
    factor = constants.disaggregated_first_token_factor
    constant = constants.first_token_s * (constants.moe_first_token_factor if np.any(arch.experts) else 1.0)
    offered = rate * prompts.occupancy_s
    utilisation = np.minimum(offered / n_p, 1.0)

    drafts = held_bytes(arch, decode_layouts, weight_precision, speculation, None)
    places = slots(
        arch,
        decode_chip if drafts is None else without(decode_chip, drafts, constants),
        decode_layouts,
        **lengths,
        **kinds,
    )
    at_least_one = np.maximum(places, 1.0)
    queued = erlang_c(n_p, offered)
    joining_scv = departure_scv(utilisation, by_occupancy, n_p, arrival_scv)
    relaxation = np.clip(1.0 - b * slope / step.total_s, 0.02, 1.0)
    variance = (
        n_d * b / relaxation * (1.0 + (joining_scv - 1.0) / (1.0 + by_output))
    )  # of the requests in all decode workers
    full_rate = n_d * at_least_one / (steps * np.maximum(step.total_s + slope * (at_least_one - b), 0.0))
    no_slot, slot_wait = place_wait(n_d * b, variance, n_d * at_least_one, rate, full_rate, joining_scv + by_output)
    cached = held_bytes(arch, prefill_layouts, weight_precision, None, cache)
    beside = prefill_chip if cached is None else without(prefill_chip, cached, first["constants"])
    prefill_fits = (
        slots(arch, beside, prefill_layouts, input_tokens=prompt, output_tokens=1.0, **first) >= prefill_layouts.dp
    )
    deviation = np.sqrt(variance) / n_d
    point = ServingPoint(
        batch=b + everywhere,
        slots=places + everywhere,
        fits=(b <= places) & prefill_fits,
        memory_bytes=memory_bytes_per_chip(arch, decode_layouts, b, **lengths, **kinds)
        + (0.0 if drafts is None else drafts),
        requests_per_s=rate,
        output_tokens=tokens + 1.0,
        steps=steps,
        step_s=step.total_s,
        prefill_s=prompts.occupancy_s,
        prefill_utilisation=utilisation,
        tpot_s=step.total_s / per_step + everywhere,
        tpot_deviation_s=slope * deviation / per_step + everywhere,
        tpot_step_deviation_s=slope * deviation / per_step + everywhere,
        tpot_skew=2.0 * deviation / b + everywhere,
        tpot_burst_s=0.0,
        tpot_burst_skew=0.0,
        tpot_behind_s=0.0,
        tpot_prompt_s=0.0,
        tpot_chunk_s=0.0,
        relaxation=relaxation,
        unloaded_ttft_s=factor * (constant + prompts.latency_s + moving) + 0.5 * step.total_s + everywhere,
        prompt_s=factor * (prompts.latency_s + moving),
        prefill_wait_s=factor * wait_mean_s(rate, prompts.occupancy_s, by_occupancy, n_p, queued, arrival_scv),
        prefill_wait_probability=clumped_wait_probability(queued, arrival_scv),
        prefill_wait_scv=delayed_scv(utilisation, by_occupancy),
        boundary_s=step.total_s,
        slot_wait_s=no_slot * slot_wait,
        slot_wait_probability=no_slot,
        input_scv=by_latency,
        output_scv=by_output,
        computed_share=1.0 if found is None else found.computed_share,
        shares={name: part / step.total_s for name, part in step.breakdown.items()},
    )
    return DisaggregatedPoint(
        point=point,
        prefill_workers=n_p,
        decode_workers=n_d,
        prefill_chips=n_p * prefill_layouts.chips,
        decode_chips=n_d * decode_layouts.chips,
        prefill_shares={name: utilisation * part / prompts.occupancy_s for name, part in prompts.breakdown.items()},
        prefill_memory_bytes=memory_bytes_per_chip(
            arch, prefill_layouts, prefill_layouts.dp, input_tokens=prompt, output_tokens=1.0, **first
        )
        + (0.0 if cached is None else cached),
        transfer_s=moving,
    )
