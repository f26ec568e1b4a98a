"""Draw where the time of a step goes, what fills the memory of a chip, and the layouts over tensor and pipeline size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from catalog.units import MILLI
from planner.report.charts.style import BAR_PX, BLUE, GREEN, GREY, PALETTE, RED
from planner.report.locale import Words
from planner.report.words import amount

CELL_PX, AXIS_PX = 46, 34
NO_CELL = "#888888"


def _ms(seconds: float) -> str:
    """Write a time in milliseconds, to three digits or to the millisecond."""
    value = seconds / MILLI
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def gap_chart(profile: Mapping[str, Any], t: Words) -> alt.LayerChart | None:
    """Draw the time of an output token or step as a waterfall from the roofline on, cause by cause; None where nothing runs."""
    causes = profile["waterfall"]
    if not causes:
        return None
    rows = []
    for i, row in enumerate(causes):
        end = row["reached_s"] / MILLI
        added = row["added_s"] / MILLI
        kind = "first" if i == 0 else "more" if added > 0 else "less"
        rows.append(
            {"cause": t.named("part", row["cause"]), "begin": end - added, "end": end, "added": added, "kind": kind}
        )
    total = rows[-1]["end"]
    rows.append({"cause": t("chart.gap.total"), "begin": 0.0, "end": total, "added": total, "kind": "total"})
    words = t("chart.gap.alt", parts=", ".join(f"{row['cause']} {_ms(row['added'] * MILLI)} ms" for row in rows))
    order = [row["cause"] for row in rows]
    y = alt.Y("cause:N", title=None, sort=order, axis=alt.Axis(labelLimit=240))
    colours = alt.Scale(domain=["first", "more", "less", "total"], range=[GREEN, RED, BLUE, GREY])
    base = alt.Chart(alt.InlineData(values=rows), description=words)
    bars = base.mark_bar().encode(
        y=y,
        x=alt.X("begin:Q", title=t(f"chart.gap.{profile['kind']}"), axis=alt.Axis(format=",.4~r", tickCount=6)),
        x2="end:Q",
        color=alt.Color("kind:N", scale=colours, legend=None),
        tooltip=[
            alt.Tooltip("cause:N", title=t("chart.gap.cause")),
            alt.Tooltip("added:Q", title="ms", format="+,.3~r"),
            alt.Tooltip("end:Q", title=t("chart.gap.reached"), format=",.3~r"),
        ],
    )
    texts = base.mark_text(align="left", dx=4, color="#777777").encode(
        y=y, x=alt.X("most:Q", title=t(f"chart.gap.{profile['kind']}")), text=alt.Text("added:Q", format=",.3~r")
    )
    labels = texts.transform_calculate(most="max(datum.begin, datum.end)")
    return alt.LayerChart(layer=[bars, labels], description=words).properties(height=60 + 24 * len(rows))


MEMORY = ("weights", "gradients", "optimizer", "activations", "logits", "caches", "runtime", "free", "reserve")


def memory_chart(profile: Mapping[str, Any], t: Words) -> alt.Chart | None:
    """Draw what fills the fullest chip of each pool, up to its capacity; None where nothing runs."""
    found = profile["memory"]
    if not found:
        return None
    unit, size = t.display.scale("byte", max(row["bytes"] for row in found))
    rows = [
        {
            "pool": t(f"pool.{row['pool']}"),
            "part": t(f"memory_part.{row['part']}"),
            "size": row["bytes"] / size,
            "order": MEMORY.index(row["part"]),
        }
        for row in found
        if row["bytes"] > 0
    ]
    names = [name for name in MEMORY if any(row["part"] == name and row["bytes"] > 0 for row in found)]
    colours = {
        name: PALETTE[i % len(PALETTE)] for i, name in enumerate(n for n in MEMORY if n not in ("free", "reserve"))
    }
    colours |= {"free": "#DDDDDD", "reserve": GREY}
    words = t(
        "chart.memory.alt", parts=", ".join(f"{row['pool']} {row['part']} {amount(row['size'])} {unit}" for row in rows)
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_bar(height=BAR_PX)
        .encode(
            y=alt.Y("pool:N", title=None, sort=None),
            x=alt.X("size:Q", title=t("chart.memory", unit=unit), axis=alt.Axis(format=",.4~r", tickCount=6)),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(
                    domain=[t(f"memory_part.{name}") for name in names], range=[colours[name] for name in names]
                ),
                legend=alt.Legend(orient="top", columns=4, labelLimit=0),
            ),
            order="order:Q",
            tooltip=[
                alt.Tooltip("pool:N", title=t("chart.memory.pool")),
                alt.Tooltip("part:N", title=t("chart.memory.part")),
                alt.Tooltip("size:Q", title=unit, format=",.3~r"),
            ],
        )
        .properties(height=130 + 2 * BAR_PX * len({row["pool"] for row in rows}))
    )
    return chart


def layouts_chart(profile: Mapping[str, Any], t: Words) -> alt.LayerChart | None:
    """Draw the best layout of each tensor and pipeline size, coloured by its time; a cross stands where none runs, or none meets the limits."""
    cells: Sequence[Mapping[str, Any]] = profile["layouts"]
    if not cells:
        return None
    rows = [
        {
            "tp": cell["tp"],
            "pp": cell["pp"],
            "time": None if cell["seconds"] is None else cell["seconds"] / MILLI,
            "layout": cell["layout"] or "–",
            "mark": "✕" if cell["why_not"] else "",
            "why": t.phrase(cell["why_not"]) or "–",
            "label": "" if cell["seconds"] is None else _ms(cell["seconds"]),
        }
        for cell in cells
    ]
    able = [row for row in rows if row["time"] is not None]
    best = min(able, key=lambda row: (bool(row["mark"]), row["time"]), default=None)
    words = t(
        "chart.layouts.alt",
        able=sum(not row["mark"] for row in able),
        all=len(rows),
        best="–" if best is None else f"tp {best['tp']}, pp {best['pp']}: {best['label']} ms",
    )
    x, y = (
        alt.X("tp:O", title=t("chart.layouts.tp"), axis=alt.Axis(labelAngle=0)),
        alt.Y("pp:O", title=t("chart.layouts.pp"), axis=alt.Axis(minExtent=AXIS_PX)),
    )
    tooltip = [
        alt.Tooltip("layout:N", title=t("column.layout")),
        alt.Tooltip("label:N", title="ms"),
        alt.Tooltip("why:N", title=t("chart.layouts.why")),
    ]
    none = alt.Chart(alt.InlineData(values=[row for row in rows if row["time"] is None]), description=words)
    some = alt.Chart(alt.InlineData(values=able), description=words)
    title = t(f"chart.layouts.{profile['kind']}")
    times = [row["time"] for row in able]
    middle = (max(times) * min(times)) ** 0.5 if times else 1.0
    layers = [
        none.mark_rect(color=NO_CELL, opacity=0.12).encode(x=x, y=y, tooltip=tooltip),
        none.mark_text(color=NO_CELL, fontSize=16).encode(x=x, y=y, text="mark:N", tooltip=tooltip),
        some.mark_rect().encode(
            x=x, y=y, tooltip=tooltip,
            color=alt.Color("time:Q", title=title, scale=alt.Scale(scheme="cividis", type="log", reverse=True),
                            legend=alt.Legend(format=",.3~r", tickCount=4)),
        ),
        some.mark_text(fontSize=11, dy=-5).encode(
            x=x, y=y, text="label:N", tooltip=tooltip,
            color=alt.condition(f"datum.time > {middle}", alt.value("white"), alt.value("black")),
        ),
        some.mark_text(fontSize=13, dy=9).encode(
            x=x, y=y, text="mark:N", tooltip=tooltip,
            color=alt.condition(f"datum.time > {middle}", alt.value("white"), alt.value("black")),
        ),
    ]  # fmt: skip
    if used := _in_use(profile, rows, t):
        layers.append(
            alt.Chart(alt.InlineData(values=used), description=words)
            .mark_rect(filled=False, stroke=RED, strokeWidth=3)
            .encode(x=x, y=y, tooltip=[*tooltip, alt.Tooltip("use:N", title=t("chart.layouts.use"))])
        )
    count = len({row["pp"] for row in rows})
    return alt.LayerChart(layer=layers, description=words).properties(height=80 + CELL_PX * count)


def _in_use(profile: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], t: Words) -> list[dict[str, Any]]:
    """List the cells of the sizes at work, with the pools that have them; none where nothing runs."""
    sizes = [(each["tp"], each["pp"]) for each in (profile["at"] or {"layouts": ()})["layouts"]]
    roles = ("prefill", "decode") if len(sizes) > 1 else ("train",) if profile["kind"] == "training" else ("serve",)
    pools: dict[tuple[int, int], list[str]] = {}
    for size, role in zip(sizes, roles, strict=False):
        pools.setdefault(size, []).append(t(f"pool.{role}"))
    return [{**row, "use": ", ".join(pools[size])} for row in rows if (size := (row["tp"], row["pp"])) in pools]
