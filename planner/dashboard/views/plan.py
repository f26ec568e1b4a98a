"""The page of the plan: its problems, the form of its main figures, and the plan itself."""

from __future__ import annotations

import streamlit as st

from catalog.units import parse, show
from planner.dashboard import answers, editing, sources
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan_sections
from planner.dashboard.views.problems import draw_problems
from planner.dashboard.workers import bounds
from planner.errors import SpecError
from planner.escape import page
from planner.report.locale import Words
from planner.spec.document import at
from planner.spec.model import SolverOptions

GROUPS = ("workloads", "sites", "offers", "limits", "solver")


def draw(work: Work, t: Words) -> None:
    """Draw the page."""
    try:
        document = work.scenario.document()
        fields = _fields(document)
        shown = work.shown()
    except SpecError as error:
        work.problems = tuple(error.problems)
        draw_problems(work, t)
        return
    draw_problems(work, t, {field.key for field in fields})
    with st.expander(t("edit.title"), key=f"edit-{st.session_state.get('solves', 0)}", icon=":material/edit:"):
        _edit(work, document, fields, t)
    if shown:
        busy = work.job is not None
        plan_sections.draw_plan(
            shown,
            work.scenario.changes(),
            t,
            on_repair=None if busy else lambda: _repair(work),
            on_more_time=None if busy else _more_time(work, document),
        )
    elif not work.job:
        st.header(page(t.phrase(str(document["name"]))))
        st.info(t("page.unsolved"))


def _fields(document: dict[str, object]) -> list[editing.Field]:
    """List the fields of a spec; the last spec's are kept, for a page is drawn often. Raises SpecError."""
    key, kept = sources.canonical(document), st.session_state.get("fields")
    if kept is None or kept[0] != key:
        problem = sources.resolved(document)
        kept = key, editing.main_figures(document, problem.offers, problem.spec.currency)
        st.session_state.fields = kept
    found: list[editing.Field] = kept[1]
    return found


def _edit(work: Work, document: dict[str, object], fields: list[editing.Field], t: Words) -> None:
    """Draw the form of the main figures; its button starts the solve."""
    texts, wrong = {}, {problem.path: problem.message for problem in work.problems}
    with st.form(f"form-{work.scenario.key}", border=False):
        solve = st.form_submit_button(t("edit.solve"), type="primary", disabled=work.job is not None, key="solve")
        tabs = [group for group in GROUPS if any(field.group == group for field in fields)]
        for tab, group in zip(st.tabs([t(f"group.{group}") for group in tabs]), tabs):
            columns = tab.columns(3)
            for i, field in enumerate(field for field in fields if field.group == group):
                name, _, what = field.subject.partition("|")
                with columns[i % 3]:
                    texts[field.key] = st.text_input(
                        t(field.label, name=page(name), what=page(what)),
                        field.text,
                        key=f"{work.scenario.key}/{field.key}",
                        placeholder=field.fallback or t("edit.none"),
                        help=page(field.key),
                    )
                    if field.key in wrong:
                        st.markdown(f":red[:material/error: {page(t.phrase(wrong[field.key]))}]")
    if solve:
        _start(work, editing.new_values(document, texts, fields))
        st.rerun()  # so that the form is drawn as busy


def _start(work: Work, edits: dict[str, object]) -> None:
    """Solve the scenario with more edits, unless they are wrong: then their problems are told, and nothing changes."""
    try:
        scenario = work.scenario.with_edits(edits)
        sources.resolved(scenario.document())
    except SpecError as error:
        work.problems = tuple(error.problems)
        return
    st.session_state.solves = st.session_state.get("solves", 0) + 1  # another form, closed: the answer is in sight
    work.start(scenario)


def _repair(work: Work) -> None:
    """Apply the repair of the infeasible plan on the page and solve again (runs before the page is drawn)."""
    shown = work.shown()
    if shown is not None:
        _start(work, {row["path"]: row["to"] for row in answers.repair(shown.plan)})


def _more_time(work: Work, document: dict[str, object]) -> plan_sections.MoreTime | None:
    """Offer twice the time of the spec, within what the server allows; None where it allows no more."""
    stated = at(document, "solver.time_limit")
    now = parse(str(stated), "s") if stated else float(SolverOptions.model_fields["time_limit"].default)
    more = min(2 * now, bounds.MOST_LIMIT_S)
    if more <= now:
        return None
    text = show(more, "s")
    return plan_sections.MoreTime(text, lambda: _start(work, {"solver.time_limit": text}))
