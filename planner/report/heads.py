"""Headings, heads of columns and remarks of a plan's tables: messages, each by a key.

A table is written as rows whose keys name its columns; here these become words. Not here: how tables are set (`planner.tables`,
`planner.report.paper`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.messages import DEFAULT, Said, say, texts, translated

Row = dict[str, Any]
HEADING, REMARK = "heading.", "remark."


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column, and whether its cells are set to the right."""

    head: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A table in the language of a reader: heading, rows, and a remark, which may be empty."""

    heading: str
    rows: list[Row]
    remark: str


def left(key: str, **arguments: str) -> Column:
    """Name a column of texts."""
    return Column(say(f"head.{key}", **arguments) if key else "")


def right(key: str, **arguments: str) -> Column:
    """Name a column of numbers."""
    return Column(say(f"head.{key}", **arguments), right=True)


def headed(rows: Iterable[Mapping[str, Any]], currency: str = "") -> list[Row]:
    """Put heads in words over the columns of rows, by their keys; a key that is empty or a message already stays."""
    words: dict[str, str] = {}
    for key in (key for row in rows for key in row):
        if key not in words:
            words[key] = say(f"head.{key}", currency=currency) if key and not isinstance(key, Said) else key
    return [{words[key]: value for key, value in row.items()} for row in rows]


def remark_on(heading: str) -> str:
    """Return the remark below the table or the list under a heading; empty for most."""
    if not isinstance(heading, Said):
        return ""
    code = heading.message.code.replace(HEADING, REMARK)
    return say(code) if code in texts(DEFAULT) and code.startswith(REMARK) else ""


def section(heading: str, rows: Iterable[Mapping[str, Any]], language: str, currency: str) -> Section:
    """Say a table in a language; texts without a message, such as a user's names, stay as they are."""
    told = [
        {
            translated(key, language): translated(value, language) if isinstance(value, str) else value
            for key, value in row.items()
        }
        for row in headed(list(rows), currency)
    ]
    return Section(translated(heading, language), told, translated(remark_on(heading), language))
