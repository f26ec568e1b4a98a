"""Draw the operators of a pass on the roofline of a chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from catalog.units import TERA
from planner.report.charts.style import GREY, RED, coloured
from planner.report.locale import Words
from planner.report.words import amount

HEIGHT_PX = 360
APART, CLOSE = 1.7, 30.0  # ratios of rates and of intensities of names that would overlap
LABELLED = 0.15  # least share of the time of an operator whose name stands beside it


def roofline_chart(profile: Mapping[str, Any], t: Words) -> alt.LayerChart | None:
    """Draw the rate that the roofline allows each operator over its intensity, as large as its share of the time; None without operators."""
    rows, roof = profile["operators"], profile["roof"]
    if not rows:
        return None
    points = [
        {
            "operator": t.named("part", row["operator"]),
            "phase": t(f"phase.{row['phase']}"),
            "x": row["flop_per_byte"],
            "y": row["flop_per_s"] / TERA,
            "share": row["share"],
        }
        for row in rows
    ]
    words = t(
        "chart.roofline.alt",
        system=profile["system"],
        ridge=f"{roof['ridge_flop_per_byte']:,.0f}",
        operators=", ".join(
            f"{p['phase']} {p['operator']} {amount(p['x'])}" for p in sorted(points, key=lambda p: -p["share"])[:6]
        ),
    )
    least = min(0.5, *(p["x"] for p in points))
    most = 3.0 * max(roof["ridge_flop_per_byte"], *(p["x"] for p in points))
    high = max(roof["flop_per_s"], roof["flop16_per_s"]) / TERA
    low = min(0.5 * min(p["y"] for p in points), least * roof["bytes_per_s"] / TERA)
    x = alt.X(
        "x:Q",
        title=t("chart.roofline.x"),
        scale=alt.Scale(type="log", domain=[least, most], nice=False),
        axis=alt.Axis(format=",~r", tickCount=6),
    )
    y = alt.Y(
        "y:Q",
        title=t("chart.roofline.y"),
        scale=alt.Scale(type="log", domain=[low, 2.5 * high], nice=False),
        axis=alt.Axis(format=",.3~r", tickCount=5),
    )
    lines = [
        row
        for peak, name in {roof["flop16_per_s"]: "16 bit", roof["flop_per_s"]: profile["precision"]}.items()
        for row in _roof(peak, name, roof["bytes_per_s"], least, most)
    ]
    names = list(dict.fromkeys(p["phase"] for p in points))
    base = alt.Chart(alt.InlineData(values=points), description=words).encode(x=x, y=y)
    layers = [
        alt.Chart(alt.InlineData(values=lines), description=words)
        .mark_line(color=GREY, strokeWidth=2)
        .encode(x=x, y=y, detail="roof:N"),
        alt.Chart(alt.InlineData(values=[row for row in lines if row["end"]]))
        .mark_text(align="right", dy=-9, color="#777777", fontWeight="bold")
        .encode(x=x, y=y, text="roof:N"),
        alt.Chart(alt.InlineData(values=[{"x": roof["ridge_flop_per_byte"]}]))
        .mark_rule(color=RED, strokeDash=[4, 4])
        .encode(x=x),
        base.mark_circle(opacity=0.85).encode(
            color=coloured("phase:N", names, t("chart.roofline.phase")),
            size=alt.Size("share:Q", title=t("chart.roofline.share"), scale=alt.Scale(domain=[0, 1], range=[40, 900]),
                          legend=alt.Legend(format=".0%", values=[0.1, 0.5, 1.0])),
            tooltip=[
                alt.Tooltip("operator:N", title=t("chart.roofline.operator")),
                alt.Tooltip("phase:N", title=t("chart.roofline.phase")),
                alt.Tooltip("x:Q", title=t("chart.roofline.x"), format=",.3~r"),
                alt.Tooltip("y:Q", title=t("chart.roofline.y"), format=",.3~r"),
                alt.Tooltip("share:Q", title=t("chart.roofline.share"), format=".0%"),
            ],
        ),
        alt.Chart(alt.InlineData(values=_labels(points)))
        .mark_text(align="right", dx=-12, color="#777777", fontSize=11)
        .encode(x=x, y=y, text="operator:N"),
    ]  # fmt: skip
    return alt.LayerChart(layer=layers, description=words).properties(height=HEIGHT_PX)


def _labels(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Place the names of the operators with most of the time, below each other where they stand close."""
    placed: list[dict[str, Any]] = []
    for point in sorted((p for p in points if p["share"] >= LABELLED), key=lambda p: -p["share"]):
        y = point["y"] / APART
        while any(
            max(y / other["y"], other["y"] / y) < APART and other["x"] / CLOSE < point["x"] < other["x"] * CLOSE
            for other in placed
        ):
            y /= APART
        placed.append({"operator": point["operator"], "x": point["x"], "y": y})
    return placed


def _roof(peak: float, name: str, bytes_per_s: float, least: float, most: float) -> list[dict[str, Any]]:
    """Write the line of a roof: the bandwidth up to its ridge, and the peak after."""
    ridge = peak / bytes_per_s
    return [
        {"roof": name, "x": least, "y": least * bytes_per_s / TERA, "end": False},
        {"roof": name, "x": ridge, "y": peak / TERA, "end": False},
        {"roof": name, "x": most, "y": peak / TERA, "end": True},
    ]
