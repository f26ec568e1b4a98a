"""Draw a study of sensitivity: the objective with each figure at its low and at its high, the widest swing on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from planner.messages import say
from planner.report.charts.style import BAR_PX, BLUE, GREY, PALETTE, shown
from planner.report.locale import Words

MOST = 20  # bars
LEAST_SHARE = 1e-6  # share of the objective: less is rounding
NO_PLAN = say("outcome.no_plan")
ORANGE = PALETTE[1]


def tornado_chart(found: Mapping[str, Any], t: Words) -> alt.LayerChart | None:
    """Draw the bars of figures that move the objective, or without which there is no plan; None where there are none.

    `found` is the document of a study.
    """
    factors = [
        row
        for row in found["factors"]
        if row["share"] > LEAST_SHARE or NO_PLAN in (row["low"]["status"], row["high"]["status"])
    ][:MOST]
    if not factors:
        return None
    names = [t.phrase(row["name"]) for row in factors]
    bars = [
        {
            "name": name,
            "side": t(f"tornado.{side}"),
            "level": row[side]["level"],
            "from": 0.0,
            "to": row[side]["value"] / found["value"] - 1,
            "value": row[side]["value"],
            "shown": shown(row[side]["value"], t),
        }
        for name, row in zip(names, factors, strict=True)
        for side in ("low", "high")
        if row[side]["value"] is not None
    ]
    lost = [
        {"name": name, "from": 0.0, "words": t("tornado.lost", level=row[side]["level"])}
        for name, row in zip(names, factors, strict=True)
        for side in ("low", "high")
        if row[side]["status"] == NO_PLAN
    ]
    words = t(
        "chart.tornado.alt",
        swings="; ".join(f"{name} {row['share']:.1%}" for name, row in zip(names, factors, strict=True)),
    )
    y = alt.Y("name:N", title=None, sort=names, axis=alt.Axis(labelLimit=330))
    drawn = (
        alt.Chart(alt.InlineData(values=bars), description=words)
        .mark_bar(height=BAR_PX // 2)
        .encode(
            y=y,
            x=alt.X("from:Q", title=t("chart.tornado"), axis=alt.Axis(format="+.1%", tickCount=6)),
            x2="to:Q",
            color=alt.Color(
                "side:N",
                title=None,
                scale=alt.Scale(domain=[t("tornado.low"), t("tornado.high")], range=[BLUE, ORANGE]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("name:N", title=t("column.figure")),
                alt.Tooltip("level:N", title=t("column.value")),
                alt.Tooltip("to:Q", title=t("chart.tornado"), format="+.2%"),
                alt.Tooltip("shown:N", title=found["unit"]),
            ],
        )
    )
    middle = alt.Chart(alt.InlineData(values=[{"from": 0.0}])).mark_rule(color=GREY).encode(x="from:Q")
    notes = (
        alt.Chart(alt.InlineData(values=lost))
        .mark_text(align="left", dx=6, color=GREY, fontStyle="italic")
        .encode(y=y, x="from:Q", text="words:N")
    )
    return alt.LayerChart(layer=[drawn, middle, *([notes] if lost else [])], description=words).properties(
        height=80 + BAR_PX * len(names)
    )
