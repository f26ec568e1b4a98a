"""Format the table of queues by class of requests. Its contents: `planner.interpret.load.classes`."""

from __future__ import annotations

from catalog.units import show
from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.workloads import Queue
from planner.report.heads import Row

HEADING = say("heading.queues")


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where requests have no classes."""
    rows = [
        _row(workload["name"], row) for workload in plan.document["workloads"] for row in workload.get("queues", ())
    ]
    return [(HEADING, rows)]


def _row(workload: str, row: Queue) -> Row:
    limits = commas(f"{limit['percentile']} {show(limit['limit_s'], 's')}" for limit in row["slo"])
    return {
        "workload": workload,
        "class": row["class"],
        "priority": row["priority"],
        "share": f"{row['share']:.0%}",
        "mean_wait": show(row["wait_s"], "s"),
        "first_token_mean": show(row["ttft_s"]["mean"], "s"),
        "p95": show(row["ttft_s"]["p95"], "s"),
        "limit": limits,
    }
