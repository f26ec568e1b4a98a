"""Draw the form of a spec's main figures, and start solves of it: with the form, with a repair, with more time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from catalog.units import parse, show
from planner.dashboard import answers, editing, sources
from planner.dashboard.state.session import Work
from planner.dashboard.views.parts import to_decision
from planner.dashboard.workers import bounds
from planner.errors import SpecError
from planner.escape import page
from planner.report.locale import Words
from planner.spec.document import at
from planner.spec.model import SolverOptions

GROUPS = ("workloads", "sites", "offers", "limits", "solver")


@dataclass(frozen=True, slots=True)
class MoreTime:
    """A longer time limit, and what solves with it."""

    text: str
    solve: Callable[[], None]


def draw(work: Work, t: Words) -> None:
    """Draw the form of the main figures; its button starts the solve. Raises SpecError for a spec that does not resolve."""
    document = work.scenario.document()
    _edit(work, document, _fields(document), t)


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
        if _start(work, editing.new_values(document, texts, fields)):
            to_decision(work)
        st.rerun()


def _start(work: Work, edits: dict[str, object]) -> bool:
    """Solve the scenario with more edits, unless they are wrong: then their problems are told, nothing changes, and the answer is False."""
    try:
        scenario = work.scenario.with_edits(edits)
        sources.resolved(scenario.document())
    except SpecError as error:
        work.problems = tuple(error.problems)
        return False
    st.session_state.solves = st.session_state.get("solves", 0) + 1  # another form, closed: the answer is in sight
    work.start(scenario)
    return True


def repair(work: Work) -> None:
    """Apply the repair of the infeasible plan on the page and solve again (runs before the page is drawn)."""
    shown = work.shown()
    if shown is not None:
        _start(work, {row["path"]: row["to"] for row in answers.repair(shown.plan)})


def _again(work: Work, time_limit: str) -> None:
    """Solve with another time limit."""
    _start(work, {"solver.time_limit": time_limit})


def more_time(work: Work) -> MoreTime | None:
    """Offer twice the time of the spec, within what the server allows; None where it allows no more."""
    stated = at(work.scenario.document(), "solver.time_limit")
    now = parse(str(stated), "s") if stated else float(SolverOptions.model_fields["time_limit"].default)
    more = min(2 * now, bounds.MOST_LIMIT_S)
    if more <= now:
        return None
    text = show(more, "s")
    return MoreTime(text, partial(_again, work, text))
