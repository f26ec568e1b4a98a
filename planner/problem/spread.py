"""How a workload is spread over zones: the arrays for `solvers.model.spread`, and the plan's table of what each zone serves.

Not here: the re-check of that table (`planner.verify.spread`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.problem.facts import Problem
from solvers.model.line_data import SpreadData


def zones_of(problem: Problem) -> tuple[str, ...]:
    return tuple(dict.fromkeys(site.fails_with for site in problem.sites))


def is_asked(problem: Problem) -> bool:
    return any(w.spec.spread is not None for w in problem.serving)


def spread_data(problem: Problem, demand: np.ndarray) -> SpreadData | None:
    """None where no workload asks for it; `demand` [workload, origin, slot]."""
    if not is_asked(problem):
        return None
    zones, asked = zones_of(problem), [w.spec.spread for w in problem.serving]
    survives = np.array([s is not None and s.survive > 0 for s in asked])
    return SpreadData(
        site_zone=np.array([zones.index(site.fails_with) for site in problem.sites]),
        largest_share=np.array([1.0 if s is None or s.largest_share is None else s.largest_share for s in asked]),
        zones=np.array([1 if s is None else s.zones for s in asked]),
        least_share=np.array([1.0 if s is None else s.least_share for s in asked]),
        survives=survives,
        tried_slots=tried_slots(problem, demand.sum(axis=1)[survives]),
    )


def tried_slots(problem: Problem, demand: np.ndarray) -> np.ndarray:
    """The busiest slot of each workload in each window."""
    window = problem.calendar.window
    found = {int(np.where(window == v, row, -1.0).argmax()) for row in demand for v in range(problem.calendar.windows)}
    return np.array(sorted(found), dtype=np.int64)


def spread_rows(problem: Problem, arcs: Sequence[tuple[int, ...]], flow: np.ndarray) -> list[dict[str, Any]]:
    """Of each zone, the least and the largest share of any slot's requests that it serves; for workloads that ask for a spread."""
    rows = []
    for w, workload in enumerate(problem.serving):
        if workload.spec.spread is None:
            continue
        total = sum((flow[a] for a, arc in enumerate(arcs) if arc[0] == w), np.zeros(problem.calendar.slots))
        for zone in zones_of(problem):
            inside = sum((flow[a] for a, arc in enumerate(arcs) if arc[0] == w and problem.sites[arc[2]].fails_with == zone), np.zeros(len(total)))
            share = inside[total > 0] / total[total > 0]
            rows.append({
                "workload": workload.name,
                "zone": zone,
                "sites": [site.region for site in problem.sites if site.fails_with == zone],
                "least_share": float(share.min(initial=1.0)) if share.size else 0.0,
                "largest_share": float(share.max(initial=0.0)),
            })  # fmt: skip
    return rows


def limit_values(problem: Problem, rows: list[dict[str, Any]]) -> list[tuple[str, str, float, float]]:
    """(path, name, value, limit) of the largest shares."""
    return [
        (f"{w.path}.spread.largest_share", share_name(w.name), max(row["largest_share"] for row in rows if row["workload"] == w.name), w.spec.spread.largest_share)
        for w in problem.serving
        if w.spec.spread is not None and w.spec.spread.largest_share is not None
    ]


def share_name(workload: str) -> str:
    return f"largest share of {workload} in one zone"
