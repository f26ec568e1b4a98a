"""The page Evidence: what the figures of the plan rest on, the catalog and its accuracy, and figures of one's own."""

from __future__ import annotations

import streamlit as st

from planner.dashboard.state.session import Shown, Work
from planner.dashboard.views import catalog, plan_sections
from planner.dashboard.views.parts import at_hand, choose_part, draw_no_plan
from planner.report.locale import Words
from planner.report.outputs.parts import EVIDENCE

PLAN = "plan"
FIRST = PLAN


def draw(work: Work, t: Words, opens: str = "") -> None:
    """Draw the page; `opens`: the part that it opens at."""
    parts = (PLAN, *catalog.PARTS)
    part = choose_part(t("catalog.part"), parts, opens or FIRST, lambda name: f"catalog.{name}", "catalog-part", t)
    if part != catalog.OWN:
        st.session_state.pop("own-idle", None)
    here = at_hand(work, t)
    if here is None:
        return
    if part != PLAN:
        catalog.draw_part(work, part, here, t)
        return
    shown = work.shown()
    if here.plan is None or shown is None:
        draw_no_plan(work, t)
        return
    draw_evidence(shown, t)


def draw_evidence(shown: Shown, t: Words) -> None:
    """Draw how the spec was understood, plausibility, assumptions and sources."""
    plan_sections.draw_chapters(shown.plan, t, EVIDENCE)
    plan_sections.draw_sections(shown, t, EVIDENCE)
