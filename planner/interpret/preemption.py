"""What being pre-empted costs the jobs of a plan: the time lost per resumption, how often that comes, and what is lost in all.

A job's width falls where its systems are wanted for something else, serving above all, whose demand is always met. Each unit of width
that comes back loses the time that a restart takes. Slots follow one another in rings: the last hour of a typical day is followed by
its first, so that a job which runs at one width day and night loses nothing; where each hour of a year is its own, a run's first start
counts as one. From one window to the next a width may change for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.points import Point
from planner.candidates.training import preemption_s_of
from planner.problem.facts import Problem, TrainingFacts
from solvers.model.preemption import width_back

if TYPE_CHECKING:
    from planner.interpret.accounts import Decisions


def preemption_arrays(problem: Problem, points: Sequence[Point]) -> dict[str, np.ndarray]:
    """Fields of `PlanData`; none where no job is pre-empted at a cost."""
    if not any(job.spec.preemption for job in problem.training):
        return {}
    return {"point_restart_s": np.array([restart_s(problem, point) for point in points])}


def restart_s(problem: Problem, point: Point) -> float:
    """Time lost per unit of width that comes back."""
    if not isinstance(point.workload, TrainingFacts):
        return 0.0
    return preemption_s_of(point.workload, problem.constants.reliability, point.uses[0].lot.site.storage_bytes_per_s)


def preemption_rows(decided: Decisions, names: dict[int, str]) -> list[dict[str, Any]]:
    """Of each job that is pre-empted at a cost: `resumptions` of its whole width over the horizon, and the time at full width that they cost."""
    data, rows = decided.form.data, []
    for p in decided.used:
        job = decided.form.points[p].workload
        if isinstance(job, TrainingFacts) and job.spec.preemption is not None:
            active, restart = decided.active[p], float(data.point_restart_s[p])
            resumptions = float(width_back(data, active) @ (data.slot_hours_s / data.order.step_s))
            run, lost = float(active @ data.slot_hours_s), restart * resumptions
            rows.append({"workload": job.name, "point": names[p], "restart_s": restart, "resumptions": resumptions, "lost_s": lost, "lost_share": lost / run if run else 0.0})
    return rows
