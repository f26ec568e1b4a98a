"""The pages of a read-only dashboard: a gallery of stored plans, and each plan, verified. Nothing here starts a process."""

from __future__ import annotations

import streamlit as st

from planner.dashboard import headline, sources
from planner.dashboard.frozen import shelf
from planner.dashboard.frozen.stored import Held
from planner.dashboard.state.session import Shown
from planner.dashboard.views.frozen import draw_frozen
from planner.escape import page
from planner.plan import Plan
from planner.report.locale import Words

PLAN = "plan"  # key of the address


def draw(t: Words) -> None:
    """Draw the plan that the address names, or the gallery."""
    name = st.query_params.get(PLAN, "")
    if not name:
        _gallery(t)
        return
    st.button(t("gallery.all"), key="gallery", on_click=_turn_to, args=("",), icon=":material/arrow_back:")
    held = shelf.opened(name)
    if held is None:
        st.header(t("gallery.unknown"), anchor=False)
        return
    draw_frozen(_shown(name, held), t)


def _shown(name: str, held: Held) -> Shown:
    """Prepare a plan for its page, once for a visitor."""
    known: dict[str, Shown] = st.session_state.setdefault("frozen", {})
    if name not in known or known[name].plan is not held.plan:
        known[name] = Shown(held.plan, name, held.findings)
    return known[name]


def _gallery(t: Words) -> None:
    st.header(t("gallery.title"), anchor=False)
    found = shelf.plans()
    st.caption(t("gallery.words") if found else t("gallery.none"))
    for name, plan in found.items():
        with st.container(border=True):
            st.subheader(page(t.phrase(sources.title_of(str(plan.document["name"])))), anchor=False)
            st.markdown(_sentence(plan, t))
            st.button(
                t("gallery.open"), key=f"open-{name}", on_click=_turn_to, args=(name,), icon=":material/receipt_long:"
            )


def _sentence(plan: Plan, t: Words) -> str:
    """Say what a plan buys and rents, or why it has nothing to say of that."""
    return headline.in_short(plan, t) if headline.tells_figures(plan) else headline.verdict(plan, t)[1]


def _turn_to(name: str) -> None:
    """Turn to a plan by its name, or to the gallery."""
    if name:
        st.query_params[PLAN] = name
    else:
        st.query_params.pop(PLAN, None)
