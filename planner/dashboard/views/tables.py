"""The page of the spec: tables of its main parts, or forms of every block, with problems told at their cells and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit import column_config

from catalog.lookup import shipped_catalog
from planner.dashboard.editor.columns import CATALOG, TABLES, Column, Table
from planner.dashboard.editor.draft import Draft, change_of
from planner.dashboard.editor.tables import SITE, Place, Row, rows_of, sorted_problems
from planner.dashboard.state.session import Work
from planner.dashboard.views.blocks import drafting, series
from planner.dashboard.views.blocks import page as blocks
from planner.dashboard.views.parts import choose_part
from planner.dashboard.views.problems import draw_refusal
from planner.errors import Issue, SpecError
from planner.escape import page
from planner.report.locale import Words

TABLE_VIEW, BLOCK_VIEW = VIEWS = ("tables", "blocks")
TABS = (
    ("workloads", ("serving", "sessions", "training", "reinforcement")),
    ("sites", ("sites",)),
    ("offers", ("offers",)),
    ("phases", ("phases",)),
    ("owned", ("owned", "rented")),
    ("lines", ("lines",)),
    ("limits", ("limits",)),
    ("electricity", ("electricity", "contracts")),
    ("horizon", ("horizon", "objective")),
)
Problems = Mapping[str, Sequence[tuple[Place, Issue]]]


def draw(work: Work, t: Words) -> None:
    """Draw the page."""
    view = choose_part(t("blocks.view"), VIEWS, TABLE_VIEW, lambda name: f"blocks.view.{name}", "spec-view", t, "spec")
    try:
        draft = drafting.at_hand(work, lambda draft: _taken(draft, view))
        document = draft.scenario.document()
    except SpecError as error:
        draw_refusal(work, error, t)
        return
    by_table, others = sorted_problems(draft.problems, document, TABLES)
    with st.container(
        key="tables-head"
    ):  # as high without problems as with them, so that a cell stays where it is typed
        _head(work, draft, list(by_table) if view == TABLE_VIEW else [], t)
        for problem in others if view == TABLE_VIEW else ():
            st.markdown(f":red[:material/error: {page(problem.path)}: {page(t.phrase(problem.message))}]")
    series.ask(work, document, t)
    if view != TABLE_VIEW:
        blocks.draw(work, draft, t)
        return
    tables = {table.name: table for table in TABLES}
    for tab, (_, names) in zip(st.tabs([t(f"tab.{name}") for name, _ in TABS]), TABS):
        with tab:
            for name in names:
                if len(names) > 1:
                    st.markdown(f"**{t(f'table.{name}')}**")
                _table(tables[name], draft, document, by_table, t)


def _taken(draft: Draft, view: str) -> Draft:
    """Take over what was changed in the tables; another view than before, or a page that was left, is drawn anew."""
    state = st.session_state
    if state.get("spec_view_drawn", view) != view or (
        view == TABLE_VIEW and not any(_key(table, draft) in state for table in TABLES)
    ):
        draft = draft.redrawn()
    elif view == TABLE_VIEW:
        draft = draft.changed({table.name: change_of(state.get(_key(table, draft))) for table in TABLES})
    state.spec_view_drawn = view
    return draft


def _key(table: Table, draft: Draft) -> str:
    return f"table-{table.name}-{draft.version}"


def _head(work: Work, draft: Draft, wrong: list[str], t: Words) -> None:
    """Draw the buttons, and how many problems there are in which tables."""
    with st.container(horizontal=True):
        busy = work.job is not None or bool(draft.problems)
        if st.button(t("edit.solve"), key="solve-tables", disabled=busy, icon=":material/play_arrow:"):
            work.start(work.scenario)
            st.rerun()
        steps = drafting.past(work)
        st.button(
            t("blocks.undo"),
            key="undo",
            disabled=not steps,
            on_click=drafting.undo,
            args=(work,),
            icon=":material/undo:",
        )
        if draft.problems:
            st.button(
                t("tables.discard"), key="discard", on_click=drafting.discard, args=(work,), icon=":material/close:"
            )
    if draft.problems and wrong:
        names = t("buy.and").join(t(f"table.{name}") for name in wrong)
        st.error(t("tables.wrong", count=len(draft.problems), tables=names))
    elif draft.problems:
        st.error(t("blocks.wrong", count=len(draft.problems)))


def _table(table: Table, draft: Draft, document: Mapping[str, Any], problems: Problems, t: Words) -> None:
    """Draw one table with its problems below, not in it: an editor whose data change is drawn anew and loses the text being typed."""
    rows = rows_of(table, draft.document)
    frame = pd.DataFrame({c.key: pd.Series([row.cells[c.key] for row in rows], dtype=_dtype(c)) for c in table.columns})
    st.data_editor(
        frame,
        num_rows="dynamic" if table.grows else "fixed",
        hide_index=True,
        width="stretch",
        key=_key(table, draft),
        column_config={column.key: _config(column, rows, document, t) for column in table.columns},
        placeholder="",
        alt=t(f"table.{table.name}"),
    )
    for place, problem in problems.get(table.name, ()):
        st.markdown(f":red[:material/error: {_where(table, place, rows_of(table, document), t)}: {_told(problem, t)}]")


def _dtype(column: Column) -> Any:
    """Choose the type of a column, which an empty one does not tell."""
    kinds: dict[str, Any] = {"switch": "boolean", "names": object}
    return kinds.get(column.kind, "string")


def _told(problem: Issue, t: Words) -> str:
    return page(t.phrase(problem.message))


def _where(table: Table, place: Place, rows: Sequence[Row], t: Words) -> str:
    """Name a cell: its row by number and name, and its column."""
    parts = []
    if place.row is not None and table.path:
        row = rows[place.row].cells
        name = next((str(row[key]) for key in ("name", "region", "system") if row.get(key)), "")
        parts.append(t("tables.row", number=place.row + 1) + (f" ({page(name)})" if name else ""))
    if place.column is not None:
        parts.append(t(table.column[place.column].label))
    return " · ".join(parts) or t(f"table.{table.name}")


def _config(column: Column, rows: Sequence[Row], document: Mapping[str, Any], t: Words) -> Any:
    """Configure a column: its heading, and what its cells choose from."""
    label, help_text = t(column.label), None if column.fixed else page(column.key)
    if column.fixed:
        return column_config.TextColumn(label, disabled=True, pinned=True)
    if column.kind == "switch":
        return column_config.CheckboxColumn(label, help=help_text)
    if column.kind == "choice":
        return column_config.SelectboxColumn(label, help=help_text, options=_options(column, rows, document))
    if column.kind == "names":
        return column_config.MultiselectColumn(label, help=help_text, options=_options(column, rows, document))
    return column_config.TextColumn(label, help=t("cell.origins.help") if column.kind == "shares" else help_text)


def _options(column: Column, rows: Sequence[Row], document: Mapping[str, Any]) -> list[str]:
    """List what a cell chooses from, with what stands there already."""
    if column.key == SITE:
        names = [row.cells["region"] for row in rows_of(next(t for t in TABLES if t.name == "sites"), document)]
    elif column.of in CATALOG:
        own = document.get("catalog")
        own = own.get(column.of) if isinstance(own, dict) else None
        mine = [str(each.get("name")) for each in own if isinstance(each, dict)] if isinstance(own, list) else []
        names = [*mine, *shipped_catalog().names(str(column.of))]
    else:
        names = list(column.of)
    there = [row.cells[column.key] for row in rows]
    kept = [name for cell in there for name in (cell if isinstance(cell, list) else [cell]) if isinstance(name, str)]
    return list(dict.fromkeys([*(name for name in names if name), *kept]))
