"""The page of a plan: its verdict, its sentence and its main figures. Below them: `plan_sections`; the form above: `plan_form`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import streamlit as st

from planner.dashboard import headline, sources
from planner.dashboard.state.session import Work
from planner.dashboard.views.parts import draw_changes
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.dashboard.views.units import rate_words
from planner.errors import SpecError
from planner.escape import page
from planner.report.locale import Words

if TYPE_CHECKING:
    from planner.dashboard.state.session import Shown
    from planner.plan import Plan

NARROW_PX, WIDE_PX = 170, 214  # widths of metrics, which wrap where the page is narrow
HEAD_START_S = 0.4
"""How long a browser has for the main figures before it is sent the rest: it draws nothing while it loads what draws charts."""
BEGUN = "plan_begun"  # set once a visitor was sent a whole page of a plan


def draw(work: Work, t: Words) -> None:
    """Draw the page; at a visitor's first look the rest waits until the browser had time to show the main figures."""
    try:
        shown = work.shown()
    except SpecError as error:
        draw_refusal(work, error, t)
        return
    draw_problems(work, t)
    form = st.expander(t("edit.title"), key=f"edit-{st.session_state.get('solves', 0)}", icon=":material/edit:")
    if shown is not None:
        draw_figures(shown, work.scenario.changes(), t)
        if BEGUN not in st.session_state:
            time.sleep(HEAD_START_S)  # in the script itself: a rerun of its own could undo a click on another page
    _rest(work, shown, form, t)


def _rest(work: Work, shown: Shown | None, form: Any, t: Words) -> None:
    """Draw the form, and the part below the main figures of a plan."""
    from planner.dashboard.views import plan_form, plan_sections  # loaded while the browser draws the figures

    st.session_state[BEGUN] = True
    busy = work.job is not None
    try:
        with form:
            plan_form.draw(work, t)
    except SpecError as error:
        draw_refusal(work, error, t)
        return
    if shown is not None:
        plan_sections.draw_rest(
            shown,
            t,
            on_repair=lambda: plan_form.repair(work),
            on_more_time=lambda: None if busy else plan_form.more_time(work),
            busy=busy,
        )
    elif not busy:
        st.header(page(t.phrase(sources.title_of(str(work.scenario.document()["name"])))))
        st.info(t("page.unsolved"))


def draw_figures(shown: Shown, changes: list[dict[str, Any]], t: Words, title: str = "") -> None:
    """Draw name, or a title in its place, verdict, sentence and main figures of a plan."""
    plan = shown.plan
    st.header(page(title or t.phrase(sources.title_of(str(plan.document["name"])))), anchor=False)
    _verdict(shown, changes, t)
    if headline.tells_figures(plan):
        st.markdown(headline.in_short(plan, t))
        if words := rate_words(headline.currency(plan), t, sources.rates(plan.document["spec"])):
            st.caption(words)
        _metrics(plan, t)


def _verdict(shown: Shown, changes: list[dict[str, Any]], t: Words) -> None:
    """Say how good the plan is; of one that fails its verification only that it does, and what it claims as a claim."""
    level, sentence = headline.verdict(shown.plan, t)
    if shown.findings:
        st.error(t("check.broken") + "\n\n" + "\n".join(f"- {page(t.phrase(finding))}" for finding in shown.findings))
        st.caption(t("check.claimed", claim=sentence))
    else:
        {"success": st.success, "warning": st.warning, "error": st.error}[level](sentence)
        if shown.plan.has_answer:
            st.caption(t("check.stored" if shown.stored else "check.holds"))
    draw_changes(changes, t)


def _metrics(plan: Plan, t: Words) -> None:
    for found, width in (
        (headline.plan_metrics(plan, t), NARROW_PX),
        (headline.workload_metrics(plan, t), WIDE_PX),
    ):
        with st.container(horizontal=True):
            for metric in found:
                st.metric(metric.label, metric.value, help=metric.help, border=True, width=width)
    st.caption(headline.energy_line(plan, t))
