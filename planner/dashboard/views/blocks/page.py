"""Draw one block of the spec as a form, with a pane of JSON beside it that is the same value as a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from planner.dashboard.editor import forms
from planner.dashboard.editor.draft import Draft
from planner.dashboard.editor.forms import Parts
from planner.dashboard.editor.nodes import FIELDS, Node, spec_node
from planner.dashboard.state.digest import digest
from planner.dashboard.state.session import Work
from planner.dashboard.views import looking
from planner.dashboard.views.blocks import drafting, fields
from planner.dashboard.views.blocks.fields import Form
from planner.errors import Issue, path_text, words_of
from planner.escape import page
from planner.messages import Message
from planner.report.locale import Words
from planner.spec.document import read_value

GENERAL = "general"
"""The fields of the spec that are in no block."""
HEIGHT = 520


def draw(work: Work, draft: Draft, t: Words) -> None:
    """Draw the choice of a block, its form, and its JSON."""
    node, document = spec_node(), draft.scenario.document()
    form = Form(work, draft, t)
    name = _choose(node, document, draft.problems, t)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        parts = (
            _general(form, node, document)
            if name == GENERAL
            else _one(form, node.parts.get(name, forms.UNKNOWN), document, name)
        )
    with right:
        _json(form, document, parts)
    with left:
        for i, problem in enumerate(draft.problems):
            if i not in form.told and _block_of(problem, node) == name:
                fields.told(problem, t, problem.path)


def _choose(node: Node, document: Mapping[str, Any], problems: Sequence[Issue], t: Words) -> str:
    """Let the user choose a block; those with problems and those that the spec has are marked."""
    names = [GENERAL, *(key for key, part in forms.parts_of(node, document).items() if part.kind not in FIELDS)]
    wrong = {_block_of(problem, node) for problem in problems}
    name = st.selectbox(
        t("blocks.block"),
        names,
        index=names.index(looking.first("block", names, "workloads")),
        format_func=lambda name: _named(name, document, wrong, t),
        key="blocks-block",
        persist_state="session",
        width=330,
    )
    looking.note("block", name, "workloads")
    if (part := node.parts.get(name)) is not None and part.words:
        st.caption(part.words)
    return name


def _named(name: str, document: Mapping[str, Any], wrong: set[str], t: Words) -> str:
    mark = "⚠ " if name in wrong else "" if name == GENERAL or document.get(name) else "+ "
    return mark + (t("blocks.general") if name == GENERAL else name)


def _block_of(problem: Issue, node: Node) -> str:
    """Name the block that a problem lies in."""
    name = problem.path.partition(".")[0].partition("[")[0]
    part = node.parts.get(name)
    return name if part is not None and part.kind not in FIELDS else GENERAL


def _general(form: Form, node: Node, document: Mapping[str, Any]) -> Parts:
    columns = st.columns(fields.COLUMNS)
    for i, key in enumerate(key for key, part in node.parts.items() if part.kind in FIELDS):
        with columns[i % fields.COLUMNS]:
            fields.draw_field(form, node.parts[key], document.get(key), (key,), None)
    return ()


def _one(form: Form, node: Node, document: Mapping[str, Any], name: str) -> Parts:
    """Draw a block, or one entry of a list of blocks; returns the place that was drawn."""
    value, parts = document.get(name), (name,)
    if value is None:
        st.button(
            form.t("blocks.begin", name=name),
            key=form.key(parts, "add"),
            on_click=form.put,
            args=(parts, forms.fresh(node), None),
            icon=":material/add:",
        )
        form.tell(parts, within=True)
        return parts
    if node.kind != "list" or node.is_flat or not forms.fits(node, value):
        fields.draw(form, node, value, parts)
        form.tell(parts, within=True)
        return parts
    return _entry(form, node, value, parts)


def _entry(form: Form, node: Node, value: list[Any], parts: Parts) -> Parts:
    """Let the user choose an entry of a list, and draw it with buttons that add, copy and remove one."""
    assert node.inner is not None
    t, key = form.t, form.key(parts, "entry")
    wrong = [
        i for i in range(len(value)) if any(each.path.startswith(f"{parts[0]}[{i}]") for each in form.draft.problems)
    ]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at = st.selectbox(
            t("blocks.entry"),
            range(len(value)),
            index=min(st.session_state.get(f"at-{parts[0]}", 0), len(value) - 1) if value else None,
            format_func=lambda i: f"{'⚠ ' if i in wrong else ''}{i + 1} · {forms.title_of(value[i])}",
            key=key,
            width=330,
        )
        fields.adder(form, node, value, parts, None)
        if at is not None:
            copied = [*value[: at + 1], value[at], *value[at + 1 :]]
            st.button(
                t("blocks.copy"),
                key=form.key(parts, "copy"),
                on_click=form.put,
                args=(parts, copied, None),
                icon=":material/content_copy:",
            )
            rest = [*value[:at], *value[at + 1 :]]
            st.button(
                t("blocks.remove_entry"),
                key=form.key(parts, "remove-entry"),
                on_click=form.put,
                args=(parts, rest or None, None),
                icon=":material/delete:",
            )
    form.tell(parts)
    if at is None:
        return parts
    st.session_state[f"at-{parts[0]}"] = at
    fields.draw(form, node.inner, value[at], (*parts, at))
    form.tell((*parts, at), within=True)
    return (*parts, at)


def _json(form: Form, document: Mapping[str, Any], parts: Parts) -> None:
    """Draw the value of a place as JSON; it is filled anew with each change of a field, and a text typed there counts as one edit."""
    value = forms.value_at(document, parts) if parts else {k: v for k, v in document.items() if _is_general(k)}
    text = "" if value is None else json.dumps(value, indent=1, ensure_ascii=False)
    label = path_text(parts) or "{ }"
    if len(text) > fields.MOST_LETTERS:
        st.caption(form.t("blocks.too_long", name=page(label)))
        return
    key = f"json-{form.draft.version}-{path_text(parts)}-{digest(value)}"
    st.session_state.setdefault(key, text)
    st.text_area(
        form.t("blocks.json", name=page(label)),
        key=key,
        height=HEIGHT,
        on_change=_json_typed,
        args=(form, parts, value, key),
        help=form.t("blocks.json.help"),
    )
    for problem in st.session_state.get(drafting.REFUSED, ()):
        fields.told(problem, form.t, problem.path)


def _is_general(key: str) -> bool:
    part = spec_node().parts.get(key)
    return part is not None and part.kind in FIELDS


def _json_typed(form: Form, parts: Parts, old: Any, key: str) -> None:
    """Take over the pane: its value as a whole, or the keys of the spec that are in no block."""
    text = st.session_state[key].strip()
    try:
        value = read_value(text) if text else None
    except ValueError as error:
        st.session_state[drafting.REFUSED] = (Issue(path_text(parts), words_of(error)),)
        return
    if parts:
        form.put(parts, value, None)
    elif isinstance(value, dict) and all(map(_is_general, value)):
        gone = {name: None for name in old if name not in value}
        drafting.put(form.work, {**gone, **value}, redraw=True)
    else:
        st.session_state[drafting.REFUSED] = (Issue("", Message.of("blocks.general_only").text()),)
