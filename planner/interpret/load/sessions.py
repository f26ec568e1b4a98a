"""Plan rows of agentic sessions: how many are at work in the busiest slot, and the caches of those that wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.candidates.apis import ROLE
from planner.evaluate.sessions import session_figures
from planner.interpret.decisions import Decisions
from planner.problem.facts import WorkloadFacts

SUMMED = ("tasks_per_s", "sessions", "waiting_sessions", "waiting_bytes")


def sessions_of(decided: Decisions, workload: WorkloadFacts, mine: list[int]) -> dict[str, Any]:
    """Sum the sessions of a workload over its points in the slot with most calls; nothing for a workload without sessions.

    On tokens of an API, whose time of a call is not known, only sessions that wait count, and their caches are the provider's.
    """
    if getattr(workload.spec, "session", None) is None or not mine:
        return {}
    points = [decided.form.points[p] for p in mine]
    calls = np.array([point.capacity * decided.active[p] for point, p in zip(points, mine, strict=True)])
    slot = int(calls.sum(axis=0).argmax())
    total = dict.fromkeys(SUMMED, 0.0)
    waiting: dict[str, float] = {}
    for point, rate in zip(points, calls[:, slot].tolist(), strict=True):
        use = point.uses[0]
        figures = session_figures(point.serving, use.choice, rate, point.call_s or 0.0, use.role == "prefill")
        if use.role == ROLE:
            figures["waiting_bytes"] = 0.0
        for name in SUMMED:
            total[name] += figures[name]
        way = use.waiting or "elsewhere"
        waiting[way] = waiting.get(way, 0.0) + figures["waiting_sessions"]
    return {
        "session": {
            "slot": slot,
            "calls_per_s": float(calls[:, slot].sum()),
            **total,
            "prompt_tokens": points[0].serving.spec.prompt_tokens,
            "waiting": waiting,
        }
    }
