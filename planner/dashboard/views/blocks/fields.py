"""Draw the fields of a form, each kind with a widget of its own, and take over the texts typed there; problems stand at their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import streamlit as st
from streamlit import column_config

from planner.dashboard.editor import forms
from planner.dashboard.editor.draft import Draft, change_of
from planner.dashboard.editor.forms import Parts
from planner.dashboard.editor.nodes import FIELDS, Node
from planner.dashboard.state.session import Work
from planner.dashboard.views.blocks import drafting
from planner.errors import Issue, path_text
from planner.escape import page
from planner.report.locale import Words

COLUMNS = 3
YES, NO = "yes", "no"
JSON_HEIGHT = 160
MOST_LETTERS = 60_000
"""Of a value that is shown as JSON; a larger one, such as hours of prices, is left to its file."""


@dataclass(slots=True)
class Form:
    """What all parts of a form need: the draft with its problems, and which of these were told."""

    work: Work
    draft: Draft
    t: Words
    told: set[int] = field(default_factory=set)

    def key(self, parts: Parts, what: str = "form") -> str:
        """Name the widget of a place; another version of the draft fills it anew."""
        return f"{what}-{self.draft.version}-{path_text(parts)}"

    def tell(self, parts: Parts, *, within: bool = False) -> None:
        """Tell the problems of a place, with `within` also of places inside it that no field told."""
        place = path_text(parts)
        for i, problem in enumerate(self.draft.problems):
            inside = within and problem.path.startswith((f"{place}.", f"{place}["))
            if i not in self.told and (problem.path == place or inside):
                self.told.add(i)
                told(problem, self.t, "" if problem.path == place else problem.path)

    def put(self, parts: Parts, value: Any, anchor: Parts | None) -> None:
        """Change the shape of the form: write a block or a list, and fill all fields anew."""
        drafting.put_value(self.work, parts, value, anchor, redraw=True)


def told(problem: Issue, t: Words, place: str) -> None:
    """Draw a problem, with its place unless it stands there."""
    words = page(t.phrase(problem.message))
    st.markdown(f":red[:material/error: {f'{page(place)}: ' if place else ''}{words}]")


def draw(form: Form, node: Node, value: Any, parts: Parts, anchor: Parts | None = None) -> None:
    """Draw a place of the spec."""
    if not forms.fits(node, value):
        draw_field(form, forms.UNKNOWN, value, parts, anchor)
    elif node.kind == "variants":
        _variants(form, node, value, parts, anchor)
    elif node.kind == "block":
        _block(form, node, value, parts, anchor)
    elif node.kind == "map":
        _map(form, node, value, parts, anchor)
    elif node.is_flat:
        _table(form, node, value, parts, anchor)
    elif node.kind == "list":
        _entries(form, node, value, parts, anchor)
    else:
        draw_field(form, node, value, parts, anchor)


def _block(form: Form, node: Node, value: Mapping[str, Any], parts: Parts, anchor: Parts | None) -> None:
    """Draw the fields of a block in columns, then the blocks within, then buttons for those that it does not have."""
    known = forms.parts_of(node, value)
    fixed = {key for key, part in known.items() if part.kind == "choice" and part.is_required and len(part.names) == 1}
    fields = [key for key, part in known.items() if part.kind in FIELDS and key not in fixed]
    if fields:
        columns = st.columns(COLUMNS)
        for i, key in enumerate(fields):
            with columns[i % COLUMNS]:
                draw_field(form, known[key], value.get(key), (*parts, key), anchor)
    blocks = [key for key in known if key not in fields and key not in fixed]
    for key in blocks:
        if value.get(key) is not None:
            _inner(form, known[key], value[key], (*parts, key), anchor, key)
    missing = [key for key in blocks if value.get(key) is None]
    if missing:
        with st.container(horizontal=True, gap="small"):
            for key in missing:
                place = (*parts, key)
                st.button(
                    page(key),
                    key=form.key(place, "add"),
                    help=known[key].words or None,
                    on_click=form.put,
                    args=(place, forms.fresh(known[key]), anchor),
                    icon=":material/add:",
                    type="primary" if known[key].is_required else "secondary",
                )
        for key in missing:
            form.tell((*parts, key), within=True)
    for key in fixed:
        form.tell((*parts, key))


def _inner(form: Form, node: Node, value: Any, parts: Parts, anchor: Parts | None, label: str) -> None:
    """Draw a block within another one, in a frame with a button that takes it away."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{page(label)}**", help=node.words or None)
            _remover(form, parts, anchor, label)
        draw(form, node, value, parts, anchor)
        form.tell(parts, within=True)


def _remover(form: Form, parts: Parts, anchor: Parts | None, label: str) -> None:
    st.button(
        form.t("blocks.remove", name=page(label)),
        key=form.key(parts, "remove"),
        on_click=form.put,
        args=(parts, None, anchor),
        icon=":material/delete:",
        type="tertiary",
    )


def _variants(form: Form, node: Node, value: Any, parts: Parts, anchor: Parts | None) -> None:
    """Let the user choose a shape, and draw it; what another shape cannot hold is given up, and Undo brings it back."""
    at = forms.variant_of(node, value)
    assert at is not None
    key = form.key(parts, "shape")
    st.session_state.setdefault(key, at)
    st.selectbox(
        form.t("blocks.shape"),
        range(len(node.variants)),
        format_func=lambda i: _variant_words(node, i, form.t),
        key=key,
        on_change=_reshape,
        args=(form, node, value, parts, anchor, key),
        width=330,
    )
    draw(form, node.variants[at], value, parts, anchor)


def _variant_words(node: Node, i: int, t: Words) -> str:
    return forms.variant_name(node, i) if node.mark else t(f"blocks.shape.{forms.variant_name(node, i)}")


def _reshape(form: Form, node: Node, value: Any, parts: Parts, anchor: Parts | None, key: str) -> None:
    variant = node.variants[st.session_state[key]]
    found = forms.fresh(variant)
    if isinstance(found, dict) and isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name in variant.parts and name != node.mark}
        found = {**found, **kept}
    form.put(parts, found, anchor)


def _map(form: Form, node: Node, value: Mapping[str, Any], parts: Parts, anchor: Parts | None) -> None:
    """Draw the entries of a block whose keys the user names; all of them are one edit, since a name may be none of a path."""
    assert node.inner is not None
    whole = anchor or parts
    for name, each in value.items():
        _inner(form, node.inner, each, (*parts, name), whole, name)
    key = form.key(parts, "name")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(form.t("blocks.new_key"), key=key, max_chars=200, width=330)
        st.button(
            form.t("blocks.add"),
            key=form.key(parts, "add-key"),
            on_click=_add_key,
            args=(form, node.inner, value, parts, whole, key),
            icon=":material/add:",
        )


def _add_key(form: Form, node: Node, value: Mapping[str, Any], parts: Parts, anchor: Parts, key: str) -> None:
    name = str(st.session_state[key]).strip()
    if name and name not in value:
        if anchor == parts:
            form.put(parts, {**value, name: forms.fresh(node)}, None)
        else:
            form.put((*parts, name), forms.fresh(node), anchor)


def _entries(form: Form, node: Node, value: Sequence[Any], parts: Parts, anchor: Parts | None) -> None:
    """Draw the entries of a list of blocks, each in a frame."""
    assert node.inner is not None
    for i, each in enumerate(value):
        _inner(form, node.inner, each, (*parts, i), anchor, f"{i + 1} · {forms.title_of(each)}".rstrip(" ·"))
    adder(form, node, value, parts, anchor)


def adder(form: Form, node: Node, value: Sequence[Any], parts: Parts, anchor: Parts | None) -> None:
    """Draw a button that adds an entry to a list."""
    assert node.inner is not None
    st.button(
        form.t("blocks.add"),
        key=form.key(parts, "add-entry"),
        on_click=form.put,
        args=(parts, [*value, forms.fresh(node.inner)], anchor),
        icon=":material/add:",
    )


# -- tables ------------------------------------------------------------------------------------------------------------


def _table(form: Form, node: Node, value: Sequence[Mapping[str, Any]], parts: Parts, anchor: Parts | None) -> None:
    """Draw a list whose entries have fields alone as a table; its rows are those it was drawn with first, beside which the editor keeps what changed."""
    assert node.inner is not None
    key = form.key(parts, "rows")
    if key not in st.session_state:  # the editor is drawn first, or again after another page
        st.session_state[f"{key}-first"] = list(value)
    rows = st.session_state[f"{key}-first"]
    shown = node.inner.parts
    frame = pd.DataFrame(
        {
            name: pd.Series([forms.cell(part, row.get(name)) for row in rows], dtype=_dtype(part))
            for name, part in shown.items()
        }
    )
    st.data_editor(
        frame,
        num_rows="dynamic",
        hide_index=True,
        width="stretch",
        key=key,
        on_change=_rows_changed,
        args=(form, node, parts, anchor, key),
        column_config={name: _column(name, part, rows) for name, part in shown.items()},
        placeholder="",
        alt=path_text(parts),
    )
    form.tell(parts, within=True)


def _dtype(node: Node) -> Any:
    return "boolean" if node.kind == "switch" else "string"


def _column(name: str, node: Node, rows: Sequence[Mapping[str, Any]]) -> Any:
    if node.kind == "switch":
        return column_config.CheckboxColumn(name, help=node.words or None)
    if node.kind == "choice":
        there = [str(row[name]) for row in rows if row.get(name) is not None]
        options = list(dict.fromkeys([*map(str, node.names), *there]))
        return column_config.SelectboxColumn(name, help=node.words or None, options=options, required=node.is_required)
    return column_config.TextColumn(name, help=_help(node))


def _rows_changed(form: Form, node: Node, parts: Parts, anchor: Parts | None, key: str) -> None:
    rows = st.session_state[f"{key}-first"]
    entries = forms.changed_rows(node, rows, change_of(st.session_state[key]))
    drafting.put_value(form.work, parts, entries, anchor)


# -- single fields -----------------------------------------------------------------------------------------------------


def draw_field(form: Form, node: Node, value: Any, parts: Parts, anchor: Parts | None) -> None:
    """Draw one field with its problems below."""
    key, label = form.key(parts), _label(node, str(parts[-1]))
    given = (form, node, parts, anchor, key)
    if node.kind == "switch" and (value is not None or node.default is not None) and forms.fits(node, value or False):
        st.session_state.setdefault(key, bool(node.default) if value is None else value)
        st.checkbox(label, key=key, help=_help(node), on_change=_typed, args=given)
    elif node.kind in ("switch", "choice"):
        names = [YES, NO] if node.kind == "switch" else [str(name) for name in node.names]
        now = "" if value is None else forms.shown(node, value)
        now = {"true": YES, "false": NO}.get(now, now) if node.kind == "switch" else now
        st.session_state.setdefault(key, now)
        options = list(dict.fromkeys(["", *names, now]))
        st.selectbox(
            label,
            options,
            format_func=lambda name: _named(name, node, form.t),
            key=key,
            help=_help(node),
            on_change=_typed,
            args=given,
        )
    elif node.kind == "json" or (value is not None and not forms.fits(node, value)):
        if len(text := forms.shown(forms.UNKNOWN, value)) > MOST_LETTERS:
            st.caption(form.t("blocks.too_long", name=label))
            return
        st.session_state.setdefault(key, text)
        st.text_area(label, key=key, help=_help(node), height=JSON_HEIGHT, on_change=_typed, args=given)
    else:
        st.session_state.setdefault(key, forms.shown(node, value))
        default = forms.shown(node, node.default) if node.default not in (None, "", []) else ""
        st.text_input(
            label,
            key=key,
            help=_help(node),
            placeholder=default or _example(node, form.t),
            on_change=_typed,
            args=given,
        )
    form.tell(parts, within=True)


def _typed(form: Form, node: Node, parts: Parts, anchor: Parts | None, key: str) -> None:
    """Take over what was typed or chosen."""
    found, old = st.session_state[key], forms.value_at(st.session_state[drafting.DRAFT].scenario.document(), parts)
    if node.kind == "switch" and not isinstance(found, bool):
        value = {YES: True, NO: False}.get(found)
    else:
        value = found if isinstance(found, bool) else forms.read(node, found, old)
    drafting.put_value(form.work, parts, value, anchor)


def _named(name: str, node: Node, t: Words) -> str:
    """Name a choice; an empty one by the default that it stands for."""
    if node.kind == "switch" and name:
        return t(f"blocks.{name}")
    default = "" if node.default is None else forms.shown(node, node.default)
    return name or (t("blocks.by_default", value=default) if default else "–")


def _label(node: Node, key: str) -> str:
    """Name a field by its key, as specs write it, with its unit, and a star where it must be there."""
    unit = f" [{page(node.unit)}]" if node.unit not in ("", "1") else ""
    return f"{page(key)}{unit}{' *' if node.is_required else ''}"


def _example(node: Node, t: Words) -> str:
    return t("blocks.example", value=node.examples[0]) if node.examples else ""


def _help(node: Node) -> str | None:
    """Explain a field: its description, the range, and how its value is written."""
    parts = [node.words, node.span, ", ".join(f"`{each}`" for each in node.examples)]
    return "  \n".join(part for part in parts if part) or None
