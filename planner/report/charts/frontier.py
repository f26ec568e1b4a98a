"""Draw frontiers: the least cost over a measure with its proven bound, and where buying beats renting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from catalog.units import TONNE_KG
from planner.report.charts.style import BLUE, GREY, SKY, coloured, money_axis, shown
from planner.report.locale import Words

PICKED = "picked"
"""Name of the selection: the point that was clicked."""
HEIGHT_PX = 340
SCALES = {"carbon_kg": 1 / TONNE_KG}
TITLES = {
    "carbon_kg": "chart.carbon_t",
    "latency_factor": "chart.latency_factor",
    "demand_factor": "chart.demand_factor",
    "quality": "chart.quality",
}


def frontier_rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build the points of a frontier, in the unit of its axis; `key` names the plan of each."""
    scale = SCALES.get(found["measure"], 1.0)
    return [
        {
            "key": repr(point[found["measure"]]),
            "measure": point[found["measure"]] * scale,
            "cost": point["cost"],
            "bound": point["bound"],
            "gap": point["gap"],
        }
        for point in found["points"]
    ]


def frontier_chart(found: Mapping[str, Any], t: Words, picked: str | None = None) -> alt.LayerChart:
    """Draw cost over the measure, with the band down to the bound; a click picks a point, `picked` is drawn larger.

    `found` is the document of a frontier. No plan was solved between the points: the line only guides the eye.
    """
    rows = [
        {**row, **{f"{key}_shown": shown(row[key], t) for key in ("cost", "bound")}} for row in frontier_rows(found)
    ]
    said = "; ".join(f"{row['measure']:,.4g}: {row['cost_shown']} ({row['bound_shown']})" for row in rows)
    words = t("chart.frontier.alt", points=said)
    measure = t(TITLES[found["measure"]])
    money = t("chart.frontier.cost", currency=found["currency"])
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(
        x=alt.X("measure:Q", title=measure, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=6)),
        y=alt.Y("cost:Q", title=money, scale=alt.Scale(zero=False), axis=money_axis(t)),
        tooltip=[
            alt.Tooltip("measure:Q", title=measure, format=",.4"),
            alt.Tooltip("cost_shown:N", title=money),
            alt.Tooltip("bound_shown:N", title=t("chart.bound")),
            alt.Tooltip("gap:Q", title=t("metric.gap"), format=".3%"),
        ],
    )
    band = base.mark_area(color=SKY, opacity=0.45).encode(y2="bound:Q")
    bound = base.mark_line(color=SKY, strokeDash=[4, 3]).encode(y=alt.Y("bound:Q", scale=alt.Scale(zero=False)))
    line = base.mark_line(color=GREY, strokeWidth=1)
    chosen = alt.selection_point(name=PICKED, fields=["key"], on="click", clear=False)
    points = (
        base.mark_point(filled=True, color=BLUE, opacity=1.0, cursor="pointer")
        .encode(size=alt.condition(f"datum.key === {json.dumps(picked)}", alt.value(320), alt.value(110)))
        .add_params(chosen)
    )
    return alt.LayerChart(layer=[band, bound, line, points], description=words).properties(height=HEIGHT_PX)


def break_even_chart(found: Mapping[str, Any], t: Words) -> alt.LayerChart | None:
    """Draw the cost of buying over that of renting, with the range of low and high prices; None where nothing can be compared.

    `found` is the document of a study of buying and renting; where a line falls below 1, buying costs less.
    """
    measure = "years" if found["against"] == "horizon" else "utilisation"
    rows = [
        {
            "what": f"{row['system']}, {t.get('page_how.' + row['how'], row['how'])}",
            "measure": row[measure],
            "ratio": row["ratio"],
            "low": min(row["ratio_low"], row["ratio_high"]),
            "high": max(row["ratio_low"], row["ratio_high"]),
        }
        for row in found["points"]
    ]
    if not rows:
        return None
    names = list(dict.fromkeys(row["what"] for row in rows))
    words = t("chart.break_even.alt", lines=_ends(names, rows))
    title = t("chart.years" if measure == "years" else "chart.in_use")
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(
        x=alt.X("measure:Q", title=title, axis=alt.Axis(tickCount=6, format="~g" if measure == "years" else ".0%")),
        color=coloured("what:N", names, None),
        tooltip=[
            alt.Tooltip("what:N", title=t("column.system")),
            alt.Tooltip("measure:Q", title=title, format="~g" if measure == "years" else ".0%"),
            alt.Tooltip("ratio:Q", title=t("chart.ratio"), format=".2f"),
            alt.Tooltip("low:Q", title=t("column.low"), format=".2f"),
            alt.Tooltip("high:Q", title=t("column.high"), format=".2f"),
        ],
    )
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=t("chart.ratio")), y2="high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("ratio:Q", title=t("chart.ratio")))
    even = alt.Chart(alt.InlineData(values=[{"even": 1}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="even:Q")
    return alt.LayerChart(layer=[band, line, even], description=words).properties(height=HEIGHT_PX)


def _ends(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    mine = {name: [row["ratio"] for row in rows if row["what"] == name] for name in names}
    return "; ".join(f"{name} {ratios[0]:.2f} → {ratios[-1]:.2f}" for name, ratios in mine.items())
