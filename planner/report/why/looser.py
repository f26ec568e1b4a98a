"""Say which latency limits are worth loosening: a little more lets a chip do at least twice as much."""

from __future__ import annotations

from catalog.units import show
from planner.messages import say
from planner.plan import Plan
from planner.plan.rows.quality import Looser
from planner.report.words import whole

HEADING = say("heading.looser")


def sentences(plan: Plan) -> list[str]:
    """Write a sentence for each row of the section `looser`, the most valuable first."""
    unit = plan.document["spec"].get("currency", "USD")
    rows = sorted(plan.document.get("looser", ()), key=lambda row: -row["worth"])
    return [say("looser.worth", step=_step(row), worth=whole(row["worth"]), unit=unit) for row in rows]


def _step(row: Looser) -> str:
    """Write what the looser limits do for a chip."""
    first, last = row["steps"][0], row["steps"][-1]
    told: dict[str, str] = {
        "metric": f"{row['metric']} {row['percentile']}",
        "workload": row["workload"],
        "system": row["system"],
        "limit": show(row["limit_s"], "s"),
        "looser": show(first["limit_s"], "s"),
        "times": f"{first['times']:.1f}",
    }
    if first is last:
        return say("looser.one", **told)
    most = {"most": show(last["limit_s"], "s"), "most_times": f"{last['times']:.1f}"}
    return say("looser.two", **told, **most)
