"""Keep the draft of a spec in the session: its last change, the states to come back to, and the scenario at hand, which is the last right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from planner.dashboard.editor.draft import Draft
from planner.dashboard.editor.forms import Parts, edit
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.errors import SpecError

MOST_PAST = 50
"""Steps that can be undone."""
DRAFT, DRAFT_OF, PAST, REFUSED = "draft", "draft_of", "draft_past", "draft_refused"


def at_hand(work: Work, changed: Callable[[Draft], Draft] = lambda draft: draft) -> Draft:
    """Return the draft of the scenario at hand, after what `changed` takes over; begun anew where the scenario was changed elsewhere.

    Raises SpecError for a scenario without a document.
    """
    state = st.session_state
    draft: Draft | None = state.get(DRAFT)
    if draft is None or state.get(DRAFT_OF) != work.scenario.key:
        draft = Draft.of(work.scenario, 0 if draft is None else draft.version + 1)
        state[DRAFT], state[DRAFT_OF] = draft, work.scenario.key
    return take(work, changed(draft))


def begin(work: Work, scenario: Scenario) -> None:
    """Keep a scenario that is not right yet, such as an upload without its hourly files, as the draft; it becomes the one at hand once it is right."""
    state = st.session_state
    version = state[DRAFT].version + 1 if DRAFT in state else 0
    state[DRAFT], state[DRAFT_OF] = Draft.of(scenario, version), work.scenario.key


def take(work: Work, draft: Draft) -> Draft:
    """Keep a draft; one that is right becomes the scenario at hand, and the state before can be come back to."""
    state = st.session_state
    before: Draft = state[DRAFT]
    if draft.scenario != before.scenario:
        state[PAST] = [*state.get(PAST, ()), before.scenario][-MOST_PAST:]
    if not draft.problems and draft.scenario != work.scenario:
        work.turn_to(draft.scenario)
    state[DRAFT], state[DRAFT_OF] = draft, work.scenario.key
    return draft


def put(work: Work, edits: Mapping[str, Any], *, redraw: bool = False) -> None:
    """Take over edits by path; `redraw`: fields are filled anew, for others than the one that was typed in have changed."""
    draft: Draft = st.session_state[DRAFT]
    try:
        draft = draft.with_edits(edits)
        draft.scenario.document()
    except SpecError as error:  # a place that is not there any more: another page of the visitor changed it
        st.session_state[REFUSED] = tuple(error.problems)
        return
    st.session_state[REFUSED] = ()
    take(work, draft.redrawn() if redraw else draft)


def put_value(work: Work, parts: Parts, value: Any, anchor: Parts | None, *, redraw: bool = False) -> None:
    """Write a value at a place of the draft; None takes it away."""
    draft: Draft = st.session_state[DRAFT]
    try:
        edits = edit(draft.scenario.document(), parts, value, anchor)
    except (LookupError, TypeError):  # the block around it has gone meanwhile
        return
    put(work, edits, redraw=redraw)


def past(work: Work) -> list[Scenario]:
    """List the states that can be come back to, the last one last, of the base at hand alone."""
    return [each for each in st.session_state.get(PAST, ()) if each.origin == work.scenario.origin]


def undo(work: Work) -> None:
    """Come back to the state before the last change."""
    earlier = past(work)
    version = st.session_state[DRAFT].version + 1
    if earlier:
        draft = Draft.of(earlier[-1], version)
        st.session_state[DRAFT] = draft  # so that this step back is none forward
        take(work, draft)
        st.session_state[PAST] = earlier[:-1]


def discard(work: Work) -> None:
    """Come back to the last state that was right."""
    take(work, Draft.of(work.scenario, st.session_state[DRAFT].version + 1))
