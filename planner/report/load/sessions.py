"""Format the table of agentic sessions. Its contents: `planner.interpret.load.sessions`."""

from __future__ import annotations

from typing import Any

from catalog.units import GIGA
from planner.plan import Plan
from planner.plan.rows.workloads import Workload

Row = dict[str, Any]
HEADING = "Agentic sessions in the busiest hour"
NOTES = {
    HEADING: "Sessions: tasks under way, in a call or between two calls. Their number follows from the load (Little's law)."
}


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no workload has sessions."""
    asked = {row["workload"]: row["sessions"] for row in plan.document.get("closed_loops", ())}
    return [(HEADING, [_row(w, asked.get(w["name"])) for w in plan.document["workloads"] if "session" in w])]


def _row(workload: Workload, asked: float | None) -> Row:
    row = workload["session"]
    ways = ", ".join(f"{count:,.0f} {way}" for way, count in sorted(row["waiting"].items()) if count)
    return {
        "workload": workload["name"],
        "tasks/s": f"{row['tasks_per_s']:,.4g}",
        "calls/s": f"{row['calls_per_s']:,.4g}",
        "sessions": f"{row['sessions']:,.0f}" + ("" if asked is None else f" of {asked:,.0f} asked"),
        "waiting for a tool": f"{row['waiting_sessions']:,.0f}",
        "their caches": f"{row['waiting_bytes'] / GIGA:,.0f} GB" + (f" ({ways})" if ways else ""),
        "mean prompt": f"{row['prompt_tokens']:,.0f} tokens",
    }
