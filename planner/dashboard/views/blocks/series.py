"""Ask for the hourly files that a spec names and does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import streamlit as st

from planner.dashboard import sources
from planner.dashboard.state.session import Work
from planner.dashboard.views.blocks import drafting
from planner.dashboard.views.blocks.fields import told
from planner.errors import SpecError
from planner.escape import page
from planner.report.locale import Words

PROBLEMS = "series_problems"


def ask(work: Work, document: Mapping[str, Any], t: Words) -> None:
    """Draw an upload for each file that the draft names, beside the places that name it; a file is taken whatever it is called at the visitor's."""
    for name, places in sources.missing_files(document).items():
        with st.container(border=True):
            st.markdown(t("blocks.file", name=page(name), places=page(", ".join(places))))
            count = st.session_state.get("series_taken", 0)
            file = st.file_uploader(t("blocks.file.choose"), type="csv", key=f"series-{count}-{name}")
            for problem in st.session_state.get(PROBLEMS, {}).get(name, ()):
                told(problem, t, problem.path)
            if file is not None:
                _take(work, document, name, file.getvalue())
                st.session_state.series_taken = count + 1
                st.rerun()


def _take(work: Work, document: Mapping[str, Any], name: str, content: bytes) -> None:
    """Put a file's hours into the draft; another file is refused below its upload."""
    problems: dict[str, Any] = st.session_state.setdefault(PROBLEMS, {})
    problems.pop(name, None)
    try:
        found = sources.with_tables(dict(document), {PurePath(name).name: content})
    except SpecError as error:
        problems[name] = error.problems
        return
    drafting.put(work, {"series": found["series"]}, redraw=True)
