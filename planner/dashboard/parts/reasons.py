"""The page Reasons: why the plan is as it is, what it costs to do otherwise, and the studies that solve for more."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from planner.dashboard import sources
from planner.dashboard.figures import amount
from planner.dashboard.state.session import Shown, Work
from planner.dashboard.views import explore, plan_sections
from planner.dashboard.views.explore_findings import draw_break_even, draw_hold
from planner.dashboard.views.parts import at_hand, choose_part, draw_no_plan
from planner.errors import SpecError
from planner.escape import page
from planner.plan import Plan
from planner.report.locale import Words
from planner.report.outputs.parts import REASONS
from planner.report.outputs.sections import SECTIONS
from planner.report.why.verdict import OPTIMAL_GAP, percent
from planner.spec.document import read_document
from planner.studies.break_even import HORIZON, break_even

WHY = "why"
FIRST = WHY
ADAPTING = ("adapt",)  # told right after why
KEPT = 16  # specs whose break-even is kept


def draw(work: Work, t: Words, opens: str = "") -> None:
    """Draw the page; `opens`: the study that it opens at."""
    studies = {WHY: None, **explore.STUDIES}
    what = choose_part(
        t("explore.what"), list(studies), opens or FIRST, lambda name: f"study.{name}", "explore-what", t, named="study"
    )
    if what != WHY:
        explore.draw_one(work, what, t)
        return
    here = at_hand(work, t)
    if here is None:
        return
    shown = work.shown()
    if here.plan is None or shown is None:
        draw_no_plan(work, t)
        return
    draw_reasons(shown, t)
    _break_even(here.document, t)


def draw_reasons(shown: Shown, t: Words) -> None:
    """Draw what the plan itself says: why it is so, what more of a limit is worth, simpler plans, limits, and what was left out."""
    plan = shown.plan
    plan_sections.draw_why(plan, t)
    plan_sections.draw_sections(shown, t, REASONS, ADAPTING)
    plan_sections.draw_chapters(plan, t, REASONS)
    if plan.document.get("confidence"):
        st.subheader(t("study.hold"), anchor=False)
        draw_hold(plan, t)
    _simpler(plan, t)
    keys = [one.key for one in SECTIONS if one.part == REASONS and one.key not in ADAPTING]
    plan_sections.draw_sections(shown, t, REASONS, keys)


def _simpler(plan: Plan, t: Words) -> None:
    """Draw the ladder of simpler plans that the search met on its way."""
    found = plan.document.get("simplicity")
    rows = found.get("ladder", ()) if found else ()
    if len(rows) < 2:
        return
    st.subheader(t("reasons.simpler"), anchor=False)
    st.caption(t("reasons.simpler.words"))
    unit = plan.objective["unit"]
    st.table(
        [
            {
                t("reasons.deployments"): f"{row['deployments']:,}",
                t("column.value"): page(amount(row["value"], unit, t)),
                t("column.worse"): percent(row["above"] if row["above"] > OPTIMAL_GAP else 0.0),
                t("reasons.known"): t("reasons.estimated" if row["estimated"] else "reasons.made"),
            }
            for row in rows
        ],
        hide_index=True,
    )


@lru_cache(maxsize=KEPT)
def _break_even_of(text: str) -> dict[str, Any] | None:
    """Compare buying with renting for a spec as canonical text; None for one in which nothing can be compared. Solves nothing."""
    try:
        return break_even(read_document(text), HORIZON).document
    except SpecError:
        return None


def _break_even(document: dict[str, Any], t: Words) -> None:
    """Draw from which horizon on buying costs less than renting."""
    found = _break_even_of(sources.canonical(document))
    if found is None or not found["break_even"]:
        return
    st.subheader(t("reasons.break_even"), anchor=False)
    draw_break_even(found, t)
