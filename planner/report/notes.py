"""Say how the spec was understood, and what in it is at odds with known figures: the section `notes` of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.messages import DEFAULT, Message, of_row, say
from planner.plan import Plan
from planner.report.electricity import incomplete_prices

HEADING = say("heading.understood")
REASONS, WHY = "reasons", say("heading.no_plan")  # section of a plan without an answer, and its heading


def sentences(plan: Plan, language: str = DEFAULT, section: str = "notes") -> Iterable[str]:
    """Yield a sentence for each row of a section of a plan; see `told`.

    With the notes also prices of which a part is unknown, first of all, and what of the plan's points lies outside what was fitted.
    """
    if section != "notes":
        return told(plan.table(section), language)
    return told([*incomplete_prices(plan), *plan.table(section), *_outside(plan)], language)


def _outside(plan: Plan) -> Iterable[dict[str, Any]]:
    """Yield the sentences of the points as notes, each with its point's place."""
    for w, workload in enumerate(plan.table("workloads")):
        for i, point in enumerate(workload.get("points", [])):
            for row in point.get("outside", []):
                yield {**row, "path": f"workloads[{w}].points[{i}]", "source": ""}


def told(rows: Iterable[Mapping[str, Any]], language: str = DEFAULT) -> Iterable[str]:
    """Yield a sentence for each row, with its place and the source of the known figure: conflicts first, then echoes."""
    for row in sorted(rows, key=lambda row: not row["source"]):
        message = of_row(row)
        text = row["text"] if message is None else message.text(language)
        sourced = "note_of.sourced" if row["source"] else "note_of.plain"
        yield Message.of(sourced, path=row["path"], text=text, source=row["source"]).text(language)
