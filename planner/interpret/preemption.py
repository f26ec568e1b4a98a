"""Plan rows of pre-emption: the time that jobs lose per resumption, how often they resume, and the time lost in all.

A job's width falls where its systems are needed for something else, above all for serving, whose demand is always met.
Each unit of width that resumes loses the time of a restart. Slots form rings: the last hour of a typical day is followed
by its first, so a job of constant width loses nothing; on a full-year calendar, the first start of a run counts as one
resumption. Between windows a width may change at no loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.arrays import Floats
from planner.problem.facts import TrainingFacts
from solvers.model.preemption import width_back

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions


def preemption_rows(decided: Decisions, restart_s: Floats) -> list[dict[str, Any]]:
    """Build one row per job that is pre-empted at a cost: `resumptions` of its full width over the horizon, and the time lost.

    `restart_s`: time lost per resumption of each point [P].
    """
    data = decided.form.data
    rows: list[dict[str, Any]] = []
    if data.order is None:
        return rows
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
