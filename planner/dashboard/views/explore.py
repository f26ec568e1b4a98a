"""Draw studies of the scenario at hand, which run in the background and are drawn as they find something."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from planner.dashboard.state.session import Work
from planner.dashboard.views import explore_findings as findings
from planner.dashboard.views import explore_options as options
from planner.dashboard.views.parts import at_hand, draw_no_plan
from planner.dashboard.workers import studying
from planner.dashboard.workers.studying import ALTERNATIVES, FRONTIER, LADDER, MEASURE, SENSITIVITY, SHARING, Study
from planner.errors import SpecError
from planner.escape import page
from planner.plan import Plan
from planner.report.locale import Words

POLL_S = 0.5
SIMPLEST, HOLD = "simplest", "hold"
STUDIES = {  # what is shown -> the study that finds it; None for what the plan states itself
    FRONTIER: FRONTIER,
    SENSITIVITY: SENSITIVITY,
    ALTERNATIVES: ALTERNATIVES,
    SIMPLEST: ALTERNATIVES,
    LADDER: LADDER,
    SHARING: SHARING,
    HOLD: None,
    MEASURE: MEASURE,
}


def draw_one(work: Work, what: str, t: Words) -> None:
    """Draw a study."""
    st.caption(t("explore.words"))
    here = at_hand(work, t)
    if here is None:
        return
    document, plan = here
    kind = STUDIES[what]
    if plan is None and (kind is None or kind == MEASURE):
        draw_no_plan(work, t)
        return
    if kind is None:
        assert plan is not None
        findings.draw_hold(plan, t)
        return
    asked = options.asked(kind, document, t)
    of_plan = plan if kind == MEASURE else None
    study = draw_study(work, kind, document, asked, of_plan, t)
    if study is not None and study.found is not None:
        findings.DRAW[what](work, study, plan, t)


def draw_study(
    work: Work, kind: str, document: Mapping[str, Any], asked: dict[str, Any], plan: Plan | None, t: Words
) -> Study | None:
    """Offer to start a study, and say how far it is and what went wrong; returns it once it was started."""
    study = studying.known(kind, document, asked, plan)
    _start(work, kind, document, asked, plan, study, t)
    if study is None:
        return None
    st.session_state["study-seen"] = (id(study), study.version)
    st.fragment(_watch, run_every=None if study.has_ended else POLL_S)(study, t)
    for problem in study.problems:
        place, words = problem.path.lstrip("-"), page(t.phrase(problem.message))
        st.error(words if place == "server" else f"{page(place)}: {words}")
    if study.trace:
        st.error(t("problems.bug"))
    return study


def _start(
    work: Work,
    kind: str,
    document: Mapping[str, Any],
    asked: dict[str, Any],
    plan: Plan | None,
    study: Study | None,
    t: Words,
) -> None:
    """Offer to start the study, unless it is under way or has come to its end."""
    if study is not None and (not study.has_ended or (study.found is not None and not study.problems)):
        return
    if st.button(t("explore.start"), key=f"start-{kind}", icon=":material/play_arrow:"):
        try:
            studying.begin(work.visitor, kind, document, asked, plan)
        except SpecError as error:
            work.problems = tuple(error.problems)
        st.rerun()


def _watch(study: Study, t: Words) -> None:
    """Say how far the study is; a fragment that reruns by itself, and redraws the page with each finding."""
    if study.has_ended and st.session_state.get("study-seen") == (id(study), study.version):
        if not study.problems:
            st.caption(t("explore.ended"))
        return
    study.touch()
    if st.session_state.get("study-seen") != (id(study), study.version):
        st.rerun()
    before = study.before()
    if study.is_running:
        st.progress(0.5, text=t("explore.running", seconds=f"{study.seconds:.0f}"))
    else:
        st.progress(0.05, text=t("explore.queued", before=before) if before else t("explore.waiting"))
    st.button(t("solve.cancel"), key="cancel-study", on_click=study.cancel)


def watch_all(work: Work, t: Words) -> None:
    """Name the studies of a visitor that are under way, on whatever page, and keep them alive; a fragment."""
    studies = studying.under_way(work.visitor)
    for study in studies:
        study.touch()
    if studies:
        st.caption(t("explore.under_way", names=t("explore.and").join(t(f"study.{study.kind}") for study in studies)))


LOOK_S = 20.0


def keep_alive(work: Work, t: Words) -> None:
    """Look at the studies under way, on whatever page."""
    st.fragment(partial(watch_all, work, t), run_every=LOOK_S)()
