"""Format the table of times to first token. Its contents: `planner.evaluate.serving.first_token`, of each point at work."""

from __future__ import annotations

from catalog.units import show
from planner.messages import say
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.report.heads import Row

HEADING = say("heading.first_token")
SHOWN = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99"}  # statistic of the plan -> column
PARTS = {
    "overhead": "front_end",
    "prefill": "prefill",
    "chunking": "chunking",
    "prefill_wait": "wait_for_prompts",
    "slot_wait": "wait_for_a_place",
}
"""Parts of the mean in the plan -> columns."""


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where nothing is served, and for plans of earlier releases."""
    rows = [
        _row(workload["name"], point)
        for workload in plan.document["workloads"]
        for point in workload["points"]
        if "first_token_s" in point
    ]
    return [(HEADING, rows)]


def _row(workload: str, point: Point) -> Row:
    times = point["first_token_s"]
    return {
        "workload": workload,
        "site": point["site"],
        "system": " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"])),
        **{column: show(times[name], "s") for name, column in SHOWN.items()},
        **{column: f"{times[name] / times['mean']:.0%}" for name, column in PARTS.items()},
    }
