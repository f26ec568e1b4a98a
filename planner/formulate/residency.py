"""Program data of whole replicas: which points have them, and how long they load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from models.arrays import sum_of
from planner.candidates.apis import ROLE
from planner.candidates.points import ENCODE, OperatingPoint, Use
from planner.evaluate.residency import ServingPool, worker_ready_s
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.spec.requirements.redundancy import NPLUS1
from solvers.model.block_data.electricity import Chronology

COUNT_TOL = 1e-6  # share of the workers that a system holds: rounding of each deployment's share


def residency_arrays(problem: ResolvedSpec, points: Sequence[OperatingPoint]) -> dict[str, Any]:
    """Build the fields of `PlanData`; none where no point serves on systems, or replicas are divisible."""
    whole = [serves_on_systems(point) for point in points]
    if not any(whole) or not problem.spec.solver.whole:
        return {}
    calendar = problem.calendar
    return {
        "point_whole": np.array(whole, dtype=bool),
        "point_load_s": np.array([point_load_s(problem, point) if mine else 0.0 for point, mine in zip(points, whole)]),
        "use_spares": np.array(
            [spare_workers(use) if is_spared(point) else 0 for point in points for use in point.uses]
        ),
        "use_workers": np.array([use.workers for point in points for use in point.uses], dtype=np.int64),
        "order": Chronology(next=np.asarray(calendar.next, dtype=np.int64), step_s=calendar.step_s),
    }


def is_spared(point: OperatingPoint) -> bool:
    """Tell whether deployments of the point carry their load when any one of their systems fails."""
    return serves_on_systems(point) and point.serving.spec.redundancy == NPLUS1


def spare_workers(use: Use) -> int:
    """Count the workers of a pool that one system holds at most, or that one system of a larger worker takes down: those lost when it fails."""
    at_work = use.systems_per_worker / (1.0 + use.option.headroom)
    return max(math.ceil(1.0 / at_work - COUNT_TOL), 1)


def serves_on_systems(point: OperatingPoint) -> bool:
    """Tell whether the point serves on systems of its own, not by an API."""
    return isinstance(point.workload, ServingFacts) and point.uses[0].role != ROLE


def point_ready_s(problem: ResolvedSpec, point: OperatingPoint) -> dict[str, float]:
    """Compute the parts of the time that a worker of a serving point loses at its start [s]."""
    uses = [use for use in point.uses if use.role != ENCODE]
    pools = [ServingPool(use.option.system, use.option.scaleout, use.layout, use.batch, use.workers) for use in uses]
    return worker_ready_s(point.serving, uses[0].option.site, pools, uses[0].choice, problem.constants)


def point_load_s(problem: ResolvedSpec, point: OperatingPoint) -> float:
    """Compute the time that a worker of a serving point loses at its start [s]."""
    return sum_of(point_ready_s(problem, point).values())
