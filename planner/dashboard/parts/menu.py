"""The menu of a plan: present it, share it, export it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from planner.dashboard.parts.pages import PRESENT
from planner.dashboard.state.session import Shown, Work
from planner.dashboard.views import share
from planner.dashboard.views.units import ways
from planner.report.locale import Words
from planner.report.outputs import excel, html

EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def draw(work: Work, shown: Shown | None, t: Words) -> None:
    """Draw the menu; what cannot be done without a plan is left out."""
    if st.session_state.get(PRESENT):
        st.button(
            t("decision.present_end"), key="present-end", on_click=present, args=(False,), icon=":material/close:"
        )
        return
    with st.popover(t("decision.menu"), icon=":material/ios_share:", key="plan-menu"):
        if shown is not None:
            st.button(t("decision.present"), key="present", on_click=present, args=(True,), icon=":material/slideshow:")
        st.markdown(f"**{t('share.title')}**")
        share.draw(work, ways(t), t)
        if shown is not None:
            st.markdown(f"**{t('decision.export')}**")
            draw_files(shown, t)


def present(shows: bool) -> None:
    """Show the screen alone, without navigation and choices, or everything again."""
    st.session_state[PRESENT] = shows


def draw_files(shown: Shown, t: Words) -> None:
    """Offer the plan as files; the large ones are written when they are asked for."""
    with st.container(horizontal=True):
        for file in shown.files:
            st.download_button(
                t(file.label), file.data, file.file, file.mime, on_click="ignore", icon=":material/download:"
            )
        for label, name, mime, write in (
            ("download.html", "plan.html", "text/html", partial(html.html_page, language=t.language)),
            ("download.excel", "plan.xlsx", EXCEL, excel.workbook),
        ):
            st.download_button(
                t(label), partial(write, shown.plan), name, mime, on_click="ignore", icon=":material/download:"
            )
