"""Draw hours and places: sites on a map at an hour, the load served, prices over the year, and the dispatch of electricity."""

from __future__ import annotations

import streamlit as st

from catalog.units import DAY_S
from planner.dashboard import answers, headline, sources
from planner.dashboard.state.session import Shown
from planner.dashboard.views import looking
from planner.dashboard.views import site as site_view
from planner.dashboard.views.drawing import draw_chart, draw_to_pick
from planner.escape import page
from planner.plan import Plan
from planner.report.charts import hours, places
from planner.report.locale import Words
from planner.report.phases import phase_name

EVENING = 18  # hour that the page opens at


def draw_hours(shown: Shown, t: Words) -> None:
    """Draw the sites at an hour, the load served, prices, and the dispatch; nothing for a plan without load."""
    phase = hours.first_loaded_phase(shown.plan)
    if phase is None:
        return
    plan, phases = shown.plan, hours.phases(shown.plan)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(phases) > 1:
            phase = st.segmented_control(
                t("day.phase"),
                list(phases),
                format_func=lambda p: t(
                    "day.days", phase=page(phase_name(plan, p, t.language)), days=f"{phases[p] / DAY_S:,.0f}"
                ),
                default=phase,
                key="hours-phase",
                required=True,
            )
        by = st.segmented_control(
            t("hours.by"),
            [places.PRICE, places.CARBON],
            format_func=lambda name: t(f"hours.{name}"),
            default=looking.first("by", [places.PRICE, places.CARBON], places.PRICE),
            key="hours-by",
            required=True,
        )
    hour = st.slider(
        t("hours.hour"), 0, 23, looking.first("hour", range(24), EVENING), key="hours-hour", format="%02d:00"
    )
    looking.note("by", by, places.PRICE)
    looking.note("hour", hour, EVENING)
    _map(plan, phase, hour, by, t)
    here = site_view.chosen(plan)
    place = st.container()
    if draw_chart(shown if here is None else shown.at_site(here), t, places.served_chart, phase):
        place.subheader(t("hours.served") if here is None else t("hours.served_at", site=page(here)))
    _heat(shown, phase, by, t)
    if rows := answers.dispatch_table(plan, t, here):
        st.subheader(t("hours.dispatch"))
        st.dataframe(rows, hide_index=True, width="stretch")


def _map(plan: Plan, phase: int, hour: int, by: str, t: Words) -> None:
    """Draw the sites and list what each has at the hour."""
    st.subheader(t("hours.places"))
    chart = places.map_chart(plan, sources.places_of(plan), phase, hour, by, t)
    if chart is not None:
        draw_to_pick(chart.to_dict(), "site", site_view.key("map"), site_view.choose)
        st.caption(t("hours.map_words"))
    if (here := site_view.chosen(plan)) is not None:
        st.info(t("site.chosen", site=page(here)), icon=":material/filter_alt:")
        st.button(t("site.all"), on_click=site_view.show_all, icon=":material/filter_alt_off:")
    rows = places.hour_rows(plan, phase, hour, t)
    st.dataframe(
        [
            {
                t("column.site"): site,
                hours.load_unit(plan, t).symbol: round(row[places.LOAD], 3),
                t("chart.price", currency=headline.shown_currency(plan, t)): round(row[places.PRICE], 2),
                "g/kWh": round(row[places.CARBON], 1),
            }
            for site, row in rows.items()
        ],
        hide_index=True,
        width="stretch",
    )


def _heat(shown: Shown, phase: int, by: str, t: Words) -> None:
    """Draw the days and hours of a site."""
    sites = hours.sites_with_load(shown.plan, phase)
    if not sites:
        st.info(t("day.nothing"))
        return
    st.subheader(t("hours.heat"))
    here = site_view.chosen(shown.plan)
    place = sites.index(here) if here in sites else 0
    site = st.selectbox(t("column.site"), sites, place, key=f"hours-site-{here}", width=260)
    draw_chart(shown, t, places.heat_chart, site, phase, by)
