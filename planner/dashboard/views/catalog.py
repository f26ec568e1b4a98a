"""Draw the catalog and its accuracy: every figure with its source, predictions against measurements, and figures of one's own."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st
from streamlit import column_config

from planner.dashboard import answers, cataloguing, own_figures
from planner.dashboard.state.session import Work
from planner.dashboard.views import explore, looking
from planner.dashboard.views.parts import AtHand
from planner.dashboard.workers.studying import CALIBRATE
from planner.errors import SpecError
from planner.escape import page
from planner.messages import Message
from planner.plan import Plan
from planner.report.charts import accuracy
from planner.report.locale import Words

FIGURES, ACCURACY, OWN, CALIBRATION = PARTS = ("figures", "accuracy", "own", "calibration")
USED = "plan"
MOST_NAMED = 8
PERCENT = column_config.NumberColumn(format="percent")
COLUMNS_OF_RUNS = ("chip", "n_chips", "model", "engine", "isl", "osl", "concurrency")
"""Columns that benchmarks may not write, as they are offered for all rows."""


def draw_part(work: Work, part: str, here: AtHand, t: Words) -> None:
    """Draw one of `PARTS`."""
    if part == FIGURES:
        _figures(here.plan, t)
    elif part == ACCURACY:
        _accuracy(t)
    elif part == OWN:
        _own(work, here.document, t)
    else:
        _calibration(work, here.document, t)


# -- figures of the catalog --------------------------------------------------------------------------------------------


def _figures(plan: Plan | None, t: Words) -> None:
    counts = cataloguing.kinds()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            t("catalog.search"), looking.words("search"), key="catalog-search", icon=":material/search:", width=330
        )
        looking.note("search", text, "")
        chosen = st.multiselect(
            t("column.kind"),
            list(counts),
            default=looking.several("kinds", list(counts)),
            format_func=lambda kind: f"{kind} ({counts[kind]:,})",
            key="catalog-kinds",
            persist_state="session",
            placeholder=t("choose.some"),
            width=330,
        )
        looking.note("kinds", looking.BETWEEN.join(chosen), "")
        used = plan is not None and st.toggle(
            t("catalog.used"), looking.words("used") == USED, key="catalog-used", persist_state="session"
        )
        looking.note("used", USED if used else "", "")
    rows = cataloguing.found_figures(chosen, text, cataloguing.cited(plan) if plan is not None and used else None)
    st.caption(t("catalog.count", count=f"{len(rows):,}", all=f"{len(cataloguing.every_figure()):,}"))
    narrow = {
        t(key): column_config.TextColumn(width="small") for key in ("column.kind", "column.value", "column.range")
    }
    config: dict[str, Any] = {**narrow, t("column.source"): column_config.TextColumn(width="medium")}
    st.dataframe(cataloguing.figure_table(rows, t), hide_index=True, width="stretch", height=520, column_config=config)
    if plan is not None:
        st.subheader(t("catalog.worth"))
        st.caption(t("assumptions.words"))
        config = {t("column.objective_share"): PERCENT}
        st.dataframe(answers.assumption_table(plan, t), hide_index=True, width="stretch", column_config=config)


# -- accuracy ----------------------------------------------------------------------------------------------------------


def _accuracy(t: Words) -> None:
    metric = st.segmented_control(
        t("accuracy.metric"),
        cataloguing.metrics(),
        default=looking.first("metric", cataloguing.metrics(), cataloguing.metrics()[0]),
        required=True,
        format_func=lambda name: t(f"accuracy.{name}"),
        key="accuracy-metric",
        persist_state="session",
    )
    looking.note("metric", metric, cataloguing.metrics()[0])
    rows = cataloguing.accuracy_table(metric, t)
    known = [str(row[t("column.chip")]) for row in rows]
    chips = st.multiselect(
        t("accuracy.chips"),
        known,
        default=looking.several("chips", known),
        key="accuracy-chips",
        placeholder=t("choose.some"),
        persist_state="session",
    )
    looking.note("chips", looking.BETWEEN.join(chips), "")
    chart = accuracy.accuracy_chart(cataloguing.points_of(metric, chips), t(f"accuracy.{metric}"), t)
    if chart is not None:
        st.altair_chart(chart, width="stretch")
    shares = {t(key): PERCENT for key in ("column.median_error", "column.within_a_fifth", "column.bias")}
    st.dataframe(
        [row for row in rows if not chips or row[t("column.chip")] in chips],
        hide_index=True,
        width="stretch",
        column_config=shares,
    )


# -- own figures -------------------------------------------------------------------------------------------------------


def _own(work: Work, document: dict[str, Any], t: Words) -> None:
    count = st.session_state.setdefault("overlays", 0)
    files = st.file_uploader(t("own.file"), type=["json"], key=f"overlay-{count}", accept_multiple_files=True)
    if files:
        st.session_state.overlays = count + 1
        _take(work, lambda: own_figures.overlay_edits(document, [(file.name, file.getvalue()) for file in files]))
    rows = own_figures.own_rows(document)
    if idle := st.session_state.get("own-idle"):
        st.warning(t("own.idle", count=len(idle), paths=page(", ".join(idle[:MOST_NAMED]))))
    if not rows:
        st.info(t("own.none"))
        return
    st.dataframe(
        [
            {t("column.figure"): row["path"], t("column.value"): row["value"], t("column.note"): row["note"]}
            for row in rows
        ],
        hide_index=True,
        width="stretch",
    )
    with st.container(horizontal=True):
        st.download_button(
            t("own.download"),
            json.dumps(own_figures.own_overlay(document), indent=1, ensure_ascii=False) + "\n",
            "overlay.json",
            "application/json",
            on_click="ignore",
            icon=":material/download:",
        )
        if st.button(t("own.remove"), key="own-remove", icon=":material/delete:"):
            _take(
                work, lambda: {key: None for key in (own_figures.CATALOG, own_figures.OVERRIDES) if document.get(key)}
            )
    st.caption(t("own.solve"))


def _take(work: Work, edits: Any) -> None:
    """Change the scenario by edits, unless they are wrong: then their problems are told."""
    try:
        scenario, idle = own_figures.taken(work.scenario, edits())
    except SpecError as error:
        work.problems = tuple(error.problems)
    else:
        work.turn_to(scenario)
        st.session_state["own-idle"] = idle
    st.rerun()


# -- own measurements --------------------------------------------------------------------------------------------------


def _calibration(work: Work, document: dict[str, Any], t: Words) -> None:
    files = st.file_uploader(
        t("calibration.file"), type=["csv", "json", "jsonl"], key="measurements", accept_multiple_files=True
    )
    with st.expander(t("calibration.cells")):
        st.caption(t("calibration.cells.words"))
        columns = st.columns(4)
        stated = {
            name: columns[i % 4].text_input(name, key=f"cell-{name}", persist_state="session")
            for i, name in enumerate(COLUMNS_OF_RUNS)
        }
    if not files:
        return
    try:
        texts = [[file.name, file.getvalue().decode("utf-8-sig")] for file in files]
    except UnicodeDecodeError:
        st.error(page(t.phrase(Message.of("dashboard.text_not_unicode").text())))
        return
    cells = {name: text.strip() for name, text in stated.items() if text.strip()}
    study = explore.draw_study(work, CALIBRATE, document, {"files": texts, "cells": cells}, None, t)
    if study is None or study.found is None:
        return
    for line in cataloguing.at_odds(study.found, t):
        st.warning(page(line))
    for line in cataloguing.understood(study.found, t):
        st.caption(page(line))
    if compared := cataloguing.compared_table(study.found, t):
        st.dataframe(compared, hide_index=True, width="stretch")
    changes = {t(key): PERCENT for key in ("column.change",)}
    number = column_config.NumberColumn(format="%.4g")
    for key in ("column.before", "column.after", "column.low", "column.high"):
        changes[t(key)] = number
    st.dataframe(cataloguing.change_table(study.found, t), hide_index=True, width="stretch", column_config=changes)
    overlays = study.found["overlays"]
    with st.container(horizontal=True):
        if st.button(t("calibration.use"), key="calibration-use", icon=":material/check:"):
            contents = [(name, json.dumps(overlay).encode()) for name, overlay in overlays.items()]
            _take(work, lambda: own_figures.overlay_edits(document, contents))
        for name, overlay in overlays.items():
            st.download_button(
                t("calibration.download", name=page(name)),
                json.dumps(overlay, indent=1) + "\n",
                name,
                "application/json",
                on_click="ignore",
                icon=":material/download:",
            )
    st.caption(t("calibration.words"))
