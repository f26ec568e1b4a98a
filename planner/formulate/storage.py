"""Program data of storage bandwidth: rates of jobs, and limits of sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from models.arrays import sum_of
from planner.candidates.points import OperatingPoint
from planner.evaluate.interruptions import RunTerms, storage_rates
from planner.problem.facts import ResolvedSpec, TrainingFacts
from planner.problem.storage import limited


def rates(problem: ResolvedSpec, point: OperatingPoint) -> tuple[float, float]:
    """Compute (bytes/s read, bytes/s of checkpoints written) of a job at full width; zero for serving."""
    use = point.uses[0]
    if not isinstance(point.workload, TrainingFacts):
        return 0.0, 0.0
    return storage_rates(
        point.workload,
        use.layout,
        point.capacity,
        point.goodput,
        RunTerms.of(use.option.system, use.option.offer, use.option.site),
        problem,
    )


def storage_arrays(problem: ResolvedSpec, points: Sequence[OperatingPoint]) -> dict[str, Any]:
    """Build the fields of `PlanData`; none where no site's storage is limited."""
    if not limited(problem):
        return {}
    return {
        "point_storage": np.array(
            [
                sum_of(rates(problem, point)) if math.isfinite(point.uses[0].option.site.storage_bytes_per_s) else 0.0
                for point in points
            ]
        ),
        "site_storage": np.array([site.storage_bytes_per_s for site in problem.sites]),
    }
