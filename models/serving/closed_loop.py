"""Closed loop: a replica driven by a fixed number of clients that each send the next request when the last one ends, as benchmarks do.

Open arrivals, which plans are made for, are in continuous_batching.py; the parts of the engine are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.queueing.finite_source import finite_source_wait
from models.queueing.queues import closed_loop_response_s
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import slots
from models.serving.media import with_encoding
from models.serving.prefill import DecodeBatch, Prompts
from models.serving.prefix_cache import PrefixCache, prompt_cost, shared_prefixes, without
from models.serving.prompt_terms import FirstToken, prompts_together, unloaded_ttft_s
from models.serving.sessions import held_beside
from models.serving.speculation import Speculation, decode_step, step_tokens
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture

# The number in decode and its step time depend on each other; four damped rounds settle to well below the model's error.
_ROUNDS = 4
_DAMPING = 0.5


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Steady state of one replica under a fixed number of clients."""

    batch: Result  # requests in decode
    seen: Result  # those that one of them meets on average, itself included
    tpot_s: Result
    ttft_s: Result
    requests_per_s: Result
    tokens_per_s: Result  # output
    unloaded_ttft_s: Result  # time to first token without any wait
    prompt_s: Result  # the part of it that is the prompt itself
    surplus_s: Result  # mean wait for a place, of clients beyond those that run at once
    queue_s: Result  # mean wait for prefill, of clients that come at random
    burst_s: Result  # mean further wait, over all, of the share of clients that arrive in step
    burst_share: Result
    served: Result  # clients that run at once
    service_s: Result  # a prompt
    step_s: Result  # a step of decode, without prompts
    between_s: Result  # share of TPOT that prompts of others take
    stay_s: Result  # in decode

    @property
    def others(self) -> Result:
        """Share of the clients that run which one of them is not [1]."""
        return 1.0 - 1.0 / np.asarray(self.served, float)

    @property
    def swing(self) -> Result:
        """Standard deviation of the others in decode over that of as many open arrivals, a binomial number beside a Poisson one [1]."""
        return np.sqrt(self.others * np.maximum(1.0 - self.batch / self.served, 0.0))

    def first(self) -> FirstToken:
        """Describe how requests scatter about the mean TTFT: the queue of a finite source, and the burst of those that arrive in step."""
        chance, scv = finite_source_wait(self.served, self.service_s, self.stay_s)
        constant = self.unloaded_ttft_s + self.surplus_s
        return FirstToken(constant, self.step_s, self.queue_s, chance, scv, self.burst_s, self.burst_share)


@np.errstate(invalid="ignore")  # infinity less infinity, where there is no network to cross
def closed_loop(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    clients: ArrayLike,
    *,
    lengths: Lengths,
    precisions: Precisions,
    constants: ServingConstants,
    speculation: Speculation | None = None,
    cache: PrefixCache | None = None,
) -> ClosedLoop:
    """Predict a closed loop of clients: prefill is one server that they visit in turn, decode a delay Z = (O - 1) TPOT.

    TPOT = T(1 + (n - 1) b/n) + S b/(O - 1) x (n - 1)/n, as a request meets itself whole and what the n - 1 others keep in decode;
    R = closed-loop response of S and all other times of a request, Z' = Z + unloaded - S + burst;  b = n Z/(R + Z') for the n = min(c, slots) that run;
    TTFT = R - S + unloaded + burst + (c - n)/X,  burst = kappa (n - 1)/(2 n) b S, where kappa is the share of clients that
    arrive in step, as all do at the start of a run (of those in decode), and X = n/(TTFT + Z) the rate at which slots come free.
    The spread of the lengths enters S and T(b) as it does with open arrivals: attention goes with the square of a prompt, and long
    answers are met more often among those in decode. `speculation` and `cache` as in `continuous_batching.aggregated`. Shapes: layouts,
    clients [1] and lengths [token] broadcast. Valid for clients >= 1 and output_tokens > 1;
    with outputs of a few tokens the rate dips by up to 10 % as clients are added: the burst term is an overestimate there.
    Reference: Reiser and Lavenberg, J. ACM 27 (1980) (what an arrival meets is the loop without it); Lazowska et al., Quantitative System Performance (1984), chapter 6.

    >>> from models.serving import examples
    >>> run = lambda c: closed_loop(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), c, lengths=Lengths(1000, 200),
    ...     precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(run(32).tokens_per_s > run(8).tokens_per_s), bool(run(32).tpot_s > run(8).tpot_s)
    (True, True)
    """
    prompt, tokens = lengths.prompt, lengths.later_tokens
    per_step, passed = step_tokens(speculation, tokens)
    clients = np.asarray(clients, float)
    held = held_beside(arch, layouts, precisions, speculation, cache, 0.0, lengths)
    left = chip if held is None else without(chip, held, constants)
    places = slots(
        arch, left, layouts, lengths=lengths, precisions=precisions, constants=constants, shared=shared_prefixes(cache)
    )
    served = np.clip(clients, 1.0, np.maximum(places, 1.0))
    context = lengths.running_context_tokens
    batch = settled = seen = served
    for _ in range(_ROUNDS):
        batch = settled
        seen = 1.0 + (served - 1.0) / served * batch
        in_stage = layouts.in_stage(seen)
        mixed, step = decode_step(
            arch, chip, layouts, speculation, decode_sequences=in_stage, context_tokens=context,
            precisions=precisions, constants=constants,
        )  # fmt: skip
        decoding, arriving = tokens / per_step * step.total_s, np.maximum(batch * per_step / tokens, 1e-9)
        prompts, found = prompt_cost(
            arch, chip, layouts, cache, partial(_client_rate, served, decoding),
            Prompts(prompt, lengths.scv_of_input, prompts_together(arriving, layouts), arriving),
            DecodeBatch(mixed, in_stage, context, passed), precisions=precisions, constants=constants,
        )  # fmt: skip
        prompts = with_encoding(prompts, chip, layouts, lengths, 1.0, constants)
        between = prompts.occupancy_s * batch / tokens * (served - 1.0) / served
        tpot = step.total_s / per_step + between
        stay = tokens * tpot
        computed = prompt if found is None else prompt * found.computed_share
        alone = unloaded_ttft_s(arch, prompts.latency_s, step.total_s, computed, constants)
        together = constants.burst_share * 0.5 * (served - 1.0) / served * batch * prompts.occupancy_s
        think = stay + together + np.maximum(alone - prompts.occupancy_s, 0.0)
        response = closed_loop_response_s(served, prompts.occupancy_s, think)
        settled = (1.0 - _DAMPING) * batch + _DAMPING * served * stay / (response + think)
    queue = response - prompts.occupancy_s
    # Beside a prompt run the steps of the others.
    _, beside = decode_step(
        arch, chip, layouts, speculation, decode_sequences=(seen - 1.0) / layouts.pp, context_tokens=context,
        precisions=precisions, constants=constants,
    )  # fmt: skip
    unloaded = unloaded_ttft_s(arch, prompts.latency_s, beside.total_s, computed, constants)
    admitted = queue + together + unloaded
    rate = served / (admitted + stay)
    surplus = np.maximum(clients - served, 0.0) / rate
    return ClosedLoop(
        batch, seen, tpot, admitted + surplus, rate, rate * (tokens + 1.0), unloaded, prompts.latency_s, surplus, queue, together,
        constants.burst_share, served, prompts.occupancy_s, step.total_s, between, stay,
    )  # fmt: skip


def _client_rate(clients: Result, decoding_s: Result, occupancy_s: Result) -> Result:
    """Compute the rate at which clients send requests that each take so long in decode and in prefill [1/s]."""
    return clients / (decoding_s + occupancy_s)
