"""One engine of several pipeline stages: as many micro-batches pass the stages one behind the other, and none passes another.

Prompts are taken chunk by chunk by whichever micro-batch begins next; requests whose prompt has ended decode in the micro-batch that has fewest.
"""

from __future__ import annotations

import heapq
import math

from planner.replay.engine import Engine, Log, Memory, Prefill, Room, Work
from planner.replay.steps import StepTimes


class Pipeline:
    """One worker with pipeline stages; it takes and ends requests as an `Engine` does."""

    def __init__(self, times: StepTimes, work: Work, memory: Memory, log: Log, decodes_only: bool = False):
        self.times, self.memory, self.log = times, memory, log
        self.room, self.prefilling = Room(), Prefill(times, log.begun)
        self.free = [0.0] * times.worker.stages  # when each stage is free
        self.lanes = [Engine(times, work, memory, log, decodes_only, self.room) for _ in self.free]
        for lane in self.lanes:
            lane.prefilling, lane.made = self.prefilling, self.lanes[0].made
        self.computed: list[tuple[float, int]] = []  # end of the pass that ends a prompt, and its request

    @property
    def running(self) -> list[int]:
        """List the requests in decode."""
        return [request for lane in self.lanes for request in lane.running]

    @property
    def waiting(self) -> list[int]:
        """List the requests that wait for admission."""
        return list(self.room.waiting)

    @property
    def held(self) -> float:
        """Return the bytes that requests hold of a chip's room for caches."""
        return self.room.held

    @property
    def inside(self) -> int:
        """Count the requests that wait or run."""
        return len(self.room.waiting) + self.room.admitted

    @property
    def idle(self) -> bool:
        """Tell whether nothing is there to do."""
        return not self.inside

    def submit(self, request: int, now: float) -> None:
        """Let a request wait for admission; micro-batches that have ended begin at once."""
        for lane in self.lanes:
            lane.now = max(lane.now, now)
        self.room.waiting.append(request)

    def advance(self, until: float) -> None:
        """Take all passes that begin before a time."""
        while True:
            working = [each for each in self.lanes if each.running]
            able = self.lanes if self.prefilling or self.room.waiting else working
            if not able:
                if not self.computed or self.computed[0][0] >= until:
                    return
                self._join(*heapq.heappop(self.computed))
                continue
            lane = min(able, key=lambda each: each.now)
            begin = max(lane.now, self.free[0])
            if begin >= until:
                return
            lane.now = begin
            while self.computed and self.computed[0][0] <= begin:
                self._join(*heapq.heappop(self.computed))
            lane.admit()
            if lane.running or self.prefilling:
                self._pass(lane, begin)
                continue
            # nothing for this micro-batch until another one ends, or a prompt does
            later = [each.now for each in working] + [at for at, _ in self.computed[:1]]
            if later:
                lane.now = max(min(later), math.nextafter(begin, math.inf))

    def _join(self, at: float, request: int) -> None:
        """Let a request decode whose prompt has ended at a time."""
        lane = min(self.lanes, key=lambda each: len(each.running))
        before = lane.now
        lane.now = at  # its first token is out, whatever the micro-batch does
        lane.join(request)
        lane.now = max(before, at)

    def _pass(self, lane: Engine, begin: float) -> None:
        """Send one micro-batch through all stages; each waits for the one before it."""
        stages, n = len(self.free), len(lane.running)
        seen = 1 + (n - 1) * stages if n else 0  # requests of the replica for which the closed form states a step of n
        tokens, total, attention, ready = self.prefilling.chunk(begin) if self.prefilling else (0.0, 0.0, 0.0, [])
        decode = self.times.decode_s(seen, lane.context / n) if n else 0.0
        prompts = self.times.prompts_s(seen, tokens, total) + attention if tokens else 0.0
        end = begin
        for stage in range(stages):
            end = max(end, self.free[stage]) + (decode + prompts) / stages
            self.free[stage] = end
        lane.passed(1, decode, end - begin - decode)
        self.log.prompts_s += prompts - (end - begin - decode)
        self.log.busy_s += (decode + prompts) / stages - (end - begin)
        bare = decode or self.times.decode_s(1, float(self.times.worker.lengths.prompt))
        for request in ready:
            lane.prompt_ended(request, bare)
            heapq.heappush(self.computed, (end, request))


def engine_of(times: StepTimes, work: Work, memory: Memory, log: Log, decodes_only: bool = False) -> Engine | Pipeline:
    """Make the engine of a worker: with one stage, or with several."""
    kind = Pipeline if times.worker.stages > 1 else Engine
    return kind(times, work, memory, log, decodes_only)
