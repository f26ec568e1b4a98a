"""Sixty points of serving at which closed forms are held against the event simulation of `events`. Tests and benchmarks only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from models.serving import examples
from models.serving.closed_loop import closed_loop
from models.serving.closed_points import closed_pools
from models.serving.continuous_batching import ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint, TransferLink, WorkerPool, disaggregated
from models.serving.kv_cache import cache_bytes_per_chip, kv_bytes_per_chip
from models.serving.percentiles import latency_s
from models.serving.prefix_cache import PrefixCache, Tier, Zipf
from models.serving.workload import Lengths
from tests.models.serving.events import Kernel, Links, Memory, Worker, World, popular, requests_of
from tests.models.serving.simulation import Engine, Load, outcome

GIGA = 1e9
# One budget of prompt tokens for all passes, no overhead of two pools, and memory alone limits what runs.
CONSTANTS = replace(
    examples.SERVING, chunk_tokens=2048.0, interleave_tokens=2048.0, disaggregated_first_token_factor=1.0, batch_cap=1e6,
    burst_share=0.0,
)  # fmt: skip
ARCHITECTURES = {"dense": examples.DENSE, "experts": examples.MOE}
PREFIX_TOKENS, PREFIXES, EXPONENT = 1500.0, 200, 1.0
GRID = np.geomspace(1e-3, 1.0, 400)
METRICS = (("tpot", 0.5, 0.10), ("tpot", 0.95, 0.15), ("ttft", 0.5, 0.15), ("ttft", 0.95, 0.25))
THROUGHPUT = 0.10


@dataclass(frozen=True, slots=True)
class Case:
    """One point: an engine, a load of a utilisation (open) or of so many clients (closed), and what is particular to it."""

    kind: str
    arch: str = "dense"
    layout: tuple[int, int, int, int] = (1, 1, 1, 1)  # tp, pp, dp, ep
    lengths: tuple[int, int] = (1000, 200)
    cv: float = 0.0  # lengths of the answers
    utilisation: float = 0.0
    clients: int = 0
    memory: float = 80.0  # GB of a chip
    workers: tuple[int, int] | None = None  # prefill and decode workers
    link: float = 25.0  # GB/s
    kept: int = -1  # prefixes that stay in memory; below 0 requests have none

    def __str__(self) -> str:
        load = f"{self.clients} clients" if self.clients else f"{self.utilisation:.0%}"
        return f"{self.kind}, {self.arch}, cv {self.cv:g}, {load}"

    @property
    def engine(self) -> Engine:
        return Engine(
            ARCHITECTURES[self.arch],
            replace(examples.CHIP, hbm_bytes=self.memory * GIGA),
            ServingLayouts(*self.layout),
            CONSTANTS,
        )

    @property
    def of(self) -> Lengths:
        return Lengths(*self.lengths, 0.0, self.cv**2)

    @property
    def prefix_bytes(self) -> float:
        """Bytes of one prefix on a chip of a rank."""
        engine = self.engine
        each = kv_bytes_per_chip(engine.arch, engine.layouts, PREFIX_TOKENS, engine.precisions.kv_cache)
        return float(each) * engine.layouts.dp

    @property
    def cache(self) -> PrefixCache | None:
        if self.kept < 0:
            return None
        tier = Tier(max(self.kept, 1e-9) * self.prefix_bytes, np.inf, 0.0, in_hbm=True)
        return PrefixCache(PREFIX_TOKENS, Zipf(PREFIXES, EXPONENT), (tier,), int(self.engine.layouts.chips))

    # -- closed forms --

    def at(self, batch) -> ServingPoint:
        engine = self.engine
        if self.workers is None:
            return aggregated(
                engine.arch, engine.chip, engine.layouts, batch, lengths=self.of, cache=self.cache, **engine.kinds
            )
        return self.group(batch).point

    def group(self, batch) -> DisaggregatedPoint:
        engine = self.engine
        prefill, decode = (WorkerPool(engine.chip, engine.layouts, count, CONSTANTS) for count in self.workers)
        link = TransferLink(self.link * GIGA)
        return disaggregated(
            engine.arch, prefill, decode, batch, link=link, lengths=self.of, precisions=engine.precisions
        )

    def grid(self) -> tuple[np.ndarray, ServingPoint]:
        """Points that the engine sustains, by rising batch."""
        batches = GRID * float(np.floor(self.at(1.0).slots))
        found = self.at(batches)
        if self.workers is None:
            chunks = (
                self.lengths[0] * np.asarray(found.computed_share) / (CONSTANTS.chunk_tokens * self.engine.layouts.dp)
            )
            load = found.requests_per_s * (found.prefill_s + chunks * found.step_s)
            inside = found.batch + found.requests_per_s * found.prompt_s
            sustained = (load < 1.0) & (inside <= found.slots)
        else:
            load = found.requests_per_s * found.prefill_s / self.workers[0]
            on_links = found.requests_per_s * self.group(1.0).links_s
            sustained = (load < 1.0) & (on_links < 1.0)
        return batches[sustained], np.maximum.accumulate(found.requests_per_s)[sustained]

    def point(self) -> ServingPoint:
        """Find the operating point at the utilisation asked for."""
        batches, rate = self.grid()
        return self.at(float(np.interp(self.utilisation * rate[-1], rate, batches)))

    def predicted(self) -> dict[str, float]:
        """Predict rate, batch and latencies by the closed forms."""
        if not self.clients:
            return _figures(self.point())
        engine = self.engine
        if self.workers is not None:
            return _figures(closed_pools(self.group, self.clients, CONSTANTS)[0].point)
        loop = closed_loop(
            engine.arch, engine.chip, engine.layouts, float(self.clients), lengths=self.of, **engine.kinds
        )
        first = loop.first()
        rate = float(loop.tokens_per_s) / self.lengths[1]
        return {
            "rate": rate, "batch": float(loop.batch), "tpot": float(loop.tpot_s),
            **{f"ttft {q}": float(first.quantile_s(q)) for q in (0.5, 0.95)},
        }  # fmt: skip

    # -- simulation --

    def simulated(self, rate: float, requests: int, seed: int = 7) -> dict[str, float]:
        """Simulate the rate, or the clients, and measure the same figures once the start has passed."""
        load = Load(rate, *self.lengths, 0.0, self.cv**2)
        marks = popular(PREFIXES, EXPONENT, requests, seed) if self.kept >= 0 else None
        arrivals, drawn = requests_of(load, requests, seed, marks, PREFIX_TOKENS)
        answers = np.array([request.answer for request in drawn], float)
        world, waiting = World(), deque()
        replicas = self._replicas(world, waiting)

        def come(request):
            world.came[request.number] = world.now
            waiting.append(request)
            for replica in replicas:
                replica.wake()

        following = iter(drawn)
        if self.clients:
            world.after_end = lambda: next((come(request) for request in following), None)
            for _ in range(self.clients):
                request = next(following)
                world.at(0.0, lambda request=request: come(request))
        else:
            for time, request in zip(arrivals, following, strict=True):
                world.at(float(time), lambda request=request: come(request))
        world.run()
        came, first, end = (
            np.array([times[i] for i in range(requests)]) for times in (world.came, world.first, world.end)
        )
        kept = slice(requests // 5, int(requests * 0.9))
        done = np.sort(end)[kept]
        extra = CONSTANTS.first_token_s * (CONSTANTS.moe_first_token_factor if self.arch == "experts" else 1.0)
        seen = outcome(came, answers, first, end, extra)
        made = answers[np.argsort(end)][kept].mean()
        return {
            "rate": (len(done) - 1) / (done[-1] - done[0]) * made / self.lengths[1],
            "batch": seen.batch / (self.workers[1] if self.workers else 1),
            "tpot": float((end - first)[kept].sum() / (answers[kept] - 1.0).sum()),
            **{f"{metric} {q}": seen.quantile(metric, q) for metric in ("tpot", "ttft") for q in (0.5, 0.95)},
        }  # fmt: skip

    def _memory(self) -> Memory:
        engine = self.engine
        free = float(
            cache_bytes_per_chip(engine.arch, engine.chip, engine.layouts, engine.precisions.weights, CONSTANTS)
        )
        token = (
            float(kv_bytes_per_chip(engine.arch, engine.layouts, 1.0, engine.precisions.kv_cache)) * engine.layouts.dp
        )
        reserved = int(CONSTANTS.output_held * self.lengths[1])
        if self.kept < 0:
            return Memory(free / token, reserved)
        return Memory((free - self.kept * self.prefix_bytes) / token, reserved, np.inf, PREFIX_TOKENS, self.kept)

    def _replicas(self, world: World, waiting: deque) -> list[Worker]:
        engine, memory = self.engine, self._memory()
        own = self.lengths[0] + memory.reserved - (PREFIX_TOKENS if self.kept >= 0 else 0.0)
        kernel = Kernel(
            engine, int(min(memory.tokens / own, 6000)) + 2, self.lengths[0], PREFIX_TOKENS if self.kept > 0 else 0.0
        )
        if self.workers is None:
            return [Worker(world, kernel, engine.layouts, memory, waiting)]
        first = [Worker(world, kernel, engine.layouts, Memory(), waiting) for _ in range(self.workers[0])]
        queues = [deque() for _ in range(self.workers[1])]
        last = [Worker(world, kernel, engine.layouts, memory, queue) for queue in queues]

        def arrived(request):
            place = min(range(len(last)), key=lambda i: last[i].requests + len(queues[i]))
            queues[place].append(request)
            last[place].wake()

        chips = engine.layouts.chips
        links = Links(
            world, self.link * GIGA, engine.layouts.tp * engine.layouts.pp, min(self.workers) * chips, arrived
        )
        size = float(
            kv_bytes_per_chip(engine.arch, ServingLayouts(1, 1, 1, 1), self.lengths[0], engine.precisions.kv_cache)
        )
        for worker in first:
            worker.computed = lambda request: links.send(request, size)
        return first


def _figures(point: ServingPoint) -> dict[str, float]:
    latencies = {f"{m} {q}": float(latency_s(point, m, q)) for m in ("tpot", "ttft") for q in (0.5, 0.95)}
    return {"rate": float(point.requests_per_s), "batch": float(point.batch), "tpot": float(point.tpot_s), **latencies}


def errors(case: Case, requests: int, seed: int = 7) -> dict[str, float]:
    """Compute predicted over simulated less one. Of an open loop, whose rate is given, throughput is the rate at the batch that was simulated."""
    found = case.predicted()
    seen = case.simulated(found["rate"], requests, seed)
    throughput = found["rate"] / seen["rate"] - 1.0
    if not case.clients:
        batches, rate = case.grid()
        throughput = float(np.interp(seen["batch"], batches, rate)) / found["rate"] - 1.0
    wrong = {"throughput": throughput}
    for metric, quantile, _ in METRICS:
        name = f"{metric} {quantile}"
        expected = (
            found.get(name, found[metric]) if metric == "tpot" else found[name]
        )  # closed loops of one pool: the mean
        compared = seen[name] if name in found else seen[metric]
        wrong[name] = expected / compared - 1.0
    return wrong


def limits() -> dict[str, float]:
    return {"throughput": THROUGHPUT, **{f"{metric} {quantile}": most for metric, quantile, most in METRICS}}


def cases() -> Iterator[Case]:
    """List the sixty points."""
    for cv in (0.0, 1.0, 2.0, 3.0):
        for load in (0.1, 0.5, 0.85):
            yield Case("one pool", cv=cv, utilisation=load)
        for load in (0.5, 0.85):
            yield Case("little memory", memory=28.0, cv=cv, utilisation=load)
    for cv in (0.0, 1.0, 2.0):
        for load in (0.1, 0.5, 0.85):
            yield Case("dp 4", "experts", (1, 1, 4, 4), cv=cv, utilisation=load)
    for pp, cv, load in ((2, 0.0, 0.1), (2, 1.0, 0.5), (2, 2.0, 0.5), (2, 1.0, 0.85), (4, 0.0, 0.1), (4, 1.0, 0.5), (4, 0.0, 0.85), (4, 3.0, 0.5)):  # fmt: skip
        yield Case(f"pp {pp}", layout=(1, pp, 1, 1), cv=cv, utilisation=load)
    for workers, link in (((1, 1), 25.0), ((2, 1), 25.0), ((1, 3), 1.0)):
        for cv, load in ((0.0, 0.1), (1.0, 0.5), (0.0, 0.85), (3.0, 0.5)):
            name = f"pools {workers[0]}+{workers[1]}" + (" slow links" if link < 25.0 else "")
            yield Case(name, cv=cv, utilisation=load, workers=workers, link=link)
    for kept, memory in ((50, 80.0), (10, 28.0)):
        for cv, load in ((0.0, 0.1), (1.0, 0.5), (2.0, 0.85)):
            yield Case(f"prefixes, {kept} kept", lengths=(2000, 200), cv=cv, utilisation=load, memory=memory, kept=kept)
    yield Case("closed loop", cv=1.0, clients=1)
    yield Case("closed loop", cv=1.0, clients=32)
    yield Case("closed loop", "experts", (1, 1, 4, 4), cv=1.0, clients=64)
    yield Case("closed loop, pp 2", layout=(1, 2, 1, 1), cv=1.0, clients=32)
    yield Case("closed pools 1+1", cv=1.0, clients=32, workers=(1, 1))
