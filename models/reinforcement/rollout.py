"""Rollout of one batch of responses: full slots while responses wait, then the tail; turns with tools between them.

How lengths run through slots is in lengths.py; what a decode step costs comes from the serving models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from models.arrays import Floats
from models.queueing.queues import gamma_quantile, wait_mean_s
from models.reinforcement.lengths import ResponseLengths, courses, running_age

MOST_LOAD = 0.98  # load of the environment slots; what would load them more waits
ITERATIONS = 12  # iterations of the share of responses in decode, which falls from above
LARGEST_OF = 0.5614594835668851  # exp(-gamma): the mean of the largest of n is near its quantile 1 - this / n

StepCost = Callable[[Floats, Floats], tuple[Floats, dict[str, Floats]]]
"""Decode step of each layout: (batch [layout, cell], context [layout, cell] [token]) -> (seconds, seconds by part)."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Tool calls of a response, spread evenly over its tokens. A response keeps its slot and its cache while it waits."""

    calls: float  # calls of a response of mean length; in proportion to the length of others [1]
    think_s: float = 0.0  # mean wait outside of environment slots
    think_scv: float = 1.0  # its squared coefficient of variation [1]
    service_s: float = 0.0  # mean time in an environment slot
    service_scv: float = 1.0
    slots: float = np.inf  # environment slots of the whole pool
    answer_tokens: float = 0.0  # that a call adds to the context


@dataclass(frozen=True, slots=True)
class Batch:
    """Responses of one iteration."""

    responses: float
    prompt_tokens: float
    lengths: ResponseLengths
    turns: Turns | None = None


@dataclass(frozen=True, slots=True)
class Rollout:
    """Rollout of a batch on the replicas of each layout; arrays [layout], times in s."""

    completion_s: Floats  # until the last response of all replicas
    busy_s: Floats  # mean over the replicas of the time until their last response
    flow_s: Floats  # a batch whose slots never run empty
    in_decode: Floats  # mean responses of a replica in decode while responses wait, or at the start
    environment_load: Floats  # load of the environment slots, while responses wait or at the start [1]
    parts: dict[str, Floats]  # parts of busy_s, by cause
    done: Floats  # [layout, node] share of the responses that are done, from 0 to 1
    done_s: Floats  # [layout, node] when


def rollout(
    step: StepCost, batch: Batch, replicas: ArrayLike, slots: ArrayLike, prefill_s: ArrayLike, ahead: ArrayLike = 0.0
) -> Rollout:
    """Predict the rollout of a batch on equal replicas with continuous batching, for every layout.

    completion = prefill + t* T(b) + sum over the tail of P(any) T(b | any):  steps t* with full slots, then cells in which a slot is
    taken with probability r, P(any) = 1 - (1 - r)^(slots x replicas), b = slots r/(1 - (1 - r)^slots) (`lengths.courses`). Of the
    responses that hold slots a share T m/(T m + V) decodes, m the mean length, V the mean wait of all its calls, with the queue for the
    environment slots (M/G/c); a step of the others' time is stretched by its inverse. Random waits add to the tail in squares.
    flow: the same work at full slots, of up to `1 + ahead` batches at once.
    Shapes: replicas, slots, prefill, ahead [layout]; see `Rollout` for results. Units: replicas, slots [1], prefill of a replica's prompts [s],
    ahead [batch]. Within 10 % of event simulations up to a load of 0.85 on the environment slots.
    Reference: Feller, vol. 2 (1971), chapter XI; David and Nagaraja, Order Statistics, 3rd ed. (2003), chapter 4; Allen (1990), chapter 5.

    >>> flat = lambda batch, context: (0.02 + 0.0 * batch, {"memory": 0.02 + 0.0 * batch})
    >>> lengths = ResponseLengths(500.0, 0.0, 1000.0)
    >>> found = rollout(flat, Batch(256, 100.0, lengths), [2.0, 2.0], [128.0, 64.0], [0.0, 0.0])
    >>> (found.completion_s / 10).round(2).tolist(), (found.flow_s / 10).round(2).tolist()
    ([1.0, 2.0], [1.0, 2.0])
    """
    count, places, prefill, further = (
        np.asarray(a, float).ravel() for a in np.broadcast_arrays(replicas, slots, prefill_s, ahead)
    )
    each = batch.responses / count
    held = np.minimum(places, each)
    course = courses(batch.lengths, each / places)
    taken = np.concatenate([np.ones((len(count), 1)), course.running], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        any_here = -np.expm1(held[:, None] * np.log1p(-taken))
        any_at_all = -np.expm1((held * count)[:, None] * np.log1p(-taken))
        occupied = np.where(any_here > 0, held[:, None] * taken / any_here, 1.0)
    ages = np.concatenate([course.full_age[:, None], course.age], axis=1)
    steps = np.concatenate([course.full_steps[:, None], course.node_steps], axis=1)
    cells = _cells(step, batch, count, occupied, ages)
    here, at_all = steps * any_here, steps * any_at_all
    scattered = _scattered_s(batch, cells, at_all, _uneven_steps(batch, count, each, held))
    busy = prefill + (here * cells.per_step_s).sum(axis=1)
    elapsed = np.concatenate([np.zeros((len(count), 1)), np.cumsum(at_all * cells.per_step_s, axis=1)], axis=1)
    first = np.where(course.full_steps > 0, 1.0 - held / each, 0.0)[:, None]
    done = np.concatenate(
        [np.zeros_like(first), first, 1.0 - (held / each)[:, None] * course.running[:, 1:], np.ones_like(first)], axis=1
    )
    parts = {name: (here * part).sum(axis=1) for name, part in cells.parts.items()}
    kept = np.minimum(places, each * (1.0 + further))
    steady = _cells(step, batch, count, kept[:, None], np.full((len(count), 1), running_age(batch.lengths)))
    start = np.where(course.full_steps > 0, 0, 1)
    row = np.arange(len(count))
    return Rollout(
        completion_s=prefill + elapsed[:, -1] + scattered,
        busy_s=busy,
        flow_s=prefill + each / kept * batch.lengths.mean_tokens * steady.per_step_s[:, 0],
        in_decode=cells.decoding[row, start],
        environment_load=cells.load[row, start],
        parts={**parts, "prefill": prefill},
        done=np.maximum.accumulate(done, axis=1),
        done_s=prefill[:, None] + elapsed,
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """Costs of a decode step in each cell [layout, cell]."""

    per_step_s: Floats  # a response that holds a slot, per token, waits included
    decoding: Floats  # responses of a replica in decode
    load: Floats  # load of the environment slots
    parts: dict[str, Floats]  # parts of per_step_s


def _cells(step: StepCost, batch: Batch, replicas: Floats, occupied: Floats, ages: Floats) -> _Cells:
    """Find how many of the responses that hold slots decode, from above, and what a token takes then."""
    turns, mean = batch.turns, batch.lengths.mean_tokens
    growth = 1.0 if turns is None else 1.0 + turns.calls * turns.answer_tokens / mean
    context = batch.prompt_tokens + growth * ages
    if turns is None or not turns.calls:
        seconds, parts = step(occupied, context)
        return _Cells(seconds, occupied, np.zeros_like(occupied), parts)
    b = occupied
    load = np.zeros_like(occupied)
    for _ in range(ITERATIONS):
        seconds, parts = step(b, context)
        calls_per_s = replicas[:, None] * b / (mean * seconds) * turns.calls
        load = calls_per_s * turns.service_s / turns.slots
        served = np.minimum(1.0, MOST_LOAD / np.maximum(load, 1e-12))
        queue = np.zeros_like(occupied)
        if np.isfinite(turns.slots):
            queue = np.asarray(
                wait_mean_s(served * calls_per_s, turns.service_s, turns.service_scv, turns.slots), float
            )
        waiting = turns.calls * (turns.think_s + turns.service_s + queue)
        b = 0.5 * (b + np.minimum(served * b, occupied * mean * seconds / (mean * seconds + waiting)))
    seconds, parts = step(b, context)
    stretch = occupied / b
    load = replicas[:, None] * b / (mean * seconds) * turns.calls * turns.service_s / turns.slots
    return _Cells(seconds * stretch, b, load, {**parts, "waiting": seconds * (stretch - 1.0)})


def _uneven_steps(batch: Batch, replicas: Floats, each: Floats, held: Floats) -> Floats:
    """Compute by how many steps the queue of the last replica is empty later than the mean: lengths of its responses that add up to more."""
    mean = batch.lengths.mean_tokens
    variance = max(2.0 * mean * running_age(batch.lengths) - mean**2, 0.0)
    latest = np.maximum(ndtri(1.0 - LARGEST_OF / np.maximum(replicas, 1.0)), 0.0)
    uneven: Floats = np.where(each > held, latest * np.sqrt(each * variance) / held, 0.0)
    return uneven


def _scattered_s(batch: Batch, cells: _Cells, steps: Floats, uneven_steps: Floats) -> Floats:
    """Add the scatter of queues and waits to that of the lengths, in squares: by how much the last response ends later [s]."""
    turns = batch.turns
    per_token, weight = cells.per_step_s[:, 1:], np.maximum(steps[:, 1:].sum(axis=1), 1e-12)
    tail = (steps[:, 1:] * per_token).sum(axis=1)
    by_length = np.maximum(tail * (1.0 - batch.lengths.mean_tokens / weight), 0.0)
    by_queue = uneven_steps * cells.per_step_s[:, 0]
    by_waits = 0.0
    if turns is not None and turns.calls:
        mean = turns.calls * (turns.think_s + turns.service_s)
        variance = turns.calls * (turns.think_scv * turns.think_s**2 + turns.service_scv * turns.service_s**2)
        if variance:
            last = float(gamma_quantile(1.0 - LARGEST_OF / max(batch.responses, 1.0), variance / mean**2))
            by_waits = mean * max(last - 1.0, 0.0)
    scattered: Floats = np.sqrt(by_length**2 + by_queue**2 + by_waits**2) - by_length
    return scattered
