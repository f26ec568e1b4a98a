"""Replicas under one clock: arrivals and their router, pools of prefill and decode workers, and the links between them.

The clock is that of simpy. An engine is advanced to the time at which something comes to it (`planner.replay.engine`).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from models.arrays import sum_of
from planner.replay.engine import Engine, Log, Prefill, Work
from planner.replay.pipeline import Pipeline
from planner.replay.prefixes import PrefixStore
from planner.replay.requests import Requests
from planner.replay.steps import StepTimes

if TYPE_CHECKING:
    import simpy

RANDOM, LEAST = ROUTERS = ("random", "least-loaded")


@dataclass(frozen=True, slots=True)
class Link:
    """Links between two pools: bytes per second of one, how many a transfer uses, how many all use at most, and the start of a transfer [s]."""

    bytes_per_s: float
    of_worker: float
    of_side: float
    start_s: float


class Transfers:
    """Transfers that share links evenly: each at the rate of one worker's links at most, all at that of a side's."""

    def __init__(self, clock: simpy.Environment, link: Link, arrived: Callable[[int], None]):
        self.clock, self.link, self.arrived = clock, link, arrived
        self.moved, self.since = 0.0, 0.0  # bytes that a transfer under way throughout has moved, and until when
        self.under_way: list[tuple[float, int]] = []
        self.version = 0

    def send(self, request: int, size: float) -> None:
        """Begin a transfer."""
        self._advance()
        heapq.heappush(self.under_way, (self.moved + size, request))
        self._plan()

    def _rate(self) -> float:
        return self.link.bytes_per_s * min(self.link.of_worker, self.link.of_side / max(len(self.under_way), 1))

    def _advance(self) -> None:
        self.moved += (self.clock.now - self.since) * self._rate()
        self.since = self.clock.now

    def _plan(self) -> None:
        self.version += 1
        if self.under_way:
            wait = max(self.under_way[0][0] - self.moved, 0.0) / self._rate()
            version = self.version
            _later(self.clock, wait, lambda: self._done(version))

    def _done(self, version: int) -> None:
        if version != self.version:
            return
        self._advance()
        _, request = heapq.heappop(self.under_way)
        self._plan()
        self.arrived(request)


def _later(clock: simpy.Environment, wait_s: float, act: Callable[[], None]) -> None:
    """Call a function after a time."""
    event = clock.timeout(wait_s)
    callbacks: list[Any] = event.callbacks  # a list until the event is over
    callbacks.append(lambda _: act())


class Replica:
    """A replica of one pool: an engine that prefills and decodes."""

    def __init__(self, engine: Engine | Pipeline):
        self.engines: list[Engine | Pipeline] = [engine]
        self.engine = engine

    @property
    def inside(self) -> int:
        """Count its requests."""
        return self.engine.inside

    @property
    def waiting(self) -> int:
        """Count the requests that wait for admission."""
        return len(self.engine.waiting)

    def advance(self, until: float) -> None:
        """Bring it up to a time."""
        self.engine.advance(until)

    def submit(self, request: int, now: float) -> None:
        """Take a request."""
        self.engine.submit(request, now)


class Group:
    """A replica of two pools: prefill workers on one queue, whose caches move over links to the decode worker that holds fewest requests.

    A pass takes the prompts that wait, as far as a chunk goes on each attention rank, where a prompt stays; the first stage is free for the next pass after its share.
    """

    def __init__(
        self,
        clock: simpy.Environment,
        prefill: StepTimes,
        workers: int,
        engines: list[Engine | Pipeline],
        state: tuple[Work, Log],
        link: Link,
        sizes: list[float],
        further: float,
    ):
        """`sizes`: bytes of the cache of each prompt. `further`: measured factor on overhead, prefill and transfer of two pools, less one."""
        self.clock, self.times, self.engines = clock, prefill, engines
        (self.work, self.log), self.sizes, self.further = state, sizes, further
        self.link = link
        self.transfers = Transfers(clock, link, self._arrived)
        self.queue: deque[int] = deque()
        self.idle: list[simpy.Event] = []
        self.under_way = 0
        self.moving: dict[int, float] = {}  # request -> time of its prefill
        for _ in range(workers):
            clock.process(self._prefill())

    @property
    def inside(self) -> int:
        """Count its requests."""
        return len(self.queue) + self.under_way + len(self.moving) + sum_of(engine.inside for engine in self.engines)

    @property
    def waiting(self) -> int:
        """Count the requests that wait for a prefill worker or for a place in decode."""
        return len(self.queue) + sum(len(engine.waiting) for engine in self.engines)

    def advance(self, until: float) -> None:
        """Bring its decode workers up to a time."""
        for engine in self.engines:
            engine.advance(until)

    def submit(self, request: int, now: float) -> None:
        """Take a request."""
        self.queue.append(request)
        if self.idle:
            self.idle.pop().succeed()

    def _prefill(self) -> Generator[simpy.Event, Any, None]:
        clock, stages, prompts = self.clock, self.times.worker.stages, Prefill(self.times, self.log.begun)
        while True:
            while self.queue and min(prompts.left_on) < prompts.budget:
                request = self.queue.popleft()
                self.under_way += 1
                prompt = float(self.work.prompts[request])
                prompts.add(request, min(self.work.found[request], prompt - 1.0), prompt)
            if not prompts:
                self.idle.append(clock.event())
                yield self.idle[-1]
                continue
            tokens, total, attention, ready = prompts.chunk(clock.now)
            seconds = self.times.prompts_s(0, tokens, total) + attention
            yield clock.timeout(seconds / stages)
            for request in ready:
                _later(clock, seconds - seconds / stages, lambda request=request: self._computed(request))  # type: ignore[misc]

    def _computed(self, request: int) -> None:
        self.under_way -= 1
        now = self.clock.now
        size, link = self.sizes[request], self.link
        alone = link.start_s + size / (link.bytes_per_s * link.of_worker)
        latency = now - self.log.begun[request]
        self.log.prompts_s += latency
        self.log.prompts += 1
        self.log.moved_s += alone
        self.log.further[request] += self.further * (self.times.worker.overhead_s + latency + alone)
        self.moving[request] = now
        _later(self.clock, link.start_s, lambda: self.transfers.send(request, size))

    def _arrived(self, request: int) -> None:
        del self.moving[request]
        now = self.clock.now
        for engine in self.engines:
            engine.advance(now)
        min(self.engines, key=lambda engine: engine.inside).submit(request, now)


@dataclass(slots=True)
class Series:
    """State of all replicas at times apart [s]: requests that wait, requests that run, and the share of the room for caches in use."""

    times_s: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    cache: list[float] = field(default_factory=list)

    def see(self, now: float, replicas: Sequence[Replica | Group]) -> None:
        """Add the state at a time."""
        engines = [engine for replica in replicas for engine in replica.engines]
        self.times_s.append(now)
        self.waiting.append(float(sum_of(replica.waiting for replica in replicas)))
        self.running.append(float(sum(len(engine.running) + len(engine.prefilling) for engine in engines)))
        used = [engine.held / engine.memory.room_bytes for engine in engines]
        self.cache.append(float(sum_of(used) / len(used)))


def run(
    clock: simpy.Environment, replicas: Sequence[Replica | Group], requests: Requests, stores: Sequence[PrefixStore], work: Work, router: str,
    samples: int, seed: int,
) -> Series:  # fmt: skip
    """Let all requests arrive and end, and return the state at `samples` times.

    A request goes to a replica at random, or to the one that holds fewest requests; each replica has a prefix store of its own.
    """
    arrivals = requests.arrivals_s.tolist()
    chosen = np.random.default_rng(seed).integers(len(replicas), size=len(arrivals)).tolist()
    series = Series()

    def arrive() -> Generator[simpy.Event, Any, None]:
        for request, at in enumerate(arrivals):
            if at > clock.now:
                yield clock.timeout(at - clock.now)
            _route(request)

    def _route(request: int) -> None:
        now = clock.now
        place = chosen[request]
        if router == LEAST:
            for replica in replicas:
                replica.advance(now)
            least = min(replica.inside for replica in replicas)
            tied = [i for i, replica in enumerate(replicas) if replica.inside == least]
            place = tied[place % len(tied)]
        tokens, load_s = stores[place].find(request)
        work.found[request] = tokens
        if load_s > 0.0:
            _later(clock, load_s, lambda: _submit(replicas[place], request))
        else:
            _submit(replicas[place], request)

    def _submit(replica: Replica | Group, request: int) -> None:
        replica.advance(clock.now)
        replica.submit(request, clock.now)

    def watch() -> Generator[simpy.Event, Any, None]:
        for step in itertools.count(1):
            if step > samples:
                return
            yield clock.timeout(arrivals[-1] / samples)
            for replica in replicas:
                replica.advance(clock.now)
            series.see(clock.now, replicas)

    clock.process(arrive())
    if arrivals[-1] > 0.0:
        clock.process(watch())
    clock.run()
    for replica in replicas:
        replica.advance(float("inf"))
    return series
