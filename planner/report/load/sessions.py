"""Format the table of agentic sessions. Its contents: `planner.interpret.load.sessions`."""

from __future__ import annotations

from catalog.units import GIGA
from planner.messages import commas, named, say
from planner.plan import Plan
from planner.plan.rows.workloads import Workload
from planner.report.heads import Row

HEADING = say("heading.sessions")


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no workload has sessions."""
    asked = {row["workload"]: row["sessions"] for row in plan.document.get("closed_loops", ())}
    return [(HEADING, [_row(w, asked.get(w["name"])) for w in plan.document["workloads"] if "session" in w])]


def _row(workload: Workload, asked: float | None) -> Row:
    row = workload["session"]
    ways = commas(
        say("sessions.waiting", count=f"{count:,.0f}", way=named("waiting_way", way))
        for way, count in sorted(row["waiting"].items())
        if count
    )
    sessions, caches = f"{row['sessions']:,.0f}", f"{row['waiting_bytes'] / GIGA:,.0f} GB"
    return {
        "workload": workload["name"],
        "tasks_s": f"{row['tasks_per_s']:,.4g}",
        "calls_s": f"{row['calls_per_s']:,.4g}",
        "sessions": sessions if asked is None else say("sessions.of_asked", count=sessions, asked=f"{asked:,.0f}"),
        "waiting_for_a_tool": f"{row['waiting_sessions']:,.0f}",
        "their_caches": say("amount.with_parts", amount=caches, parts=ways) if ways else caches,
        "mean_prompt": say("sessions.tokens", count=f"{row['prompt_tokens']:,.0f}"),
    }
