"""A replica under the loads of benchmarks other than a fixed number of clients: best batch, static batch, burst, request rate, two pools.

Clients in a closed loop are in closed_loop.py; the percentiles that plans are made for, in continuous_batching.py and percentiles.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.queueing.finite_source import finite_source_wait
from models.queueing.queues import closed_loop_response_s, delayed_scv, wait_mean_s
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import slots, transfer_s
from models.serving.prefill import DecodeBatch, PrefillTime, Prompts, prefill_time
from models.serving.prompt_terms import FirstToken, overhead_s, prompts_together, unloaded_ttft_s
from models.serving.speculation import Speculation, decode_step
from models.serving.step import StepLoad, StepTime, step_time
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture

_ROUNDS = 6
_HIGHEST_UTILISATION = 0.98
_PROMPT_SCV = 0.3  # occupancy by prompts of a data set
_RESIDUAL = 0.5 * (1.0 + _PROMPT_SCV)  # mean residual occupancy over the mean


@dataclass(frozen=True, slots=True)
class Served:
    """TPOT, TTFT and throughput that clients see of one replica, and the sequences in decode."""

    tpot_s: Result
    ttft_s: Result
    tokens_per_s: Result  # output
    batch: Result
    first: Callable[[], FirstToken] | None = None  # how requests scatter about the mean TTFT; None: they do not

    def ttft_quantile_s(self, quantile: float) -> Result:
        """Compute a quantile of TTFT [s]."""
        return self.ttft_s if self.first is None else self.first().quantile_s(quantile)


@dataclass(frozen=True, slots=True)
class Replica:
    """A serving replica and its workload, everything but the load."""

    arch: Architecture
    chip: ChipRates
    layouts: ServingLayouts
    lengths: Lengths
    precisions: Precisions
    constants: ServingConstants

    @property
    def context_tokens(self) -> Result:
        """Mean context of a request in decode [token]."""
        return self.lengths.running_context_tokens

    def step(self, sequences: ArrayLike, prefill_tokens: ArrayLike = 0.0) -> StepTime:
        """Predict a step of a number of sequences of the replica, as one of them sees it; of none, of a prompt alone."""
        load = StepLoad(
            self._in_stage(sequences), self.context_tokens, prefill_tokens, self.lengths.input_tokens
        )  # fmt: skip
        return step_time(
            self.arch, self.chip, self.layouts, load, precisions=self.precisions, constants=self.constants
        )  # fmt: skip

    def _in_stage(self, sequences: ArrayLike) -> Result:
        return np.where(np.asarray(sequences) > 0.0, self.layouts.in_stage(sequences), 0.0)

    def arriving(self, batch: Result, queued: bool = False) -> Prompts:
        """Describe the prompts that come in while requests decode; `queued`: from a queue that never runs empty."""
        come = batch / self.lengths.later_tokens
        together = prompts_together(come, self.layouts)
        return Prompts(self.lengths.input_tokens, together=together, arriving=come, queued=queued)

    def prompt(self, sequences: ArrayLike, step: StepTime | None, prompts: Prompts | None = None) -> PrefillTime:
        """Predict one prompt, mixed into a step of a number of sequences: one of all that come in, or alone."""
        in_stage = self._in_stage(sequences)
        return prefill_time(
            self.arch, self.chip, self.layouts, prompts or Prompts(self.lengths.input_tokens),
            None if step is None else DecodeBatch(step, in_stage, self.context_tokens),
            precisions=self.precisions, constants=self.constants,
        )  # fmt: skip

    def places(self, most: ArrayLike = 0.0) -> Result:
        """Count the requests that run at once, at most `most` where that is positive, and one at least."""
        found = slots(
            self.arch, self.chip, self.layouts, lengths=self.lengths, precisions=self.precisions, constants=self.constants
        )  # fmt: skip
        most = np.asarray(most, float)
        return np.maximum(np.where(most > 0, np.minimum(found, most), found), 1.0)

    def all_prompts_s(self, count: ArrayLike) -> Result:
        """Predict the prefill of a number of prompts together, without decode [s]."""
        tokens = np.asarray(count, float) * self.lengths.prompt
        chunk = np.minimum(self.constants.chunk_tokens * self.layouts.dp, tokens)
        passes = tokens / chunk
        once = self.step(0.0, chunk).total_s
        return once * (passes + self.layouts.pp - 1.0) / self.layouts.pp


def best_batch(
    replica: Replica, most: ArrayLike = 0.0, tpot_limit_s: ArrayLike = 0.0, ttft_limit_s: ArrayLike = 0.0
) -> Served:
    """Find the highest throughput of a replica: the largest batch that memory, engine and limits on the p99 of TPOT and TTFT allow.

    X(b) = b / (b S + (O - 1) T(b)) rises with b, so b = b_max; with a limit l on TPOT the b at which T(b) + S b/(O - 1) = paced l, by
    regula falsi between one and b_max; with one on TTFT at most the rate u/S whose wait passes l - L once in a hundred,
    u = 1 - r S ln(100 u) / (l - L): arrivals are random then, and r = (1 + s^2)/2 the residual of a prompt over its mean. As many
    prompts share a chunk as requests end per step, b / (O - 1).
    Shapes: broadcast; most [1], limits [s], 0 for none.
    Reference: Kwon et al., PagedAttention, SOSP 2023; MLPerf Inference rules (server scenario of language models); Cooper,
    Introduction to Queueing Theory, 2nd ed. (1981), chapter 5 (exponential tail of the wait).

    >>> from models.serving import examples
    >>> run = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 200), Precisions("bf16", "bf16"), examples.SERVING)
    >>> bool(best_batch(run, tpot_limit_s=0.05).tokens_per_s < best_batch(run).tokens_per_s)
    True
    """
    later = replica.lengths.later_tokens

    def at(batch: Result) -> tuple[Result, StepTime, PrefillTime]:
        step = replica.step(batch)
        prompts = replica.prompt(batch, step, replica.arriving(batch, queued=True))
        return step.total_s + prompts.occupancy_s * batch / later, step, prompts

    batch = replica.places(most)
    limit = np.asarray(tpot_limit_s, float) * replica.constants.tpot_paced
    if np.any(limit > 0.0):
        batch = _batch_within(lambda b: at(b)[0], batch, np.where(limit > 0.0, limit, np.inf))
    if np.any(np.asarray(ttft_limit_s) > 0.0):
        batch = _batch_in_time(at, batch, later, np.where(np.asarray(ttft_limit_s) > 0.0, ttft_limit_s, np.inf))
    tpot, step, prompts = at(batch)
    rate = batch / (later * tpot)
    utilisation = np.minimum(rate * prompts.occupancy_s, _HIGHEST_UTILISATION)
    wait = wait_mean_s(utilisation / prompts.occupancy_s, prompts.occupancy_s, _PROMPT_SCV)
    unloaded = unloaded_ttft_s(replica.arch, prompts.latency_s, step.total_s, replica.lengths.prompt, replica.constants)
    first = partial(_open_first, unloaded, step.total_s, prompts.latency_s, wait, utilisation, _PROMPT_SCV)
    return Served(tpot, wait + unloaded, rate * (later + 1.0), batch, first)


def _open_first(unloaded: Result, step_s: Result, prompt_s: Result, wait_s: Result, utilisation: Result, scv: float) -> FirstToken:  # fmt: skip
    """Describe TTFT where arrivals are random: of those who find the prompt server at work, a share equal to its utilisation, each waits."""
    waits = delayed_scv(utilisation, scv)
    return FirstToken(unloaded, step_s, wait_s, utilisation, waits, prompt_s=prompt_s, prompt_scv=scv)


def _batch_within(tpot_s: Callable[[Result], Result], most: Result, limit: Result) -> Result:
    """Find the largest batch up to `most` whose TPOT keeps to the limit, by regula falsi: TPOT rises nearly in a straight line."""
    low, high, middle = np.ones_like(most), most, most
    low_tpot, high_tpot = tpot_s(low), tpot_s(high)
    over = high_tpot > limit
    for _ in range(_ROUNDS):
        middle = low + np.clip((limit - low_tpot) / np.maximum(high_tpot - low_tpot, 1e-12), 0.0, 1.0) * (high - low)
        here = tpot_s(middle)
        above = here > limit
        high, high_tpot = np.where(above, middle, high), np.where(above, here, high_tpot)
        low, low_tpot = np.where(above, low, middle), np.where(above, low_tpot, here)
    return np.where(over, middle, most)


def _batch_in_time(
    at: Callable[[Result], tuple[Result, StepTime, PrefillTime]], most: Result, later: Result, limit: Result
) -> Result:
    """Find the largest batch up to `most` at whose rate 99 % of prompts wait no longer than the limit allows."""
    batch = most
    for _ in range(_ROUNDS):
        tpot, _, prompts = at(batch)
        spare = np.maximum(limit - prompts.latency_s, prompts.latency_s)
        busy = 0.8
        for _ in range(3):
            busy = np.clip(1.0 - _RESIDUAL * prompts.occupancy_s * np.log(100.0 * busy) / spare, 0.1, 1.0)
        batch = np.minimum(most, np.maximum(0.5 * batch + 0.5 * busy / prompts.occupancy_s * later * tpot, 1.0))
    return batch


def static_batch(replica: Replica, sequences: ArrayLike) -> Served:
    """Predict a static batch, all prompts together, then all decode steps: TTFT = prefill of all, TPOT = T(b), throughput b O / (TTFT + (O - 1) TPOT).

    Shapes: broadcast; sequences [1]. No queue and no server in front.
    Reference: Pope et al., Efficiently Scaling Transformer Inference, MLSys 2023, section 2.

    >>> from models.serving import examples
    >>> run = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 200), Precisions("bf16", "bf16"), examples.SERVING)
    >>> bool(static_batch(run, 8).ttft_s > static_batch(run, 1).ttft_s)
    True
    """
    batch = np.asarray(sequences, float)
    ttft = replica.all_prompts_s(batch)
    tpot = replica.step(batch).total_s
    return Served(tpot, ttft, batch * replica.lengths.output / (ttft + replica.lengths.later_tokens * tpot), batch)


def prompts_alone(replica: Replica, prompts: ArrayLike) -> Served:
    """Predict a number of prompts together without decode: TTFT = prefill of all, and prompt tokens per second in place of output tokens.

    Shapes: broadcast; prompts [1]. Reference: as `static_batch`.

    >>> from models.serving import examples
    >>> run = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 1), Precisions("bf16", "bf16"), examples.SERVING)
    >>> found = prompts_alone(run, 2)
    >>> bool(np.isclose(found.tokens_per_s * found.ttft_s, 2000))
    True
    """
    static = static_batch(replica, prompts)
    return replace(static, tokens_per_s=static.batch * replica.lengths.prompt / static.ttft_s)


def decode_alone(
    replica: Replica, most: ArrayLike, tpot_limit_s: ArrayLike = 0.0, speculation: Speculation | None = None
) -> Served:
    """Predict decode of the largest batch up to `most` that keeps to a limit on TPOT, without prompts:  X = b / TPOT(b).

    With speculation TPOT is that of a step over the tokens that it yields. Shapes: broadcast; most [1], limit [s], 0 for none.
    Reference: as `best_batch`; speculation: `models.serving.speculation.decode_step`.

    >>> from models.serving import examples
    >>> run = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 200), Precisions("bf16", "bf16"), examples.SERVING)
    >>> all_of_them, few = decode_alone(run, 64), decode_alone(run, 64, 0.014)
    >>> bool(few.batch < all_of_them.batch), bool(few.tpot_s < 0.0145)
    (True, True)
    """

    def tpot(batch: Result) -> Result:
        if speculation is None:
            return replica.step(batch).total_s
        _, whole = decode_step(
            replica.arch, replica.chip, replica.layouts, speculation, decode_sequences=replica.layouts.in_stage(batch),
            context_tokens=replica.context_tokens, precisions=replica.precisions, constants=replica.constants,
        )  # fmt: skip
        return np.asarray(whole.total_s) / speculation.tokens_per_step

    batch, limit = np.asarray(most, float), np.asarray(tpot_limit_s, float)
    if np.any(limit > 0.0):
        batch = np.asarray(_batch_within(tpot, batch, np.where(limit > 0.0, limit, np.inf)))
    each = tpot(batch)
    return Served(each, replica.all_prompts_s(batch), batch / each, batch)


def burst(replica: Replica, requests: ArrayLike) -> Served:
    """Predict a burst of requests: waves of as many as fit, each prefilled while the one before decodes.

    TTFT = half of all prefill, and of the waves that an average request waits for. A rough form: ramp and drain are not resolved.
    Shapes: broadcast; requests [1]. Reference: Kwon et al., PagedAttention, SOSP 2023, section 4.5.

    >>> from models.serving import examples
    >>> run = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 200), Precisions("bf16", "bf16"), examples.SERVING)
    >>> bool(burst(run, 100).ttft_s > burst(run, 10).ttft_s)
    True
    """
    count = np.asarray(requests, float)
    full = best_batch(replica, count)
    stay = replica.lengths.later_tokens * full.tpot_s
    waves = count / full.batch
    whole = waves * stay + 0.5 * np.minimum(count, full.batch) * replica.prompt(0.0, None).occupancy_s
    ttft = 0.5 * replica.all_prompts_s(np.minimum(count, full.batch)) + 0.5 * np.maximum(waves - 1.0, 0.0) * stay
    # Both halves are means of waits that are uniform from 0 on: for the prompts of one's wave, and for one's wave.
    first = partial(FirstToken, 0.0, 0.0, 0.0, 1.0, 1.0, ttft, 1.0)
    return Served(full.tpot_s, ttft, count * replica.lengths.output / whole, full.batch, first)


def request_rate(
    replica: Replica, requests_per_s: ArrayLike, requests: ArrayLike = 0.0, running: ArrayLike = 0.0
) -> Served:
    """Predict a replica under Poisson arrivals, at most at the rate that it serves: b = rate (O - 1) TPOT, TPOT = T(b) / (1 - rate S), TTFT with an M/D/1 wait.

    A run of n `requests`, 0 for one without end, has at most n of them in decode and lasts until the last has ended: its throughput is
    n O / ((n - 1)/rate + TTFT + (O - 1) TPOT). At most `running` of them are sent at a time, 0 for any number. The wait leaves out the decode
    steps that prompts before it ride with: against an event simulation TTFT is 3 % low at a prompt load of 0.12, 11 % at 0.3.
    Shapes: broadcast; rate [1/s], requests and running [1]. Reference: Agrawal et al., Sarathi-Serve, OSDI 2024; Pollaczek-Khinchine formula.

    >>> from models.serving import examples
    >>> run = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 200), Precisions("bf16", "bf16"), examples.SERVING)
    >>> bool(request_rate(run, 4.0).tpot_s > request_rate(run, 1.0).tpot_s)
    True
    """
    count, running = np.asarray(requests, float), np.asarray(running, float)
    most = best_batch(replica, running)
    later = replica.lengths.later_tokens
    places = np.where(count > 0.0, np.minimum(most.batch, np.maximum(count, 1.0)), most.batch)
    rate = np.minimum(
        np.asarray(requests_per_s, float), _HIGHEST_UTILISATION * most.tokens_per_s / replica.lengths.output
    )
    batch = np.minimum(np.maximum(rate * later * replica.step(1.0).total_s, 1e-3), places)
    for _ in range(_ROUNDS):
        step = replica.step(batch)
        prompts = replica.prompt(batch, step, replica.arriving(batch))
        busy = np.minimum(rate * prompts.occupancy_s, _HIGHEST_UTILISATION)
        tpot = step.total_s / (1.0 - busy)
        batch = np.minimum(0.5 * batch + 0.5 * rate * later * tpot, places)
    wait = wait_mean_s(busy / prompts.occupancy_s, prompts.occupancy_s, 0.0)
    unloaded = unloaded_ttft_s(replica.arch, prompts.latency_s, step.total_s, replica.lengths.prompt, replica.constants)
    ttft = wait + unloaded
    lasts = np.maximum(count - 1.0, 0.0) / rate + ttft + later * tpot
    served = np.where(count > 0.0, np.minimum(rate, count / lasts), rate)
    first = partial(_open_first, unloaded, step.total_s, prompts.latency_s, wait, busy, 0.0)
    return Served(tpot, ttft, served * replica.lengths.output, batch, first)


def two_pools(
    prefill: Replica, decode: Replica, prefill_workers: ArrayLike, decode_workers: ArrayLike, clients: ArrayLike, link_bytes_per_s: ArrayLike,
) -> Served:  # fmt: skip
    """Predict a closed loop over separate pools: n_p workers of service S before a delay Z = (O - 1) T(b / n_d).

    Closed-loop responses of one server of S / n_p and of the links of the side with fewer, each with all other times of a request as think
    time; TTFT = f (S + transfer + constant) + their waits + that of clients beyond the slots of the decode pool. No prompt is mixed into decode.
    Shapes: broadcast; workers, clients [1], link [byte/s per chip].
    Reference: Zhong et al., DistServe, OSDI 2024, section 3; Seidmann et al., Performance Evaluation 7 (1987) (many servers as one).

    >>> from models.serving import examples
    >>> one = Replica(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Lengths(1000, 200), Precisions("bf16", "bf16"), examples.SERVING)
    >>> bool(two_pools(one, one, 2, 1, 32, 25e9).ttft_s < two_pools(one, one, 1, 1, 32, 25e9).ttft_s)
    True
    """
    n_p, n_d, c = (np.asarray(a, float) for a in (prefill_workers, decode_workers, clients))
    later, constants = decode.lengths.later_tokens, decode.constants
    prompts = prefill.prompt(0.0, None)
    served = np.minimum(c, n_d * decode.places())
    service = prompts.occupancy_s / n_p
    batch = served
    links = np.minimum(prefill.layouts.tp * prefill.layouts.pp, decode.layouts.tp * decode.layouts.pp)
    moved = decode.arch, decode.lengths.prompt, decode.precisions.kv_cache, link_bytes_per_s
    every = transfer_s(*moved, np.minimum(n_p * prefill.layouts.chips, n_d * decode.layouts.chips), 0.0)
    alone = constants.disaggregated_first_token_factor * (
        prompts.latency_s + transfer_s(*moved, links, 0.0) + overhead_s(decode.arch, constants)
    )
    on_links: Result = np.zeros(np.shape(every))[()]
    for _ in range(_ROUNDS):
        step = decode.step(batch / n_d)
        stay = later * step.total_s
        waiting = (served - batch) / (n_p * prefill.layouts.dp)
        of_queue = Prompts(prefill.lengths.input_tokens, together=np.maximum(waiting, 1.0))
        service = prefill.prompt(0.0, None, of_queue).occupancy_s / n_p
        together = constants.burst_share * 0.5 * (served - 1.0) / served * batch * service
        delays = stay + alone + together
        queue = closed_loop_response_s(served, service, np.maximum(delays + on_links - service, 0.0)) - service
        on_links = closed_loop_response_s(served, every, np.maximum(delays + queue - every, 0.0)) - every
        batch = np.maximum(0.5 * batch + 0.5 * served * stay / (delays + queue + on_links), 1e-3)
    ttft = alone + together + queue + on_links
    rate = served / (ttft + stay)
    surplus = np.maximum(c - served, 0.0) / rate

    def first() -> FirstToken:
        waits = finite_source_wait(served, service, np.maximum(delays + on_links - service, 0.0))
        return FirstToken(surplus + on_links + alone, 0.0, queue, *waits, together, constants.burst_share)

    return Served(step.total_s, ttft + surplus, rate * decode.lengths.output, batch / n_d, first)
