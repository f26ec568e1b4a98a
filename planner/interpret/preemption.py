"""What being pre-empted costs the jobs of a plan: the time lost per resumption, how often that comes, and what is lost in all.

A job's width falls where its systems are wanted for something else, serving above all, whose demand is always met. Each unit of width
that comes back loses the time that a restart takes. Slots follow one another in rings: the last hour of a typical day is followed by
its first, so that a job which runs at one width day and night loses nothing; where each hour of a year is its own, a run's first start
counts as one. From one window to the next a width may change for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.arrays import Floats
from planner.problem.facts import TrainingFacts
from solvers.model.preemption import width_back

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions


def preemption_rows(decided: Decisions, restart_s: Floats) -> list[dict[str, Any]]:
    """Of each job that is pre-empted at a cost: `resumptions` of its whole width over the horizon, and the time at full width that they cost."""
    data, rows = decided.form.data, []
    for p in decided.used:
        job = decided.form.points[p].workload
        if isinstance(job, TrainingFacts) and job.spec.preemption is not None:
            active, restart = decided.active[p], float(restart_s[p])
            resumptions = float(width_back(data, active) @ (data.slot_hours_s / data.order.step_s))
            run, lost = float(active @ data.slot_hours_s), restart * resumptions
            rows.append(
                {
                    "workload": job.name,
                    "point": decided.point_ids[p],
                    "restart_s": restart,
                    "resumptions": resumptions,
                    "lost_s": lost,
                    "lost_share": lost / run if run else 0.0,
                }
            )
    return rows
