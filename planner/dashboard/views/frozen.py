"""The page of a plan link: the plan as it was frozen, or why it does not open. Nothing here starts a process."""

from __future__ import annotations

import time

import streamlit as st

from planner.dashboard.frozen import links
from planner.dashboard.frozen.links import day
from planner.dashboard.state.session import Shown
from planner.dashboard.views import units as units_view
from planner.dashboard.views.plan import BEGUN, HEAD_START_S, draw_figures
from planner.escape import page
from planner.report.locale import Words

FORK = "fork"  # in the state of the session: the link whose plan the visitor takes over


def draw(name: str, language: str, query: dict[str, list[str]]) -> Words:
    """Draw the plan of a link, or say that it does not open, and nothing else; returns the texts of the page."""
    found = links.opened(name)
    if found.plan is None or found.record is None:
        t = Words(language)
        st.header(t("links.dead"), anchor=False)
        st.markdown(t(f"links.dead.{found.over}", date=day(found.record.until_s) if found.record else ""))
        return t
    t = units_view.of_document(found.plan.document["spec"], language, query)
    record = found.record
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            t("links.mine"), key="fork", on_click=_fork, args=(name,), type="primary", icon=":material/fork_right:"
        )
        st.caption(_made(record, t))
    known: dict[str, Shown] = st.session_state.setdefault("frozen", {})
    if name not in known:
        known[name] = Shown(found.plan, str(found.plan.document["name"]))
    draw_frozen(known[name], t, record.title)
    return t


def draw_frozen(shown: Shown, t: Words, title: str = "") -> None:
    """Draw a plan without anything that changes or solves it."""
    menu = draw_figures(shown, [], t, title)
    if BEGUN not in st.session_state:
        time.sleep(HEAD_START_S)  # as on the page of a plan that can be changed
        st.session_state[BEGUN] = True
    from planner.dashboard.parts import alone  # loaded while the browser draws the figures

    alone.draw_rest(shown, t, menu)


def _made(record: links.Record, t: Words) -> str:
    given = {"date": day(record.made_s), "until": day(record.until_s)}
    return t("links.made_by", author=page(record.author), **given) if record.author else t("links.made", **given)


def _fork(name: str) -> None:
    st.session_state[FORK] = name
