"""Check that each training job runs at one point between start and deadline, at most at full width, and trains all its tokens."""

from __future__ import annotations

from planner.messages import Message
from planner.verify.checked_plan import CheckedPlan
from planner.verify.findings import close
from planner.verify.preemption import lost_share, trained_chips


def check_jobs(plan: CheckedPlan) -> None:
    """Check every job, and keep its tokens by slot."""
    calendar = plan.problem.calendar
    for job in plan.training.values():
        mine = [(name, active) for name, active in plan.active.items() if plan.points[name][1].workload == job.name]
        if len(mine) != 1:
            plan.say(f"workloads {job.name}", "verify.one_point_of_job", count=str(len(mine)))
        allowed = calendar.within(job.spec.start, job.spec.deadline)
        done = busy_s = 0.0
        for name, active in mine:
            point, computed = plan.points[name]
            lost = lost_share(plan.problem, job, trained_chips(point), plan.sites[point["site"]], active)
            busy_s += sum(width * float(calendar.seconds[t]) for t, width in enumerate(active))
            for t, width in enumerate(active):
                if width and not allowed[t]:
                    plan.say(f"schedule slot {t}", "verify.runs_outside", job=job.name)
                plan.at_most(f"schedule slot {t}", width, 1.0, Message.of("verify.width_of", job=job.name).text())
                tokens_per_s = (width - lost[t]) * computed.capacity
                plan.tokens[job.name][t] += tokens_per_s
                done += tokens_per_s * float(calendar.seconds[t])
        row = next((each for each in plan.document["workloads"] if each["name"] == job.name), None)
        if row is not None and "slack_s" in row:  # plans of release 0.2 do not state it
            path, there_s = f"workloads {job.name}", float(calendar.seconds @ allowed)
            plan.equal(f"{path}.deadline_s", row["deadline_s"], job.spec.deadline)
            plan.equal(f"{path}.slack_s", row["slack_s"], max(there_s - busy_s, 0.0))
        if not close(done, job.spec.tokens):
            plan.say(
                f"workloads {job.name}", "verify.trains_tokens", done=f"{done:.9g}", asked=f"{job.spec.tokens:.9g}"
            )
