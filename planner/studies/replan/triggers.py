"""Hold the rules of a plan with `adapt` against observed figures: which of them say to obtain more by the day of the new plan.

The need of a workload is its demand over what a system does, each as observed over as planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

from catalog.units import DAY_S
from planner.messages import say
from planner.plan import Plan
from planner.plan.rows.adapt import Adaptation, Trigger
from planner.report.phases import window_dates
from planner.report.words import how_words
from planner.studies.against.assumption import RATE, THROUGHPUT, Assumption

Row = dict[str, Any]
FIRED: Final = "fired"
WAITS: Final = "waits"
UNKNOWN: Final = "unknown"


def needs(assumptions: Sequence[Assumption]) -> dict[str, float]:
    """Return the need of each workload with an observed demand or throughput, over the need planned; of several systems, of the slowest one."""
    demand = {each.of: each.factor for each in assumptions if each.kind == RATE}
    speed: dict[str, float] = {}
    for each in assumptions:
        if each.kind == THROUGHPUT and each.factor > 0:
            workload = each.of.partition(", ")[0]
            speed[workload] = min(each.factor, speed.get(workload, each.factor))
    return {name: demand.get(name, 1.0) / speed.get(name, 1.0) for name in {*demand, *speed}}


def held_against(plan: Plan, day: date, assumptions: Sequence[Assumption]) -> list[Row]:
    """List the rules of a plan with the observed need of each, and whether it has fired; none for a plan without such rules.

    A rule has fired where the observed need reaches its threshold; a rule without a threshold, once its date has come. `by` is the last
    date at which it can be followed in time.
    """
    found: Adaptation | None = plan.document.get("adaptation")
    if found is None:
        return []
    start, known = window_dates(plan)[0], needs(assumptions)
    return [
        _row(rule, start + timedelta(days=round(rule["decided_s"] / DAY_S)), day, known) for rule in found["triggers"]
    ]


def _row(rule: Trigger, by: date, day: date, known: dict[str, float]) -> Row:
    workload = rule["workload"]
    need = None if workload is None else known.get(workload)
    if workload is None:
        state = FIRED if by <= day else WAITS
    elif need is None:
        state = UNKNOWN
    else:
        state = FIRED if need >= rule["above"] else WAITS
    return {
        "state": state, "by": by.isoformat(), "workload": workload, "above": rule["above"], "need": need, "count": round(rule["count"]),
        "system": rule["system"], "how": rule["how"], "site": rule["site"],
    }  # fmt: skip


def words(rows: Sequence[Row]) -> list[str]:
    """Say how many rules have fired; nothing without rules."""
    fired = sum(row["state"] == FIRED for row in rows)
    return [say("replan.fired", count=fired, all=len(rows))] if rows else []


def table(rows: Sequence[Row]) -> list[Row]:
    """Write the rules for people."""
    return [
        {
            say("replan.column_rule"): say("adapt.always") if row["workload"] is None else say("adapt.needs", workload=row["workload"], above=f"{row['above']:.2f}"),
            say("replan.column_by"): row["by"], say("replan.column_need"): "" if row["need"] is None else f"{row['need']:.2f}",
            say("replan.column_state"): say(f"replan.rule_{row['state']}"),
            say("replan.column_do"): say("adapt.obtain", count=f"{row['count']:,}", system=row["system"], how=how_words(row["how"]), site=row["site"]),
        }
        for row in rows
    ]  # fmt: skip
