"""Find the latency limits that, slightly looser, let a chip serve at least twice as much: one pool, all layouts and batches of one system.

Latencies fall with the batch in steps: a limit just above a step shuts out all the batches beyond it. What two pools would gain is not
counted, so that a rate under a looser limit is the least that a chip can do there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.serving.percentiles import SloScreen
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates
from planner.candidates.serving import Grid, make_grid, within_demand
from planner.evaluate.classes import meets_classes
from planner.evaluate.serving import QUANTILES, engine_choices
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.spec.slo import LatencyLimit

LOOSER = (1.05, 1.1, 1.15, 1.2, 1.25)  # times a limit, the least first
TIMES = 2.0  # what a chip does under the looser limit beside what it does now, from which on the limit is named


@dataclass(frozen=True, slots=True)
class LooserLimit:
    """A latency limit that is worth loosening on a system: rates in requests/s of a chip."""

    workload: ServingFacts
    limit: LatencyLimit
    system: str
    rate: float
    steps: tuple[tuple[float, float], ...]
    """(limit [s], rate under it): the least looser limit that is worth it, and the loosest one if a chip does still more there."""


def looser_limits(
    problem: ResolvedSpec, candidates: Candidates, workload: ServingFacts, option: FleetOption
) -> Iterator[LooserLimit]:
    """Yield the limits of a workload of which one within `LOOSER` lets a chip of the option's system do `TIMES` as much, each at its least value."""
    limits, allowance_s = workload.spec.limits(), _allowance_s(candidates, workload, option)
    constants = problem.constants.serving
    grids = [
        make_grid(workload, option.system, choice, option.scaleout, constants)
        for choice in engine_choices(workload, option.system)
    ]

    def best(under: Sequence[LatencyLimit]) -> float:
        return max((_best_of_a_chip(problem, workload, grid, under, allowance_s) for grid in grids), default=0.0)

    now = max(best(limits), _best_candidate(candidates, workload, option))
    if now <= 0.0:
        return
    for i, limit in enumerate(limits):

        def loosened(factor: float, i: int = i) -> float:
            return best(
                [each._replace(seconds=each.seconds * (factor if j == i else 1.0)) for j, each in enumerate(limits)]
            )

        most = loosened(LOOSER[-1])
        if most < TIMES * now:
            continue
        factor, rate = next((factor, rate) for factor in LOOSER if (rate := loosened(factor)) >= TIMES * now)
        steps = [(factor * limit.seconds, rate)] + [(LOOSER[-1] * limit.seconds, most)] * (most > rate)
        yield LooserLimit(workload, limit, option.system.name, now, tuple(steps))


def _best_of_a_chip(
    problem: ResolvedSpec, workload: ServingFacts, grid: Grid, limits: Sequence[LatencyLimit], allowance_s: float
) -> float:
    """Compute the most that a chip serves under limits [requests/s]; replicas larger than the whole demand do not count."""
    by_metric: dict[str, list[tuple[str | float, float]]] = {}
    for limit in limits:
        here = limit.at_site(allowance_s)
        by_metric.setdefault(limit.metric, []).append((QUANTILES[limit.percentile], here.seconds))
    satisfied = SloScreen(grid.point, {}).satisfied(by_metric)
    satisfied = satisfied & meets_classes(workload.spec.classes, grid.point, allowance_s, {})
    rate = within_demand(np.where(satisfied, grid.point.requests_per_s, 0.0), workload, problem)
    chips: Floats = (grid.systems[:, None] + grid.encoders) * grid.system.chips
    return float(np.max(rate / chips, initial=0.0))


def _allowance_s(candidates: Candidates, workload: ServingFacts, option: FleetOption) -> float:
    """Return the round trip that the nearest origins of a site leave the latency limits [s]."""
    return min(
        (
            pool.allowance_s
            for pool in candidates.pools
            if pool.workload is workload and pool.site == option.site.region
        ),
        default=0.0,
    )


def _best_candidate(candidates: Candidates, workload: ServingFacts, option: FleetOption) -> float:
    """Return the most that a chip does at the points of a system, those with two pools too [requests/s]."""
    return max(
        (
            point.capacity / point.chips
            for pool in candidates.pools
            if pool.workload is workload
            for point in pool.points
            if {use.option.system.name for use in point.uses} == {option.system.name}
        ),
        default=0.0,
    )
