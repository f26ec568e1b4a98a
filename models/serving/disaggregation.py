"""Separate pools for prefill and decode: rates, latencies and how many workers of each belong together.

A group is n_p prefill workers and n_d decode workers that share a stream of requests; it is to two pools what a replica is
to one, and is described by the same ServingPoint. One pool for both is in continuous_batching.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.arrays import Floats, Result
from models.queueing.arrivals import Arrivals
from models.queueing.passes import Passes, PassTimes
from models.queueing.queues import both_waits, departure_scv
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import DecodeTimes, ServingPoint, decode_times
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import transfer_s
from models.serving.prefill import PrefillTime, Prompts
from models.serving.prefix_cache import CachedPrefill, held_bytes, pool_memory
from models.serving.prompt_terms import overhead_s
from models.serving.sessions import (
    Reuse,
    SessionPrefill,
    apart,
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
from models.serving.speculation import Speculation, step_tokens
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture


@dataclass(frozen=True, slots=True)
class DisaggregatedPoint:
    """A group of two pools. `point` is per group: its batch, slots, step, memory and shares belong to a decode worker."""

    point: ServingPoint
    prefill_workers: Result
    decode_workers: Result
    prefill_chips: Result  # chips of the group
    decode_chips: Result  # chips of the group
    prefill_shares: dict[str, Result]  # shares of a prefill worker's time by part; the rest is idle
    prefill_memory_bytes: Result  # fullest chip of a prefill worker
    transfer_s: Result  # moving the cache of a prompt, alone
    links_s: Result  # time of all links of the side that has fewer, that a prompt's cache takes
    full_s: Result  # time of a prefill worker for each prompt of a full pass
    boundary_s: Result  # mean wait of a prompt for the end of a pass under way, beside its queue

    @property
    def chips(self) -> Result:
        return self.prefill_chips + self.decode_chips


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """Workers of one kind, each a copy of the network on chips of its own."""

    chip: ChipRates
    layouts: ServingLayouts
    workers: ArrayLike  # in a group [1]
    constants: ServingConstants

    @property
    def count(self) -> NDArray[Any]:
        """Workers in a group [1]."""
        return np.asarray(self.workers)


@dataclass(frozen=True, slots=True)
class TransferLink:
    """The link over which a KV cache moves from a prefill to a decode worker."""

    bytes_per_s: ArrayLike  # per chip and direction [byte/s]
    start_s: ArrayLike = 0.0  # start of a transfer [s]
    line_bytes_per_s: ArrayLike = np.inf  # at which one cache travels beside others on a line between sites [byte/s]


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def disaggregated(
    arch: Architecture,
    prefill: WorkerPool,
    decode: WorkerPool,
    batch: ArrayLike,
    *,
    link: TransferLink,
    lengths: Lengths,
    precisions: Precisions,
    speculation: Speculation | None = None,
    cache: Reuse | None = None,
    arrival_scv: ArrayLike = 1.0,
) -> DisaggregatedPoint:
    """Predict a group at the rate that keeps `batch` requests in each decode worker:  rate = n_d b / ((O - 1) T(s)).

    A request meets s = max(b + 1/n_d, 1), itself included: arrivals find a Poisson number that is divided evenly. Prefill workers take all prompts
    that wait into their next pass, as far as chunk and memory go, on all their attention ranks (`passes.Passes`, between a prompt alone and a full chunk);
    where full passes serve less than the rate, the decode side outruns them, the wait is infinite and the point meets no limit: the group's rate is the smaller of both sides. TPOT = T(s), without prefill in between;
    TTFT = f (constant + pass + transfer) + wait + wait on links + wait for a slot + half a step, with f the measured overhead of two pools: the first
    token is out when its request joins the decode of the worker that holds fewest, so the swings of all workers are shared.
    The KV cache of a prompt moves over min(tp pp of both workers) links, which transfers share (processor sharing): at a load u of all links
    of the senders or the receivers it waits u/(1 - u) times as long as it takes alone, without end where the links carry no such rate. Decode workers run `speculation`; `cache` stands with
    the prefill workers, to which the answers of a session do not return; prefixes are routed to groups. Both as in `continuous_batching.aggregated`.
    Shapes: both layouts, batch [request of a decode worker], workers [1] and lengths [token] broadcast, e.g. prefill
    [p, 1, 1, 1], decode [d, 1, 1], batch [b, 1], workers [r]. Valid for batch > 0, output_tokens > 1, stationary load.
    Reference: Zhong et al., DistServe, OSDI 2024, sections 3-4; Patel et al., Splitwise, ISCA 2024; models/queueing/queues.py.

    >>> from models.serving import examples
    >>> pool = lambda tp, workers: WorkerPool(examples.CHIP, ServingLayouts(tp, 1, 1, 1), workers, examples.SERVING)
    >>> both = disaggregated(examples.DENSE, pool(1, np.array([1, 2])), pool(2, 1), 32, link=TransferLink(25e9),
    ...     lengths=Lengths(1000, 200), precisions=Precisions("bf16", "bf16"))
    >>> both.chips.tolist(), bool(both.point.ttft_s[1] < both.point.ttft_s[0])
    ([3, 4], True)
    """
    b, cache = np.asarray(batch, float), apart(cache)
    first, lengths = lengths, call_lengths(cache, lengths)
    group, found = _steady_group(arch, prefill, decode, b, lengths, precisions, speculation, cache, first, arrival_scv)
    kinds: dict[str, Any] = {"precisions": precisions, "constants": decode.constants}
    drafts = held_bytes(arch, decode.layouts, precisions.weights, speculation)
    places, used = pool_memory(arch, decode.chip, decode.layouts, b, drafts, lengths=lengths, **kinds)
    each, dp = group.requests_per_s / prefill.count, prefill.layouts.dp
    moving, on_links = _moving_s(arch, prefill, decode, link, lengths, precisions)
    step, passes = group.times.step, group.passes
    point = ServingPoint(
        batch=b + group.everywhere,
        seen=group.seen + group.everywhere,
        slots=places + group.everywhere,
        fits=(b <= places)
        & (group.prefill_places >= dp)
        & waiting_fits(arch, prefill.layouts, cache, each, first, precisions.kv_cache),
        memory_bytes=used,
        requests_per_s=group.requests_per_s * mean_load(cache),
        output_tokens=lengths.later_tokens + 1.0,
        input_scv=group.latency_scv,
        prompt_scv=group.prompt_scv,
        task=task_of(cache),
        output_scv=lengths.scv_of_output,
        computed_share=1.0 if found is None else found.computed_share,
        shares={name: part / step.total_s for name, part in step.breakdown.items()},
        loads=loads_of(cache, found),
        **group.tpot(),
        **group.ttft(arch, decode.constants, moving, on_links, places),
    )
    busy = {
        name: np.minimum(passes.load, 1.0) / passes.occupancy_full_s * passes.times.at(alone, group.full.breakdown[name], passes.on_rank)
        for name, alone in group.alone.breakdown.items()
    }  # fmt: skip
    return DisaggregatedPoint(
        point=point,
        prefill_workers=prefill.count,
        decode_workers=decode.count,
        prefill_chips=prefill.count * prefill.layouts.chips,
        decode_chips=decode.count * decode.layouts.chips,
        prefill_shares=busy,
        prefill_memory_bytes=group.prefill_used,
        transfer_s=moving,
        links_s=on_links,
        full_s=passes.occupancy_full_s + group.everywhere,
        boundary_s=passes.boundary_s + group.everywhere,
    )


def _steady_group(
    arch: Architecture,
    prefill: WorkerPool,
    decode: WorkerPool,
    batch: Floats,
    lengths: Lengths,
    precisions: Precisions,
    speculation: Speculation | None,
    cache: Reuse | None,
    first: Lengths,
    arrival_scv: ArrayLike,
) -> tuple[_Group, CachedPrefill | SessionPrefill | None]:
    """Find (the group at the rate that keeps its decode workers at `batch`, the prefill of its prompts by cache tier)."""
    per_step, _ = step_tokens(speculation, lengths.later_tokens)
    steps = lengths.later_tokens / per_step
    seen = np.maximum(batch + 1.0 / decode.count, 1.0)
    times = decode_times(
        arch, decode.chip, decode.layouts, seen, context_tokens=lengths.running_context_tokens, precisions=precisions,
        constants=decode.constants, speculation=speculation,
    )  # fmt: skip
    stay = steps * times.step.total_s
    rate = decode.count * batch / stay  # decode alone sets it

    def prefill_of(together: float) -> tuple[PrefillTime, CachedPrefill | SessionPrefill | None]:
        return call_cost(
            arch, prefill.chip, prefill.layouts, cache, lambda _: rate / prefill.count,
            Prompts(lengths.prompt, lengths.scv_of_input, together), None, first, precisions=precisions, constants=prefill.constants,
        )  # fmt: skip

    (alone, found), (full, _) = prefill_of(1.0), prefill_of(np.inf)
    by_occupancy, by_latency, by_prompt = call_scvs(alone, found, lengths, prefill.constants)
    places, used = _prefill_memory(arch, prefill, rate / prefill.count, full.steps, lengths, precisions, cache, first)
    shapes = (np.shape(part) for part in (stay, alone.occupancy_s, prefill.count, decode.count))
    everywhere = np.zeros(np.broadcast_shapes(*shapes))
    requests_per_s, arrivals = rate + everywhere, np.asarray(arrival_scv, float)
    pass_times = PassTimes(
        alone.occupancy_s, full.occupancy_s, full.steps, np.asarray(prefill.layouts.dp, float), places
    )
    passes = Passes(pass_times, requests_per_s, prefill.count, by_occupancy, arrivals)
    group = _Group(
        batch, seen, steps, per_step, times, decode.count, alone, full, passes, by_occupancy, by_latency, by_prompt, places, used,
        requests_per_s, arrivals, lengths, np.asarray(prefill.layouts.pp, float), everywhere,
    )  # fmt: skip
    return group, found


def _prefill_memory(
    arch: Architecture,
    prefill: WorkerPool,
    calls_per_s: Result,
    filled: Result,
    lengths: Lengths,
    precisions: Precisions,
    cache: Reuse | None,
    first: Lengths,
) -> tuple[Result, Result]:
    """Predict (prompts that a prefill worker holds at once, the memory of its fullest chip in a full pass [byte]); a prompt fills so much of a pass."""
    held = held_beside(arch, prefill.layouts, precisions, None, cache, calls_per_s, first)
    kinds: dict[str, Any] = {"precisions": precisions, "constants": prefill.constants, "shared": common(cache)}
    kinds["lengths"] = Lengths(lengths.prompt, 1.0)
    dp = np.asarray(prefill.layouts.dp, float)
    places, _ = pool_memory(arch, prefill.chip, prefill.layouts, dp, held, **kinds)
    inside = np.clip(1.0 / filled, dp, np.maximum(places, dp))
    return places, pool_memory(arch, prefill.chip, prefill.layouts, inside, held, **kinds)[1]


def _moving_s(
    arch: Architecture,
    prefill: WorkerPool,
    decode: WorkerPool,
    link: TransferLink,
    lengths: Lengths,
    precisions: Precisions,
) -> tuple[Result, Result]:
    """Predict (the transfer of a prompt's KV cache from a prefill to a decode worker alone, the time that it takes of all links of a side) [s]."""
    links = np.minimum(prefill.layouts.tp * prefill.layouts.pp, decode.layouts.tp * decode.layouts.pp)
    every = np.minimum(prefill.count * prefill.layouts.chips, decode.count * decode.layouts.chips)
    moved = arch, lengths.prompt, precisions.kv_cache
    alone = transfer_s(*moved, link.bytes_per_s, links, link.start_s)
    over_line = transfer_s(*moved, link.line_bytes_per_s, 1.0, link.start_s)
    return np.maximum(alone, over_line), transfer_s(*moved, link.bytes_per_s, every, 0.0)


@dataclass(frozen=True)
class _Group:
    """A group at a steady rate; the terms of TPOT and of TTFT follow from it. Times in s, numbers of requests in 1."""

    batch: Result  # requests in decode on a worker
    seen: Result  # by a request, itself included
    steps: Result  # decode steps per request
    per_step: Result  # output tokens of a step
    times: DecodeTimes
    decode_workers: Result
    alone: PrefillTime  # a prompt that shares no pass
    full: PrefillTime  # a prompt in a full chunk
    passes: Passes
    occupancy_scv: Result  # a prompt
    latency_scv: Result  # a prompt
    prompt_scv: Result  # the same between calls of one place in their tasks
    prefill_places: Result  # places of a prefill worker
    prefill_used: Result  # memory of its fullest chip [byte]
    requests_per_s: Result  # rate of the group
    arrival_scv: Result
    lengths: Lengths
    stages: Result  # stages of a prefill worker
    everywhere: Floats  # zeros of the shape of all points

    @cached_property
    def relaxation(self) -> Result:
        """How fast swings of the number in decode fade, against requests that leave one by one [1]."""
        return np.clip(1.0 - self.batch * self.times.slope_s / self.times.step.total_s, 0.02, 1.0)

    @cached_property
    def joining_scv(self) -> Result:
        """Squared coefficient of variation of the gaps between the requests that join decode [1]."""
        load, places = np.minimum(self.passes.load, 1.0), self.passes.workers * self.passes.times.together
        return departure_scv(load, self.occupancy_scv, places, self.arrival_scv)

    @cached_property
    def variance(self) -> Result:
        """Variance of the number of requests in all decode workers [1]."""
        requests = self.decode_workers * self.batch
        return requests / self.relaxation * (1.0 + (self.joining_scv - 1.0) / (1.0 + self.lengths.scv_of_output))

    def tpot(self) -> dict[str, Any]:
        """Compute the terms of TPOT, which varies with the number in decode alone."""
        step_s, slope = self.times.step.total_s, self.times.slope_s
        deviation = np.sqrt(self.variance) / self.decode_workers
        return {
            "steps": self.steps,
            "step_s": step_s,
            "tpot_s": step_s / self.per_step + self.everywhere,
            "tpot_deviation_s": slope * deviation / self.per_step + self.everywhere,
            "tpot_step_deviation_s": slope * deviation / self.per_step + self.everywhere,
            "tpot_skew": 2.0 * deviation / self.batch + self.everywhere,
            "tpot_burst_s": 0.0,
            "tpot_burst_skew": 0.0,
            "tpot_behind_s": 0.0,
            "tpot_prompt_s": 0.0,
            "tpot_chunk_s": 0.0,
            "relaxation": self.relaxation,
        }

    def ttft(
        self, arch: Architecture, constants: ServingConstants, transfer_s: Result, links_s: Result, places: Result
    ) -> dict[str, Any]:
        """Compute the terms of TTFT: prefill and transfer, the waits for a prefill worker and on the links, and the wait for a place in decode."""
        rate, step_s, slope = self.requests_per_s, self.times.step.total_s, self.times.slope_s
        factor = constants.disaggregated_first_token_factor
        constant = overhead_s(arch, constants)
        latency = self.alone.latency_s + self.stages * self.passes.longer_s
        load = np.minimum(rate * links_s, 1.0)  # load of the links
        with np.errstate(divide="ignore"):
            shared = np.where(load < 1.0, transfer_s * load / (1.0 - load), np.inf)
        queued, waiting, delayed, beyond = self.passes.wait()
        wait, chance, scv = both_waits((queued, waiting, delayed), (shared, load, 1.0))
        at_least_one = np.maximum(places, 1.0)
        full_step_s = np.maximum(step_s + slope * (at_least_one - self.seen), 0.0)
        arrivals = Arrivals(
            np.maximum(np.minimum(self.passes.load, 1.0), load), self.decode_workers * self.batch, self.variance, self.decode_workers * at_least_one, rate,
            self.decode_workers * at_least_one / (self.steps * full_step_s), self.joining_scv, self.lengths.scv_of_output,
        )  # fmt: skip
        no_slot, slot_wait = arrivals.place_wait()
        return {
            "prefill_s": self.passes.occupancy_s + self.everywhere,
            "prefill_utilisation": self.passes.utilisation + self.everywhere,
            "unloaded_ttft_s": factor * (constant + latency + transfer_s) + 0.5 * step_s + self.everywhere,
            "overhead_s": factor * constant + self.everywhere,
            "prompt_s": factor * (latency + transfer_s) + self.everywhere,
            "prefill_wait_s": wait,
            "prefill_wait_probability": chance,
            "prefill_wait_scv": scv,
            "prefill_load": beyond + self.everywhere,
            "boundary_s": step_s,
            "slot_wait_s": no_slot * slot_wait,
            "slot_wait_probability": no_slot,
            "arrivals": arrivals,
        }
