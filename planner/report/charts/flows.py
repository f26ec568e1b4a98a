"""Draw who is served from where and by what: flows of output tokens from origins over sites to systems."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

import altair as alt

from planner.plan import Plan
from planner.report.charts.style import BAR_PX, PALETTE
from planner.report.locale import Words

STEPS = 24  # points of the edge of a band
GAP = 0.02  # gap as a share of the height, between nodes of a column
NODE = 0.012  # half of the width of a node
LEAST = 5e-4  # share of all tokens: thinner flows are left out


def flow_rows(plan: Plan) -> list[tuple[str, str, str, float]]:
    """Average the output tokens per second over the horizon by (origin, site, system).

    The tokens of a workload at a site are divided among its systems by the capacity that is at work there.
    """
    seconds = {row["slot"]: row["seconds"] for row in plan.document["schedule"]}
    total = sum(seconds.values())
    if not total:
        return []
    shares = _shares_of_systems(plan)
    flows: dict[tuple[str, str, str], float] = defaultdict(float)
    for row in plan.document["routes"]:
        mean = row["tokens_per_s"] * seconds.get(row["slot"], 0.0) / total
        for system, share in shares.get((row["workload"], row["site"]), {"": 1.0}).items():
            flows[row["origin"], row["site"], system] += mean * share
    least = LEAST * sum(flows.values())
    return [(*key, flow) for key, flow in flows.items() if flow > least]


def _shares_of_systems(plan: Plan) -> dict[tuple[str, str], dict[str, float]]:
    """Compute the share of each system in what a workload gets at a site, by capacity at the peak."""
    able: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for workload in plan.document["workloads"]:
        for point in workload["points"]:
            name = " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"]))
            able[workload["name"], point["site"]][name] += point["capacity"] * point["peak_replicas"]
    return {
        key: {name: amount / sum(systems.values()) for name, amount in systems.items()}
        for key, systems in able.items()
        if sum(systems.values()) > 0
    }


def flow_chart(plan: Plan, t: Words) -> alt.LayerChart | None:
    """Draw the flows as bands between three columns; None for a plan that serves nobody."""
    flows = flow_rows(plan)
    if not flows:
        return None
    total = sum(flow for *_, flow in flows)
    columns = [_places(flows, i, total) for i in range(3)]
    height = 80 + BAR_PX * max(len(column) for column in columns)
    origins = list(columns[0])
    bands = [
        {**row, "origin": origin, "flow": f"{source} → {target}: {flow:,.0f}"}
        for left in (0, 1)
        for origin, source, target, flow, rows in _bands(flows, columns, left, total)
        for row in rows
    ]
    nodes = [
        {"x": i - NODE, "x2": i + NODE, "y": top, "y2": bottom, "name": name, "middle": (top + bottom) / 2, "column": i}
        for i, column in enumerate(columns)
        for name, (top, bottom) in column.items()
    ]
    words = t(
        "chart.flows.alt",
        flows=", ".join(f"{origin} → {site} {flow / total:.0%}" for origin, site, flow in _largest(flows)),
    )
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.45, 2.45], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, 1], reverse=True, nice=False))
    colours = alt.Scale(domain=origins, range=[PALETTE[i % len(PALETTE)] for i in range(len(origins))])
    band = (
        alt.Chart(alt.InlineData(values=bands), description=words)
        .mark_area(opacity=0.45, interpolate="monotone")
        .encode(
            x=x,
            y=y,
            y2="y2:Q",
            detail="band:N",
            color=alt.Color("origin:N", scale=colours, legend=None),
            tooltip=[alt.Tooltip("flow:N", title=t("chart.tokens_per_s"))],
        )
    )
    bars = alt.Chart(alt.InlineData(values=nodes)).mark_rect(color="#777777").encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    layers: alt.LayerChart = (
        alt.LayerChart(layer=[band, bars, *(_names(nodes, i, x) for i in range(3))], description=words)
        .properties(height=height)
        .configure_view(stroke=None)
    )
    return layers


def _names(nodes: list[dict[str, Any]], column: int, x: alt.X) -> alt.Chart:
    """Write the names of a column beside its nodes."""
    align: Literal["left", "right"] = "right" if column == 0 else "left"
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=[node for node in nodes if node["column"] == column]))
        .mark_text(align=align, dx=-10 if column == 0 else 10, baseline="middle", fontSize=12, color="#777777")
        .encode(x=x, y=alt.Y("middle:Q", axis=None), text="name:N")
    )
    return chart


def _places(flows: list[tuple[str, str, str, float]], column: int, total: float) -> dict[str, tuple[float, float]]:
    """Place the nodes of a column from top to bottom, the largest first."""
    sizes: dict[str, float] = defaultdict(float)
    for row in flows:
        sizes[row[:3][column]] += row[3]
    names = sorted(sizes, key=lambda name: -sizes[name])
    room, top, found = 1 - GAP * (len(names) - 1), 0.0, {}
    for name in names:
        size = sizes[name] / total * room
        found[name] = (top, top + size)
        top += size + GAP
    return found


def _bands(
    flows: list[tuple[str, str, str, float]], columns: list[dict[str, tuple[float, float]]], left: int, total: float
) -> list[tuple[str, str, str, float, list[dict[str, Any]]]]:
    """Compute the edges of the bands between a column and the next: (origin, source, target, flow, points)."""
    used = [{name: top for name, (top, _) in columns[left + side].items()} for side in (0, 1)]
    rooms = [1 - GAP * (len(columns[left + side]) - 1) for side in (0, 1)]
    ordered = sorted(
        flows, key=lambda row: (columns[left][row[:3][left]], columns[left + 1][row[:3][left + 1]], row[0])
    )
    found = []
    for number, row in enumerate(ordered):
        names, flow = row[:3], row[3]
        source, target = names[left], names[left + 1]
        a, b = used[0][source], used[1][target]
        sizes = [flow / total * room for room in rooms]
        used[0][source], used[1][target] = a + sizes[0], b + sizes[1]
        points: list[dict[str, Any]] = []
        for k in range(STEPS + 1):
            along = k / STEPS
            smooth = along * along * (3 - 2 * along)
            top, size = a + (b - a) * smooth, sizes[0] + (sizes[1] - sizes[0]) * smooth
            x = left + NODE + along * (1 - 2 * NODE)
            points.append({"x": x, "y": top, "y2": top + size, "band": f"{left}-{number}"})
        found.append((names[0], source, target, flow, points))
    return found


def _largest(flows: list[tuple[str, str, str, float]]) -> list[tuple[str, str, float]]:
    """List the largest flows from origins to sites."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for origin, site, _, flow in flows:
        sums[origin, site] += flow
    return [(*key, flow) for key, flow in sorted(sums.items(), key=lambda item: -item[1])[:6]]
