"""Draw what may be asked of each study, and return it as the study's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from planner.dashboard import exploring
from planner.dashboard.workers.studying import ALTERNATIVES, FRONTIER, LADDER, MEASURE
from planner.escape import page
from planner.report.locale import Words

Document = Mapping[str, Any]
POINTS = (3, 12, 6)  # least, most, at first
WITHIN = (1, 30, 5)  # percent


def asked(kind: str, document: Document, t: Words) -> dict[str, Any]:
    """Draw the options of a study, and return the choice."""
    draw = DRAW.get(kind)
    return draw(document, t) if draw is not None else {}


def _frontier(document: Document, t: Words) -> dict[str, Any]:
    left, middle, right = st.columns(3)
    among = exploring.frontiers(document)
    with left:
        against = st.selectbox(
            t("frontier_page.against"),
            among,
            format_func=lambda name: t(f"frontier_page.{name}"),
            key="frontier-against",
            persist_state="session",
        )
    points, span = POINTS[2], None
    with middle:
        if against not in (exploring.QUALITY, exploring.HORIZON):
            points = st.slider(t("frontier_page.points"), *POINTS, key="frontier-points", persist_state="session")
    with right:
        if against in exploring.SPANS:
            least, most, step, first = exploring.SPANS[against]
            span = st.slider(
                t(f"frontier_page.span.{against}"),
                least,
                most,
                first,
                step,
                format="%.0f" if against == exploring.HORIZON else "%.2f",
                key=f"span-{against}",
                persist_state="session",
            )
    return {"against": against, "points": points, "span": list(span) if span else None}


def _alternatives(document: Document, t: Words) -> dict[str, Any]:
    within = st.slider(
        t("alternatives_page.within"), *WITHIN, format="%d %%", key="within", persist_state="session", width=330
    )
    return {"within": within / 100}


def _ladder(document: Document, t: Words) -> dict[str, Any]:
    levers = st.text_area(
        t("ladder_page.levers"),
        "\n".join(exploring.proposed_levers(document, t)),
        help=t("ladder_page.help"),
        height=110,
    )
    left, right = st.columns(2)
    serving = [workload["name"] for workload in document["workloads"] if workload["kind"] == "serving"]
    with left:
        workload = st.selectbox(
            t("column.workload"),
            ["", *serving],
            format_func=lambda name: page(name) if name else t("ladder_page.all"),
            key="ladder-workload",
        )
    with right:
        target = st.text_input(t("ladder_page.target"), placeholder="0.50 USD/1M tokens", key="ladder-target")
    return {
        "levers": [line.strip() for line in levers.splitlines() if line.strip()],
        "workload": workload or None,
        "target": target.strip() or None,
    }


def _measure(document: Document, t: Words) -> dict[str, Any]:
    currency = document.get("currency", "USD")
    budget = st.number_input(
        t("measure_page.budget", currency=page(currency)),
        min_value=0.0,
        value=None,
        step=1000.0,
        format="%.0f",
        width=330,
    )
    return {"budget": budget}


DRAW: dict[str, Callable[[Document, Words], dict[str, Any]]] = {
    FRONTIER: _frontier,
    ALTERNATIVES: _alternatives,
    LADDER: _ladder,
    MEASURE: _measure,
}
