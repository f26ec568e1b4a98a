"""One engine with continuous batching, advanced step by step: who is admitted, which tokens ride in a step, which caches are held and evicted.

Prompts are taken in order of arrival, in chunks beside the decode of others, as far as the budget of a step, the cap on running requests and
the KV cache go. While nothing arrives, ends or is prefilled, many steps are taken at once. Times of steps: `planner.replay.steps`. Several
engines, pools and their clock: `planner.replay.pools`.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field

from models.arrays import sum_of
from planner.replay.steps import StepTimes

HALF = (
    0.5  # part of a token that a decode step adds, which it attends to on average: the convention of the closed forms
)


@dataclass(frozen=True, slots=True)
class Memory:
    """Room for KV caches: bytes of a chip, what each request takes on admission, and of each token beyond the reserve; most requests."""

    room_bytes: float
    of_request: list[float]
    per_token: float
    reserved: float  # tokens of an answer for which room is taken on admission
    most_requests: int


@dataclass(slots=True)
class Room:
    """What the micro-batches of an engine share: the queue of requests, bytes held, and requests admitted."""

    waiting: deque[int] = field(default_factory=deque)
    held: float = 0.0
    admitted: int = 0


@dataclass(slots=True)
class Log:
    """What became of each request, and how the engines spent their time [s]. Times of requests that did not come so far are NaN."""

    admitted: list[float]
    begun: list[float]  # its first chunk
    first: list[float]  # its first token is out
    end: list[float]
    further: list[float]  # what measurements add to its first token beyond the schedule
    refused: set[int] = field(default_factory=set)
    evicted: int = 0
    busy_s: float = 0.0
    steps: int = 0
    decode_s: float = 0.0  # in steps with decode, without what prompts add
    decode_steps: int = 0
    prompts_s: float = 0.0  # that prompts take of engines
    prompts: int = 0
    moved_s: float = 0.0  # that transfers of caches between pools take alone

    @classmethod
    def of(cls, count: int) -> Log:
        """Begin a log of a number of requests."""
        admitted, begun, first, end = ([math.nan] * count for _ in range(4))
        return cls(admitted, begun, first, end, [0.0] * count)


@dataclass(frozen=True, slots=True)
class Work:
    """What requests ask of an engine, by their number: tokens of the prompt, those found in a cache, decode steps, and tokens of a step."""

    prompts: list[int]
    found: list[float]
    steps: list[int]
    tokens_per_step: float


class Prefill:
    """The prompts that an engine computes, in order of arrival: each on one attention rank, in chunks as large as the budget of a step leaves."""

    def __init__(self, times: StepTimes, begun: list[float]):
        self.times, self.begun = times, begun
        self.ranks = times.worker.ranks
        self.budget = float(times.worker.constants.chunk_tokens)
        self.under_way: deque[list[float]] = deque()  # request, tokens done, tokens of the prompt, its rank
        self.left_on = [0.0] * self.ranks  # tokens by rank

    def __len__(self) -> int:
        return len(self.under_way)

    def add(self, request: int, done: float, prompt: float) -> None:
        """Take a prompt of which some tokens are there, on the rank that has fewest to compute."""
        rank = min(range(self.ranks), key=self.left_on.__getitem__) if self.ranks > 1 else 0
        self.left_on[rank] += prompt - done
        self.under_way.append([request, done, prompt, rank])

    def chunk(self, now: float) -> tuple[float, float, float, list[int]]:
        """Fill the budget of a step: (tokens of the fullest rank, of all ranks, attention [s], requests whose prompts end with it)."""
        return self._of_one_rank(now) if self.ranks == 1 else self._of_all_ranks(now)

    def _of_one_rank(self, now: float) -> tuple[float, float, float, list[int]]:
        """Fill the budget with prompts in order of arrival: (tokens, tokens, attention [s], requests whose prompts end)."""
        left, attention, ready = self.budget, 0.0, []
        under_way, begun = self.under_way, self.begun
        while under_way and left > 0:
            part = under_way[0]
            request, done, prompt = int(part[0]), part[1], part[2]
            if math.isnan(begun[request]):
                begun[request] = now
            taken = min(left, prompt - done)
            attention += self.times.attention_s(done, done + taken)
            left -= taken
            part[1] = done + taken
            self.left_on[0] -= taken
            if part[1] >= prompt:
                ready.append(request)
                under_way.popleft()
        tokens = self.budget - left
        return tokens, tokens, attention, ready

    def _of_all_ranks(self, now: float) -> tuple[float, float, float, list[int]]:
        left, attention = [self.budget] * self.ranks, [0.0] * self.ranks
        ready: list[int] = []
        kept: deque[list[float]] = deque()
        for part in self.under_way:
            request, rank = int(part[0]), int(part[3])
            taken = min(left[rank], part[2] - part[1])
            if taken > 0:
                if math.isnan(self.begun[request]):
                    self.begun[request] = now
                attention[rank] += self.times.attention_s(part[1], part[1] + taken)
                left[rank] -= taken
                part[1] += taken
                self.left_on[rank] -= taken
            if part[1] >= part[2]:
                ready.append(request)
            else:
                kept.append(part)
        self.under_way = kept
        return self.budget - min(left), self.budget * self.ranks - sum_of(left), max(attention), ready


class Engine:
    """One worker. `decodes_only`: prompts come computed from another pool, and a request joins with the start of a step."""

    def __init__(
        self,
        times: StepTimes,
        work: Work,
        memory: Memory,
        log: Log,
        decodes_only: bool = False,
        room: Room | None = None,
    ):
        constants = times.worker.constants
        self.times, self.work, self.memory, self.log, self.decodes_only = times, work, memory, log, decodes_only
        self.budget = float(constants.chunk_tokens)
        self.interleave = float(constants.interleave_tokens)
        self.sat_out = max(float(constants.steps_waited) - 1.0, 0.0)
        self.now = 0.0
        self.room = room or Room()
        self.prefilling = Prefill(times, log.begun)
        self.running: dict[int, int] = {}  # request -> step at which it joined
        self.made: dict[int, int] = {}  # tokens of its answer, after the first, that an evicted request has
        self.ends: list[tuple[int, int, int]] = []  # step, request, step at which it joined
        self.grows: list[tuple[int, int, int]] = []
        self.growing: set[int] = set()
        self.context = 0.0  # tokens that all running requests attend to
        self.grown: dict[int, float] = {}  # steps when a request began to grow
        self.count = 0  # steps so far

    @property
    def inside(self) -> int:
        """Count the requests that wait or run."""
        return len(self.room.waiting) + len(self.prefilling) + len(self.running)

    @property
    def waiting(self) -> deque[int]:
        """Return the requests that wait for admission, in order."""
        return self.room.waiting

    @property
    def held(self) -> float:
        """Return the bytes that requests hold of a chip's room for caches."""
        return self.room.held

    @property
    def idle(self) -> bool:
        """Tell whether nothing is there to do."""
        return not (self.room.waiting or self.prefilling or self.running)

    def submit(self, request: int, now: float) -> None:
        """Let a request wait for admission; an idle engine begins at once."""
        if self.idle and self.now < now:
            self.now = now
        self.room.waiting.append(request)

    def advance(self, until: float) -> None:
        """Take all steps that begin before a time; the step under way then ends after it."""
        while self.now < until:
            self.admit()
            if self.prefilling:
                self._mixed()
            elif self.running:
                self._decode(until)
            elif not self.room.waiting:
                return

    # -- memory --

    def admit(self) -> None:
        """Admit requests in order of arrival as long as the cap and the cache have room; refuse those that never fit."""
        memory, log = self.memory, self.log
        while self.room.waiting:
            request = self.room.waiting[0]
            need = memory.of_request[request]
            if need > memory.room_bytes:
                self.room.waiting.popleft()
                log.refused.add(request)
                continue
            if self.room.admitted >= memory.most_requests or self.room.held + need > memory.room_bytes:
                return
            self.room.waiting.popleft()
            self.room.held += need
            self.room.admitted += 1
            if math.isnan(log.admitted[request]):
                log.admitted[request] = self.now
            again = request in self.made
            if self.decodes_only and not again:
                self.join(request)
                continue
            prompt = float(self.work.prompts[request] + (1 + self.made[request] if again else 0))
            done = min(0.0 if again else self.work.found[request], prompt - 1.0)
            self.prefilling.add(request, done, prompt)

    def _release(self, request: int) -> None:
        self.room.held -= self.memory.of_request[request]
        self.room.admitted -= 1
        if request in self.growing:
            self.growing.discard(request)
            self.room.held -= self._grown(request)
            del self.grown[request]

    def _grown(self, request: int) -> float:
        return (self.count - self.grown[request]) * self.work.tokens_per_step * self.memory.per_token

    def _evict(self) -> None:
        """Send the youngest requests back to the queue where answers have outgrown the cache; their tokens are computed again."""
        while self.room.held > self.memory.room_bytes and len(self.running) > 1:
            request = max(self.running)
            steps = self.count - self.running[request]
            outgrown = self._grown(request) if request in self.growing else 0.0
            self._leave(request, steps)
            self.memory.of_request[request] += outgrown
            self.made[request] = self.made.get(request, 0) + int(steps * self.work.tokens_per_step)
            self.work.steps[request] -= steps
            self.log.evicted += 1
            self.room.waiting.appendleft(request)

    # -- decode --

    def join(self, request: int) -> None:
        """Let a request decode from the next step on; its first token is out."""
        log = self.log
        if math.isnan(log.first[request]):
            log.first[request] = self.now
        steps = self.work.steps[request]
        if steps <= 0:
            log.end[request] = self.now
            self._release(request)
            return
        made = self.made.get(request, 0)
        self.running[request] = self.count
        self.context += self.work.prompts[request] + made + HALF
        heapq.heappush(self.ends, (self.count + steps, request, self.count))
        reserved = int(max(self.memory.reserved - made, 0.0) / self.work.tokens_per_step)
        if reserved <= 0:
            self.growing.add(request)
            self.grown[request] = self.count
        elif reserved < steps:
            heapq.heappush(self.grows, (self.count + reserved, request, self.count))

    def _leave(self, request: int, steps: int) -> None:
        self.context -= (
            self.work.prompts[request] + self.made.get(request, 0) + HALF + steps * self.work.tokens_per_step
        )
        self._release(request)
        del self.running[request]

    def _decode(self, until: float) -> None:
        """Take steps of decode alone until a request ends or outgrows its room, or the first end of a step from `until` on."""
        n = len(self.running)
        most = max(self.ends[0][0] - self.count, 1)
        if self.grows:
            most = min(most, max(self.grows[0][0] - self.count, 1))
        if self.growing:
            most = min(most, self._steps_until_full())
        grown = n * self.work.tokens_per_step
        first = self.times.decode_s(n, self.context / n)
        if most > 1:
            last = self.times.decode_s(n, (self.context + (most - 1) * grown) / n)
            each = (last - first) / (most - 1)
            left = until - self.now
            if first * most + 0.5 * each * most * (most - 1) > left:
                most = min(most, max(_steps_in(left, first, each), 1))
            seconds = first * most + 0.5 * each * most * (most - 1)
        else:
            seconds = first
        self.passed(most, seconds, 0.0)

    def _steps_until_full(self) -> int:
        added = len(self.growing) * self.work.tokens_per_step * self.memory.per_token
        return max(int((self.memory.room_bytes - self.room.held) / added), 1) if added > 0 else 1 << 30

    def passed(self, steps: int, decode: float, prompts: float) -> None:
        """Let a number of steps pass: what runs grows, and some of it ends."""
        n, log, work = len(self.running), self.log, self.work
        self.now += decode + prompts
        self.count += steps
        log.busy_s += decode + prompts
        log.steps += steps
        log.prompts_s += prompts
        if n:
            log.decode_s += decode
            log.decode_steps += steps
            self.context += n * steps * work.tokens_per_step
            self.room.held += len(self.growing) * steps * work.tokens_per_step * self.memory.per_token
            while self.ends and self.ends[0][0] <= self.count:
                _, request, joined = heapq.heappop(self.ends)
                if self.running.get(request) == joined:
                    log.end[request] = self.now
                    self._leave(request, self.count - joined)
            while self.grows and self.grows[0][0] <= self.count:
                _, request, joined = heapq.heappop(self.grows)
                if self.running.get(request) == joined:
                    self.growing.add(request)
                    self.grown[request] = self.count
            if self.room.held > self.memory.room_bytes:
                self._evict()

    # -- prompts --

    def _mixed(self) -> None:
        """Take one step of decode with chunks of prompts in it."""
        n, times = len(self.running), self.times
        tokens, total, attention, ready = self.prefilling.chunk(self.now)
        decode = times.decode_s(n, self.context / n) if n else 0.0
        prompts = times.prompts_s(n, tokens, total) + attention
        bare = decode or times.decode_s(1, float(times.worker.lengths.prompt))
        self.passed(1, decode, prompts)
        for request in ready:
            self.prompt_ended(request, bare)
            self.join(request)

    def prompt_ended(self, request: int, step_s: float) -> None:
        """Count a prompt, and the steps that measured engines let its first token wait beyond the schedule (`steps_waited`, `interleave_tokens`)."""
        self.log.prompts += 1
        if request in self.made:  # a prompt that is computed again ends with a token, as a step does
            self.made[request] += 1
            self.work.steps[request] -= 1
            return
        computed = self.work.prompts[request] - self.work.found[request]
        more = math.ceil(computed / self.interleave) - math.ceil(computed / self.budget)
        self.log.further[request] += (self.sat_out + max(more, 0)) * step_s


def _steps_in(seconds: float, first: float, each: float) -> int:
    """Count the steps, the first of which takes `first` and each further one `each` more, until a time has passed: the smallest whole number."""
    if each <= 0.0:
        return math.ceil(seconds / first)
    half = first - 0.5 * each
    return math.ceil((-half + math.sqrt(half * half + 2.0 * each * seconds)) / each)
