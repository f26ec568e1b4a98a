"""Begin a page of several parts: the choice of one, its words, and the spec and plan of the scenario at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

from planner.dashboard import answers, headline
from planner.dashboard.state.session import Work
from planner.dashboard.views import looking
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.errors import SpecError
from planner.escape import page
from planner.plan import Plan
from planner.report.locale import Words


class AtHand(NamedTuple):
    """The spec of the scenario at hand, and its plan if it is known and answers."""

    document: dict[str, Any]
    plan: Plan | None


def choose_part(
    label: str, parts: Sequence[str], first: str, text: Callable[[str], str], key: str, t: Words, named: str = "part"
) -> str:
    """Let the visitor choose a part of a page, and say what it shows: `text` names the key of its title, and with `.words` of its words.

    `named`: the parameter of the address that holds the choice.
    """
    part: str = st.pills(
        label,
        parts,
        default=looking.first(named, parts, first),
        required=True,
        format_func=lambda name: t(text(name)),
        key=key,
        persist_state="session",
        label_visibility="collapsed",
    )
    looking.note(named, part, first)
    st.markdown(t(f"{text(part)}.words"))
    return part


def at_hand(work: Work, t: Words) -> AtHand | None:
    """Draw the problems of the last change, and return the scenario at hand; None where it is none, which is told too."""
    try:
        document, shown = work.scenario.document(), work.shown()
    except SpecError as error:
        draw_refusal(work, error, t)
        return None
    draw_problems(work, t)
    return AtHand(document, shown.plan if shown is not None and shown.plan.has_answer else None)


def draw_no_plan(work: Work, t: Words) -> None:
    """Say why there is no plan to show, and offer what helps: a solve, or the page that names the obstacles of the one that was made."""
    shown = work.shown()
    if shown is not None:
        st.info(t("page.no_answer", verdict=headline.verdict(shown.plan, t)[1]))
        pages = st.session_state.get("pages")
        if pages:
            st.page_link(pages["decision"], label=t("page.to_plan"), icon=":material/arrow_forward:")
        return
    st.info(t("page.no_plan_yet"))
    busy = work.job is not None
    if st.button(t("edit.solve"), key="solve-here", type="primary", disabled=busy, icon=":material/play_arrow:"):
        work.start(work.scenario)
        st.rerun()


def to_decision(work: Work) -> None:
    """Turn to the first page, where the progress and the answer of a solve are in sight; stays where the server has begun none."""
    if not work.problems:
        there = st.session_state["pages"]["decision"]
        st.session_state["page"] = there.url_path  # what the server has to say of the plan is told there
        st.switch_page(there)
    st.rerun()


def draw_changes(changes: Sequence[Mapping[str, Any]], t: Words) -> None:
    """Say what a scenario changes of its base: place, value there and here."""
    if changes:
        words = "; ".join(
            f"{page(row['path'])} {page(answers.written(row['from'])) or '–'} → {page(answers.written(row['to'])) or '–'}"
            for row in changes
        )
        st.caption(t("changes.title", changes=words))
