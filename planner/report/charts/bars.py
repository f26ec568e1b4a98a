"""Draw one figure of each of several things as bars: how much worse alternatives are, what rungs cost, what measurements are worth."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from planner.report.charts.style import BAR_PX, BLUE, GREY, RED, money_axis, shown
from planner.report.locale import Words

SHARE, AMOUNT = ".2%", ""
"""Formats of the figures: as a share, or as an amount."""


def bar_chart(values: Mapping[str, float], title: str, what: str, number: str, t: Words) -> alt.LayerChart:
    """Draw a bar for each name, in the order given, with its figure beside it; `number` is its format."""
    rows = [{"name": name, "value": value, "shown": shown(value, t)} for name, value in values.items()]
    words = t("chart.bars.alt", title=title, values="; ".join(f"{row['name']} {row['shown']}" for row in rows))
    axis = alt.Axis(format=".0%", tickCount=5) if number == SHARE else money_axis(t, 5)
    y = alt.Y("name:N", title=None, sort=list(values), axis=alt.Axis(labelLimit=330))
    figure = alt.Tooltip("value:Q", title=title, format=number) if number else alt.Tooltip("shown:N", title=title)
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(
        y=y,
        x=alt.X("value:Q", title=title, axis=axis),
        tooltip=[alt.Tooltip("name:N", title=what), figure],
    )
    bars = base.mark_bar(height=BAR_PX // 2).encode(
        color=alt.condition("datum.value < 0", alt.value(RED), alt.value(BLUE))
    )
    labels = base.mark_text(align="left", dx=4, color=GREY).encode(
        text=alt.Text("value:Q", format=number) if number else alt.Text("shown:N")
    )
    return alt.LayerChart(layer=[bars, labels], description=words).properties(height=60 + BAR_PX * len(rows))
