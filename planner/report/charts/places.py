"""Draw where a plan's sites lie and what an hour costs there, the load served hour by hour, and prices over days and hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import altair as alt

from catalog.units import GRAM_KG, KWH_J, MWH_J
from planner.plan import Plan
from planner.report.charts.coasts import coasts
from planner.report.charts.hours import load_unit
from planner.report.charts.style import BAR_PX, GREY, MARKS, coloured
from planner.report.hours import by_hour
from planner.report.locale import Words

MAP_PX, LOAD_PX, LEGEND_PX = 340, 240, 90
NAME_PX = 32  # height of a name above the middle of its site: the largest has a radius of 23
PAD_DEGREES = 6.0  # around the sites
LOAD, PRICE, CARBON = "load", "price", "carbon"


def hour_rows(plan: Plan, phase: int, hour: int, t: Words) -> dict[str, dict[str, float]]:
    """Read load [`load_unit`], price [currency shown/MWh] and carbon [g/kWh] of each site in an hour of the typical day of a phase."""
    found, size, stated = {}, load_unit(plan, t).factor, plan.document["spec"].get("currency", "USD")
    for site in dict.fromkeys(row["site"] for row in plan.document["schedule"]):
        rows = by_hour(row for row in plan.document["schedule"] if (row["site"], row["window"]) == (site, phase))
        row = next((row for row in rows if row["hour_utc"] == hour), None)
        if row is not None:
            found[site] = {
                LOAD: row["power_w"] / size,
                PRICE: t.display.money(row["price_per_j"], stated) * MWH_J,
                CARBON: row["carbon_kg_per_j"] * KWH_J / GRAM_KG,
            }
    return found


def map_chart(
    plan: Plan, places: Mapping[str, tuple[float, float]], phase: int, hour: int, by: str, t: Words
) -> alt.LayerChart | None:
    """Draw the sites by longitude and latitude, as large as their load and coloured `by` price or carbon in an hour; None without a place.

    `places`: (latitude, longitude) of sites. The coasts are lines of a file of ours; there are no tiles: nothing is asked of any host.
    """
    rows: list[dict[str, Any]] = [
        {"site": site, "latitude": places[site][0], "longitude": places[site][1], **row}
        for site, row in hour_rows(plan, phase, hour, t).items()
        if site in places
    ]
    if not rows:
        return None
    currency, load = t.display.shown(plan.document["spec"].get("currency", "USD")), load_unit(plan, t).symbol
    unit = t("chart.price", currency=currency) if by == PRICE else "g/kWh"
    words = t(
        "chart.map.alt", sites=", ".join(f"{row['site']} {row[LOAD]:.3g} {load}, {row[by]:,.3g} {unit}" for row in rows)
    )
    longitudes, latitudes = (_around([row[key] for row in rows]) for key in ("longitude", "latitude"))
    x = alt.X("longitude:Q", title=t("chart.longitude"), axis=alt.Axis(tickCount=8), scale=_scale(longitudes))
    y = alt.Y("latitude:Q", title=t("chart.latitude"), axis=alt.Axis(tickCount=6), scale=_scale(latitudes))
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(x=x, y=y)
    dots = (
        base.mark_circle(opacity=0.9, stroke=GREY)
        .properties(name=MARKS)
        .encode(
            size=alt.Size(
                f"{LOAD}:Q",
                title=load,
                scale=alt.Scale(rangeMin=60, rangeMax=1600, zero=True),
                legend=alt.Legend(tickCount=3, format="~r"),
            ),
            color=alt.Color(
                f"{by}:Q",
                title=unit,
                scale=alt.Scale(scheme="cividis", reverse=True),
                legend=alt.Legend(gradientLength=LEGEND_PX),
            ),
            tooltip=[
                alt.Tooltip("site:N", title=t("column.site")),
                alt.Tooltip(f"{LOAD}:Q", title=load, format=",.4~r"),
                alt.Tooltip(f"{by}:Q", title=unit, format=",.1f"),
            ],
        )
    )
    names = base.mark_text(dy=-NAME_PX, color="#777777", fontSize=12).encode(text="site:N")
    shore = [
        {"line": i, "point": k, "longitude": longitude, "latitude": latitude}
        for i, line in enumerate(coasts(longitudes, latitudes))
        for k, (longitude, latitude) in enumerate(line)
    ]
    outline = (
        alt.Chart(alt.InlineData(values=shore))
        .mark_line(clip=True, color=GREY, opacity=0.5, strokeWidth=1, aria=False)
        .encode(x=x, y=y, detail="line:N", order="point:Q")
    )
    return alt.LayerChart(layer=[outline, dots, names], description=words).properties(height=MAP_PX)


def _around(values: list[float]) -> tuple[float, float]:
    """Return the window of a map in one direction [degrees]."""
    return min(values) - PAD_DEGREES, max(values) + PAD_DEGREES


def _scale(window: tuple[float, float]) -> alt.Scale:
    return alt.Scale(domain=list(window), nice=False, zero=False)


def served_rows(plan: Plan, phase: int) -> list[dict[str, Any]]:
    """Average the output tokens per second that each workload gets in each hour of the day of a phase, stacked from `low` to `high`."""
    slots = {row["slot"]: row for row in plan.document["schedule"] if row["window"] == phase}
    tokens: dict[tuple[str, int], float] = defaultdict(float)
    seconds: dict[int, float] = defaultdict(float)
    for row in slots.values():
        seconds[row["hour_utc"]] += row["seconds"]
    for route in plan.document["routes"]:
        if (slot := slots.get(route["slot"])) is not None:
            tokens[route["workload"], slot["hour_utc"]] += route["tokens_per_s"] * slot["seconds"]
    names = list(dict.fromkeys(name for name, _ in tokens))
    rows, low = [], dict.fromkeys(seconds, 0.0)
    for name in names:
        for hour in sorted(seconds):
            rate = tokens[name, hour] / seconds[hour]
            part = {"workload": name, "start": hour, "end": hour + 1, "tokens": rate}
            rows.append({**part, "low": low[hour], "high": low[hour] + rate})
            low[hour] += rate
    return rows


def served_chart(plan: Plan, phase: int, t: Words) -> alt.Chart | None:
    """Draw the load served in each hour, stacked by workload; None for a plan that serves nobody."""
    rows = served_rows(plan, phase)
    if not rows:
        return None
    names = list(dict.fromkeys(row["workload"] for row in rows))
    most = {name: max(row["tokens"] for row in rows if row["workload"] == name) for name in names}
    words = t("chart.served.alt", workloads=", ".join(f"{name} {value:,.0f}" for name, value in most.items()))
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_rect()
        .encode(
            x=alt.X("start:Q", title=t("chart.hour"), scale=alt.Scale(domain=[0, 24], nice=False)),
            x2="end:Q",
            y=alt.Y("low:Q", title=t("chart.tokens_per_s"), axis=alt.Axis(format="~s"), scale=alt.Scale(zero=True)),
            y2="high:Q",
            color=coloured("workload:N", names, t("column.workload")),
            tooltip=[
                alt.Tooltip("workload:N", title=t("column.workload")),
                alt.Tooltip("start:Q", title=t("chart.hour")),
                alt.Tooltip("tokens:Q", title=t("chart.tokens_per_s"), format=",.0f"),
            ],
        )
        .properties(height=LOAD_PX)
    )
    return chart


def heat_chart(plan: Plan, site: str, phase: int, by: str, t: Words) -> alt.Chart:
    """Draw price or carbon of a site over day and hour, one row for each day that the plan was computed on."""
    stated = plan.document["spec"].get("currency", "USD")
    factor = t.display.money(MWH_J, stated) if by == PRICE else KWH_J / GRAM_KG
    rows: list[dict[str, Any]] = [
        {
            "day": str(row.get("day", t("chart.typical_day"))),
            "hour": row["hour_utc"],
            "value": (row["price_per_j"] if by == PRICE else row["carbon_kg_per_j"]) * factor,
        }
        for row in plan.document["schedule"]
        if (row["site"], row["window"]) == (site, phase)
    ]
    unit = t("chart.price", currency=t.display.shown(stated)) if by == PRICE else "g/kWh"
    values: list[float] = [row["value"] for row in rows]
    days = list(dict.fromkeys(row["day"] for row in rows))
    words = t(
        "chart.heat.alt", site=site, days=len(days), low=f"{min(values):,.3g}", high=f"{max(values):,.3g}", unit=unit
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_rect()
        .encode(
            x=alt.X("hour:O", title=t("chart.hour"), axis=alt.Axis(labelAngle=0)),
            y=alt.Y("day:O", title=None, sort=days),
            color=alt.Color("value:Q", title=unit, scale=alt.Scale(scheme="cividis", reverse=True)),
            tooltip=[
                alt.Tooltip("day:O"),
                alt.Tooltip("hour:O", title=t("chart.hour")),
                alt.Tooltip("value:Q", title=unit, format=",.1f"),
            ],
        )
        .properties(height=60 + min(BAR_PX * len(days), 420))
    )
    return chart
