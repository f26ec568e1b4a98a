"""An iteration of reinforcement learning: rollout, scoring, update and synchronisation, put together in the ways in which they may overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Result
from models.reinforcement.rollout import Rollout

COLOCATED, SYNCHRONOUS, ASYNCHRONOUS, STREAMING = "colocated", "synchronous", "asynchronous", "streaming"
WAYS = (COLOCATED, SYNCHRONOUS, ASYNCHRONOUS, STREAMING)
MOST_CHUNKS = 64  # mini-batches that are followed one by one
PARTS = ("generation", "tail", "synchronisation", "resharding", "scoring", "update", "host")


@dataclass(frozen=True, slots=True)
class Phases:
    """Phases of an iteration, times in s that broadcast along one axis of splits or layouts."""

    rollout: Rollout | None  # None where responses are given, as for DPO
    scoring_s: Result
    update_s: Result
    sync_s: Result  # weights from the one pool to the other, or from layout to layout
    reshard_s: Result = 0.0  # what else changes over where the pools take turns: state off the chips and back
    host_s: Result = 0.0  # the controller handles responses and batches
    mini_batches: int = 1


@dataclass(frozen=True, slots=True)
class Iteration:
    """Time of an iteration and of its parts; arrays along one axis."""

    iteration_s: Floats
    parts: Mapping[str, Floats]  # each by itself; what they add up to beyond the iteration is overlapped
    rollout_idle: Floats  # share of the iteration in which the chips of the rollout have nothing to do
    update_idle: Floats
    rollout_chain_s: Floats  # the rollout pool by itself
    update_chain_s: Floats


def iteration(way: str, phases: Phases, staleness: float = 0.0, partial_rollout: bool = False) -> Iteration:
    """Predict the time of an iteration in one of `WAYS`.

    G = rollout + synchronisation, U = scoring + update, C = time of the controller. Colocated and synchronous: T = G + U + C, with resharding where
    one pool takes turns. Asynchronous, up to k batches ahead, with h = min(k, 1): T = max(G + U - h min(G, U) + (1 - h) C, C), which is
    max(G, U, C) from k = 1 on, since the controller handles one batch while the pools work on others. The rollout's tail is hidden behind the next
    batch by min(k, 1) where a partial rollout goes on with new weights, else by min(max(k - 1, 0), 1). Streaming, with weights no older than the
    batch: mini-batch j of m starts when j/m of the responses are done, T = max_j [t_j + (m - j + 1) (U + C)/m] + synchronisation.
    Shapes: the phases broadcast; results along one axis. Units: [s], staleness k [batch]. k = 0 is synchronous.
    Reference: Sheng et al., HybridFlow, arXiv:2409.19256; Noukhovitch et al., arXiv:2410.18252 (one step off-policy); Fu et al., AReaL, arXiv:2505.24298
    (staleness bound, interruptible rollout).

    >>> flat = Rollout(*(np.array([value]) for value in (10.0, 10.0, 8.0, 1.0, 0.0)), {}, np.array([[0.0, 1.0]]), np.array([[0.0, 10.0]]))
    >>> phases = Phases(flat, scoring_s=1.0, update_s=3.0, sync_s=2.0, mini_batches=4)
    >>> [float(iteration(way, phases, 1.0).iteration_s[0]) for way in WAYS]
    [16.0, 16.0, 12.0, 13.0]
    """
    if way not in WAYS:
        raise ValueError(f"unknown way to run {way!r}; known: {', '.join(WAYS)}")
    rollout = phases.rollout
    nothing = np.zeros(1)
    completion, busy, flow = (
        (nothing, nothing, nothing) if rollout is None else (rollout.completion_s, rollout.busy_s, rollout.flow_s)
    )
    flow = np.minimum(flow, completion)
    k = max(staleness, 0.0) if way == ASYNCHRONOUS else 0.0
    hidden = min(k, 1.0) if partial_rollout else min(max(k - 1.0, 0.0), 1.0)
    tail = (1.0 - hidden) * (completion - flow)
    busy = np.minimum(busy, completion) if not hidden else np.minimum(busy, flow + tail)
    sync, reshard = phases.sync_s + 0.0 * completion, (phases.reshard_s if way == COLOCATED else 0.0) + 0.0 * completion
    rolling = flow + tail + sync
    training = phases.scoring_s + phases.update_s + 0.0 * completion
    host = phases.host_s + 0.0 * completion
    overlap = min(k, 1.0)
    if way == STREAMING and rollout is not None:
        total = _streamed_s(rollout, training + host, phases.mini_batches) + sync
    else:
        in_turns = rolling + training + reshard + (1.0 - overlap) * host
        total = np.maximum(in_turns - overlap * np.minimum(rolling, training), host)
    named = (flow, tail, sync, reshard, phases.scoring_s, phases.update_s, phases.host_s)
    parts = {name: np.asarray(part + 0.0 * total, float) for name, part in zip(PARTS, named, strict=True)}
    if way == COLOCATED:
        idle = (completion - busy) / total
        return Iteration(total, parts, idle, idle, rolling, training)
    rollout_idle, update_idle = (1.0 - np.minimum(side / total, 1.0) for side in (busy + sync, training))
    return Iteration(total, parts, rollout_idle, update_idle, rolling, training)


def _streamed_s(rollout: Rollout, training: Floats, mini_batches: int) -> Floats:
    """Find when the last mini-batch is trained, each of which waits for its responses and for the one before it [s]."""
    chunks = min(mini_batches, MOST_CHUNKS)
    wanted = np.arange(1, chunks + 1) / chunks
    scale = (rollout.completion_s / rollout.done_s[:, -1])[:, None] * rollout.done_s
    ready = np.array([np.interp(wanted, done, when) for done, when in zip(rollout.done, scale, strict=True)])
    ready[:, -1] = rollout.completion_s
    left = (chunks - np.arange(chunks)) / chunks
    count = max(len(ready), np.size(training))
    times = np.broadcast_to(ready, (count, chunks)) + np.broadcast_to(training, (count,))[:, None] * left
    last: Floats = times.max(axis=1)
    return last
