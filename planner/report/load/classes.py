"""Format the table of queues by class of requests. Its contents: `planner.interpret.load.classes`."""

from __future__ import annotations

from typing import Any

from catalog.units import show
from planner.plan import Plan
from planner.plan.rows.workloads import Queue

Row = dict[str, Any]
HEADING = "How long each class of requests waits"
NOTES = {
    HEADING: "At the capacity of the replicas at work. A class of a lower number goes before all others that wait."
}


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where requests have no classes."""
    rows = [
        _row(workload["name"], row) for workload in plan.document["workloads"] for row in workload.get("queues", ())
    ]
    return [(HEADING, rows)]


def _row(workload: str, row: Queue) -> Row:
    limits = ", ".join(f"{limit['percentile']} {show(limit['limit_s'], 's')}" for limit in row["slo"])
    return {
        "workload": workload,
        "class": row["class"],
        "priority": row["priority"],
        "share": f"{row['share']:.0%}",
        "mean wait": show(row["wait_s"], "s"),
        "first token, mean": show(row["ttft_s"]["mean"], "s"),
        "p95": show(row["ttft_s"]["p95"], "s"),
        "limit": limits,
    }
