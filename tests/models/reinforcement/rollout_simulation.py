"""Event simulation of a rollout: replicas that step through their batches, slots, turns, and environment slots that all share."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from models.reinforcement.lengths import ResponseLengths, uncut_mean_tokens
from models.reinforcement.rollout import Batch


def drawn_lengths(lengths: ResponseLengths, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw whole numbers of tokens."""
    if not lengths.cv:
        return np.full(count, round(lengths.mean_tokens))
    shape, mean = lengths.cv**-2, uncut_mean_tokens(lengths)
    drawn = np.full(count, lengths.limit_tokens) if np.isinf(mean) else rng.gamma(shape, mean / shape, count)
    drawn = np.where(rng.random(count) < lengths.endless_share, lengths.limit_tokens, drawn)
    return np.clip(np.rint(drawn), 1, lengths.limit_tokens).astype(int)


@dataclass
class _Replica:
    queue: list[int]
    decoding: list[int] = field(default_factory=list)
    held: int = 0
    stepping: bool = False


def simulate(step_s, batch: Batch, replicas: int, slots: int, seed: int) -> tuple[float, float, float]:
    """Return (time of the last response, mean time of a replica's last, load of the environment slots until the queues are empty)."""
    rng, turns = np.random.default_rng(seed), batch.turns
    tokens = drawn_lengths(batch.lengths, round(batch.responses), rng)
    every = batch.lengths.mean_tokens / turns.calls if turns and turns.calls else np.inf
    offset = rng.random(len(tokens)) * (every if np.isfinite(every) else 0.0)  # calls come at a constant rate per token
    made, owner = np.zeros(len(tokens), int), np.arange(len(tokens)) % replicas
    pools = [_Replica(list(np.flatnonzero(owner == r))) for r in range(replicas)]
    last = np.zeros(replicas)
    events: list[tuple[float, int, str, int]] = []
    waiting: list[int] = []
    free = turns.slots if turns else 0
    number, served_s, now, emptied = 0, 0.0, 0.0, None

    def push(at: float, kind: str, who: int) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (at, number, kind, who))

    def draw(mean: float, scv: float) -> float:
        return mean if not scv else rng.gamma(1 / scv, mean * scv) if mean else 0.0

    def begin(r: int) -> None:
        pool = pools[r]
        while pool.queue and pool.held < slots:
            pool.decoding.append(pool.queue.pop())
            pool.held += 1
        if pool.decoding and not pool.stepping:
            pool.stepping = True
            context = batch.prompt_tokens + float(np.mean(made[pool.decoding]))
            push(now + step_s(len(pool.decoding), context), "step", r)

    def serve() -> None:
        nonlocal free, served_s
        while waiting and free > 0:
            who = waiting.pop(0)
            free -= 1
            taken = draw(turns.service_s, turns.service_scv)
            if emptied is None:
                served_s += taken
            push(now + taken, "served", who)

    for r in range(replicas):
        begin(r)
    while events:
        now, _, kind, who = heapq.heappop(events)
        if kind == "step":
            pool, left = pools[who], []
            pool.stepping = False
            for i in pool.decoding:
                made[i] += 1
                calls = np.isfinite(every) and int((made[i] + offset[i]) / every) > int(
                    (made[i] - 1 + offset[i]) / every
                )
                if calls:
                    push(now + draw(turns.think_s, turns.think_scv), "thought", i)
                elif made[i] >= tokens[i]:
                    pool.held -= 1
                    last[who] = now
                else:
                    left.append(i)
            pool.decoding = left
            begin(who)
        elif kind == "thought":
            waiting.append(who)
            if not turns.service_s:
                waiting.pop()
                push(now, "served", who)
                free -= 1
            serve()
        else:
            free += 1
            r = owner[who]
            if made[who] >= tokens[who]:
                pools[r].held -= 1
                last[r] = now
            else:
                pools[r].decoding.append(who)
            serve()
            begin(r)
        if emptied is None and not any(pool.queue for pool in pools):
            emptied = now
    load = served_s / (emptied * turns.slots) if turns and np.isfinite(turns.slots) and emptied else 0.0
    return float(last.max()), float(last.mean()), load
