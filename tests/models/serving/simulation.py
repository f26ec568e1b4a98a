"""Event simulation of serving engines, to hold the closed forms of models/serving/percentiles.py against. Tests and benchmarks only.

Requests arrive, queue, are prefilled in chunks that ride along with decode steps (or by workers of their own) and decoded one
token a step; every step takes what models/serving/step.py says for the requests and tokens that are in it.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import simpy
from scipy.special import gammaincinv

from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import transfer_s
from models.serving.step import StepLoad, step_time
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture

CHUNK_LEVELS = 65  # levels of prefill tokens in a step, between which its time is interpolated
CONTEXTS = (
    1000.0,
    2000.0,
)  # context of each sequence: the time of a step is linear in what is read, for full attention


@dataclass(frozen=True, slots=True)
class Load:
    """Stream of requests: gamma gaps between arrivals, gamma lengths rounded to whole tokens."""

    requests_per_s: float
    input_tokens: float
    output_tokens: float
    input_scv: float = 0.0
    output_scv: float = 0.0
    arrival_scv: float = 1.0

    def draw(self, requests: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times of arrival [s], tokens of input and of output (two at least, for there to be a time per output token)."""
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(_gamma(rng, 1.0 / self.requests_per_s, self.arrival_scv, requests))
        inputs = np.maximum(np.rint(_gamma(rng, self.input_tokens, self.input_scv, requests)), 1.0)
        outputs = np.maximum(np.rint(_gamma(rng, self.output_tokens, self.output_scv, requests)), 2.0)
        return arrivals, inputs, outputs


def _gamma(rng: np.random.Generator, mean: float, scv: float, count: int) -> np.ndarray:
    """One draw from each of `count` slices of equal chance, in random order: the load of a run is what it is meant to be."""
    if scv == 0:
        return np.full(count, mean)
    return mean * scv * gammaincinv(1.0 / scv, rng.permutation(np.arange(count) + rng.random(count)) / count)


@dataclass(frozen=True, slots=True)
class Engine:
    """What a worker is made of."""

    arch: Architecture
    chip: ChipRates
    layouts: ServingLayouts
    constants: ServingConstants
    precisions: Precisions = Precisions("bf16", "bf16")

    @property
    def kinds(self) -> dict:
        return {"precisions": self.precisions, "constants": self.constants}


class StepTable:
    """Seconds of a step by tokens of prefill, requests in decode and tokens of context that they read in all."""

    def __init__(self, engine: Engine, slots: int, prompt_tokens: float):
        chunk = engine.constants.chunk_tokens * engine.layouts.dp
        levels = np.concatenate([[0.0], np.geomspace(1.0, chunk, CHUNK_LEVELS - 1)])
        decode = np.arange(slots + 1.0) / engine.layouts.pp
        times = [
            step_time(
                engine.arch, engine.chip, engine.layouts,
                StepLoad(decode[None, :], context, levels[:, None] / engine.layouts.pp, prompt_tokens), **engine.kinds,
            ).total_s
            for context in CONTEXTS
        ]  # fmt: skip
        per_context = (times[1] - times[0]) / (CONTEXTS[1] - CONTEXTS[0])
        self.read = float(per_context[0, -1]) / max(slots, 1)
        self.bare = (times[0] - per_context * CONTEXTS[0]).tolist()
        self.levels = levels.tolist()
        self.ratio = (len(levels) - 2) / np.log(chunk)

    def seconds(self, prefill: float, decode: int, context: float) -> float:
        if prefill <= 0:
            return self.bare[0][decode] + self.read * context
        below = min(1 + int(self.ratio * np.log(prefill)), len(self.levels) - 2)
        share = (prefill - self.levels[below]) / (self.levels[below + 1] - self.levels[below])
        return (1 - share) * self.bare[below][decode] + share * self.bare[below + 1][decode] + self.read * context


@dataclass(slots=True)
class Outcome:
    """Per request, once the start-up has passed [s]."""

    ttft_s: np.ndarray
    tpot_s: np.ndarray
    e2e_s: np.ndarray
    batch: float  # mean requests in decode of a worker, by Little's law

    def of(self, metric: str) -> np.ndarray:
        return {"ttft": self.ttft_s, "tpot": self.tpot_s, "e2e": self.e2e_s}[metric]

    def quantile(self, metric: str, quantile: float) -> float:
        return float(np.quantile(self.of(metric), quantile))

    def goodput(self, ttft_s: float, tpot_s: float) -> float:
        """Share of the requests that meet both."""
        return float(np.mean((self.ttft_s <= ttft_s) & (self.tpot_s <= tpot_s)))


def outcome(
    arrivals: np.ndarray, outputs: np.ndarray, first: np.ndarray, end: np.ndarray, extra_s: float, workers: int = 1
) -> Outcome:
    settled = slice(len(arrivals) // 5, int(len(arrivals) * 0.97))  # neither filling nor draining
    ttft, decoding = (first - arrivals + extra_s)[settled], (end - first)[settled]
    rate = len(decoding) / (arrivals[settled][-1] - arrivals[settled][0])
    return Outcome(ttft, decoding / (outputs[settled] - 1), ttft + decoding, rate * float(decoding.mean()) / workers)


@dataclass(slots=True)
class Decoder:
    """The requests that decode in one worker: a heap by the step with which each ends."""

    steps: int = 0
    context: float = 0.0
    ends: list[tuple[int, int, float]] = field(default_factory=list)

    def admit(self, request: int, prompt: float, tokens: float) -> None:
        heapq.heappush(self.ends, (self.steps + int(tokens) - 1, request, prompt + tokens))
        self.context += prompt + 1.0

    def step(self) -> list[int]:
        """Requests that end with this step."""
        self.steps += 1
        self.context += len(self.ends)
        done = []
        while self.ends and self.ends[0][0] <= self.steps:
            _, request, held = heapq.heappop(self.ends)
            self.context -= held
            done.append(request)
        return done


def simulate_aggregated(engine: Engine, load: Load, slots: int, requests: int, seed: int) -> Outcome:
    """One pool: a step takes prompts first come first served up to its budget of tokens, and a token of each that decodes."""
    arrivals, inputs, outputs = load.draw(requests, seed)
    table = StepTable(engine, slots, load.input_tokens * (1.0 + load.input_scv))
    budget = engine.constants.chunk_tokens * engine.layouts.dp
    first, end = np.zeros(requests), np.zeros(requests)
    waiting: deque[int] = deque()
    admitted: deque[list[float]] = deque()  # request, tokens of it still to be prefilled
    decoder, world = Decoder(), simpy.Environment()
    arrived = world.event()

    def arrive():
        nonlocal arrived
        for request in range(requests):
            yield world.timeout(arrivals[request] - world.now)
            waiting.append(request)
            if not arrived.triggered:
                arrived.succeed()

    def serve():
        nonlocal arrived
        while True:
            while waiting and len(admitted) + len(decoder.ends) < slots:
                request = waiting.popleft()
                admitted.append([request, inputs[request]])
            if not admitted and not decoder.ends:
                arrived = world.event()
                yield arrived
                continue
            left, finished = budget, []
            while admitted and left > 0:
                taken = min(left, admitted[0][1])
                admitted[0][1] -= taken
                left -= taken
                if admitted[0][1] <= 0:
                    finished.append(int(admitted.popleft()[0]))
            seconds = table.seconds(budget - left, len(decoder.ends), decoder.context)
            yield world.timeout(seconds)
            for request in decoder.step():
                end[request] = world.now
            for request in finished:
                first[request] = world.now
                decoder.admit(request, inputs[request], outputs[request])

    world.process(arrive())
    world.process(serve())
    world.run()
    return outcome(arrivals, outputs, first, end, _first_token_s(engine))


def simulate_disaggregated(
    prefill: Engine,
    decode: Engine,
    load: Load,
    workers: tuple[int, int],
    slots: int,
    link_bytes_per_s: float,
    requests: int,
    seed: int,
) -> Outcome:
    """Two pools: each prefill worker takes chunk after chunk of prompts from one queue, their cache is sent over, then to the decode worker that holds fewest.

    The first token is out with the start of the step that its request joins, once the cache has arrived and a slot is free.
    """
    arrivals, inputs, outputs = load.draw(requests, seed)
    table = StepTable(decode, slots, load.input_tokens)
    passes = StepTable(prefill, 0, load.input_tokens * (1.0 + load.input_scv))
    budget = prefill.constants.chunk_tokens
    links = min(prefill.layouts.tp * prefill.layouts.pp, decode.layouts.tp * decode.layouts.pp)
    moving = transfer_s(decode.arch, inputs, decode.precisions.kv_cache, link_bytes_per_s, links, 0.0)
    first, end = np.zeros(requests), np.zeros(requests)
    world = simpy.Environment()
    prompts: deque[int] = deque()  # that no prefill worker has taken
    idle: list[simpy.Event] = []  # prefill workers that wait for a prompt
    decoders = [Decoder() for _ in range(workers[1])]
    pending: list[list[int]] = [[] for _ in decoders]  # have a slot, join the next step
    queued: list[deque[int]] = [deque() for _ in decoders]
    wake = [world.event() for _ in decoders]

    def held(worker: int) -> int:
        return len(decoders[worker].ends) + len(pending[worker]) + len(queued[worker])

    def arrive():
        for request in range(requests):
            yield world.timeout(arrivals[request] - world.now)
            prompts.append(request)
            if idle:
                idle.pop().succeed()

    def work():
        taken: list[list[float]] = []  # request, tokens of it still to be computed
        while True:
            while prompts and sum(tokens for _, tokens in taken) < budget:
                request = prompts.popleft()
                taken.append([request, inputs[request]])
            if not taken:
                idle.append(world.event())
                yield idle[-1]
                continue
            left = budget
            for part in taken:
                computed = min(left, part[1])
                part[1], left = part[1] - computed, left - computed
            yield world.timeout(passes.seconds(budget - left, 0, 0.0))
            for request, tokens in taken:
                if tokens <= 0:
                    world.process(move(int(request)))
            taken = [part for part in taken if part[1] > 0]

    def move(request: int):
        yield world.timeout(moving[request])
        worker = min(range(len(decoders)), key=held)
        queued[worker].append(request)
        fill(worker)

    def fill(worker: int) -> None:
        while queued[worker] and len(decoders[worker].ends) + len(pending[worker]) < slots:
            request = queued[worker].popleft()
            pending[worker].append(request)
        if pending[worker] and not wake[worker].triggered:
            wake[worker].succeed()

    def serve(worker: int):
        decoder = decoders[worker]
        while True:
            for request in pending[worker]:
                first[request] = world.now
                decoder.admit(request, inputs[request], outputs[request])
            pending[worker].clear()
            if not decoder.ends:
                wake[worker] = world.event()
                yield wake[worker]
                continue
            seconds = table.seconds(0.0, len(decoder.ends), decoder.context)
            yield world.timeout(seconds)
            for request in decoder.step():
                end[request] = world.now
            fill(worker)

    world.process(arrive())
    for _ in range(workers[0]):
        world.process(work())
    for worker in range(workers[1]):
        world.process(serve(worker))
    world.run()
    return outcome(arrivals, outputs, first, end, _first_token_s(prefill), workers[1])


def _first_token_s(engine: Engine) -> float:
    """Front-end time that the simulated engines do not have."""
    return engine.constants.first_token_s * (
        engine.constants.moe_first_token_factor if np.any(engine.arch.experts) else 1.0
    )


def simulate_closed(
    engine: Engine, load: Load, clients: int, slots: int, requests: int, seed: int, settled: bool = True
) -> Outcome:
    """One pool and a fixed number of clients: all send at the start, and each sends its next request when the last one has ended.

    `load` states the lengths; steps are those of `simulate_aggregated`. Not `settled`: the burst of the start counts, as benchmarks count it.
    """
    _, inputs, outputs = load.draw(requests, seed)
    table = StepTable(engine, slots, load.input_tokens * (1.0 + load.input_scv))
    budget = engine.constants.chunk_tokens * engine.layouts.dp
    first, end, sent = np.zeros(requests), np.zeros(requests), np.zeros(requests)
    waiting, admitted = deque(range(clients)), deque()
    decoder, now, following = Decoder(), 0.0, clients
    while waiting or admitted or decoder.ends:
        while waiting and len(admitted) + len(decoder.ends) < slots:
            request = waiting.popleft()
            admitted.append([request, inputs[request]])
        left, finished = budget, []
        while admitted and left > 0:
            taken = min(left, admitted[0][1])
            admitted[0][1] -= taken
            left -= taken
            if admitted[0][1] <= 0:
                finished.append(int(admitted.popleft()[0]))
        now += table.seconds(budget - left, len(decoder.ends), decoder.context)
        for request in decoder.step():
            end[request] = now
            if following < requests:
                sent[following] = now
                waiting.append(following)
                following += 1
        for request in finished:
            first[request] = now
            decoder.admit(request, inputs[request], outputs[request])
    if settled:
        return outcome(sent, outputs, first, end, _first_token_s(engine))
    ttft, decoding = first - sent + _first_token_s(engine), end - first
    return Outcome(ttft, decoding / (outputs - 1), ttft + decoding, float(decoding.sum()) / now)
