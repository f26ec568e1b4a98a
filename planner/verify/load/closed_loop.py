"""Check closed loops: that as many sessions are at work as the spec asks, at the rate of tasks that the plan states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.spec.document import edited
from planner.spec.load.closed_loop import MOST_OFF, at_rates, closed_loops, first_rate
from planner.spec.model import parse_spec
from planner.verify.findings import Report

TABLE = "closed_loops"


def rated(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a plan with the rates of tasks that it states, or the rates of the longest calls where it states none. Raises SpecError."""
    loops = closed_loops(parse_spec(document["spec"]))
    stated = {row["workload"]: row["tasks_per_s"] for row in document.get(TABLE, ())}
    rates = {}
    for i, loop in loops.items():
        rate = stated.get(loop.name, 0.0)
        rates[i] = rate if rate > 0 else first_rate(loop)
    return edited(document["spec"], at_rates(rates))


def check_closed_loops(report: Report, document: Mapping[str, Any]) -> None:
    """Compare each row with the spec, and with the sessions that the plan states for its workload, which are computed elsewhere."""
    loops = closed_loops(parse_spec(document["spec"]))
    rows = document.get(TABLE, [])
    if document["objective"]["value"] is None or not loops:
        if TABLE in document:
            report.say(TABLE, "verify.needs_sessions")
        return
    if [row["workload"] for row in rows] != [loop.name for loop in loops.values()]:
        report.say(TABLE, "verify.row_for_each_demand")
        return
    found = {w["name"]: (w.get("session") or {}).get("sessions", 0.0) for w in document["workloads"]}
    for i, (row, loop) in enumerate(zip(rows, loops.values(), strict=True)):
        report.equal(f"{TABLE}[{i}].sessions", row["sessions"], loop.demand.sessions)
        report.equal(f"{TABLE}[{i}].reached", row["reached"], found.get(loop.name, 0.0))
        if not abs(row["reached"] / loop.demand.sessions - 1.0) <= MOST_OFF * (1 + 1e-9):
            report.say(
                f"{TABLE}[{i}]",
                "verify.sessions_at_work",
                given=f"{row['reached']:g}",
                asked=f"{loop.demand.sessions:g}",
            )
