"""Program data of pre-emption: the time that a job loses when it yields its systems to serving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.training.layouts import Layouts
from planner.candidates.points import OperatingPoint
from planner.evaluate.interruptions import least_run_s_of, preemption_s_of
from planner.problem.facts import ResolvedSpec, TrainingFacts


def preemption_arrays(problem: ResolvedSpec, points: Sequence[OperatingPoint]) -> dict[str, Any]:
    """Build the fields of `PlanData`; none where no job is pre-empted at a cost."""
    if not any(job.spec.preemption for job in problem.training):
        return {}
    restart = np.array([restart_s(problem, point) for point in points])
    least = np.array([_least_run_s(point) for point in points])
    return {"point_restart_s": restart, "point_least_run_s": least if least.any() else None}


def _least_run_s(point: OperatingPoint) -> float:
    """Compute for how long width that returns stays at least [s]; 0 for serving."""
    if not isinstance(point.workload, TrainingFacts):
        return 0.0
    return least_run_s_of(point.workload, int(Layouts.of(**point.uses[0].layout).chips[0]))


def restart_s(problem: ResolvedSpec, point: OperatingPoint) -> float:
    """Compute the time lost per unit of width that resumes [s]; 0 for serving."""
    if not isinstance(point.workload, TrainingFacts):
        return 0.0
    use = point.uses[0]
    chips = int(Layouts.of(**use.layout).chips[0])
    return preemption_s_of(point.workload, chips, problem.constants.reliability, use.option.site.storage_bytes_per_s)
