"""Draw load and price of electricity by the hour of the typical day, for a site and a phase."""

from __future__ import annotations

import altair as alt

from catalog.units import MWH_J
from planner.plan import Plan
from planner.plan.rows.time import Slot
from planner.report.charts.style import BLUE, RED, SKY
from planner.report.hours import by_hour
from planner.report.locale import Words
from planner.report.locale.display import Scale

LOAD_PX, PRICE_PX = 210, 160  # with legend and axis
AXIS_PX = 46  # width of the axis in both panels, so that their hours align


def load_unit(plan: Plan, t: Words) -> Scale:
    """Choose the unit of the load of sites, the same for all of them and at all hours."""
    return t.display.scale("W", max((row["power_w"] for row in plan.document["schedule"]), default=0.0))


def load_chart(plan: Plan, site: str, phase: int, t: Words) -> alt.Chart:
    """Draw the power at a site in each hour of the typical day, of owned and of rented systems."""
    hours = _hours(plan, site, phase)
    unit, size = load_unit(plan, t)
    own, rented = t("chart.own"), t("chart.rented")
    rows = []
    for hour in hours:
        edges = (0.0, hour["own_power_w"] / size, hour["power_w"] / size)
        for who, low, high in ((own, *edges[:2]), (rented, *edges[1:])):
            rows.append(
                {
                    "start": hour["hour_utc"],
                    "end": hour["hour_utc"] + 1,
                    "who": who,
                    "low": low,
                    "high": high,
                    "load": high - low,
                }
            )
    loads = [hour["power_w"] / size for hour in hours]
    words = t("chart.load.alt", site=site, low=f"{min(loads):.3g}", high=f"{max(loads):.3g}", unit=unit)
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), description=words)
        .mark_rect()
        .encode(
            x=_hour_axis(labels=False),
            x2="end:Q",
            y=alt.Y(
                "low:Q",
                title=t("chart.load", unit=unit),
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
                alt.Tooltip("load:Q", title=t("chart.load", unit=unit), format=",.4~r"),
            ],
        )
        .properties(height=LOAD_PX)
    )
    return chart


def price_chart(plan: Plan, site: str, phase: int, t: Words) -> alt.Chart:
    """Draw the price of electricity at a site in each hour of the typical day, as steps."""
    stated = plan.document["spec"].get("currency", "USD")
    currency = t.display.shown(stated)
    rows = [
        {"start": hour["hour_utc"], "price": t.display.money(hour["price_per_j"], stated) * MWH_J}
        for hour in _hours(plan, site, phase)
    ]
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


def sites_with_load(plan: Plan, phase: int) -> list[str]:
    """List the sites that draw power in a phase, the largest load first."""
    loads: dict[str, float] = {}
    for row in plan.document["schedule"]:
        if row["window"] == phase:
            loads[row["site"]] = loads.get(row["site"], 0.0) + row["energy_j"]
    return sorted((site for site, energy in loads.items() if energy > 0), key=lambda site: -loads[site])


def phases(plan: Plan) -> dict[int, float]:
    """Compute the seconds that each phase lasts."""
    seconds: dict[int, dict[int, float]] = {}
    for row in plan.document["schedule"]:
        seconds.setdefault(row["window"], {})[row["slot"]] = row["seconds"]
    return {phase: sum(slots.values()) for phase, slots in seconds.items()}


def first_loaded_phase(plan: Plan) -> int | None:
    """Return the first phase in which a site draws power; None where none does."""
    return next((phase for phase in phases(plan) if sites_with_load(plan, phase)), None)


def _hours(plan: Plan, site: str, phase: int) -> list[Slot]:
    return by_hour(row for row in plan.document["schedule"] if row["site"] == site and row["window"] == phase)


def _hour_axis(labels: bool, title: str | None = None) -> alt.X:
    axis = alt.Axis(values=list(range(0, 25, 4)), labels=labels, format="02d")
    return alt.X("start:Q", title=title, scale=alt.Scale(domain=[0, 24], nice=False), axis=axis)
