"""Format rows of plain values as text, CSV or Markdown."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from planner.escape import csv_cell, markdown, terminal
from planner.messages import Message

Row = Mapping[str, Any]
FRAMES = ("pandas", "polars")  # that make data frames; neither is required
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


def as_html(heading: str, rows: Sequence[Row], further: int = 0) -> str:
    """Format a heading and rows as HTML, numbers to the right; `further`: rows that were left out, which the last line counts."""
    columns = _columns(rows)
    head = "".join(f"<th>{html.escape(terminal(column))}</th>" for column in columns)
    lines = [f"<tr>{''.join(_html_cell(row.get(column)) for column in columns)}</tr>" for row in rows]
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if rows else ""
    more = f"<p>{html.escape(Message.of('list.more', count=further).text())}</p>" if further > 0 else ""
    return f"<p><b>{html.escape(terminal(heading))}</b></p>{table}{more}"


def _html_cell(value: Any) -> str:
    style = ' style="text-align:right"' if isinstance(value, (int, float)) else ""
    return f"<td{style}>{html.escape(terminal(_cell(value)))}</td>"


def as_frame(rows: Sequence[Row], library: str | None = None) -> Any:
    """Make a data frame of rows, by pandas or polars; without `library`, by the first that is installed.

    Raises ValueError for another library, and ImportError where none that is asked for is installed.
    """
    if library is not None and library not in FRAMES:
        raise ValueError(Message.of("library.unknown_frame", given=library, names=", ".join(FRAMES)).text())
    for name in FRAMES if library is None else (library,):
        try:
            frames = import_module(name)
        except ModuleNotFoundError:
            continue
        columns = {column: [row.get(column) for row in rows] for column in _columns(rows)}
        return frames.DataFrame(columns) if name == "pandas" else frames.DataFrame(columns, strict=False)
    raise ImportError(Message.of("library.no_frame", names=library or " / ".join(FRAMES)).text())


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
