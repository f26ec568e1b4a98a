"""Find the points of plans with fewer deployments, by dropping the one that is missed least until the rest would cost too much.

A heuristic on the linear program over the points of a known plan: counts of systems are continuous, and other integers are no larger than in
the plan, so that sites, networks and jobs stay or go but never join. Not here: plans over the points that are left (`solvers.simplest`).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.parts import points_in_use
from solvers.program import Program

LP_TIME_S = 2.0  # of one linear program; a deployment without which it takes longer is kept


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
    return list(_dropped_one_by_one(_Relaxation.of(data, values, options), worst, options.time_limit_s))


@dataclass(frozen=True, slots=True)
class _Relaxation:
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
    def of(cls, data: PlanData, values: Mapping[str, Floats], options: Options) -> _Relaxation:
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
        settings = replace(options, time_limit_s=LP_TIME_S, node_limit=None, progress=None)
        lp = WarmStartedLp(arrays, sign * objective_vector(program, data), settings)
        return cls(lp, arrays.lower, upper, _columns(program, data, kept), data.deployments(), sign)


def _columns(program: Program, data: PlanData, kept: Bools) -> dict[int, Ints]:
    """Collect the columns of each deployment: replicas, and the share of a job."""
    of_point = np.maximum(program.columns["x"], program.columns["v"])
    found = {}
    for deployment in np.unique(data.deployments()[kept]):
        columns = of_point[(data.deployments() == deployment) & kept].ravel()
        found[int(deployment)] = columns[columns >= 0]
    return found


def _dropped_one_by_one(relaxation: _Relaxation, worst: float, limit_s: float) -> Iterator[Bools]:
    """Yield the points kept after each drop.

    Dropping is dearer the fewer deployments are left, so that the value found when more were left is a bound by which the next one to
    try is chosen.
    """
    end, upper = time.perf_counter() + limit_s, relaxation.upper.copy()
    kept = set(relaxation.columns)
    queue = [(-np.inf, deployment) for deployment in sorted(kept)]
    tried: dict[int, int] = {}  # how many were kept when a deployment was tried last
    while queue and time.perf_counter() < end:
        value, deployment = heapq.heappop(queue)
        mine = relaxation.columns[deployment]
        if tried.get(deployment) == len(kept):
            if value > relaxation.sign * worst:
                return
            upper[mine] = 0.0
            kept.discard(deployment)
            yield np.isin(relaxation.deployments, sorted(kept))
            continue
        without = upper.copy()
        without[mine] = 0.0
        found = relaxation.lp.solve(relaxation.lower, without, value_only=True)
        tried[deployment] = len(kept)
        if found.status == "optimal" and found.value is not None:
            heapq.heappush(queue, (found.value, deployment))
