"""Hold the rules of a plan with `adapt` against observed figures: which of them say to obtain more, and which are past their date.

The need of a workload is its demand over what a system does, each as observed over as planned.
"""

from __future__ import annotations

from collections import Counter
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
Way = tuple[str, str, str]  # system, how, site
OBTAIN: Final = "obtain"
FIRED: Final = "fired"
MISSED: Final = "missed"
WAITS: Final = "waits"
OVER: Final = "over"
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

    A rule has fired where the observed need reaches its threshold by its date; a rule without a threshold, on its date. A rule that is reached on a
    later day is missed, and one that is not reached by its date is over. `by` is the last date at which it can be followed in time.
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
    is_past = by < day
    if workload is not None and need is None:
        state = UNKNOWN
    elif by <= day if workload is None else need is not None and need >= rule["above"]:
        state = MISSED if is_past else FIRED
    else:
        state = OVER if is_past else WAITS
    return {
        "state": state, "by": by.isoformat(), "workload": workload, "above": rule["above"], "need": need, "count": round(rule["count"]),
        "system": rule["system"], "how": rule["how"], "site": rule["site"],
    }  # fmt: skip


def words(rows: Sequence[Row], done: Sequence[Row]) -> list[str]:
    """Say how many rules have fired and how many were reached past their date, and where the new plan obtains (`done`) another number than a rule says."""
    if not rows:
        return []
    told = [say("replan.fired", count=sum(row["state"] == FIRED for row in rows), all=len(rows))]
    if missed := sum(row["state"] == MISSED for row in rows):
        told.append(say("replan.missed", count=missed))
    asked: Counter[Way] = Counter()
    for row in rows:
        if row["state"] in (FIRED, MISSED):
            asked[_way(row)] += row["count"]
    obtained: Counter[Way] = Counter()
    for row in done:
        if row["do"] == OBTAIN:
            obtained[_way(row)] += row["count"]
    return told + [
        say(
            "replan.other_than_rule",
            asked=count,
            system=way[0],
            how=how_words(way[1]),
            site=way[2],
            obtained=obtained[way],
        )
        for way, count in asked.items()
        if count != obtained[way]
    ]


def _way(row: Row) -> Way:
    return row["system"], row["how"], row["site"]


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
