"""Draw predictions against measurements, on logarithmic axes with the line of equality and a band of 20 %."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from planner.report.charts.style import GREY, PALETTE, coloured
from planner.report.locale import Words

BAND = 0.2
HEIGHT_PX = 420
NAMED = len(PALETTE) - 1  # chips with a colour of their own; the others share the last


def accuracy_chart(points: Sequence[Mapping[str, Any]], title: str, t: Words) -> alt.LayerChart | None:
    """Draw one point for each observation, coloured by chip; None without any."""
    if not points:
        return None
    counts = Counter(point["chip"] for point in points)
    named = [chip for chip, _ in counts.most_common(NAMED)]
    other = t("chart.other_chips")
    rows = [{**point, "group": point["chip"] if point["chip"] in named else other} for point in points]
    low = min(min(point["measured"], point["predicted"]) for point in points)
    high = max(max(point["measured"], point["predicted"]) for point in points)
    inside = sum(abs(point["predicted"] / point["measured"] - 1) <= BAND for point in points)
    words = t("chart.accuracy.alt", title=title, count=len(points), inside=inside)
    scale = alt.Scale(type="log", domain=[low / 1.2, high * 1.2], nice=False)
    edges = [
        {"measured": x, "equal": x, "least": x * (1 - BAND), "most": x * (1 + BAND)} for x in (low / 1.2, high * 1.2)
    ]
    lines = alt.Chart(alt.InlineData(values=edges)).encode(x=alt.X("measured:Q", scale=scale))
    y = alt.Y(
        "predicted:Q", title=t("chart.predicted", what=title), scale=scale, axis=alt.Axis(format="~s", tickCount=6)
    )
    dots = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_circle(size=45, opacity=0.7)
        .encode(
            x=alt.X(
                "measured:Q",
                title=t("chart.measured", what=title),
                scale=scale,
                axis=alt.Axis(format="~s", tickCount=6),
            ),
            y=y,
            color=coloured("group:N", [*named, *([other] if len(counts) > NAMED else [])], t("column.chip")),
            tooltip=[
                alt.Tooltip("chip:N", title=t("column.chip")),
                alt.Tooltip("measured:Q", title=t("chart.measured", what=title), format=".4~g"),
                alt.Tooltip("predicted:Q", title=t("chart.predicted", what=title), format=".4~g"),
            ],
        )
    )
    band = lines.mark_area(color=GREY, opacity=0.15, clip=True).encode(y=alt.Y("least:Q", scale=scale), y2="most:Q")
    equal = lines.mark_line(color=GREY, strokeWidth=1, clip=True).encode(y=alt.Y("equal:Q", scale=scale))
    return alt.LayerChart(layer=[band, equal, dots], description=words).properties(height=HEIGHT_PX)
