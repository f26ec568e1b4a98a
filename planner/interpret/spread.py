"""Plan rows of a workload's spread over zones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.problem.facts import Problem
from planner.problem.spread import share_name, zones_of


def spread_rows(problem: Problem, arcs: Sequence[tuple[int, ...]], flow: np.ndarray) -> list[dict[str, Any]]:
    """Of each zone, the least and the largest share of any slot's requests that it serves; for workloads that ask for a spread."""
    rows = []
    for w, workload in enumerate(problem.serving):
        if workload.spec.spread is None:
            continue
        total = sum((flow[a] for a, arc in enumerate(arcs) if arc[0] == w), np.zeros(problem.calendar.slots))
        for zone in zones_of(problem):
            inside = sum(
                (flow[a] for a, arc in enumerate(arcs) if arc[0] == w and problem.sites[arc[2]].fails_with == zone),
                np.zeros(len(total)),
            )
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
        (
            f"{w.path}.spread.largest_share",
            share_name(w.name),
            max(row["largest_share"] for row in rows if row["workload"] == w.name),
            w.spec.spread.largest_share,
        )
        for w in problem.serving
        if w.spec.spread is not None and w.spec.spread.largest_share is not None
    ]
