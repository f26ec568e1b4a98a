"""Draw what differs between plans: their fleets side by side, and their costs by component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from planner.money.components import component_words
from planner.plan import Plan
from planner.report.charts.fleet import fleet_rows
from planner.report.charts.style import BAR_PX, BLUE, RED, coloured, money_axis
from planner.report.locale import Words
from planner.report.words import signed

LEAST_CHANGE = 0.5  # change in units of money: less is rounding


def fleets_chart(plans: Mapping[str, Plan], t: Words) -> alt.Chart:
    """Draw the chips of each named plan, stacked by system."""
    rows: list[dict[str, Any]] = [
        {"plan": name, "system": system, "chips": chips}
        for name, plan in plans.items()
        for system, chips in _by_system(plan).items()
    ]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    words = t(
        "chart.fleets.alt",
        plans="; ".join(f"{name} {sum(_by_system(plan).values()):,.0f}" for name, plan in plans.items()),
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_bar()
        .encode(
            y=alt.Y("plan:N", title=None, sort=list(plans), axis=alt.Axis(labelLimit=160)),
            x=alt.X("chips:Q", title=t("chart.chips"), axis=alt.Axis(format=",d", tickCount=6)),
            color=coloured("system:N", systems, t("column.system")),
            tooltip=[
                alt.Tooltip("plan:N", title=t("column.scenario")),
                alt.Tooltip("system:N", title=t("column.system")),
                alt.Tooltip("chips:Q", title=t("chart.chips"), format=","),
            ],
        )
        .properties(height=70 + BAR_PX * max(len(plans), len(systems) // 2))
    )
    return chart


def _by_system(plan: Plan) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in fleet_rows(plan):
        found[row["system"]] = found.get(row["system"], 0.0) + row["chips"]
    return found


def cost_differences(before: Plan, after: Plan) -> list[dict[str, Any]]:
    """List the change of each component of the cost, the largest first; equal ones are left out."""
    old, new = before.document["costs"], after.document["costs"]
    changes = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in (*old, *new)}
    return [
        {"component": name, "difference": change}
        for name, change in sorted(changes.items(), key=lambda item: -abs(item[1]))
        if abs(change) >= LEAST_CHANGE
    ]


def difference_chart(before: Plan, after: Plan, t: Words) -> alt.Chart:
    """Draw by how much each component of the cost differs, as bars to the left and to the right."""
    stated = after.document["spec"].get("currency", "USD")
    currency = t.display.shown(stated)
    rows = [
        {
            **row,
            "difference": t.display.money(row["difference"], stated),
            "shown": t.phrase(signed(t.display.money(row["difference"], stated))),
            "component": component_words(row["component"], t.language),
        }
        for row in cost_differences(before, after)
    ]
    words = t("chart.difference.alt", parts=", ".join(f"{row['component']} {row['shown']}" for row in rows) or "0")
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_bar()
        .encode(
            y=alt.Y("component:N", title=None, sort=[row["component"] for row in rows], axis=alt.Axis(labelLimit=180)),
            x=alt.X("difference:Q", title=t("chart.difference", currency=currency), axis=money_axis(t)),
            color=alt.condition("datum.difference > 0", alt.value(RED), alt.value(BLUE)),
            tooltip=[
                alt.Tooltip("component:N", title=t("column.component")),
                alt.Tooltip("shown:N", title=currency),
            ],
        )
        .properties(height=70 + BAR_PX * max(len(rows), 1))
    )
    return chart
