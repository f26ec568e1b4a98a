"""Draw a plan without any work of a visitor: its decision, and below it the part that is chosen."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.dashboard import headline
from planner.dashboard.parts.evidence import draw_evidence
from planner.dashboard.parts.menu import draw_files
from planner.dashboard.parts.operations import draw_operations
from planner.dashboard.parts.physics import draw_physics
from planner.dashboard.parts.reasons import draw_reasons
from planner.dashboard.state.session import Shown
from planner.dashboard.views import plan_sections
from planner.plan import Plan
from planner.report.locale import Words
from planner.report.outputs.parts import EVIDENCE, OPERATIONS, PHYSICS, REASONS
from planner.report.outputs.sections import SECTIONS

DRAW = {OPERATIONS: draw_operations, REASONS: draw_reasons, PHYSICS: draw_physics, EVIDENCE: draw_evidence}


def parts_of(plan: Plan, t: Words) -> list[str]:
    """List the parts below the decision for which a plan has something to show."""
    keys = {part: [one.key for one in SECTIONS if one.part == part] for part in DRAW}
    return [part for part in DRAW if plan_sections.has_any(plan, t, keys[part])]


def draw_rest(shown: Shown, t: Words, menu: DeltaGenerator) -> None:
    """Draw the rest of the decision, the files into the menu, and a further part of the plan."""
    with menu, st.popover(t("decision.export"), icon=":material/download:"):
        draw_files(shown, t)
    plan_sections.draw_decision(shown, t, on_repair=None, on_more_time=lambda: None)
    if not headline.tells_figures(shown.plan):
        return
    parts = parts_of(shown.plan, t)
    part = st.segmented_control(
        t("alone.part"), parts, default=parts[0], required=True, format_func=lambda name: t(f"nav.{name}"),
        key="alone-part", label_visibility="collapsed",
    )  # fmt: skip
    DRAW[part](shown, t)
