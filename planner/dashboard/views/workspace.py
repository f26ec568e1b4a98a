"""Name the workspace at hand, and show the private address by which another browser opens it."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from planner.dashboard.state.session import Work
from planner.dashboard.state.workspace import MOST_LETTERS, WORKSPACE
from planner.dashboard.views.share import root
from planner.report.locale import Words


def draw(work: Work, t: Words) -> None:
    """Draw the name, and the address once there is something to come back to."""
    st.caption(t("workspace.words"))
    if work.scenario.problems:  # an address that leads to nothing begins none
        return
    space = work.workspace
    name = st.text_input(t("workspace.name"), space.name, max_chars=MOST_LETTERS, key=f"workspace-name-{space.name}")
    if name.strip() != space.name:
        space.rename(name)
        st.rerun()
    if not space.kept:
        st.caption(t("workspace.empty"))
        return
    st.caption(t("workspace.address"))
    st.code(f"{root()}?{urlencode({WORKSPACE: space.secret})}", language=None, wrap_lines=True)
