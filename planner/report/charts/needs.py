"""Draw the chips that sampled scenarios need from each date on as a fan, with the chips signed now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import altair as alt

from catalog.units import DAY_S
from planner.plan import Plan
from planner.plan.rows.adapt import Adaptation
from planner.report.charts.style import BLUE, RED, SKY
from planner.report.locale import Words
from planner.report.phases import window_dates

HEIGHT_PX = 240


def need_rows(plan: Plan) -> list[dict[str, Any]]:
    """Build a row for each date, and one for the end of the horizon that repeats the last; empty for a plan that decides everything at the start."""
    found: Adaptation | None = plan.document.get("adaptation")
    needs = [] if found is None else found.get("needs", [])
    if not needs:
        return []
    dates = window_dates(plan)
    rows: list[dict[str, Any]] = [
        {"date": (dates[0] + timedelta(days=round(row["from_s"] / DAY_S))).isoformat(), **row} for row in needs
    ]
    return [*rows, {**rows[-1], "date": dates[-1].isoformat()}]


def fan_chart(plan: Plan, t: Words) -> alt.LayerChart | None:
    """Draw the range of needs as a band of steps, the typical need and the chips signed as lines; None where the plan states no needs."""
    rows = need_rows(plan)
    if not rows:
        return None
    told = "; ".join(
        f"{r['date']} {r['low']:,.0f}, {r['typical']:,.0f}, {r['high']:,.0f}, {r['signed']:,.0f}" for r in rows[:-1]
    )
    words, names = (
        t("chart.needs.alt", rows=told),
        [t(f"chart.needs.{name}") for name in ("range", "typical", "signed")],
    )
    shown = alt.Scale(domain=names, range=[SKY, BLUE, RED])
    legend = alt.Legend(orient="top", labelLimit=0, symbolType="square")

    def layer(what: str) -> alt.Chart:
        values = [{**row, "what": what} for row in rows]
        return alt.Chart(alt.InlineData(values=values)).encode(
            x=alt.X("date:T", title=None, axis=alt.Axis(format="%Y-%m", tickCount=6)),
            color=alt.Color("what:N", title=None, scale=shown, legend=legend),
            tooltip=[
                alt.Tooltip("date:T", title=t("chart.needs.date"), format="%Y-%m-%d"),
                alt.Tooltip("low:Q", title="10 %", format=",.0f"),
                alt.Tooltip("typical:Q", title=names[1], format=",.0f"),
                alt.Tooltip("high:Q", title="90 %", format=",.0f"),
                alt.Tooltip("signed:Q", title=names[2], format=",.0f"),
            ],
        )

    def height(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=t("chart.needs"), scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))

    band = layer(names[0]).mark_area(opacity=0.5, interpolate="step-after").encode(y=height("low"), y2="high:Q")
    lines = [
        layer(name).mark_line(interpolate="step-after", strokeWidth=2).encode(y=height(field))
        for name, field in zip(names[1:], ("typical", "signed"), strict=True)
    ]
    return alt.LayerChart(layer=[band, *lines], description=words).properties(height=HEIGHT_PX)
