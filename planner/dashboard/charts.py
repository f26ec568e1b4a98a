"""Draw charts of a plan as Altair objects. No Streamlit here.

Colours are those of Okabe and Ito without black, which would vanish on a dark page; every chart has a description for
those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from catalog.units import MEGA, MWH_J
from planner.dashboard.locale import Words
from planner.plan import Plan
from planner.report.hours import by_hour

BLUE, SKY, RED, GREY = "#0072B2", "#56B4E9", "#D55E00", "#999999"
PALETTE = (BLUE, "#E69F00", "#009E73", "#CC79A7", SKY, RED, "#F0E442", GREY)
BAR_PX = 30
LOAD_PX, PRICE_PX = 210, 160  # with legend and axis
AXIS_PX = 46  # width of the axis in both panels, so that their hours align


def fleet_chart(plan: Plan, t: Words) -> alt.Chart:
    """Draw the chips by site, stacked by system; for systems held in some phases only, the most held at once."""
    rows = fleet_rows(plan)
    sites = list(dict.fromkeys(row["site"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    words = t(
        "chart.fleet.alt",
        sites=", ".join(f"{site} {sum(r['chips'] for r in rows if r['site'] == site):,.0f}" for site in sites),
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_bar()
        .encode(
            y=alt.Y("site:N", title=None, sort=sites, axis=alt.Axis(labelLimit=160)),
            x=alt.X("chips:Q", title=t("chart.chips"), axis=alt.Axis(format=",d", tickCount=6)),
            color=_colour("system:N", systems, t("column.system")),
            tooltip=[
                alt.Tooltip("site:N", title=t("column.site")),
                alt.Tooltip("system:N", title=t("column.system")),
                alt.Tooltip("chips:Q", title=t("chart.chips"), format=","),
            ],
        )
        .properties(height=90 + BAR_PX * max(len(sites), len(systems) // 2))
    )
    return chart


def fleet_rows(plan: Plan) -> list[dict[str, Any]]:
    """Count the chips by site and system; the chips of a system are among the figures that the plan cites."""
    per_system = {
        row["path"].split("/", 1)[1].rsplit("/", 1)[0]: row["value"]
        for row in plan["provenance"]
        if row["path"].startswith("systems/") and row["path"].endswith("/chips")
    }
    held: dict[tuple[str, str], dict[Any, float]] = {}
    for row in plan["fleet"]:
        phases = held.setdefault((row["site"], row["system"]), {})
        phases[row["phase"]] = phases.get(row["phase"], 0) + row["count"] * per_system.get(row["system"], 0)
    return [
        {
            "site": site,
            "system": system,
            "chips": phases.get(None, 0) + max((n for phase, n in phases.items() if phase is not None), default=0),
        }
        for (site, system), phases in held.items()
    ]


def cost_chart(plan: Plan, t: Words) -> alt.LayerChart:
    """Draw the cost by component, largest first, each bar with its share."""
    currency, total = plan["spec"].get("currency", "USD"), sum(plan["costs"].values())
    costs = sorted(plan["costs"].items(), key=lambda item: -item[1])
    rows = [
        {"component": t.get(f"component.{name}", name), "amount": amount, "share": amount / total if total else 0.0}
        for name, amount in costs
    ]
    words = t("chart.cost.alt", parts=", ".join(f"{row['component']} {row['share']:.1%}" for row in rows))
    base = alt.Chart(alt.InlineData(values=rows), description=words).encode(
        y=alt.Y("component:N", title=None, sort=[row["component"] for row in rows], axis=alt.Axis(labelLimit=180)),
        x=alt.X("amount:Q", title=t("chart.cost", currency=currency), axis=alt.Axis(format="~s", tickCount=6)),
        tooltip=[
            alt.Tooltip("component:N", title=t("column.component")),
            alt.Tooltip("amount:Q", title=currency, format=",.0f"),
            alt.Tooltip("share:Q", title=t("column.share"), format=".1%"),
        ],
    )
    labels = base.mark_text(align="left", dx=4, color=GREY).encode(text=alt.Text("share:Q", format=".1%"))
    return alt.LayerChart(layer=[base.mark_bar(color=BLUE), labels], description=words).properties(
        height=70 + BAR_PX * len(rows)
    )


def load_chart(plan: Plan, site: str, phase: int, t: Words) -> alt.Chart:
    """Draw the power at a site in each hour of the typical day, of owned and of rented systems."""
    hours = _hours(plan, site, phase)
    own, rented = t("chart.own"), t("chart.rented")
    rows = []
    for hour in hours:
        edges = (0.0, hour["own_power_w"] / MEGA, hour["power_w"] / MEGA)
        for who, low, high in ((own, *edges[:2]), (rented, *edges[1:])):
            rows.append(
                {
                    "start": hour["hour_utc"],
                    "end": hour["hour_utc"] + 1,
                    "who": who,
                    "low": low,
                    "high": high,
                    "mw": high - low,
                }
            )
    loads = [hour["power_w"] / MEGA for hour in hours]
    words = t("chart.load.alt", site=site, low=f"{min(loads):.3g}", high=f"{max(loads):.3g}")
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_rect()
        .encode(
            x=_hour_axis(labels=False),
            x2="end:Q",
            y=alt.Y(
                "low:Q",
                title=t("chart.load"),
                scale=alt.Scale(zero=True),
                axis=alt.Axis(minExtent=AXIS_PX, tickCount=5),
            ),
            y2="high:Q",
            color=alt.Color(
                "who:N",
                title=None,
                scale=alt.Scale(domain=[own, rented], range=[BLUE, SKY]),
                legend=alt.Legend(orient="top", labelLimit=0),
            ),
            tooltip=[
                alt.Tooltip("start:Q", title=t("chart.hour")),
                alt.Tooltip("who:N", title=t("chart.who")),
                alt.Tooltip("mw:Q", title=t("chart.load"), format=".3f"),
            ],
        )
        .properties(height=LOAD_PX)
    )
    return chart


def price_chart(plan: Plan, site: str, phase: int, t: Words) -> alt.Chart:
    """Draw the price of electricity at a site in each hour of the typical day, as steps."""
    currency = plan["spec"].get("currency", "USD")
    rows = [{"start": hour["hour_utc"], "price": hour["price_per_j"] * MWH_J} for hour in _hours(plan, site, phase)]
    rows.append({"start": rows[-1]["start"] + 1, "price": rows[-1]["price"]})  # so that the last hour has a length
    prices = [row["price"] for row in rows]
    unit = t("chart.price", currency=currency)
    words = t("chart.price.alt", site=site, unit=unit, low=f"{min(prices):.3g}", high=f"{max(prices):.3g}")
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_line(color=RED, interpolate="step-after", strokeWidth=2)
        .encode(
            x=_hour_axis(labels=True, title=t("chart.hour")),
            y=alt.Y("price:Q", title=unit, axis=alt.Axis(minExtent=AXIS_PX, tickCount=4, format=",.3~r")),
            tooltip=[alt.Tooltip("start:Q", title=t("chart.hour")), alt.Tooltip("price:Q", title=unit, format=".2f")],
        )
        .properties(height=PRICE_PX)
    )
    return chart


def sites_with_load(plan: Plan) -> list[str]:
    """List the sites of the schedule."""
    return list(dict.fromkeys(row["site"] for row in plan["schedule"]))


def phases(plan: Plan) -> dict[int, float]:
    """Compute the seconds that each phase lasts."""
    seconds: dict[int, dict[int, float]] = {}
    for row in plan["schedule"]:
        seconds.setdefault(row["phase"], {})[row["slot"]] = row["seconds"]
    return {phase: sum(slots.values()) for phase, slots in seconds.items()}


def _hours(plan: Plan, site: str, phase: int) -> list[dict[str, Any]]:
    return by_hour(row for row in plan["schedule"] if row["site"] == site and row["phase"] == phase)


def _hour_axis(labels: bool, title: str | None = None) -> alt.X:
    axis = alt.Axis(values=list(range(0, 25, 4)), labels=labels, format="02d")
    return alt.X("start:Q", title=title, scale=alt.Scale(domain=[0, 24], nice=False), axis=axis)


def _colour(field: str, names: Sequence[str], title: str) -> alt.Color:
    """Assign colours in a fixed order, so that names keep theirs from plan to plan; they repeat after eight."""
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    return alt.Color(
        field, title=title, scale=alt.Scale(domain=list(names), range=colours), legend=alt.Legend(labelLimit=220)
    )
