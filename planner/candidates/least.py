"""Find the least latency of a serving workload on any system on offer, whatever that costs: what no plan can stay below.

Points are made as in `planner.candidates.serving` and of `planner.candidates.disaggregated` with the least load, before any limit is applied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.serving.continuous_batching import ServingPoint
from planner.candidates.disaggregated import group_searches
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.serving import make_grid
from planner.evaluate.serving import engine_choices, latencies
from planner.problem.facts import ResolvedSpec, ServingFacts, is_assured, permitted


@dataclass(frozen=True, slots=True)
class LeastLatency:
    """The least latency under one limit, the round trip included [s]."""

    key: str  # as "tpot.p95"
    limit_s: float
    least_s: float
    beside_s: float | None  # the least where all other limits are kept; None where they never are
    system: str  # system with `least_s`


def least_latencies(
    problem: ResolvedSpec, workload: ServingFacts, origin: str, by_s: float
) -> list[LeastLatency] | None:
    """Find the least latency under each limit for requests from an origin, on systems that are delivered by `by_s` [s].

    None where systems are delivered and the network fits on none of them; empty where none is delivered.
    """
    found: dict[str, LeastLatency] = {}
    tried = False
    for option in _options(problem, workload, by_s):
        rtt_s = min(
            (route.rtt_s for route in problem.routes(workload.name, origin, option.site.region).values()),
            default=math.inf,
        )
        for point in _points(problem, workload, option) if rtt_s < math.inf else ():
            tried = True
            for least in _least(workload, point, option, rtt_s):
                found[least.key] = _better(found.get(least.key), least)
    return None if tried and not found else list(found.values())


def _options(problem: ResolvedSpec, workload: ServingFacts, by_s: float) -> list[FleetOption]:
    """List one fleet option of each system and network that may run a workload by then."""
    able = {
        (option.site.region, option.system.name, option.scaleout): option
        for option in build_fleet_options(problem)[0]
        if option.site.api is None
        and option.tenant == problem.tenant_of(workload)
        and permitted(workload, option.site)
        and is_assured(workload, option.site, option.offer)
        and option.offer.ready_s(option.site) <= by_s
    }
    return list(able.values())


def _points(problem: ResolvedSpec, workload: ServingFacts, option: FleetOption) -> Iterator[ServingPoint]:
    """Evaluate all layouts and batches on a fleet option, in one pool and with the least load in two."""
    constants = problem.constants.serving
    choices = engine_choices(workload, option.system)
    grids = [make_grid(workload, option.system, choice, option.scaleout, constants) for choice in choices]
    if workload.spec.disaggregation != "always":
        yield from (grid.point for grid in grids)
    if workload.spec.disaggregation != "never" and option.scaleout_bytes_per_s > 0:
        for search in group_searches(workload, grids, grids, option, option, problem):
            yield search.least_loaded()


def _least(workload: ServingFacts, point: ServingPoint, option: FleetOption, rtt_s: float) -> Iterator[LeastLatency]:
    """Find the least latencies among the points that fit."""
    shape = np.shape(point.requests_per_s)
    fits = np.broadcast_to(np.asarray(point.fits), shape) & (np.asarray(point.requests_per_s) > 0.0)
    if not fits.any():
        return
    limits, at_site = workload.spec.limits(), latencies(point, workload.spec)
    seconds = {
        limit.key: np.broadcast_to(np.asarray(at_site[limit.key], float), shape) + limit.round_trips * rtt_s
        for limit in limits
    }
    for limit in limits:
        others = fits.copy()
        for each in limits:
            others &= (seconds[each.key] <= each.seconds) | (each is limit)
        beside_s = float(seconds[limit.key][others].min()) if others.any() else None
        yield LeastLatency(
            limit.key, limit.seconds, float(seconds[limit.key][fits].min()), beside_s, option.system.name
        )


def _better(known: LeastLatency | None, other: LeastLatency) -> LeastLatency:
    """Join the least latencies of two fleet options."""
    if known is None:
        return other
    beside = [each.beside_s for each in (known, other) if each.beside_s is not None]
    first = min(known, other, key=lambda each: each.least_s)
    return LeastLatency(first.key, first.limit_s, first.least_s, min(beside, default=None), first.system)
