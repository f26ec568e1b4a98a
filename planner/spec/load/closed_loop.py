"""Closed loops: workloads whose demand is a number of sessions at once, and the edits by which they get a rate of tasks.

Used by the search for that rate and by its verification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import Issue
from planner.messages import Message
from planner.spec.document import Edits
from planner.spec.model import PlanSpec

FIRST_CALL_S = 10.0  # time of a call where no limit is stated
MOST_OFF = 0.01  # share by which the sessions of a plan may differ from those asked for


def closed_loops(spec: PlanSpec) -> dict[int, Any]:
    """Find the serving workloads whose demand is a number of sessions, by their position."""
    return {
        i: workload
        for i, workload in enumerate(spec.workloads)
        if workload.kind == "serving" and workload.demand.sessions is not None
    }


def first_rate(workload: Any) -> float:
    """Compute the rate of tasks at which the sessions of a closed loop take as long as limits allow, or `FIRST_CALL_S` a call [1/s]."""
    session = workload.session
    call_s = min((limit.seconds for limit in workload.limits() if limit.metric == "e2e"), default=FIRST_CALL_S)
    tasks = [limit.seconds for limit in workload.limits() if limit.metric == "task"]
    longest_s = min([*tasks, session.calls * call_s + (session.calls - 1.0) * session.wait])
    return float(workload.demand.sessions / longest_s)


def at_rates(tasks_per_s: Mapping[int, float]) -> Edits:
    """Write the edits by which workloads, by position, have these rates of tasks in place of their sessions."""
    return tuple(
        edit
        for i, rate in tasks_per_s.items()
        for edit in ((f"workloads[{i}].demand.sessions", None), (f"workloads[{i}].demand.tasks_per_s", rate))
    )


def loop_problems(spec: PlanSpec) -> list[Issue]:
    """List what would leave the time of a call of a closed loop open."""
    return [
        Issue(f"workloads[{i}].demand.sessions", Message.of("solving.not_known_with", what=what).text())
        for i, workload in closed_loops(spec).items()
        for what, stated in (
            (Message.of("solving.unknown_apis").text(), spec.apis is not None),
            (Message.of("solving.unknown_quality").text(), workload.quality_floor is not None),
            (Message.of("solving.unknown_throughput").text(), spec.objective.maximise is not None),
        )
        if stated
    ]
