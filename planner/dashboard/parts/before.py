"""Remember which plan a visitor was shown last of each base: what changes are measured against, and what stays in sight while another is solved."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Shown, Work

BEFORE = "plans_before"  # in the state of the session, by origin of the base


class Before(NamedTuple):
    """A plan that was shown, and the scenario that it answers."""

    scenario: Scenario
    shown: Shown


def before(work: Work) -> Before | None:
    """Return the plan of the scenario at hand, else the one shown last of its base, else that of the base itself; None where there is none.

    Raises SpecError for a scenario that is none.
    """
    known: dict[str, Before] = st.session_state.setdefault(BEFORE, {})
    scenario = work.scenario
    shown = work.shown()
    if shown is not None:
        known[scenario.origin] = Before(scenario, shown)
    elif scenario.origin not in known and (of_base := work.shown_of(scenario.root)) is not None:
        known[scenario.origin] = Before(scenario.root, of_base)
    return known.get(scenario.origin)


def compared(work: Work) -> Before | None:
    """Return the plan that a change is measured against: the one of `before` if it answers and holds."""
    found = before(work)
    return found if found is not None and found.shown.plan.has_answer and not found.shown.findings else None
