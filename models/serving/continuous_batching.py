"""Continuous batching at a steady load: rate, TPOT and TTFT of a replica that mixes prefill and decode.

One prompt costs the engine S, one step of b decoding requests T(b); requests arrive as a Poisson stream. Times of a
single step are in step.py, of a prompt in prefill.py, queues in models/queueing/queues.py, separate pools in disaggregation.py,
percentiles in percentiles.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Result, picked, sum_of
from models.queueing.arrivals import Arrivals, AtServers
from models.queueing.queues import shared_rate
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.prefill import DecodeBatch, Prompts
from models.serving.prefix_cache import pool_memory
from models.serving.prompt_terms import prompts_together
from models.serving.sessions import (
    Reuse,
    Task,
    call_cost,
    call_lengths,
    call_scvs,
    common,
    held_beside,
    loads_of,
    mean_load,
    task_of,
    waiting_fits,
)
from models.serving.speculation import Speculation, decode_step, step_tokens
from models.serving.steady_state import SteadyState
from models.serving.step import StepTime
from models.serving.workload import Lengths, Precisions
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
    seen: Result  # the requests that a step is stated for: the mean, or of few clients what one of them sees, itself included
    slots: Result  # most requests that run at once
    fits: Bools | bool  # whether the batch fits in memory and under the engine's cap
    memory_bytes: Result  # fullest chip
    requests_per_s: Result
    output_tokens: Result  # per request
    steps: Result  # decode steps per request
    step_s: Result  # decode step without prefill, of `seen` requests
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
    output_scv: Result  # output length
    computed_share: Result  # share of a prompt's tokens; the others are found in a cache
    shares: dict[str, Result]  # shares of the engine's time by part; they add up to one
    prompt_scv: Result = 0.0  # prompt_s between calls of the same place in their tasks, for the calls of a task [1]
    prefill_load: Result = 0.0  # share of the waits for prefill that is for more than the service under way [1]
    overhead_s: Result = 0.0  # the constant part of unloaded_ttft_s: front end and scheduler
    slot_wait_scv: Result = 1.0  # squared coefficient of variation of those waits for a slot that are not 0
    encoding_s: Result = 0.0  # time of a request's media in a pool of encoders before prefill
    encoding_scv: Result = 0.0  # squared coefficient of variation of the same
    encoder_wait_s: Result = 0.0  # mean wait for an encoder of that pool
    encoder_wait_probability: Result = 0.0
    encoder_wait_scv: Result = 1.0  # squared coefficient of variation of those waits that are not 0
    task: Task | None = None  # to which the requests belong; None: each is its own
    arrivals: Arrivals | None = None  # what the waits are made of; None: of clients in a closed loop
    encoders: AtServers | None = None  # what the waits for an encoder are made of; None: no pool of them
    loads: tuple[Result, ...] = ()  # share of the requests that read their cache from each of its tiers

    def pick(self, index: tuple[int, ...]) -> ServingPoint:
        """Pick the point at an index of the broadcast shape, without its time shares; plain numbers stay as they are."""
        numbers: dict[str, Any] = {name: picked(getattr(self, name), index) for name in NUMBERS}
        arrivals = None if self.arrivals is None else self.arrivals.pick(index)
        encoders = None if self.encoders is None else self.encoders.pick(index)
        loads = tuple(picked(share, index) for share in self.loads)
        return ServingPoint(**numbers, shares={}, task=self.task, arrivals=arrivals, encoders=encoders, loads=loads)

    def with_waits_at(self, times: float) -> ServingPoint:
        """Return the point with the waits for an encoder, for prefill and for a slot that it has at a multiple of its rate; all else stays.

        Where that is more than it serves, they are infinite. Raises ValueError for a closed loop, whose rate is no cause of its waits.
        Units: times [1]. Reference: `queueing.arrivals.Arrivals` and `AtServers`.
        """
        if self.arrivals is None:
            raise ValueError("clients in a closed loop have no rate of their own")
        wait, chance, scv = self.arrivals.server_wait_at(
            times, (self.prefill_wait_s, self.prefill_wait_probability, self.prefill_wait_scv)
        )
        slot, no_slot = self.arrivals.place_wait_at(times, self.slot_wait_s)
        waits = (self.encoder_wait_s, self.encoder_wait_probability, self.encoder_wait_scv)
        encoder, queued, spread = waits if self.encoders is None else self.encoders.wait_at(times)
        return replace(
            self, encoder_wait_s=encoder, encoder_wait_probability=queued, encoder_wait_scv=spread, prefill_wait_s=wait, prefill_wait_probability=chance, prefill_wait_scv=scv, slot_wait_s=slot, slot_wait_probability=no_slot
        )  # fmt: skip

    @property
    def tokens_per_s(self) -> Result:
        """Output tokens per second of the replica."""
        return self.requests_per_s * self.output_tokens

    @property
    def ttft_s(self) -> Result:
        """Mean time to first token."""
        before = self.encoding_s + self.encoder_wait_s
        return before + self.unloaded_ttft_s + self.prefill_wait_s + self.slot_wait_s

    def bound_shares(self) -> dict[str, Result]:
        """Sum the engine's time by bound (compute, memory, communication, host); the shares add up to one."""
        return {name: sum_of(self.shares[part] for part in parts) for name, parts in BOUNDS.items()}


NUMBERS = tuple(
    f.name for f in fields(ServingPoint) if f.name not in ("shares", "task", "arrivals", "encoders", "loads")
)


@dataclass(frozen=True, slots=True)
class DecodeTimes:
    """The decode steps of one micro-batch: the pass that prompts are mixed into, the whole step, and how the step grows."""

    mixed: StepTime
    step: StepTime
    slope_s: Result  # more time of a step per request more


def decode_times(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    batch: ArrayLike,
    *,
    context_tokens: ArrayLike,
    precisions: Precisions,
    constants: ServingConstants,
    speculation: Speculation | None = None,
) -> DecodeTimes:
    """Predict the decode step T(b) of a replica and its slope over one standard deviation of b:  (T(b + sqrt b) - T(b)) / sqrt b.

    T(b) is that of a request which is one of b; where b of others decode on average, it meets T + the slope, its own part (`queues.shared_rate`).
    Shapes: layouts, batch [request of the replica] and context_tokens [token] broadcast; result [s], slope [s].
    Reference: as `speculation.decode_step`; the deviation is that of a Poisson number of requests.

    >>> from models.serving import examples
    >>> found = decode_times(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 16, context_tokens=1000,
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(0 < found.slope_s < found.step.total_s)
    True
    """
    b = np.asarray(batch, float)
    swing = np.sqrt(b)

    def at(requests: Result) -> tuple[StepTime, StepTime]:
        return decode_step(
            arch, chip, layouts, speculation, decode_sequences=layouts.in_stage(requests), context_tokens=context_tokens,
            precisions=precisions, constants=constants,
        )  # fmt: skip

    mixed, step = at(b)
    _, more = at(b + swing)
    return DecodeTimes(mixed, step, (more.total_s - step.total_s) / swing)


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def aggregated(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    batch: ArrayLike,
    *,
    lengths: Lengths,
    precisions: Precisions,
    constants: ServingConstants,
    speculation: Speculation | None = None,
    cache: Reuse | None = None,
    arrival_scv: ArrayLike = 1.0,
) -> ServingPoint:
    """Predict one pool that prefills and decodes, at the arrival rate that keeps `batch` requests in decode on average.

    rate: `queues.shared_rate`, whose first term is  b = rate x [(O - 1) T(b) + b S];  TPOT = b / (rate (O - 1)) (Little).
    S is the cost of a prompt among the b/(O - 1) that come in per step and share its fixed part.
    TTFT = constant + prefill + whole steps of the prompt and k + 1/2 more, T(b)/(1 - u) under load + wait for prefill
    + wait for a slot (`queues.place_wait`); u = rate S. The parts are in `steady_state.SteadyState`.
    Shapes: layouts and batch [request of the replica] broadcast, e.g. layouts [n, 1] x batch [m]; lengths [token];
    `arrival_scv`, the squared coefficient of variation of the gaps between arrivals [1]. With `speculation` a request takes
    (O - 1)/E steps of E tokens (`speculation.tokens_per_step_of`); with `cache` S and its second moment are those over hits and misses, or over the calls of sessions, of
    whose first call `lengths` are (`sessions.call_cost`). Where prefixes are routed, the rate alone is that of a mean worker, all else that of the fullest (`sessions.mean_load`). Valid for batch > 0, output_tokens > 1, stationary load. Where a layout lacks a network (rate 0) times are infinite or undefined.
    Reference: Agrawal et al., Sarathi-Serve, OSDI 2024; Takács, Introduction to the Theory of Queues (1962), chapter 1
    (delay cycles); Takagi, Queueing Analysis 1 (1991), chapter 2 (gated service); models/queueing/queues.py for the waits.

    >>> from models.serving import examples
    >>> point = aggregated(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), 16, lengths=Lengths(1000, 200),
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(abs(point.requests_per_s * 199 * point.tpot_s - 16) < 1e-9)
    True
    """
    per_step, passed = step_tokens(speculation, lengths.later_tokens)
    first, lengths = lengths, call_lengths(cache, lengths)
    b, steps, context = np.asarray(batch, float), lengths.later_tokens / per_step, lengths.running_context_tokens
    times = decode_times(
        arch, chip, layouts, b, context_tokens=context, precisions=precisions, constants=constants, speculation=speculation
    )  # fmt: skip
    step_s = times.step.total_s
    prompts, found = call_cost(
        arch, chip, layouts, cache, lambda occupancy_s: b / (steps * step_s + b * occupancy_s),
        Prompts(lengths.prompt, lengths.scv_of_input, prompts_together(b / steps, layouts), b / steps),
        DecodeBatch(times.mixed, layouts.in_stage(b), context, passed), first, precisions=precisions, constants=constants,
    )  # fmt: skip
    by_occupancy, by_latency, by_prompt = call_scvs(prompts, found, lengths, constants)
    computed_share: Result = 1.0 if found is None else found.computed_share
    rate, variance = shared_rate(
        b, steps, step_s, times.slope_s, prompts.occupancy_s, by_occupancy, prompts.steps, lengths.scv_of_output, arrival_scv, prompts.packed
    )  # fmt: skip
    steady = SteadyState(
        b, steps, per_step, step_s, times.slope_s, prompts, by_occupancy, rate, variance,
        np.asarray(arrival_scv, float), lengths,
    )  # fmt: skip
    held = held_beside(arch, layouts, precisions, speculation, cache, rate, first)
    places, used = pool_memory(
        arch, chip, layouts, b, held, lengths=lengths, precisions=precisions, constants=constants, shared=common(cache)
    )  # fmt: skip
    shares = {
        name: steady.decode_share / step_s * part + rate * prompts.breakdown[name]
        for name, part in times.step.breakdown.items()
    }
    everywhere = np.zeros(np.shape(rate))
    return ServingPoint(
        batch=b + everywhere,
        seen=b + everywhere,
        slots=places + everywhere,
        fits=(b <= places) & waiting_fits(arch, layouts, cache, rate, first, precisions.kv_cache),
        memory_bytes=used,
        requests_per_s=rate * mean_load(cache),
        output_tokens=lengths.later_tokens + 1.0,
        computed_share=computed_share,
        input_scv=by_latency,
        output_scv=lengths.scv_of_output,
        prompt_scv=by_prompt,
        task=task_of(cache),
        shares=shares,
        loads=loads_of(cache, found),
        **steady.tpot(),
        **steady.ttft(arch, constants, computed_share, places),
    )
