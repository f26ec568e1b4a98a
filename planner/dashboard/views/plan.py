"""The page Decision: what to buy, where and when, what it costs, how sure it is, and what would help, on one screen. Its texts: `deciding`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from planner.dashboard import deciding, headline, sources
from planner.dashboard.parts.before import before
from planner.dashboard.state.session import Work
from planner.dashboard.views.parts import draw_changes, draw_no_plan
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.dashboard.views.units import rate_words
from planner.errors import SpecError
from planner.escape import page
from planner.report.locale import Words

if TYPE_CHECKING:
    from planner.dashboard.state.session import Shown

NARROW_PX, WIDE_PX = 150, 225  # widths of metrics, which wrap where the page is narrow
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
    known = before(work)
    seen = known.shown if shown is None and known is not None and work.job is not None else shown
    if seen is None:
        _without(work, t)
        return
    with st.container(key="plan" if work.job is None else "dimmed", gap="small"):
        menu = draw_figures(seen, work.scenario.changes() if seen is shown else (), t)
        if BEGUN not in st.session_state:
            time.sleep(HEAD_START_S)  # in the script itself: a rerun of its own could undo a click on another page
        _rest(work, seen, menu, t)


def _without(work: Work, t: Words) -> None:
    """Say that there is no plan yet, and offer to solve or to share the figures alone."""
    st.session_state[BEGUN] = True
    menu = _head(page(t.phrase(sources.title_of(str(work.scenario.document()["name"])))))
    draw_changes(work.scenario.changes(), t)
    if work.job is None:
        draw_no_plan(work, t)
    _menu(work, None, menu, t)


def _rest(work: Work, shown: Shown, menu: Any, t: Words) -> None:
    """Draw the tables below the main figures of a plan, and the menu."""
    from planner.dashboard.views import plan_form, plan_sections  # loaded while the browser draws the figures

    st.session_state[BEGUN] = True
    busy = work.job is not None
    plan_sections.draw_decision(
        shown,
        t,
        on_repair=lambda: plan_form.repair(work),
        on_more_time=lambda: None if busy else plan_form.more_time(work),
        busy=busy,
    )
    _menu(work, shown, menu, t)


def _menu(work: Work, shown: Shown | None, place: Any, t: Words) -> None:
    """Fill the menu: present, share, export."""
    from planner.dashboard.parts import menu

    with place:
        menu.draw(work, shown, t)


def _head(title: str) -> Any:
    """Draw the title, and beside it the place of the menu, which is returned."""
    with st.container(key="head"):
        left, right = st.columns([5, 1], vertical_alignment="center")
    left.header(title, anchor=False)
    return right


def draw_figures(shown: Shown, changes: Sequence[Mapping[str, Any]], t: Words, title: str = "") -> Any:
    """Draw name, or a title in its place, who made the plan and when, what it buys, how sure it is, and its main figures.

    Returns the place of the menu.
    """
    plan = shown.plan
    menu = _head(page(title or t.phrase(sources.title_of(str(plan.document["name"])))))
    draw_changes(changes, t)
    level, sentence = headline.verdict(plan, t)
    if shown.findings:
        st.error(t("check.broken") + "\n\n" + "\n".join(f"- {page(t.phrase(finding))}" for finding in shown.findings))
        st.caption(t("check.claimed", claim=sentence))
    if not headline.tells_figures(plan):
        if not shown.findings:
            {"success": st.success, "warning": st.warning, "error": st.error}[level](sentence)
        return menu
    risk = deciding.UNKNOWN if shown.findings else deciding.risk(plan)
    with st.container(key=f"risk-{risk}", gap="small"):
        st.markdown(f"**{headline.in_short(plan, t, sure=False)}**")
        st.markdown(t(f"decision.risk.{risk}", words=deciding.odds_words(plan, t)))
        if helps := deciding.helps(plan, t):
            st.markdown(t("decision.helps", words=helps))
    _metrics(shown, t)
    if not shown.findings:
        st.caption(t("decision.status", status=sentence, check=t("check.stored" if shown.stored else "check.holds")))
    if words := rate_words(headline.currency(plan), t, sources.rates(plan.document["spec"])):
        st.caption(words)
    return menu


def _metrics(shown: Shown, t: Words) -> None:
    """Draw cost with its range, odds and size; below them who made the plan and when, prices of tokens, and energy."""
    plan = shown.plan
    odds = deciding.odds(plan)
    with st.container(horizontal=True, gap="small"):
        for metric, span in deciding.cost_metrics(plan, t):
            _metric(metric, WIDE_PX, span)
        if odds is not None:
            words = t(
                "decision.odds_promised" if odds.is_promised else "decision.odds_asked", asked=f"{odds.asked:.0%}"
            )
            help_text = t("hold.kept.help", scenarios=f"{odds.scenarios:,}")
            _metric(headline.Metric(t("hold.kept"), f"{odds.kept:.0%}", help_text), WIDE_PX, words)
        for found in headline.plan_metrics(plan, t)[1:4]:
            _metric(found, NARROW_PX, None)
    made = deciding.made_words(shown.made_s, st.session_state.get("link-author", ""), shown.stored, t)
    st.caption(" · ".join(filter(None, (made, deciding.prices_words(plan, t), headline.energy_line(plan, t)))))


def _metric(metric: headline.Metric, width: int, words: str | None) -> None:
    """Draw a figure, with words below it."""
    st.metric(
        metric.label, metric.value, words, delta_color="off", delta_arrow="off", help=metric.help,
        border=True, width=width, height="stretch",
    )  # fmt: skip
