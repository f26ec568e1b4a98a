"""Format rows of plain values as text, CSV or Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.escape import csv_cell, markdown, terminal
from planner.messages import Message

Row = Mapping[str, Any]
FORMATS = ("table", "json", "csv", "md")  # in which plans and studies are printed


def known_format(form: str) -> str:
    """Return the name of a format as it is. Raises ValueError with the names of all formats for another one."""
    if form not in FORMATS:
        raise ValueError(Message.of("formats.unknown", given=form, names=", ".join(FORMATS)).text())
    return form


def as_csv(rows: Sequence[Row]) -> str:
    """Format rows as CSV with a header; nested values as JSON."""
    if not rows:
        return ""
    stream = io.StringIO()
    columns = _columns(rows)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(_csv_value, columns))
    writer.writerows([_csv_value(row.get(column, "")) for column in columns] for row in rows)
    return stream.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return csv_cell(value) if isinstance(value, str) else value


def as_text(rows: Sequence[Row], indent: str = "") -> str:
    """Format rows as aligned columns for a terminal, numbers to the right."""
    columns = _columns(rows)
    heads = [terminal(column) for column in columns]
    cells = [[terminal(_cell(row.get(column))) for column in columns] for row in rows]
    widths = [max([len(head), *(len(line[i]) for line in cells)]) for i, head in enumerate(heads)]
    right = [bool(rows) and all(_is_number(row.get(column)) for row in rows) for column in columns]

    def line(parts: Sequence[str]) -> str:
        aligned = (
            part.rjust(width) if flush else part.ljust(width) for part, width, flush in zip(parts, widths, right)
        )
        return (indent + "  ".join(aligned)).rstrip() + "\n"

    return line(heads) + line(["-" * width for width in widths]) + "".join(map(line, cells))


def as_markdown(rows: Sequence[Row], escaped: Callable[[str], str] = markdown) -> str:
    """Format rows as a table of Markdown; `escaped` turns texts into Markdown, and is another function where they are Markdown."""
    columns = _columns(rows)
    lines = [
        [escaped(column) for column in columns],
        ["---"] * len(columns),
        *([escaped(_cell(row.get(column))) for column in columns] for row in rows),
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _is_number(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, (int, float)) and not isinstance(value, bool))
        or (isinstance(value, str) and value[:1].isdigit())
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_cell, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    return str(value)
