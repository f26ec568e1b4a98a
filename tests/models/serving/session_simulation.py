"""Event simulation of agentic sessions on one engine: tasks of several calls with tools between them. Tests only.

A call waits in the queue of the engine of `simulation`, is prefilled in chunks beside the decode of others, and decoded. When it ends
a tool runs, and the next call comes with the answer and what the tool adds. Tasks arrive at random, or so many are always under way.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import simpy

from models.serving.decode import prefill_attention_s
from tests.models.serving.simulation import Decoder, Engine, StepTable


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks: lengths of the first prompt and of answers, tokens that a tool adds, its time, and calls (fixed, or geometric)."""

    prompt: float
    output: float
    added: float
    calls: float
    wait_s: float
    scv: float = 0.0  # prompts and answers
    wait_scv: float = 1.0
    geometric: bool = False
    keep: bool = True  # caches from call to call


@dataclass(frozen=True, slots=True)
class Seen:
    """Once the start-up has passed: times of tasks and of calls [s], calls per second."""

    task_s: np.ndarray
    call_s: np.ndarray
    calls_per_s: float


def _draw(rng: np.random.Generator, mean: float, scv: float) -> float:
    return mean if scv == 0 or mean == 0 else float(rng.gamma(1.0 / scv, mean * scv))


def _calls(rng: np.random.Generator, tasks: Tasks) -> int:
    return int(rng.geometric(1.0 / tasks.calls)) if tasks.geometric else int(tasks.calls)


def simulate_sessions(
    engine: Engine, tasks: Tasks, slots: int, count: int, seed: int, rate: float = 0.0, sessions: int = 0
) -> Seen:
    """Run `count` tasks that arrive at `rate` tasks/s, or one after the other in so many `sessions`."""
    rng = np.random.default_rng(seed)
    # Steps without the attention of prompts, which is charged for each prompt by what it attends to.
    table = StepTable(engine, slots, 1.0)
    unit = engine.arch, engine.chip, engine.layouts, 1.0, 1000.0, engine.constants
    per_pair = float(prefill_attention_s(*unit)) / 500.5
    budget = engine.constants.chunk_tokens * engine.layouts.dp
    world = simpy.Environment()
    waiting: deque[tuple[int, float, float, float]] = deque()  # call, tokens to compute, prompt, answer
    admitted: deque[list[float]] = deque()
    decoder, done = Decoder(), {}
    arrived = world.event()
    ended: list[tuple[float, float]] = []  # tasks: end, time
    calls: list[tuple[float, float]] = []
    opened = 0

    def task():
        nonlocal arrived, opened
        begun = world.now
        number = _calls(rng, tasks)
        prompt = max(round(_draw(rng, tasks.prompt, tasks.scv)), 1)
        new = float(prompt)
        for place in range(number):
            answer = max(round(_draw(rng, tasks.output, tasks.scv)), 2)
            asked, opened = world.now, opened + 1
            finished = done[opened] = world.event()
            waiting.append((opened, new if tasks.keep else float(prompt), float(prompt), float(answer)))
            if not arrived.triggered:
                arrived.succeed()
            yield finished
            calls.append((world.now, world.now - asked))
            if place < number - 1:
                yield world.timeout(_draw(rng, tasks.wait_s, tasks.wait_scv))
            prompt += answer + tasks.added
            new = tasks.added
        ended.append((world.now, world.now - begun))

    def arrive():
        for _ in range(count):
            yield world.timeout(rng.exponential(1.0 / rate))
            world.process(task())

    def repeat():
        yield world.timeout(rng.random() * tasks.wait_s)
        while len(ended) < count:
            yield world.process(task())

    def serve():
        nonlocal arrived
        tokens: dict[int, tuple[float, float]] = {}
        while True:
            while waiting and len(admitted) + len(decoder.ends) < slots:
                call, new, prompt, answer = waiting.popleft()
                tokens[call] = prompt, answer
                admitted.append([call, new, prompt - 0.5 * new])
            if not admitted and not decoder.ends:
                arrived = world.event()
                yield arrived
                continue
            left, pairs, ready = budget, 0.0, []
            while admitted and left > 0:
                taken = min(left, admitted[0][1])
                admitted[0][1] -= taken
                left -= taken
                pairs += taken * admitted[0][2]
                if admitted[0][1] <= 0:
                    ready.append(int(admitted.popleft()[0]))
            yield world.timeout(table.seconds(budget - left, len(decoder.ends), decoder.context) + pairs * per_pair)
            for call in decoder.step():
                done.pop(call).succeed()
            for call in ready:
                decoder.admit(call, *tokens.pop(call))

    if rate:
        world.process(arrive())
    for _ in range(sessions):
        world.process(repeat())
    world.process(serve())
    world.run()
    settled = slice(len(ended) // 5, int(len(ended) * 0.97))
    span = ended[settled][0][0], ended[settled][-1][0]
    mine = [time for at, time in calls if span[0] <= at <= span[1]]
    return Seen(np.array([time for _, time in ended[settled]]), np.array(mine), len(mine) / (span[1] - span[0]))
