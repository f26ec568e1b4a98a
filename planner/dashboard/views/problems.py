"""Draw the problems of a spec place by place, or say that there is a bug."""

from __future__ import annotations

import streamlit as st

from planner.dashboard import answers
from planner.dashboard.state.session import Work
from planner.errors import SpecError
from planner.report.locale import Words


def draw_problems(work: Work, t: Words) -> None:
    """Show the problems of the last change or upload."""
    if work.problems:
        st.error(t("problems.title"))
        rows = [
            {t("column.path"): problem.path or t("problems.file"), t("column.remedy"): t.phrase(problem.message)}
            for problem in work.problems
        ]
        st.table(answers.as_markup(rows), hide_index=True)  # not a data frame, which would cut long remedies
    if work.trace:
        st.error(t("problems.bug"))


def draw_refusal(work: Work, error: SpecError, t: Words) -> None:
    """Keep the problems of a spec that is none, and show them."""
    work.problems = tuple(error.problems)
    draw_problems(work, t)
