"""Plan rows of storage: reads and writes of jobs, and load times of weights. Closed forms: `models.storage`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from models.arrays import sum_of
from models.storage import load_s
from planner.evaluate.interruptions import state_sizes
from planner.formulate.storage import rates
from planner.problem.facts import TrainingFacts
from planner.problem.limit_labels import LimitLabel, storage_bandwidth
from planner.problem.storage import limited

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions


def storage_used(decided: Decisions) -> Iterator[tuple[LimitLabel, float, float]]:
    """Yield (key, most bytes per second in any slot, limit) of each limited site."""
    problem, point_storage = decided.problem, decided.form.data.point_storage
    if point_storage is None:
        return
    for site in limited(problem):
        here = [p for p in decided.used if decided.form.points[p].site == site.region]
        used = sum_of((point_storage[p] * decided.active[p] for p in here), np.zeros(problem.calendar.slots))
        yield storage_bandwidth(site), float(used.max()), site.storage_bytes_per_s


def storage_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row per point at a limited site: bytes/s at full width, and the time to load weights or a job's state."""
    problem, rows = decided.problem, []
    for p in decided.used:
        point = decided.form.points[p]
        site, job = point.uses[0].option.site, point.workload
        if math.isfinite(site.storage_bytes_per_s) and site.api is None:
            read, written = rates(problem, point)
            size = (
                state_sizes(job, problem.constants.reliability)[1]
                if isinstance(job, TrainingFacts)
                else job.weights_bytes
            )
            rows.append({
                "workload": job.name, "point": decided.point_ids[p], "site": site.region, "read_bytes_per_s": read, "checkpoint_bytes_per_s": written,
                "load_bytes": size, "load_s": float(load_s(size, [1.0], [site.storage_bytes_per_s])),
            })  # fmt: skip
    return rows
