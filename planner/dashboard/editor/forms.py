"""Write values of a spec as the fields of a form show them, read them back, and turn what changed into edits. No Streamlit here."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from planner.dashboard.editor.nodes import FIELDS, NUMBERS, Node
from planner.dashboard.editor.tables import Change, number_or_text
from planner.errors import path_text
from planner.spec.document import read_value

Parts = tuple[str | int, ...]
TITLES = ("name", "region", "system", "kind", "provider", "model", "date", "start", "architecture")
"""Keys by which an entry of a list is named, the first that it has."""
UNKNOWN = Node("json")
"""A key that the schema does not have, such as one of an earlier release."""


def fits(node: Node, value: Any) -> bool:
    """Tell whether a form of this kind can show a value; otherwise it is shown as JSON."""
    match node.kind:
        case "block" | "map":
            return isinstance(value, dict)
        case "list":
            return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
        case "many":
            return isinstance(value, list) and all(_is_scalar(entry) for entry in value)
        case "switch":
            return isinstance(value, bool)
        case "choice":
            return value in node.names and not isinstance(value, bool)
        case "figure":
            return _is_scalar(value)
        case "variants":
            return variant_of(node, value) is not None
    return True


def variant_of(node: Node, value: Any) -> int | None:
    """Find the variant that a value has; None for none."""
    mark = value.get(node.mark) if node.mark and isinstance(value, dict) else None
    for i, variant in enumerate(node.variants):
        if fits(variant, value) and (mark is None or mark in variant.parts[node.mark].names):
            return i
    return None


def variant_name(node: Node, i: int) -> str:
    """Name a variant: by its mark, else by its kind."""
    variant = node.variants[i]
    return str(variant.parts[node.mark].names[0]) if node.mark else variant.kind


def parts_of(node: Node, value: Mapping[str, Any]) -> dict[str, Node]:
    """List the parts of a block: of the schema, and keys that only the value has."""
    return {**node.parts, **{key: UNKNOWN for key in value if key not in node.parts}}


def title_of(value: Any) -> str:
    """Name an entry of a list."""
    found = (value.get(key) for key in TITLES) if isinstance(value, dict) else ()
    return next((str(name) for name in found if isinstance(name, str) and name), "")


def fresh(node: Node) -> Any:
    """Return the least value of a block that is added: what its schema fixes, and the blocks that it must have; fields are left to fill in."""
    match node.kind:
        case "block":
            parts = {key: part for key, part in node.parts.items() if part.is_required}
            fixed = {
                key: part.names[0] for key, part in parts.items() if part.kind == "choice" and len(part.names) == 1
            }
            inner = {key: fresh(part) for key, part in parts.items() if part.kind not in (*FIELDS, "json")}
            return {**fixed, **inner}
        case "list":
            assert node.inner is not None
            return [fresh(node.inner) for _ in range(max(node.least, 1))]
        case "map":
            return {}
        case "variants":
            return fresh(node.variants[0])
        case "choice":
            return node.names[0]
        case "switch":
            return True
        case "many":
            return []
    return {} if node.kind == "json" else ""


# -- fields ------------------------------------------------------------------------------------------------------------


def shown(node: Node, value: Any) -> str:
    """Write a value as the text of its field; empty for none."""
    if value is None:
        return ""
    if node.kind == "json" or not fits(node, value):
        return json.dumps(value, indent=1, ensure_ascii=False)
    if node.kind == "many":
        texts = [entry if isinstance(entry, str) else json.dumps(entry) for entry in value]
        plain = all(text and "," not in text and text == text.strip() and text[0] not in "[{" for text in texts)
        if plain and texts and _many(node, ", ".join(texts)) == value:
            return ", ".join(texts)
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return json.dumps(value)
    return value if _scalar(node, value) == value else json.dumps(value, ensure_ascii=False)


def read(node: Node, text: str, old: Any) -> Any:
    """Read the text of a field; None where it is empty, and the text as it is where it cannot be read, so that the spec names the fault."""
    if text == shown(node, old):
        return old
    if not text.strip():
        return None
    if node.kind == "json" or (old is not None and not fits(node, old)):
        return _json(text)
    if node.kind == "many":
        return _many(node, text)
    if node.kind == "choice":
        return next((name for name in node.names if str(name) == text), text)
    return _scalar(node, text.strip())


def _json(text: str) -> Any:
    try:
        return read_value(text)
    except ValueError:
        return text


def _many(node: Node, text: str) -> Any:
    if text.strip().startswith("["):
        return _json(text)
    return [_scalar(node, each.strip()) for each in text.split(",") if each.strip()]


def _scalar(node: Node, text: str) -> Any:
    """Read a number where the field may hold one, else a text; a text that reads as a number stands in quotes where the field may hold both."""
    if not node.types & NUMBERS:
        return text
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _json(text)
    return number_or_text(text)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


# -- tables ------------------------------------------------------------------------------------------------------------


def cell(node: Node, value: Any) -> Any:
    """Write a value as the cell of a table: yes or no as it is, all else as a text."""
    if value is None or (node.kind == "switch" and isinstance(value, bool)):
        return value
    return shown(node, value)


def changed_rows(node: Node, rows: Sequence[Mapping[str, Any]], change: Change) -> list[dict[str, Any]]:
    """Return the entries of a flat list after a change of its table."""
    kept = [_changed(node, row, change.cells.get(i, {})) for i, row in enumerate(rows) if i not in set(change.removed)]
    assert node.inner is not None
    return kept + [_changed(node, fresh(node.inner), cells) for cells in change.added]


def _changed(node: Node, row: Mapping[str, Any], cells: Mapping[str, Any]) -> dict[str, Any]:
    """Write cells into an entry; keys that the table does not show stay."""
    assert node.inner is not None
    result = copy.deepcopy(dict(row))
    for key, text in cells.items():
        if (part := node.inner.parts.get(key)) is None:
            continue
        value = text if isinstance(text, bool) or text is None else read(part, str(text), row.get(key))
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


# -- edits -------------------------------------------------------------------------------------------------------------


def value_at(document: Any, parts: Parts) -> Any:
    """Return the value at a place; None where there is none."""
    for part in parts:
        try:
            document = document[part]
        except (LookupError, TypeError):
            return None
    return document


def edit(document: Mapping[str, Any], parts: Parts, value: Any, anchor: Parts | None = None) -> dict[str, Any]:
    """Return the edit, by path, that writes a value at a place; None takes it away.

    `anchor`: the place around it that is written as a whole, for keys that users name do not stand in paths. Entries of lists go with their list.
    """
    if anchor is None and value is None and parts and isinstance(parts[-1], int):
        anchor = parts[:-1]
    if anchor is None or anchor == parts:
        return {path_text(parts): value}
    whole = copy.deepcopy(value_at(document, anchor))
    place = value_at(whole, parts[len(anchor) : -1])
    last = parts[-1]
    if value is not None:
        place[last] = value
    elif isinstance(place, list):
        del place[int(last)]
    else:
        place.pop(last, None)
    return {path_text(anchor): whole}
