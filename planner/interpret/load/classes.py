"""Plan rows of classes of requests: the longest waits and times to first token of each class, as its users see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.candidates.points import OperatingPoint
from planner.problem.facts import WorkloadFacts
from planner.spec.workloads import Serving


def classes_of(workload: WorkloadFacts, mine: Sequence[tuple[OperatingPoint, float]]) -> dict[str, Any]:
    """Take the worst of each class over points with their longest round trip [s]; nothing for a workload without classes.

    Points count at their capacity, at which replicas work in the busiest hours.
    """
    spec = workload.spec
    known = [(point.classes, rtt_s) for point, rtt_s in mine if point.classes]
    if not isinstance(spec, Serving) or not spec.classes or not known:
        return {}
    rows = []
    for i, each in enumerate(spec.classes):
        worst = {
            name: max(rows[i]["ttft_s"][name] + rtt_s for rows, rtt_s in known) for name in known[0][0][i]["ttft_s"]
        }
        rows.append(
            {
                "class": each.name,
                "priority": each.priority,
                "share": each.share,
                "wait_s": max(rows[i]["wait_s"] for rows, _ in known),
                "ttft_s": worst,
                "slo": [
                    {
                        "percentile": limit.percentile,
                        "limit_s": limit.seconds,
                        "slack_s": limit.seconds - worst[limit.percentile],
                    }
                    for limit in each.limits()
                ],
            }
        )
    return {"queues": rows}
