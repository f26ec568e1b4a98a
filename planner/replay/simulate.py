"""Simulate replicas of one operating point on given requests, from the workers that it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, sum_of
from models.formats import element_bytes
from models.serving.disaggregation import TransferLink
from models.serving.kv_cache import cache_bytes_per_chip, kv_bytes_per_chip
from models.serving.prefill import Prompts
from models.serving.prefix_cache import PrefixCache, Zipf, pool_memory, prompt_cost, tier_places, without
from models.serving.sessions import common, held_beside
from models.transformer.attention import kv_bytes
from planner.replay.engine import Engine, Log, Memory, Work
from planner.replay.pipeline import Pipeline, engine_of
from planner.replay.pools import Group, Link, Replica, Series, run
from planner.replay.prefixes import PrefixStore, Tiers
from planner.replay.requests import Requests, decode_steps
from planner.replay.steps import StepTimes, Worker

LEVELS = 257  # levels of tokens between which the size of a cache is taken as linear


@dataclass(frozen=True, slots=True)
class Server:
    """What a replica is made of: one worker, or prefill workers before those in `worker`, which decode."""

    worker: Worker
    prefill: Worker | None = None
    workers: tuple[int, int] = (1, 1)  # prefill and decode workers of a replica
    link: TransferLink | None = None
    cache: PrefixCache | None = None

    @property
    def first(self) -> Worker:
        """Return the worker that computes prompts."""
        return self.prefill or self.worker

    @property
    def overhead_s(self) -> float:
        """Return the time that front end and scheduler take of every first token, without what two pools add to it [s]."""
        return self.first.overhead_s


@dataclass(frozen=True, slots=True)
class Run:
    """What a simulation has found: latencies of the requests that count and have ended [s], and means of what made them."""

    ttft_s: Floats
    tpot_s: Floats  # for answers of two tokens and more
    e2e_s: Floats
    within: Bools  # whether each of the counted requests that have ended has a time per output token
    arrived: int
    ended: int
    refused: int
    counted: int
    evicted: int
    span_s: float  # from the first to the last arrival that counts
    means: dict[str, float]
    series: Series


def simulate(
    server: Server,
    requests: Requests,
    replicas: int,
    router: str,
    seed: int,
    *,
    requests_per_s: float,
    samples: int = 120,
) -> Run:
    """Simulate `replicas` of a server, of which each is planned to take `requests_per_s`, on requests that a router divides among them."""
    import simpy

    count, worker = len(requests), server.worker
    drafts = worker.speculation
    steps = decode_steps(requests, drafts.acceptance if drafts else 0.0, drafts.draft_tokens if drafts else 0, seed + 1)
    work = Work(requests.prompts.tolist(), [0.0] * count, steps.tolist(), _per_step(requests, steps))
    tiers = tiers_of(server, requests_per_s)
    stores = [PrefixStore(tiers, requests, seed + 2 + i) for i in range(replicas)]
    log, clock = Log.of(count), simpy.Environment()
    memory = memory_of(server, requests, requests_per_s)
    times = StepTimes(worker, memory.most_requests, requests.longest)
    made: list[Replica | Group] = []
    if server.prefill is None:
        made += [Replica(engine_of(times, work, memory, log)) for _ in range(replicas)]
    else:
        passes = StepTimes(server.prefill, 1, requests.longest)
        constants = worker.constants
        width = element_bytes(worker.precisions.kv_cache)
        sizes = np.asarray(kv_bytes(worker.arch, requests.prompts.astype(float), width), float) + np.zeros(count)
        for _ in range(replicas):
            engines: list[Engine | Pipeline] = [
                engine_of(times, work, memory, log, decodes_only=True) for _ in range(server.workers[1])
            ]
            further = float(constants.disaggregated_first_token_factor) - 1.0
            made.append(
                Group(clock, passes, server.workers[0], engines, (work, log), _link(server), sizes.tolist(), further)
            )
    series = run(clock, made, requests, stores, work, router, samples, seed + 3)
    return _found(server, requests, log, series, made, stores)


def _per_step(requests: Requests, steps: np.ndarray) -> float:
    """Compute the mean tokens that a decode step adds to an answer."""
    total = int(steps.sum())
    return float(np.maximum(requests.outputs - 1, 0).sum()) / total if total else 1.0


def _link(server: Server) -> Link:
    assert server.prefill is not None and server.link is not None
    first, second = server.prefill.layouts, server.worker.layouts
    of_worker = min(int(first.tp * first.pp), int(second.tp * second.pp))
    of_side = min(server.workers[0] * int(first.chips), server.workers[1] * int(second.chips))
    return Link(float(server.link.bytes_per_s), of_worker, of_side, float(server.link.start_s))  # type: ignore[arg-type]


def memory_of(server: Server, requests: Requests, requests_per_s: float) -> Memory:
    """Compute the room of the worker that decodes, and what each request takes of it.

    Room is what weights, reserve, drafts and kept prefixes leave; a request takes its prompt and the share of a mean answer that engines
    reserve ahead. Prefixes give way where the closed form says so: the room holds as many mean requests as it counts.
    """
    w, cache = server.worker, None if server.prefill is not None else server.cache
    held = held_beside(w.arch, w.layouts, w.precisions, w.speculation, cache, requests_per_s, w.lengths)
    chip = w.chip if held is None else without(w.chip, held, w.constants)
    room = float(cache_bytes_per_chip(w.arch, chip, w.layouts, w.precisions.weights, w.constants))
    places, _ = pool_memory(
        w.arch, w.chip, w.layouts, 1.0, held, lengths=w.lengths, precisions=w.precisions, constants=w.constants, shared=common(cache)
    )  # fmt: skip
    reserved = float(w.constants.output_held) * float(w.lengths.output)
    levels = np.linspace(0.0, requests.longest + reserved, LEVELS)
    sizes = np.asarray(kv_bytes_per_chip(w.arch, w.layouts, levels, w.precisions.kv_cache), float)
    own = np.interp(requests.prompts + reserved, levels, sizes)
    if np.any(w.arch.state_blocks) and np.any(w.constants.state_share):
        room *= 1.0 - float(w.constants.state_share)
        own = np.maximum(own - sizes[0], 1.0)
    if cache is not None and cache.hbm_bytes_per_chip:
        prefix = np.interp(cache.prefix_tokens, levels, sizes) - sizes[0]
        own = np.maximum(own - prefix, sizes[1] - sizes[0])
        kept = float(w.constants.cache_share) * cache.hbm_bytes_per_chip
        room = max(room - kept, float(places) * float(own.mean()))
    cap = int(float(w.constants.batch_cap) * float(w.layouts.dp))
    per_token = (sizes[-1] - sizes[LEVELS // 2]) / (levels[-1] - levels[LEVELS // 2])
    return Memory(room, own.tolist(), float(per_token), reserved, max(cap, 1))


def tiers_of(server: Server, requests_per_s: float) -> Tiers | None:
    """Describe where prefixes lie, with hits as stated or predicted; None without a cache."""
    cache, w = server.cache, server.first
    if cache is None:
        return None
    rate = requests_per_s / server.workers[0]
    _, found = prompt_cost(
        w.arch, w.chip, w.layouts, cache, lambda _: rate, Prompts(w.lengths.prompt, w.lengths.scv_of_input), None,
        precisions=w.precisions, constants=w.constants,
    )  # fmt: skip
    assert found is not None
    places = tier_places(w.arch, w.layouts, cache, w.precisions.kv_cache)
    together = cache.routed.workers if cache.routed is not None and cache.routed.by_prefix else 1
    return Tiers(
        cache.prefix_tokens,
        tuple(float(room) * together for room in places),
        tuple(float(share) for share in found.loaded),
        tuple(float(seconds) for seconds in found.load_s),
        tuple(float(hit) for hit in found.hits),
        isinstance(cache.reuse, Zipf),
    )


def _found(
    server: Server,
    requests: Requests,
    log: Log,
    series: Series,
    replicas: list[Replica | Group],
    stores: list[PrefixStore],
) -> Run:
    first, end = np.asarray(log.first), np.asarray(log.end)
    ended = ~np.isnan(end)
    chosen = requests.counted & ended
    ttft = (first - requests.arrivals_s + np.asarray(log.further) + server.overhead_s)[chosen]
    decoding = (end - first)[chosen]
    later = (requests.outputs - 1)[chosen]
    several = later > 0
    counted = np.flatnonzero(requests.counted)
    span = float(requests.arrivals_s[counted[-1]] - requests.arrivals_s[counted[0]])
    return Run(
        ttft_s=ttft,
        tpot_s=decoding[several] / later[several],
        e2e_s=ttft + decoding,
        within=several,
        arrived=len(requests),
        ended=int(ended.sum()),
        refused=len(log.refused),
        counted=len(counted),
        evicted=log.evicted,
        span_s=span,
        means=_means(server, requests, log, chosen, replicas, stores),
        series=series,
    )


def _means(
    server: Server,
    requests: Requests,
    log: Log,
    chosen: Bools,
    replicas: list[Replica | Group],
    stores: list[PrefixStore],
) -> dict[str, float]:
    """Average what makes latencies, in the terms of the closed forms."""
    engines = [engine for replica in replicas for engine in replica.engines]
    arrivals = requests.arrivals_s
    first, end, begun = (np.asarray(part) for part in (log.first, log.end, log.begun))
    whole = float(np.nanmax(end)) if np.any(~np.isnan(end)) else 0.0
    counted = arrivals[requests.counted]
    rate = (len(counted) - 1) / max(float(counted[-1] - counted[0]), 1e-300) / len(replicas)
    gaps = np.diff(counted)
    decoding = float((end - first)[chosen].mean()) if chosen.any() else 0.0
    asked = sum_of(store.asked for store in stores)
    prompts = requests.prompts[chosen]
    outputs = requests.outputs[chosen]
    each = max(log.prompts, 1)
    if server.prefill is None:
        waits = (begun - arrivals)[chosen]
    else:
        waits = (first - arrivals)[chosen] - (log.prompts_s + log.moved_s) / each
    return {
        "rate": rate,
        "arrival_scv": float(gaps.var() / gaps.mean() ** 2) if len(gaps) and gaps.mean() > 0 else 0.0,
        "prompt": float(prompts.mean()) if len(prompts) else 0.0,
        "output": float(outputs.mean()) if len(outputs) else 0.0,
        "prompt_scv": float(prompts.var() / prompts.mean() ** 2) if len(prompts) else 0.0,
        "output_scv": float(outputs.var() / outputs.mean() ** 2) if len(outputs) else 0.0,
        "batch": rate * decoding * len(replicas) / len(engines),
        "step_s": log.decode_s / max(log.decode_steps, 1),
        "busy": log.busy_s / max(whole * len(engines), 1e-300),
        "prefill_s": log.prompts_s / each,
        "wait_s": float(waits.mean()) if chosen.any() else 0.0,
        "hits": sum_of(store.hits for store in stores) / asked if asked else 0.0,
    }
