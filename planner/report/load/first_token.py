"""Format the table of times to first token. Its contents: `planner.evaluate.serving.first_token`, of each point at work."""

from __future__ import annotations

from typing import Any

from catalog.units import show
from planner.plan import Plan
from planner.plan.rows.points import Point

Row = dict[str, Any]
HEADING = "Time to first token"
NOTES = {
    HEADING: "At the site, at the capacity of the replicas at work. The mean is the sum of the parts from the front end on: front end and scheduler; "
    "prefill of the prompt; steps of others that its chunks ride with; waits for the prompts before it and for a place in the batch."
}
SHOWN = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99"}
PARTS = {
    "overhead": "front end",
    "prefill": "prefill",
    "chunking": "chunking",
    "prefill_wait": "wait for prompts",
    "slot_wait": "wait for a place",
}


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
        **{label: show(times[name], "s") for name, label in SHOWN.items()},
        **{label: f"{times[name] / times['mean']:.0%}" for name, label in PARTS.items()},
    }
