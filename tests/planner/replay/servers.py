"""Servers that several tests replay, and a second engine that takes one step at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from models.serving import examples
from models.serving.decode import ServingLayouts
from models.serving.workload import Lengths, Precisions
from planner.replay.requests import Requests
from planner.replay.steps import Worker

CONSTANTS = replace(examples.SERVING, chunk_tokens=512.0, interleave_tokens=512.0, steps_waited=1.0)
LENGTHS = Lengths(300, 50)
ONE = ServingLayouts(1, 1, 1, 1)


def worker(lengths=LENGTHS, layouts=ONE, arch=examples.DENSE, constants=CONSTANTS, **more):
    return Worker(arch, examples.CHIP, layouts, constants, Precisions("bf16", "bf16"), lengths, **more)


def requests_of(arrivals, prompts, outputs):
    count = len(arrivals)
    return Requests(
        np.asarray(arrivals, float), np.asarray(prompts, dtype=np.int64), np.asarray(outputs, dtype=np.int64), np.ones(count, dtype=bool),
        np.full(count, -1),
    )  # fmt: skip


def step_by_step(times, requests, cap):
    """Serve requests on one rank with room for all, in order of arrival: (first token, end) of each [s]. No step is skipped, nothing is kept as a sum."""
    now, arrived, first, end = 0.0, 0, {}, {}
    waiting, prefilling, running = [], [], {}
    prompts, outputs, arrivals = requests.prompts.tolist(), requests.outputs.tolist(), requests.arrivals_s.tolist()
    while len(end) < len(arrivals):
        while arrived < len(arrivals) and arrivals[arrived] <= now:
            waiting.append(arrived)
            arrived += 1
        if not (waiting or prefilling or running):
            now = arrivals[arrived]
            continue
        while waiting and len(prefilling) + len(running) < cap:
            prefilling.append([waiting.pop(0), 0])
        left, attention, ready = times.worker.constants.chunk_tokens, 0.0, []
        for part in prefilling:
            taken = min(left, prompts[part[0]] - part[1])
            if taken > 0:
                attention += times.attention_s(part[1], part[1] + taken)
            part[1] += taken
            left -= taken
            if part[1] == prompts[part[0]]:
                ready.append(part[0])
        prefilling = [part for part in prefilling if part[0] not in ready]
        tokens = times.worker.constants.chunk_tokens - left
        context = math.fsum(prompts[i] + made - 0.5 for i, made in running.items())
        seconds = times.decode_s(len(running), context / len(running)) if running else 0.0
        if tokens:
            seconds += times.prompts_s(len(running), tokens, tokens) + attention
        now += seconds
        running = {i: made + 1 for i, made in running.items()}
        for i in [i for i, made in running.items() if made == outputs[i]]:
            end[i] = now
            del running[i]
        for i in ready:
            first[i] = now
            if outputs[i] == 1:
                end[i] = now
            else:
                running[i] = 1
    return first, end
