"""Draw throughput against interactivity: every operating point of a case, those that meet its limits, and the one at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from planner.report.charts.style import BLUE, GREEN, GREY, RED
from planner.report.locale import Words
from planner.report.words import amount

HEIGHT_PX = 400
DIGITS = 5
ZONE = 0.14  # opacity


def interactivity_chart(profile: Mapping[str, Any], t: Words) -> alt.LayerChart | None:
    """Draw output tokens per second of a chip over the tokens per second of a user; None where nothing runs.

    The zone holds the points within the limit on the time per output token; bars are the intervals of 80 % of the front and of the point
    at work.
    """
    columns, at = profile["points"], profile["at"]
    meets, misses = t("chart.points.meets"), t("chart.points.misses")
    rows = [
        {
            "user": _short(user),
            "chip": _short(chip),
            "state": meets if good else misses,
            "layout": layout,
            "batch": round(batch),
            "front": front,
        }
        for user, chip, good, layout, batch, front in zip(
            *(columns[name] for name in ("user", "chip", "meets", "layout", "batch", "front")), strict=True
        )
    ]
    if not rows and at is None:
        return None
    most = 1.05 * max([row["user"] for row in rows] + ([] if at is None else [at["user_80"][1]]))
    words = _words(profile, rows, meets, t)
    scale = alt.Scale(domain=[0, most], nice=False)
    x = alt.X("user:Q", title=t("chart.points.user"), scale=scale)
    y = alt.Y("chip:Q", title=t("chart.points.chip"), axis=alt.Axis(format="~s"))
    layers: list[alt.Chart] = []
    if profile["limit_s"]:
        zone = [{"from": min(1.0 / profile["limit_s"], most), "to": most}]
        layers.append(
            alt.Chart(alt.InlineData(values=zone), description=words)
            .mark_rect(color=GREEN, opacity=ZONE)
            .encode(x=alt.X("from:Q", title=t("chart.points.user"), scale=scale), x2="to:Q")
        )
    tooltip = [
        alt.Tooltip("layout:N", title=t("column.layout")),
        alt.Tooltip("batch:Q", title=t("chart.points.batch")),
        alt.Tooltip("user:Q", title=t("chart.points.user"), format=",.3~r"),
        alt.Tooltip("chip:Q", title=t("chart.points.chip"), format=",.4~r"),
    ]
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=[meets, misses], range=[BLUE, GREY]),
        legend=alt.Legend(orient="top", labelLimit=0),
    )
    layers.append(
        alt.Chart(alt.InlineData(values=[row for row in rows if not row["front"]]), description=words)
        .mark_circle(size=14, opacity=0.45)
        .encode(x=x, y=y, color=colour, tooltip=tooltip)
    )
    front = sorted((row for row in rows if row["front"]), key=lambda row: row["user"])
    layers += _front(front, profile["interval"], (x, y, colour, tooltip), t)
    if at is not None:
        layers += _at_work(at, x, y, t)
    return alt.LayerChart(layer=layers, description=words).properties(height=HEIGHT_PX)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _words(profile: Mapping[str, Any], rows: list[dict[str, Any]], meets: str, t: Words) -> str:
    """Describe the chart: how many points, how many within the limits, and the one at work."""
    at = profile["at"]
    here = "" if at is None else t("chart.points.here", chip=amount(at["chip"]), user=amount(at["user"]))
    good = sum(row["state"] == meets for row in rows)
    return t("chart.points.alt", all=len(rows), good=good, system=profile["system"], here=here)


def _front(
    front: list[dict[str, Any]],
    bands: Mapping[str, Any],
    channels: tuple[alt.X, alt.Y, alt.Color, list[alt.Tooltip]],
    t: Words,
) -> list[alt.Chart]:
    """Draw the front as a line of points with the intervals of both rates."""
    (x, y, colour, tooltip), (low, high) = channels, bands["chip"]
    near, far = bands["user"]
    bars = [
        {
            **row,
            "low": _short(row["chip"] * low),
            "high": _short(row["chip"] * high),
            "near": _short(row["user"] * near),
            "far": _short(row["user"] * far),
        }
        for row in front
    ]
    base = alt.Chart(alt.InlineData(values=bars))
    return [
        base.mark_rule(opacity=0.25, clip=True, color=GREY).encode(
            x=x, y=alt.Y("low:Q", title=t("chart.points.chip")), y2="high:Q"
        ),
        base.mark_rule(opacity=0.25, clip=True, color=GREY).encode(
            x=alt.X("near:Q", title=t("chart.points.user")), x2="far:Q", y=y
        ),
        base.mark_line(color=GREY, strokeWidth=1.5).encode(x=x, y=y, order="user:Q"),
        base.mark_circle(size=46, opacity=1.0).encode(x=x, y=y, color=colour, tooltip=tooltip),
    ]


def _at_work(at: Mapping[str, Any], x: alt.X, y: alt.Y, t: Words) -> list[alt.Chart]:
    """Draw the point at work with its intervals."""
    row = {
        **{name: _short(at[name]) for name in ("user", "chip")},
        **dict(zip(("near", "far"), map(_short, at["user_80"]), strict=True)),
        **dict(zip(("low", "high"), map(_short, at["chip_80"]), strict=True)),
        "layout": at["layout"],
        "what": t("chart.points.at"),
    }
    base = alt.Chart(alt.InlineData(values=[row]))
    tooltip = [
        alt.Tooltip("what:N", title=" "),
        alt.Tooltip("layout:N", title=t("column.layout")),
        alt.Tooltip("user:Q", title=t("chart.points.user"), format=",.3~r"),
        alt.Tooltip("near:Q", title=t("chart.points.least"), format=",.3~r"),
        alt.Tooltip("far:Q", title=t("chart.points.most"), format=",.3~r"),
        alt.Tooltip("chip:Q", title=t("chart.points.chip"), format=",.4~r"),
        alt.Tooltip("low:Q", title=t("chart.points.least"), format=",.4~r"),
        alt.Tooltip("high:Q", title=t("chart.points.most"), format=",.4~r"),
    ]
    return [
        base.mark_rule(color=RED, strokeWidth=2, clip=True).encode(
            x=x, y=alt.Y("low:Q", title=t("chart.points.chip")), y2="high:Q"
        ),
        base.mark_rule(color=RED, strokeWidth=2, clip=True).encode(
            x=alt.X("near:Q", title=t("chart.points.user")), x2="far:Q", y=y
        ),
        base.mark_point(shape="diamond", filled=True, size=190, color=RED, opacity=1.0).encode(
            x=x, y=y, tooltip=tooltip
        ),
        base.mark_text(dx=12, dy=-12, align="left", color=RED, fontWeight="bold").encode(x=x, y=y, text="what:N"),
    ]
