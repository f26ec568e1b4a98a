"""Draw the fleet: chips by site and system."""

from __future__ import annotations

from typing import Any

import altair as alt

from planner.plan import Plan
from planner.report.charts.style import BAR_PX, coloured
from planner.report.locale import Words
from planner.report.words import without_tiers


def fleet_chart(plan: Plan, t: Words) -> alt.Chart:
    """Draw the chips by site, stacked by system; for systems held in some phases only, the most held at once."""
    rows = fleet_rows(plan)
    sites = list(dict.fromkeys(row["site"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    words = t(
        "chart.fleet.alt",
        sites=", ".join(f"{site} {sum(r['chips'] for r in rows if r['site'] == site):,.0f}" for site in sites),
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_bar()
        .encode(
            y=alt.Y("site:N", title=None, sort=sites, axis=alt.Axis(labelLimit=160)),
            x=alt.X("chips:Q", title=t("chart.chips"), axis=alt.Axis(format=",d", tickCount=6)),
            color=coloured("system:N", systems, t("column.system")),
            tooltip=[
                alt.Tooltip("site:N", title=t("column.site")),
                alt.Tooltip("system:N", title=t("column.system")),
                alt.Tooltip("chips:Q", title=t("chart.chips"), format=","),
            ],
        )
        .properties(height=90 + BAR_PX * max(len(sites), len(systems) // 2))
    )
    return chart


def fleet_rows(plan: Plan) -> list[dict[str, Any]]:
    """Count the chips by site and system; the chips of a system are among the figures that the plan cites."""
    per_system = {
        row["path"].split("/", 1)[1].rsplit("/", 1)[0]: row["value"]
        for row in plan.document["provenance"]
        if row["path"].startswith("systems/")
        and row["path"].endswith("/chips")
        and isinstance(row["value"], (int, float))
    }
    held: dict[tuple[str, str], dict[Any, float]] = {}
    for row in plan.document["fleet"]:
        phases = held.setdefault((row["site"], row["system"]), {})
        phases[row["window"]] = phases.get(row["window"], 0) + row["count"] * per_system.get(
            row["system"], per_system.get(without_tiers(row["system"]), 0)
        )
    return [
        {
            "site": site,
            "system": system,
            "chips": phases.get(None, 0) + max((n for phase, n in phases.items() if phase is not None), default=0),
        }
        for (site, system), phases in held.items()
    ]
