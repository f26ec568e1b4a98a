"""Draw the page: choose a spec, edit it, solve it, watch the progress, and show the plan. Parts of a plan: `sections`."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from typing import Any

import streamlit as st

from planner.dashboard import answers, editing, sections, sources
from planner.dashboard.locale import DEFAULT, Words, languages
from planner.dashboard.solving import STAGES, Job
from planner.dashboard.state import GROUPS, Question, Shown
from planner.errors import Problem, SpecError
from planner.escape import page
from planner.spec.document import read_document

UPLOAD = "upload"
POLL_S = 0.5
KEPT_PLANS = 8


def draw() -> None:
    """Draw everything, top to bottom."""
    t = _language()
    st.set_page_config(page_title=t("page.title"), page_icon=str(sources.DATA / "icon.png"), layout="wide")
    state = st.session_state
    if "plans" not in state:
        state.plans, state.job, state.changes = {}, None, []
        _forget("")
    with st.sidebar:
        st.title(t("page.title"))
        _choose(t)
        if state.question:
            _edit(state.question, t)
        _choose_language(t)
    _report(t)
    if state.job:
        st.fragment(_watch, run_every=POLL_S)(t)
    if state.shown:
        sections.draw_plan(state.shown, t, on_repair=None if state.job else _repair)
    elif state.question and not state.job:
        st.info(t("page.unsolved"))
    elif not state.question and not state.problems:
        st.info(t("page.upload"))


# -- the spec ----------------------------------------------------------------------------------------------------------


def _choose(t: Words) -> None:
    """Let the user choose an example or upload a file; a new choice replaces question and plan."""
    state, known, busy = st.session_state, sources.examples(), st.session_state.job is not None
    chosen = st.selectbox(
        t("choose.label"),
        [*known, UPLOAD],
        format_func=lambda name: t("choose.upload") if name == UPLOAD else name.replace("_", " "),
        key="source",
        disabled=busy,
    )
    text = b""
    if chosen == UPLOAD:
        upload = st.file_uploader(t("choose.file"), type=["json"], key="file", disabled=busy)
        if upload:
            text = upload.getvalue()
            chosen = f"{UPLOAD}-{hashlib.sha256(text).hexdigest()[:12]}"
    else:
        text = known[chosen].read_bytes()
    if state.taken != chosen:
        _forget(chosen)
        if chosen != UPLOAD:  # chosen, but no file yet
            _take(text)


def _take(text: bytes) -> None:
    """Make the spec in `text` the question, with its plan if known, or report its problems."""
    state = st.session_state
    try:
        document = read_document(text)
        _ask(document, state.taken)
    except SpecError as error:
        state.problems = tuple(error.problems)
        return
    canonical = sources.canonical(document)
    if canonical not in state.plans and state.taken == sources.MAIN:
        stored = sources.stored_plan()
        if sources.canonical(stored["spec"]) == canonical:
            state.plans[canonical] = Shown(stored, answers.downloads(stored, state.taken), stored=True)
    state.shown = state.plans.get(canonical)


def _ask(document: dict[str, Any], key: str) -> None:
    """Make `document` the question, if it is valid. Raises SpecError."""
    problem = sources.resolved(document)
    st.session_state.question = Question(
        key, document, editing.main_figures(document, problem.offers, problem.spec.currency)
    )


def _forget(key: str) -> None:
    """Drop question, plan and problems, and remember the choice."""
    state = st.session_state
    state.taken, state.question, state.shown, state.problems, state.trace = key, None, None, (), ""


def _edit(question: Question, t: Words) -> None:
    """Draw the form of the main figures; its button starts the solve."""
    texts = {}
    with st.form(f"form-{question.key}", border=False):
        solve = st.form_submit_button(
            t("edit.solve"), type="primary", width="stretch", disabled=st.session_state.job is not None, key="solve"
        )
        for group in GROUPS:
            fields = [item for item in question.fields if item.group == group]
            if not fields:
                continue
            with st.expander(t(f"group.{group}"), expanded=group == "workloads"):
                for item in fields:
                    name, _, what = item.subject.partition("|")
                    texts[item.key] = st.text_input(
                        t(item.label, name=page(name), what=page(what)),
                        item.text,
                        key=f"{question.key}/{item.key}",
                        placeholder=item.fallback or t("edit.none"),
                        help=page(item.key),
                    )
    if solve:
        _start(*editing.with_changes(question.document, texts, question.fields))
        st.rerun()  # so that the form is drawn as busy


def _repair() -> None:
    """Apply the repair of the infeasible plan on the page and solve again (runs before the page is drawn)."""
    state = st.session_state
    plan = state.shown.plan
    try:
        document = sources.repaired(plan["spec"], answers.repair(plan))
        _ask(document, f"{state.question.key}+")  # another key: the form starts from the repaired figures
    except SpecError as error:
        state.problems = tuple(error.problems)
        return
    _start(
        document,
        [
            {"path": row["path"], "from": answers.written(row["from"]), "to": answers.written(row["to"])}
            for row in answers.repair(plan)
        ],
    )


def _start(document: dict[str, Any], changes: list[dict[str, str]]) -> None:
    """Start to solve a spec."""
    state = st.session_state
    state.problems, state.trace, state.changes = (), "", changes
    try:
        state.job = Job(document)
    except SpecError as error:  # the server is busy, or allows less time
        state.problems = tuple(error.problems)


# -- the solve ---------------------------------------------------------------------------------------------------------


def _watch(t: Words) -> None:
    """Show the progress; a fragment that reruns by itself while a solve is under way."""
    state = st.session_state
    job: Job | None = state.job
    if job is None:  # ended meanwhile, the page is about to be redrawn
        return
    if job.poll():
        _finish(job)
        st.rerun()
    step = STAGES.index(job.stage)
    words = t(
        "solve.step", step=step + 1, steps=len(STAGES), what=t(f"stage.{job.stage}"), seconds=f"{job.seconds:.0f}"
    )
    st.progress((step + 1) / (len(STAGES) + 1), text=words)
    for line in job.lines:
        st.caption(page(line))
    if st.button(t("solve.cancel"), key="cancel"):
        job.cancel()
        state.job = None
        st.rerun()


def _finish(job: Job) -> None:
    """Take the outcome of a job, and keep its plan."""
    state, outcome = st.session_state, job.outcome
    assert outcome is not None
    state.job = None
    state.problems, state.trace = outcome.problems, outcome.trace
    if outcome.trace:
        print(outcome.trace, file=sys.stderr, flush=True)  # for who runs the server; the page may be shown to anybody
    if outcome.plan:
        state.shown = Shown(outcome.plan, answers.downloads(outcome.plan, state.taken), outcome.findings, state.changes)
        state.plans[sources.canonical(job.document)] = state.shown
        while len(state.plans) > KEPT_PLANS:
            state.plans.pop(next(iter(state.plans)))


def _report(t: Words) -> None:
    """Show the problems of the spec, place by place, or the trace of a bug."""
    state = st.session_state
    if state.problems:
        st.error(t("problems.title"))
        st.table(
            answers.as_markup(_problem_rows(state.problems, t)), hide_index=True
        )  # not a data frame, which would cut long remedies
    if state.trace:
        st.error(t("problems.bug"))


def _problem_rows(problems: Sequence[Problem], t: Words) -> list[dict[str, str]]:
    return [
        {t("column.path"): problem.path or t("problems.file"), t("column.remedy"): problem.message}
        for problem in problems
    ]


# -- the language ------------------------------------------------------------------------------------------------------


def _language() -> Words:
    """Read the language from the address (`?lang=zh`), else take the default."""
    asked = st.query_params.get("lang", DEFAULT)
    return Words(asked if asked in languages() else DEFAULT)


def _choose_language(t: Words) -> None:
    """Let the user choose a language, if there are several."""
    known = languages()
    if len(known) < 2:
        return
    chosen = st.segmented_control(
        t("choose.language"),
        list(known),
        format_func=lambda code: known[code],
        default=t.language,
        key=f"language-{t.language}",
        label_visibility="collapsed",
    )
    if chosen and chosen != t.language:
        st.query_params["lang"] = chosen
        st.rerun()
