"""Check workloads whose requests may wait: all are served, none early, none after the deadline."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.units import HOUR_S
from planner.problem.facts import ServingFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.electricity import slot_rings
from planner.verify.findings import RELATIVE_TOL, close


def check_deferral(
    plan: CheckedPlan, workload: ServingFacts, served: Mapping[tuple[str, str, int], float], factor: float
) -> None:
    """Compare arrivals and service of each origin, first come first served; `factor` multiplies the demand."""
    calendar, hours = plan.problem.calendar, int(workload.spec.demand.deferral // HOUR_S)
    rates = workload.requests_by_slot(calendar)
    for o, origin in enumerate(workload.spec.origins):
        for ring in slot_rings(calendar.next):
            steps = [float(calendar.step_s[t]) for t in ring]
            arrived = [float(rates[o][t]) * factor * s for t, s in zip(ring, steps, strict=True)]
            done = [served[workload.asked, origin.region, t] * s for t, s in zip(ring, steps, strict=True)]
            path = f"routes {workload.name} from {origin.region} slots {ring[0]}-{ring[-1]}"
            if not close(sum(done), sum(arrived)):
                plan.say(path, "verify.serves_requests", done=f"{sum(done):.9g}", asked=f"{sum(arrived):.9g}")
                continue
            backlog, level = [], 0.0
            for inward, outward in zip(arrived, done, strict=True):
                level += inward - outward
                backlog.append(level)
            waiting = [value - min(backlog) for value in backlog]  # at the end of each slot, at the least
            for i, t in enumerate(ring):
                allowed = sum(arrived[(i - lag) % len(ring)] for lag in range(hours))
                if waiting[i] > allowed + RELATIVE_TOL * max(arrived):
                    plan.say(
                        f"{path} slot {t}",
                        "verify.requests_wait",
                        waiting=f"{waiting[i]:.9g}",
                        allowed=f"{allowed:.9g}",
                    )
