"""Check the queues of a workload: the worst of each class over its points, and the limits of each class."""

from __future__ import annotations

from typing import Any

from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.findings import RELATIVE_TOL


def check_classes(plan: CheckedPlan, path: str, row: Row) -> None:
    """Compare the queues that a workload states with the queues of its points, and with the limits of the spec."""
    facts = plan.serving.get(row["name"])
    classes = (facts.spec.classes if facts else None) or []
    points = [point for point in row["points"] if point.get("classes")]
    if not classes or not points:
        if "queues" in row:
            plan.say(f"{path}.queues", "verify.without_classes")
        return
    expected: list[dict[str, Any]] = []
    for i, each in enumerate(classes):
        wait_s, ttft_s = 0.0, dict.fromkeys(points[0]["classes"][i]["ttft_s"], 0.0)
        for point in points:
            mine, travel = point["classes"][i], max(plan.round_trips[point["pool"]])
            wait_s = max(wait_s, mine["wait_s"])
            for name in ttft_s:
                ttft_s[name] = max(ttft_s[name], mine["ttft_s"][name] + travel)
        slo = []
        for name, limit_s in [] if each.ttft is None else each.ttft.limits():
            slo.append({"percentile": name, "limit_s": limit_s, "slack_s": limit_s - ttft_s[name]})
            if ttft_s[name] > limit_s * (1 + RELATIVE_TOL):
                plan.say(
                    f"{path}.queues[{i}]",
                    "verify.class_first_token",
                    workload=each.name,
                    name=name,
                    time=f"{ttft_s[name]:g}",
                    limit=f"{limit_s:g}",
                )
        expected.append(
            {
                "class": each.name,
                "priority": each.priority,
                "share": each.share,
                "wait_s": wait_s,
                "ttft_s": ttft_s,
                "slo": slo,
            }
        )
    plan.equal(f"{path}.queues", dict(enumerate(row.get("queues", []))), dict(enumerate(expected)))
