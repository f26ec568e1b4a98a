"""Plan for a number of sessions at once: find the rate at which that number send calls, by solving the plan of each rate.

A session sends its next call when the last one was answered and its tool has run, so that N sessions send N / (R + Z) calls per second,
with the mean time R of a call in the plan and Z between two calls (`models.serving.closed_points`). R is that of the operating points
of the plan at their capacity. It hardly depends on the rate, so that a few steps suffice; where plans swing between fast and slow points,
rates between those that were tried are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from planner.interpret.framing import without_answer
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.time import ClosedLoop
from planner.solving.variants import parsed_at_once, resolved
from planner.spec.document import edited
from planner.spec.load.closed_loop import MOST_OFF, at_rates, closed_loops, first_rate

Solve = Callable[[dict[str, Any]], Plan]
MOST_STEPS = 24
SAME_RATE = 1e-3  # share by which rates differ that are worth a plan of their own
SHARE = 0.5  # share of the time that is left, for each plan on the way
LEAST_S = 1.0


def is_closed(document: dict[str, Any]) -> bool:
    """Tell whether a demand of the document may be a number of sessions; a malformed one is reported where it is parsed."""
    workloads = document.get("workloads")
    demands = (
        [each.get("demand") for each in workloads or [] if isinstance(each, dict)]
        if isinstance(workloads, list)
        else []
    )
    return any(isinstance(demand, dict) and demand.get("sessions") is not None for demand in demands)


def solve_closed(
    document: dict[str, Any], solve: Solve, say: Callable[[str], None], overlays: Sequence[Path] = ()
) -> Plan:
    """Solve a document with closed loops; `solve` plans one with rates. Raises SpecError for what closed loops do not go with.

    Without convergence within the time limit the answer is a plan of status "limit" that has none.
    """
    spec = parsed_at_once(document, overlays)
    loops = closed_loops(spec)
    ends_s = time.perf_counter() + spec.solver.time_limit
    rates = {i: first_rate(workload) for i, workload in loops.items()}
    tried: dict[int, list[tuple[float, float]]] = {i: [] for i in loops}  # rate, sessions found over those asked for
    for _ in range(MOST_STEPS):
        left_s = ends_s - time.perf_counter()
        if left_s < LEAST_S:
            break
        limit = ("solver.time_limit", f"{max(SHARE * left_s, LEAST_S)} s")
        plan = solve(edited(document, (*at_rates(rates), limit)))
        if not plan.has_answer or plan.objective["value"] is None:
            return Plan({**plan.document, "spec": document})
        found = {w["name"]: w["session"]["sessions"] for w in plan.document["workloads"] if "session" in w}
        off = {i: found[workload.name] / workload.demand.sessions for i, workload in loops.items()}
        say(
            ", ".join(
                Message.of(
                    "progress.sessions", name=loops[i].name, count=f"{found[loops[i].name]:,.1f}", rate=f"{rate:.4g}"
                ).text()
                for i, rate in rates.items()
            )
        )
        if all(abs(each - 1.0) <= MOST_OFF for each in off.values()):
            rows: list[ClosedLoop] = [
                {
                    "workload": loops[i].name,
                    "sessions": loops[i].demand.sessions,
                    "tasks_per_s": rate,
                    "reached": found[loops[i].name],
                }
                for i, rate in rates.items()
            ]
            return Plan({**plan.document, "closed_loops": rows, "spec": document})
        for i, rate in rates.items():
            tried[i].append((rate, off[i]))
        rates = {i: _next_rate(each) for i, each in tried.items()}
    say(Message.of("solving.sessions_time").text())
    return without_answer(resolved(edited(document, at_rates(rates)), overlays), None, "limit", None, document)


def _next_rate(tried: Sequence[tuple[float, float]]) -> float:
    """Choose the next rate from those tried, with the sessions found over those asked for.

    It is that of the calls of the last plan; where that was tried already, the middle of those that enclose the number of sessions.
    """
    rate, off = tried[-1]
    following = rate / off
    if all(abs(following / before - 1.0) > SAME_RATE for before, _ in tried):
        return following
    few = max((before for before, found in tried if found < 1.0), default=0.0)
    many = min((before for before, found in tried if found >= 1.0), default=0.0)
    return (few * many) ** 0.5 if few > 0.0 and many > 0.0 else following
