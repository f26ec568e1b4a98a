"""Draw what may be asked of each study, and return it as the study's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from planner.dashboard import exploring
from planner.dashboard.views import looking
from planner.dashboard.workers.studying import ALTERNATIVES, FRONTIER, LADDER, MEASURE
from planner.escape import page
from planner.report.locale import Words

Document = Mapping[str, Any]
POINTS = (3, 12, 6)  # least, most, at first
WITHIN = (1, 30, 5)  # percent
MOST_BUDGET = 1e12  # for a campaign of measurements, in any currency


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
            index=among.index(looking.first("against", among, among[0])),
            format_func=lambda name: t(f"frontier_page.{name}"),
            key="frontier-against",
            persist_state="session",
        )
        looking.note("against", against, among[0])
    points, span = POINTS[2], None
    with middle:
        if against not in (exploring.QUALITY, exploring.HORIZON):
            least, most, usual = POINTS
            (first,) = looking.numbers("points", least, most, (usual,))
            points = st.slider(
                t("frontier_page.points"), least, most, int(first), key="frontier-points", persist_state="session"
            )
            looking.note("points", points, usual)
    with right:
        if against in exploring.SPANS:
            least_value, most_value, step, usual_span = exploring.SPANS[against]
            low, high = looking.numbers("span", least_value, most_value, usual_span)
            span = st.slider(
                t(f"frontier_page.span.{against}"),
                least_value,
                most_value,
                (low, high),
                step,
                format="%.0f" if against == exploring.HORIZON else "%.2f",
                key=f"span-{against}",
                persist_state="session",
            )
            looking.note("span", *(looking.BETWEEN.join(f"{value:g}" for value in pair) for pair in (span, usual_span)))
    return {"against": against, "points": points, "span": list(span) if span else None}


def _alternatives(document: Document, t: Words) -> dict[str, Any]:
    least, most, usual = WITHIN
    (first,) = looking.numbers("within", least, most, (usual,))
    within = st.slider(
        t("alternatives_page.within"),
        least,
        most,
        int(first),
        format="%d %%",
        key="within",
        persist_state="session",
        width=330,
    )
    looking.note("within", within, usual)
    return {"within": within / 100}


def _ladder(document: Document, t: Words) -> dict[str, Any]:
    usual = "\n".join(exploring.proposed_levers(document, t))
    asked_for = looking.words("levers").replace(looking.BETWEEN, "\n")
    levers = st.text_area(
        t("ladder_page.levers"), asked_for or usual, help=t("ladder_page.help"), height=110, key="ladder-levers"
    )
    if levers and len(levers) <= looking.MOST_LETTERS:  # more are none of an address
        looking.note("levers", levers.replace("\n", looking.BETWEEN), usual.replace("\n", looking.BETWEEN))
    left, right = st.columns(2)
    serving = [workload["name"] for workload in document["workloads"] if workload["kind"] == "serving"]
    with left:
        workload = st.selectbox(
            t("column.workload"),
            ["", *serving],
            index=["", *serving].index(looking.first("workload", serving, "")),
            format_func=lambda name: page(name) if name else t("ladder_page.all"),
            key="ladder-workload",
        )
        looking.note("workload", workload, "")
    with right:
        target = st.text_input(
            t("ladder_page.target"), looking.words("target"), placeholder="0.50 USD/1M tokens", key="ladder-target"
        )
        looking.note("target", target.strip(), "")
    return {
        "levers": [line.strip() for line in levers.splitlines() if line.strip()],
        "workload": workload or None,
        "target": target.strip() or None,
    }


def _measure(document: Document, t: Words) -> dict[str, Any]:
    currency = document.get("currency", "USD")
    first = looking.numbers("budget", 0.0, MOST_BUDGET, (-1.0,))[0]
    budget = st.number_input(
        t("measure_page.budget", currency=page(currency)),
        min_value=0.0,
        max_value=MOST_BUDGET,
        value=first if first >= 0.0 else None,
        step=1000.0,
        format="%.0f",
        width=330,
        key="measure-budget",
    )
    looking.note("budget", None if budget is None else f"{budget:.0f}", "")
    return {"budget": budget}


DRAW: dict[str, Callable[[Document, Words], dict[str, Any]]] = {
    FRONTIER: _frontier,
    ALTERNATIVES: _alternatives,
    LADDER: _ladder,
    MEASURE: _measure,
}
