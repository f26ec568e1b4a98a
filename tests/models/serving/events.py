"""Event simulation of serving pools, to hold closed forms against: memory by tokens, ranks that step together, stages, links, prefixes. Tests only.

A pass takes what `models.serving.step` says of the tokens in it. All else is simulated one request at a time: who is admitted, which
tokens ride in which pass, what is held and evicted, what moves over the links. No closed form of queueing is used.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from models.serving.decode import ServingLayouts
from models.serving.step import StepLoad, step_time
from tests.models.serving.simulation import Engine, Load

LEVELS = 49  # levels of tokens of a prompt in a pass, between which its time is interpolated
CONTEXTS = (1000.0, 2000.0)  # the time of a pass is linear in what it reads, for full attention
OF_ALL_RANKS = ("expert_compute", "expert_memory", "communication")


class Kernel:
    """Seconds of one pass of a micro-batch through all stages: of the slowest attention rank, and of what all ranks do together."""

    def __init__(self, engine: Engine, most: int, attended_tokens: float, cached_tokens: float = 0.0):
        layouts, constants = engine.layouts, replace(engine.constants, attention_imbalance=0.0)  # ranks are simulated
        self.budget, self.dp = float(constants.chunk_tokens), int(layouts.dp)
        self.levels = np.concatenate([[0.0], np.geomspace(1.0, self.budget, LEVELS - 1)])
        count = np.arange(most + 1.0)

        def parts(context: float) -> dict[str, np.ndarray]:
            load = StepLoad(
                count[None, :] * self.dp,
                context,
                self.levels[:, None] * self.dp,
                attended_tokens,
                cached_tokens=cached_tokens,
            )
            found = step_time(
                engine.arch, engine.chip, layouts, load, precisions=engine.precisions, constants=constants
            ).breakdown
            return {name: part + np.zeros((LEVELS, most + 1)) for name, part in found.items()}

        low, high = (parts(context) for context in CONTEXTS)
        each = (high["kv_memory"] - low["kv_memory"])[0, -1] / (CONTEXTS[1] - CONTEXTS[0])
        self.per_token = float(each) / most
        own = sum(part for name, part in low.items() if name not in (*OF_ALL_RANKS, "kv_memory"))
        self.own = own.tolist()
        self.ratio = (LEVELS - 2) / np.log(self.budget)
        tokens = np.concatenate([[0.0], np.geomspace(1.0, self.dp * (self.budget + most), 200)])
        together = step_time(
            engine.arch, engine.chip, layouts, StepLoad(tokens), precisions=engine.precisions, constants=constants
        ).breakdown
        self.tokens = tokens
        self.together = sum(together[name] + np.zeros(len(tokens)) for name in OF_ALL_RANKS)
        self.levels = self.levels.tolist()

    def seconds(self, ranks: list[tuple[float, int, float]]) -> float:
        """Time a pass by (tokens of prompts, requests in decode, tokens of context that they read) of each rank."""
        slowest = max(self._own(prefill, decode) + self.per_token * context for prefill, decode, context in ranks)
        total = sum(prefill + decode for prefill, decode, _ in ranks)
        return slowest + float(np.interp(total, self.tokens, self.together))

    def _own(self, prefill: float, decode: int) -> float:
        if prefill <= 0:
            return self.own[0][decode]
        below = min(1 + int(self.ratio * np.log(max(prefill, 1.0))), LEVELS - 2)
        share = (prefill - self.levels[below]) / (self.levels[below + 1] - self.levels[below])
        return (1 - share) * self.own[below][decode] + share * self.own[below + 1][decode]


@dataclass(slots=True)
class Request:
    """One request on its way; `prompt` are the tokens of it that no other shares, `left` those to be computed."""

    number: int
    prompt: float
    answer: int
    prefix: int = -1
    left: float = 0.0
    made: int = 0  # tokens of the answer
    at_step: int = 0  # step of its lane when it joined


@dataclass(slots=True)
class Lane:
    """The requests of one rank that decode in the same micro-batch: heaps by the step at which each ends or outgrows what is reserved."""

    steps: int = 0
    context: float = 0.0
    growing: set[int] = field(default_factory=set)
    running: dict[int, Request] = field(default_factory=dict)
    ends: list[tuple[int, int, int]] = field(default_factory=list)  # step, request, step at which it joined
    grows: list[tuple[int, int, int]] = field(default_factory=list)

    def join(self, request: Request, shared: float, reserved: int) -> None:
        request.at_step = self.steps
        self.running[request.number] = request
        self.context += shared + request.prompt + request.made
        heapq.heappush(self.ends, (self.steps + request.answer - request.made, request.number, self.steps))
        if request.made >= reserved:
            self.growing.add(request.number)
        else:
            heapq.heappush(self.grows, (self.steps + reserved - request.made + 1, request.number, self.steps))

    def leave(self, request: Request, shared: float) -> None:
        request.made += self.steps - request.at_step
        del self.running[request.number]
        self.context -= shared + request.prompt + request.made
        self.growing.discard(request.number)

    def due(self, heap: list[tuple[int, int, int]]) -> list[Request]:
        found = []
        while heap and heap[0][0] <= self.steps:
            _, number, joined = heapq.heappop(heap)
            request = self.running.get(number)
            if request is not None and request.at_step == joined:
                found.append(request)
        return found


@dataclass(slots=True)
class Rank:
    """One attention rank: what it holds [token], the prompts that it computes, its requests in decode by lane."""

    lanes: list[Lane]
    held: float = 0.0
    prompts: deque[Request] = field(default_factory=deque)
    joining: deque[Request] = field(default_factory=deque)  # computed elsewhere
    admitted: int = 0
    in_use: Counter[int] = field(default_factory=Counter)
    kept: OrderedDict[int, None] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a rank holds: own tokens of its requests, at least `reserved` of each answer, and so many requests; prefixes in use once."""

    tokens: float = np.inf
    reserved: int = 0
    requests: float = np.inf
    prefix_tokens: float = 0.0
    kept: int = 0  # prefixes that stay, in a part of the memory of their own


class Worker:
    """A replica: attention ranks that step together, and as many micro-batches under way as there are stages."""

    def __init__(self, world: World, kernel: Kernel, layouts: ServingLayouts, memory: Memory, waiting: deque[Request]):
        self.world, self.kernel, self.memory, self.waiting = world, kernel, memory, waiting
        self.stages = [0.0] * int(layouts.pp)  # free from then on
        self.ranks = [Rank([Lane() for _ in self.stages]) for _ in range(int(layouts.dp))]
        self.idle = set(range(len(self.stages)))
        self.evicted = 0
        self.computed: Callable[[Request], None] | None = None  # where prompts go that another pool decodes

    def wake(self) -> None:
        for lane in sorted(self.idle):
            self.idle.discard(lane)
            self.world.at(max(self.world.now, self.stages[0]), lambda lane=lane: self.begin(lane))

    @property
    def requests(self) -> int:
        return sum(rank.admitted for rank in self.ranks)

    # -- memory --

    def _needs(self, rank: Rank, request: Request) -> float:
        shared = self.memory.prefix_tokens if request.prefix >= 0 and not rank.in_use[request.prefix] else 0.0
        return request.prompt + max(self.memory.reserved, request.made) + shared

    def _fits(self, rank: Rank, request: Request) -> bool:
        room = self.memory.tokens + self.memory.prefix_tokens * self.memory.kept
        alone = rank.admitted == 0
        return alone or (rank.held + self._needs(rank, request) <= room and rank.admitted < self.memory.requests)

    def _hold(self, rank: Rank, request: Request) -> None:
        rank.held += self._needs(rank, request)
        rank.admitted += 1
        if request.prefix >= 0:
            rank.in_use[request.prefix] += 1

    def _release(self, rank: Rank, request: Request) -> None:
        rank.held -= request.prompt + max(self.memory.reserved, request.made)
        rank.admitted -= 1
        if request.prefix >= 0:
            rank.in_use[request.prefix] -= 1
            if not rank.in_use[request.prefix]:
                rank.held -= self.memory.prefix_tokens
                del rank.in_use[request.prefix]

    def _admit(self) -> None:
        while self.waiting:
            request = self.waiting[0]
            ready = request.left <= 0
            rank = min(self.ranks, key=lambda r: (0 if ready else sum(p.left for p in r.prompts), r.admitted))
            if not self._fits(rank, request) or (not ready and sum(p.left for p in rank.prompts) >= self.kernel.budget):
                return
            self.waiting.popleft()
            self._find_prefix(rank, request)
            self._hold(rank, request)
            (rank.joining if ready else rank.prompts).append(request)

    def _find_prefix(self, rank: Rank, request: Request) -> None:
        if request.prefix < 0 or request.left <= 0:
            return
        if request.prefix not in rank.kept and not rank.in_use[request.prefix]:
            request.left += self.memory.prefix_tokens
        rank.kept[request.prefix] = None
        rank.kept.move_to_end(request.prefix)
        while len(rank.kept) > self.memory.kept:
            rank.kept.popitem(last=False)

    def _shared(self, request: Request) -> float:
        return self.memory.prefix_tokens if request.prefix >= 0 else 0.0

    def _evict(self, rank: Rank) -> None:
        """Send the youngest back to the queue where answers have outgrown the memory; its tokens are computed again."""
        room = self.memory.tokens + self.memory.prefix_tokens * self.memory.kept
        while rank.held > room and rank.admitted > 1:
            running = [(request, lane) for lane in rank.lanes for request in lane.running.values()]
            if not running:
                return
            request, lane = max(running, key=lambda pair: pair[0].number)
            lane.leave(request, self._shared(request))
            self._release(rank, request)
            request.left = request.prompt + request.made
            self.evicted += 1
            self.waiting.appendleft(request)

    # -- passes --

    def begin(self, number: int) -> None:
        now = self.world.now
        if self.stages[0] > now:
            self.world.at(self.stages[0], lambda: self.begin(number))
            return
        for rank in self.ranks:
            self._evict(rank)
        self._admit()
        loads, ready = [], []
        for rank in self.ranks:
            while rank.joining:
                self._join(rank, rank.joining.popleft())
            lane, left = rank.lanes[number], self.kernel.budget
            while rank.prompts and left > 0:
                taken = min(left, rank.prompts[0].left)
                rank.prompts[0].left -= taken
                left -= taken
                if rank.prompts[0].left <= 0:
                    ready.append((rank, rank.prompts.popleft()))
            loads.append((self.kernel.budget - left, len(lane.running), lane.context))
        if not any(prefill + decode for prefill, decode, _ in loads):
            self.idle.add(number)
            return
        each, end = self.kernel.seconds(loads) / len(self.stages), now
        for stage in range(len(self.stages)):
            end = max(end, self.stages[stage]) + each
            self.stages[stage] = end
        self.world.at(end, lambda: self.finish(number, ready))
        self.wake()

    def finish(self, number: int, ready: list[tuple[Rank, Request]]) -> None:
        for rank in self.ranks:
            lane = rank.lanes[number]
            lane.steps += 1
            lane.context += len(lane.running)
            lane.growing.update(request.number for request in lane.due(lane.grows))
            rank.held += len(lane.growing)
            for request in lane.due(lane.ends):
                lane.leave(request, self._shared(request))
                self._release(rank, request)
                self.world.ended(request)
        for rank, request in ready:
            if self.computed is not None:
                self._release(rank, request)
                self.computed(request)
            else:
                self._join(rank, request)
        self.idle.add(number)
        self.wake()

    def _join(self, rank: Rank, request: Request) -> None:
        """Let a request decode; the pass that ended with its prompt, or that begins where another pool computed it, gives a token."""
        request.made += 1
        rank.held += request.made > max(self.memory.reserved, 1)  # a request that comes back
        self.world.first.setdefault(request.number, self.world.now)
        if request.made >= request.answer:
            self._release(rank, request)
            self.world.ended(request)
            return
        lane = min(rank.lanes, key=lambda lane: len(lane.running))
        lane.join(request, self._shared(request), self.memory.reserved)


class Links:
    """Links between two pools as processor sharing: all transfers at one rate, of a worker's links and of all of a side at most."""

    def __init__(
        self, world: World, bytes_per_s: float, of_worker: float, of_side: float, arrived: Callable[[Request], None]
    ):
        self.world, self.rate, self.most, self.arrived = world, bytes_per_s, (of_worker, of_side), arrived
        self.moved, self.since = (
            0.0,
            0.0,
        )  # bytes that a transfer under way throughout has moved, and until when that is counted
        self.under_way: list[tuple[float, int, Request]] = []
        self.version = itertools.count()
        self.current = 0

    def send(self, request: Request, size: float) -> None:
        self._advance()
        heapq.heappush(self.under_way, (self.moved + size, request.number, request))
        self._plan()

    def _each(self) -> float:
        return self.rate * min(self.most[0], self.most[1] / max(len(self.under_way), 1))

    def _advance(self) -> None:
        self.moved += (self.world.now - self.since) * self._each()
        self.since = self.world.now

    def _plan(self) -> None:
        self.current = version = next(self.version)
        if self.under_way:
            wait = max(self.under_way[0][0] - self.moved, 0.0) / self._each()
            self.world.at(self.world.now + wait, lambda: self._done(version))

    def _done(self, version: int) -> None:
        if version != self.current:
            return
        self._advance()
        _, _, request = heapq.heappop(self.under_way)
        self._plan()
        self.arrived(request)


class World:
    """The clock, and when each request came, gave its first token and ended [s]."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order = itertools.count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.came: dict[int, float] = {}
        self.first: dict[int, float] = {}
        self.end: dict[int, float] = {}
        self.after_end: Callable[[], None] = lambda: None

    def at(self, time: float, act: Callable[[], None]) -> None:
        heapq.heappush(self.events, (time, next(self.order), act))

    def ended(self, request: Request) -> None:
        self.end[request.number] = self.now
        self.after_end()

    def run(self) -> None:
        while self.events:
            self.now, _, act = heapq.heappop(self.events)
            act()


def popular(prefixes: int, exponent: float, count: int, seed: int) -> np.ndarray:
    """Draw the prefix of each request, the k-th most popular in proportion to k^-exponent."""
    weights = np.arange(1, prefixes + 1.0) ** -exponent
    return np.random.default_rng(seed).choice(prefixes, count, p=weights / weights.sum())


def requests_of(load: Load, count: int, seed: int, prefixes: np.ndarray | None = None, prefix_tokens: float = 0.0) -> tuple[np.ndarray, list[Request]]:  # fmt: skip
    """Draw times of arrival and requests; those with a prefix own the rest of their prompt, one token at least."""
    arrivals, prompts, answers = load.draw(count, seed)
    own = prompts if prefixes is None else np.maximum(prompts - prefix_tokens, 1.0)
    marks = np.full(count, -1) if prefixes is None else prefixes
    found = [Request(i, float(own[i]), int(answers[i]), int(marks[i]), float(own[i])) for i in range(count)]
    return arrivals, found
