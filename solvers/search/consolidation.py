"""Find the points of plans with fewer deployments, by dropping the one that is missed least until the rest would cost too much.

A heuristic on the linear program over the points of a known plan: counts of systems are continuous, and other integers are no larger than in
the plan, so that sites, networks and jobs stay or go but never join. Not here: plans over the points that are left (`solvers.search.simplest`).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Program
from solvers.search.parts import points_in_use

LP_ITERATIONS = 20_000  # iterations of one linear program; a deployment without which it takes more is kept


def restricted(data: PlanData, kept: Bools) -> PlanData:
    """Return the input in which only the `kept` points serve or work."""
    return replace(data, point_capacity=np.where(kept, data.point_capacity, 0.0))


def of_same_deployments(data: PlanData, points: Bools) -> Bools:
    """[P]: all points of the deployments of some."""
    return np.isin(data.deployments(), np.unique(data.deployments()[points]))


def consolidate(data: PlanData, values: Mapping[str, Floats], worst: float, options: Options) -> list[Bools]:
    """List the points [P] that are kept as deployments are dropped one by one, the most first; each list is part of the one before.

    `data`: with divisible replicas. `values`: a plan of it. `worst`: the value that the linear program may reach.
    """
    return Relaxation.of(data, values, options).dropped_one_by_one(worst, options)


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The linear program over the points of a plan, minimised."""

    lp: WarmStartedLp
    lower: Floats
    upper: Floats
    """[columns]"""
    columns: dict[int, Ints]
    """Columns of each deployment in use."""
    deployments: Ints
    """[P]"""
    sign: float

    @classmethod
    def of(cls, data: PlanData, values: Mapping[str, Floats], options: Options) -> Relaxation:
        """Build the program over the points of the plan's deployments."""
        kept = of_same_deployments(data, points_in_use(values))
        data = restricted(data, kept)
        program = build(data)
        arrays, sign = program.arrays(), -1.0 if data.objective.maximises else 1.0
        counted = np.zeros(program.column_count, dtype=bool)
        counts = program.columns["n"]
        counted[counts[counts >= 0]] = True
        most = np.maximum(np.round(program.vector(values)), arrays.lower)
        upper = np.where(arrays.integer & ~counted, np.minimum(arrays.upper, most), arrays.upper)
        settings, end_s = replace(options, progress=None), time.perf_counter() + options.time_limit_s
        cost = sign * objective_vector(program, data)
        lp = WarmStartedLp(arrays, cost, settings, deadline=end_s, most_iterations=LP_ITERATIONS)
        return cls(lp, arrays.lower, upper, _columns(program, data, kept), data.deployments(), sign)

    def dropped_one_by_one(self, worst: float, options: Options) -> list[Bools]:
        """List the points [P] kept as deployments are dropped, the least missed first, as long as the value stays as good as `worst`."""
        return list(_dropped_one_by_one(self, worst, options))

    def single_drops(self, kept: Bools, worst: float, options: Options) -> list[tuple[float, int]]:
        """List (value of the linear program, minimised, without it; deployment) of each deployment of some points that may be dropped.

        `worst`: the value that the linear program may reach.
        """
        begin, found = time.perf_counter(), []
        here = {deployment for deployment in self.columns if kept[self.deployments == deployment].any()}
        for deployment in sorted(here):
            gone = (set(self.columns) - here) | {deployment}
            value = self.without(gone) if options.left_s(begin) > 0 else None
            if value is not None and value <= self.sign * worst:
                found.append((value, deployment))
        return found

    def without(self, dropped: Collection[int]) -> float | None:
        """Return the least value where some deployments do nothing; None where nothing is feasible, or time is up."""
        upper = self.upper.copy()
        for deployment in dropped:
            upper[self.columns[deployment]] = 0.0
        found = self.lp.solve(self.lower, upper, value_only=True)
        return found.value if found.status == "optimal" else None


def _columns(program: Program, data: PlanData, kept: Bools) -> dict[int, Ints]:
    """Collect the columns of each deployment: replicas, and the share of a job."""
    of_point = np.maximum(program.columns["x"], program.columns["v"])
    found = {}
    for deployment in np.unique(data.deployments()[kept]):
        columns = of_point[(data.deployments() == deployment) & kept].ravel()
        found[int(deployment)] = columns[columns >= 0]
    return found


def _dropped_one_by_one(relaxation: Relaxation, worst: float, options: Options) -> Iterator[Bools]:
    """Yield the points kept after each drop.

    Dropping is dearer the fewer deployments are left, so that the value found when more were left is a bound by which the next one to
    try is chosen.
    """
    begin, every = time.perf_counter(), set(relaxation.columns)
    kept = set(every)
    queue = [(-np.inf, deployment) for deployment in sorted(kept)]
    tried: dict[int, int] = {}  # how many were kept when a deployment was tried last
    while queue and options.left_s(begin) > 0:
        value, deployment = heapq.heappop(queue)
        if tried.get(deployment) == len(kept):
            if value > relaxation.sign * worst:
                return
            kept.discard(deployment)
            yield np.isin(relaxation.deployments, sorted(kept))
            continue
        tried[deployment] = len(kept)
        found = relaxation.without((every - kept) | {deployment})
        if found is not None:
            heapq.heappush(queue, (found, deployment))
