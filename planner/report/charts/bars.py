"""Draw one figure of each of several things as bars: how much worse alternatives are, what rungs cost, what measurements are worth."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from planner.report.charts.style import BAR_PX, BLUE, GREY, RED
from planner.report.locale import Words

SHARE, MONEY, NUMBER = ".2%", ",.0f", ",.4"
AXIS = {SHARE: ".0%", MONEY: "~s", NUMBER: "~s"}


def bar_chart(values: Mapping[str, float], title: str, what: str, number: str, t: Words) -> alt.LayerChart:
    """Draw a bar for each name, in the order given, with its figure beside it; `number` is its format."""
    rows = [{"name": name, "value": value} for name, value in values.items()]
    words = t("chart.bars.alt", title=title, values="; ".join(f"{name} {value:,.4g}" for name, value in values.items()))
    y = alt.Y("name:N", title=None, sort=list(values), axis=alt.Axis(labelLimit=330))
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(
        y=y,
        x=alt.X("value:Q", title=title, axis=alt.Axis(format=AXIS[number], tickCount=5)),
        tooltip=[alt.Tooltip("name:N", title=what), alt.Tooltip("value:Q", title=title, format=number)],
    )
    bars = base.mark_bar(height=BAR_PX // 2).encode(
        color=alt.condition("datum.value < 0", alt.value(RED), alt.value(BLUE))
    )
    labels = base.mark_text(align="left", dx=4, color=GREY).encode(text=alt.Text("value:Q", format=number))
    return alt.LayerChart(layer=[bars, labels], description=words).properties(height=60 + BAR_PX * len(rows))
