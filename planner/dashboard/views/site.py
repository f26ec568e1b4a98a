"""Let the visitor choose one site of a plan: by a click in a chart, or by its name."""

from __future__ import annotations

import streamlit as st

from planner.dashboard import one_site
from planner.dashboard.views import looking
from planner.plan import Plan
from planner.report.locale import Words

SITE, DRAWN = "site", "site_drawn"


def chosen(plan: Plan) -> str | None:
    """Return the site that was chosen, if the plan uses it."""
    sites = one_site.sites_of(plan)
    if SITE not in st.session_state:
        st.session_state[SITE] = looking.first("site", list(sites), None)
    site = st.session_state[SITE]
    found: str | None = site if site in sites else None
    looking.note("site", found, None)
    return found


def choose(site: str | None) -> None:
    """Choose a site, or all."""
    st.session_state[SITE] = site


def show_all() -> None:
    """Show all sites again, and draw the charts without the click."""
    choose(None)
    st.session_state[DRAWN] = st.session_state.get(DRAWN, 0) + 1


def key(name: str) -> str:
    """Name a chart to click in; another one once the choice was made elsewhere, so that no old click stays in it."""
    return f"pick-{name}-{st.session_state.get(DRAWN, 0)}"


def _pick(before: str | None) -> None:
    """Choose the site whose name was clicked, or all if it was clicked again."""
    show_all()
    choose(st.session_state[f"site-{before}"])


def draw(plan: Plan, t: Words) -> str | None:
    """Draw the names of the sites, and what the chosen one comes to; returns it."""
    names, now = one_site.sites_of(plan), chosen(plan)
    if len(names) < 2:
        return None
    st.pills(
        t("site.choose"), names, default=now, key=f"site-{now}", selection_mode="single", on_change=_pick, args=(now,)
    )
    if now is not None:
        st.info(one_site.site_words(plan, now, t), icon=":material/filter_alt:")
    return now
