"""Plan rows of a workload's spread over zones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.arrays import Floats, sum_of
from planner.problem.facts import ResolvedSpec
from planner.problem.limit_labels import LimitLabel, largest_share
from planner.problem.spread import zones_of


def spread_rows(problem: ResolvedSpec, arcs: Sequence[tuple[int, ...]], flow: Floats) -> list[dict[str, Any]]:
    """Build one row per zone and workload with a spread: the least and the largest share that the zone serves in any slot.

    The requests of a workload are answered by all architectures that answer them.
    """
    rows = []
    for workload in problem.demands():
        if workload.spec.spread is None:
            continue
        mine = [(flow[a], r) for a, (w, _, r, _) in enumerate(arcs) if problem.serving[w].asked == workload.asked]
        total = sum_of((each for each, _ in mine), np.zeros(problem.calendar.slots))
        for zone in zones_of(problem):
            inside = sum_of((each for each, r in mine if problem.sites[r].fails_with == zone), np.zeros(len(total)))
            share = inside[total > 0] / total[total > 0]
            rows.append({
                "workload": workload.asked,
                "zone": zone,
                "sites": [site.region for site in problem.sites if site.fails_with == zone],
                "least_share": float(share.min(initial=1.0)) if share.size else 0.0,
                "largest_share": float(share.max(initial=0.0)),
            })  # fmt: skip
    return rows


def largest_shares(problem: ResolvedSpec, rows: list[dict[str, Any]]) -> list[tuple[LimitLabel, float, float]]:
    """List (key, value, limit) of the share that one zone may serve at most; `rows`: of `spread_rows`."""
    found = []
    for workload in problem.demands():
        asked = workload.spec.spread
        if asked is not None and asked.largest_share is not None:
            reached = max(row["largest_share"] for row in rows if row["workload"] == workload.asked)
            found.append((largest_share(workload), reached, asked.largest_share))
    return found
