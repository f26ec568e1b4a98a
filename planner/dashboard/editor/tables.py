"""Read the rows of the tables from a spec, and turn changed, new and removed rows into edits of it. No Streamlit here."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.dashboard.editor.columns import Column, Table
from planner.errors import Issue
from planner.spec.document import at, path_parts

SITE = "site"  # column that names the entry in whose inner list a row lies
_SHARE = re.compile(r"(.+?)[\s:]+(\d*\.?\d+)\s*(%?)")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: `path` of its entry in the spec, empty for figures of the whole spec, and its cells by column."""

    path: str
    cells: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What a visitor changed in a table: cells by row and column, new rows, and removed ones."""

    cells: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    added: Sequence[Mapping[str, Any]] = ()
    removed: Sequence[int] = ()

    def __bool__(self) -> bool:
        return bool(self.cells or self.added or self.removed)


def rows_of(table: Table, document: Mapping[str, Any]) -> list[Row]:
    """List the rows of a table; entries that are no blocks are left out."""
    if not table.path:
        return [Row("", {column.key: _shown(at(document, column.key), column) for column in table.columns})]
    found = []
    for place, name, entry in _entries(table, document):
        cells = {column.key: _shown(at(entry, column.key), column) for column in table.columns}
        found.append(Row(place, {**cells, SITE: name} if table.inner else cells))
    return found


def _entries(table: Table, document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (path, name of the entry around it, entry) of each row."""
    for place, entry in _listed(document, table.path):
        if table.inner:
            for inner, each in _listed(entry, table.inner):
                yield f"{place}.{inner}", str(entry.get("region") or ""), each
        elif not table.kind or entry.get("kind") == table.kind:
            yield place, "", entry


def _listed(document: Mapping[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = at(document, path)
    for i, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict):
            yield f"{path}[{i}]", entry


def edits_of(table: Table, document: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Turn a change of a table into edits of the spec by path: single cells, or whole lists where rows come or go."""
    rows = rows_of(table, document)
    moved = table.inner and any(SITE in cells for cells in change.cells.values())
    if not (change.added or change.removed or moved):
        return dict(
            edit
            for i, cells in change.cells.items()
            if i < len(rows)
            for edit in _cell_edits(table, document, rows[i], cells)
        )
    return _inner_lists(table, document, rows, change) if table.inner else _list(table, document, rows, change)


def _cell_edits(
    table: Table, document: Mapping[str, Any], row: Row, cells: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the edits of the cells of a row; a block that is left without any value is taken away as a whole."""
    before: dict[str, Any] = at(document, row.path) if row.path else dict(document)
    after = copy.deepcopy(before)
    for key, cell in cells.items():
        if key in table.column and not table.column[key].fixed:
            _put(after, key, _value(cell, at(before, key), table.column[key]))
    for key in cells:
        if key not in table.column or table.column[key].fixed:
            continue
        place = _emptied(before, after, key)
        if at(after, place) != at(before, place):
            yield (f"{row.path}.{place}" if row.path else place), at(after, place)


def _emptied(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> str:
    """Return the outermost block around a place that held values and holds none any more, or the place itself."""
    parts = key.split(".")
    for n in range(1, len(parts)):
        block = ".".join(parts[:n])
        if at(before, block) is not None and at(after, block) is None:
            return block
    return key


def _put(entry: dict[str, Any], key: str, value: Any) -> None:
    """Write a value into an entry; None takes it away, with the blocks that hold nothing else."""
    head, _, rest = key.partition(".")
    if not rest:
        if value is None:
            entry.pop(head, None)
        else:
            entry[head] = value
        return
    block = entry.get(head)
    inner = block if isinstance(block, dict) else {}
    _put(inner, rest, value)
    if inner:
        entry[head] = inner
    else:
        entry.pop(head, None)


def _list(table: Table, document: Mapping[str, Any], rows: Sequence[Row], change: Change) -> dict[str, Any]:
    """Write the whole list of a table whose rows come or go; entries of other kinds stay where they are."""
    gone = {rows[i].path for i in change.removed if i < len(rows)}
    cells = {rows[i].path: cells for i, cells in change.cells.items() if i < len(rows)}
    kept = []
    entries = at(document, table.path)
    for i, entry in enumerate(entries if isinstance(entries, list) else []):
        place = f"{table.path}[{i}]"
        if place not in gone:
            kept.append(_changed(table, entry, cells.get(place, {})))
    kept += [_changed(table, table.new, cells) for cells in change.added]
    return {table.path: kept or None}


def _inner_lists(table: Table, document: Mapping[str, Any], rows: Sequence[Row], change: Change) -> dict[str, Any]:
    """Write the inner lists of a table, that of each entry whose rows come, go or move."""
    kept: dict[str, list[Any]] = {str(entry.get("region") or ""): [] for _, entry in _listed(document, table.path)}
    first = next(iter(kept), "")
    for i, row in enumerate(rows):
        if i not in change.removed:
            cells = change.cells.get(i, {})
            name = cells.get(SITE) or row.cells[SITE]
            kept.setdefault(str(name), []).append(_changed(table, at(document, row.path), cells))
    for cells in change.added:
        kept.setdefault(str(cells.get(SITE) or first), []).append(_changed(table, table.new, cells))
    return {
        f"{place}.{table.inner}": entries or None
        for place, entry in _listed(document, table.path)
        if (entries := kept[str(entry.get("region") or "")]) != (at(entry, table.inner) or [])
    }


def _changed(table: Table, entry: Any, cells: Mapping[str, Any]) -> Any:
    result = copy.deepcopy(entry)
    for key, cell in cells.items():
        if key in table.column and not table.column[key].fixed and not (table.inner and key == SITE):
            _put(result, key, _value(cell, at(entry, key), table.column[key]))
    return result


# -- cells -------------------------------------------------------------------------------------------------------------


def _shown(value: Any, column: Column) -> Any:
    """Write a value of the spec as its cell holds it."""
    if value is None or (column.kind == "switch" and isinstance(value, bool)):
        return value
    if column.kind == "names" and isinstance(value, list):
        return [str(name) for name in value]
    if column.kind == "shares" and _is_shares(value):
        return ", ".join(f"{entry['region']} {entry['share']:g}" for entry in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_shares(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict) and set(entry) == {"region", "share"} and isinstance(entry["share"], int | float)
        for entry in value
    )


def _value(cell: Any, old: Any, column: Column) -> Any:
    """Read a cell; None if it is empty, and the text as it is where it cannot be read, so that the spec names the fault."""
    if isinstance(cell, bool) or cell is None:
        return cell
    if column.kind == "names":
        return [str(name) for name in cell] or None if isinstance(cell, list) else _list_of(str(cell))
    text = str(cell).strip()
    if not text:
        return None
    if column.kind == "shares":
        return _shares(text)
    if column.kind == "figure" and not isinstance(old, str):
        return number_or_text(text)
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _list_of(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] or None


def number_or_text(text: str) -> Any:
    """Read a finite number; any other text stays as it is."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if abs(value) < float("inf") else text
    return text


def _shares(text: str) -> Any:
    """Read names with shares, such as "us-texas 0.6, us-oregon 40 %"; one name alone has all."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    found = [_SHARE.fullmatch(name) for name in names]
    if len(names) == 1 and found[0] is None:
        return [{"region": names[0], "share": 1.0}]
    if not all(found):
        return text
    return [{"region": each[1], "share": float(each[2]) / (100.0 if each[3] else 1.0)} for each in found if each]


# -- problems ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A cell: table, row and column; no column for a problem of the whole row, no row for one of the whole table."""

    table: str
    row: int | None = None
    column: str | None = None


def place_of(path: str, document: Mapping[str, Any], tables: Sequence[Table]) -> Place | None:
    """Find the cell that a place of the spec is in; None for a place that no table shows."""
    best: tuple[int, Place] | None = None
    for table in tables:
        for i, row in enumerate(rows_of(table, document)):
            rest = _inside(path, row.path)
            if rest is None:
                continue
            column = next((c.key for c in table.columns if _meets(rest, c.key)), None)
            if not row.path and column is None:
                continue
            depth = 2 * len(path_parts(row.path)) + (1 if column else 0)
            if best is None or depth > best[0]:
                best = depth, Place(table.name, i, column)
        if best is None and path and path == table.path:
            best = 0, Place(table.name)
    return best[1] if best else None


def _inside(path: str, block: str) -> str | None:
    """Return the rest of a path inside a block; None for one outside."""
    if not block:
        return path
    if path == block:
        return ""
    return path[len(block) + 1 :] if path.startswith(f"{block}.") else None


def _meets(rest: str, key: str) -> bool:
    """Tell whether a place inside an entry is a cell, a part of one, or a block around one."""
    return rest == key or rest.startswith((f"{key}.", f"{key}[")) or (rest != "" and key.startswith(f"{rest}."))


def sorted_problems(
    problems: Sequence[Issue], document: Mapping[str, Any], tables: Sequence[Table]
) -> tuple[dict[str, list[tuple[Place, Issue]]], list[Issue]]:
    """Sort problems by table; problems of no table come apart."""
    by_table: dict[str, list[tuple[Place, Issue]]] = {}
    others = []
    for problem in problems:
        place = place_of(problem.path, document, tables)
        if place is None:
            others.append(problem)
        else:
            by_table.setdefault(place.table, []).append((place, problem))
    return by_table, others
