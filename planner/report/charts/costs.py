"""Draw the costs of a plan by component."""

from __future__ import annotations

from typing import Any

import altair as alt

from planner.money.components import component_words
from planner.plan import Plan
from planner.report.charts.style import BAR_PX, BLUE, GREY, money_axis, shown
from planner.report.locale import Words


def cost_chart(plan: Plan, t: Words) -> alt.LayerChart:
    """Draw the cost as a waterfall: each component from where the one before ends, the largest first, with its share."""
    stated = plan.document["spec"].get("currency", "USD")
    currency, total = t.display.shown(stated), sum(plan.document["costs"].values())
    rows: list[dict[str, Any]] = []
    end = 0.0
    for name, amount in sorted(plan.document["costs"].items(), key=lambda item: -item[1]):
        begin, end = end, end + t.display.money(amount, stated)
        rows.append(
            {
                "component": component_words(name, t.language),
                "begin": begin,
                "end": end,
                "amount": end - begin,
                "shown": shown(end - begin, t),
                "share": amount / total if total else 0.0,
            }
        )
    words = t("chart.cost.alt", parts=", ".join(f"{row['component']} {row['share']:.1%}" for row in rows))
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(
        y=alt.Y("component:N", title=None, sort=[row["component"] for row in rows], axis=alt.Axis(labelLimit=180)),
        x=alt.X("begin:Q", title=t("chart.cost", currency=currency), axis=money_axis(t)),
        x2="end:Q",
        tooltip=[
            alt.Tooltip("component:N", title=t("column.component")),
            alt.Tooltip("shown:N", title=currency),
            alt.Tooltip("share:Q", title=t("column.share"), format=".1%"),
        ],
    )
    labels = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(align="left", dx=4, color=GREY)
        .encode(
            y=alt.Y("component:N", sort=[row["component"] for row in rows]),
            x="end:Q",
            text=alt.Text("share:Q", format=".1%"),
        )
    )
    return alt.LayerChart(layer=[base.mark_bar(color=BLUE), labels], description=words).properties(
        height=70 + BAR_PX * len(rows)
    )
