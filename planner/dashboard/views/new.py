"""The page that begins a spec: what the fleet is for, a model, and files where there are any; the draft is one of the workspace."""

from __future__ import annotations

from typing import Any

import streamlit as st

from catalog.lookup import shipped_catalog
from planner.dashboard.editor.beginning import OWNED, QUESTIONS, Answers, File, drafted
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views.blocks.fields import told
from planner.errors import Issue, SpecError
from planner.escape import page
from planner.report.locale import Words
from planner.ways_in.draft import ARCHITECTURE
from planner.ways_in.training import BOTH, DEADLINE, SERVE, TOKENS, TRAIN

BEGUN, REFUSED = "new_begun", "new_refused"
KINDS = {"config": ["json"], "trace": ["csv", "json", "jsonl", "txt"], "fleet": ["csv", "json", "txt"]}


def draw(work: Work, t: Words) -> None:
    """Draw the page."""
    st.caption(t("new.words"))
    answers = _asked(t)
    if st.button(t("new.draft"), type="primary", icon=":material/add:", key="new-draft", disabled=work.job is not None):
        _begin(work, answers)
    problems: tuple[Issue, ...] = st.session_state.get(REFUSED, ())
    for problem in problems:
        told(problem, t, _place(problem.path, t))
    if not problems and st.session_state.get(BEGUN) == work.scenario.origin:
        _draw_draft(work, t)


def _asked(t: Words) -> Answers:
    """Ask, and return the answers."""
    aim: str = st.pills(
        t("new.aim"),
        QUESTIONS,
        default=SERVE,
        required=True,
        format_func=lambda name: t(f"new.aim.{name}"),
        key="new-aim",
    )
    given: dict[str, Any] = {"work": aim}
    left, right = st.columns(2)
    with left:
        given["model"] = st.text_input(
            t("new.model"), key="new-model", placeholder=ARCHITECTURE, help=t("new.model.help")
        )
        regions = ["", *shipped_catalog().names("regions")]
        given["region"] = st.selectbox(
            t("new.region"), regions, format_func=lambda name: name or t("new.guess"), key="new-region"
        )
        if aim != TRAIN:
            given["demand"] = st.text_input(t("new.demand"), key="new-demand", placeholder=t("new.demand.example"))
        if aim in (TRAIN, BOTH):
            given["tokens"] = st.text_input(
                t("new.tokens"), key="new-tokens", placeholder=t("blocks.example", value=TOKENS)
            )
            given["deadline"] = st.text_input(
                t("new.deadline"), key="new-deadline", placeholder=t("blocks.example", value=DEADLINE)
            )
    with right:
        if aim == OWNED:
            given["fleet"] = _file("fleet", t)
        if aim != TRAIN:
            given["trace"] = _file("trace", t)
        given["config"] = _file("config", t)
    return Answers(**given)


def _file(name: str, t: Words) -> File | None:
    found = st.file_uploader(t(f"new.{name}"), type=KINDS[name], key=f"new-{name}", help=t(f"new.{name}.help"))
    return None if found is None else (found.name, found.getvalue())


def _begin(work: Work, answers: Answers) -> None:
    """Draft the spec and turn to it, or keep the problems of the answers."""
    state = st.session_state
    try:
        document, notes = drafted(answers)
    except SpecError as error:
        state[REFUSED] = tuple(error.problems)
        return
    state[REFUSED] = ()
    work.turn_to(Scenario.of_upload(document))
    state[BEGUN], state.new_notes = work.scenario.origin, tuple(notes)
    st.rerun()


def _draw_draft(work: Work, t: Words) -> None:
    """Say what was drafted, how the files were read, and each guess with its reason; go on to the spec or solve it."""
    document = work.scenario.document()
    st.success(t("new.done", name=page(str(document["name"]))))
    with st.container(horizontal=True):
        pages = st.session_state.get("pages")
        if pages:
            st.page_link(pages["tables"], label=t("new.to_spec"), icon=":material/arrow_forward:")
        if st.button(t("edit.solve"), key="new-solve", disabled=work.job is not None, icon=":material/play_arrow:"):
            work.start(work.scenario)
            st.rerun()
    for fact in st.session_state.get("new_notes", ()):
        st.caption(page(fact.message.text(t.language)))
    guesses = document.get("assumptions", {})
    if guesses:
        st.markdown(t("new.guesses", count=len(guesses)))
        st.table(
            [
                {t("column.path"): page(path), t("column.reason"): page(t.phrase(reason))}
                for path, reason in guesses.items()
            ],
            hide_index=True,
        )


def _place(path: str, t: Words) -> str:
    """Name the question that a problem belongs to."""
    name = path.removeprefix("--")
    asked = {"model": "new.model", "fleet": "new.fleet", "rate": "new.demand", "region": "new.region"}
    for key in ("tokens", "deadline"):
        if path.endswith(f".{key}"):
            name, asked[key] = key, f"new.{key}"
    return t(asked[name]) if name in asked else path
