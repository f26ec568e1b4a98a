"""Ask the process of a spec what changes do: all together, the changes in the plan that was shown, and each alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from planner.dashboard.parts.before import Before
from planner.dashboard.state.digest import digest
from planner.dashboard.state.session import Work
from planner.dashboard.workers.whatif import Kept, Question
from planner.plan import Plan

EACH = 5
"""Changes whose effect alone is asked for."""
QUESTIONS = "questions"  # in the state of the session: (process, questions by their changes)


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of a page, none before the base is solved, and what was known of them as the page was drawn."""

    kept: Kept | None = None
    question: Question | None = None
    """All changes together."""
    of_before: Question | None = None
    """The changes of the plan that was shown."""
    each: dict[str, Question] = field(default_factory=dict)
    """Each change alone, by its place."""
    state: tuple[object, ...] = ()

    @property
    def base(self) -> Plan | None:
        """Return the plan of the base."""
        return None if self.kept is None else self.kept.base

    @property
    def before(self) -> Plan | None:
        """Return the plan with the changes of the one that was shown; None until it is known."""
        return None if self.of_before is None else self.of_before.plan

    @property
    def alone(self) -> dict[str, Plan]:
        """Return the plans of single changes that are known."""
        return {path: question.plan for path, question in self.each.items() if question.plan is not None}

    def now(self) -> tuple[object, ...]:
        """Tell one state of the answers from another: a page draws each once."""
        questions = [self.question, self.of_before, *self.each.values()]
        return (
            self.base is not None,
            bool(self.kept and self.kept.problems),
            *(question is not None and question.is_answered for question in questions),
        )

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing more is to come."""
        if self.kept is not None and self.kept.problems:
            return True
        questions = [self.question, self.of_before, *self.each.values()]
        return self.question is not None and all(each.is_answered for each in questions if each is not None)


def ask(work: Work, kept: Kept | None, against: Before | None) -> Asked:
    """Ask about the scenario at hand once its base is solved: first all changes, then those before, then each alone."""
    if kept is None or kept.base is None:
        return _noted(Asked(kept))
    owner, changes = work.visitor, dict(work.scenario.edits)
    question = _known(kept, owner, changes)
    earlier = dict(against.scenario.edits) if against is not None else {}
    of_before = question if earlier == changes else _known(kept, f"{owner}/before", earlier)
    several = list(changes)[-EACH:] if len(changes) > 1 and question.is_answered and not question.problems else []
    each = {path: _known(kept, f"{owner}/{path}", {path: changes[path]}) for path in several}
    if len(changes) == 1:
        each = dict.fromkeys(changes, question)
    return _noted(Asked(kept, question, of_before, each))


def _noted(asked: Asked) -> Asked:
    return Asked(asked.kept, asked.question, asked.of_before, asked.each, asked.now())


def _known(kept: Kept, owner: str, changes: Mapping[str, Any]) -> Question:
    """Ask a question once, however often the page is drawn."""
    of, known = st.session_state.get(QUESTIONS, (None, {}))
    if of is not kept:
        known = {}
    key = digest(dict(changes))
    found: Question | None = known.get(key)
    if found is None or not (found.is_answered or kept.awaits(found)):
        found = known[key] = kept.ask(owner, changes)
    st.session_state[QUESTIONS] = (kept, known)
    return found
