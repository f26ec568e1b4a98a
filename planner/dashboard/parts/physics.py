"""The page Physics: what the runs of the plan lose, and how a point runs on a system."""

from __future__ import annotations

from planner.dashboard.state.session import Shown, Work
from planner.dashboard.views import plan_sections, running
from planner.errors import SpecError
from planner.report.locale import Words
from planner.report.outputs.parts import PHYSICS


def draw(work: Work, t: Words, opens: str = "") -> None:
    """Draw the page."""
    running.draw(work, t)
    try:
        shown = work.shown()
    except SpecError:
        return
    if shown is not None and shown.plan.has_answer:
        draw_physics(shown, t)


def draw_physics(shown: Shown, t: Words) -> None:
    """Draw the sections of the plan itself."""
    plan_sections.draw_sections(shown, t, PHYSICS)
