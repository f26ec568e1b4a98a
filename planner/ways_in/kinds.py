"""Recognise a file of another kind than a command reads, and name the command that reads it.

Asked only where a document could not be read as what it should be, so that no valid document is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.errors import Issue
from planner.messages import Message

SPEC, PLAN, CASE, CODESIGN, TIERS, EDGE, BATCH, REPORT = (
    "spec",
    "plan",
    "case",
    "codesign_case",
    "tiers_case",
    "edge_case",
    "batch_answers",
    "report",
)
_MARKS = (
    (BATCH, {"id", "status", "digest", "seconds"}),
    (PLAN, {"routes", "totals"}),
    (PLAN, {"fleet", "catalog_digest"}),
    (CODESIGN, {"workload", "codesign"}),
    (TIERS, {"workload", "kv_tiers"}),
    (CASE, {"workload"}),
    (EDGE, {"fleets", "tasks"}),
    (SPEC, {"workloads"}),
)
"""Keys that every document of a kind has, the kinds with more keys before others that share one with them; a plan without one of its keys is known by the others."""


def kind_of(document: object) -> str:
    """Return the kind of a document by the keys that all of its kind have; empty for none known.

    >>> kind_of({"workload": {}, "system": "DGX H100"}), kind_of({"name": "x"})
    ('case', '')
    """
    if not isinstance(document, Mapping):
        return ""
    return next((kind for kind, marks in _MARKS if marks <= document.keys()), "")


def wrong_kind(document: object, *read: str, where: str = "") -> list[Issue]:
    """Return the problem of a document of a kind that is not read here, as one of one; none for `read` and for no known kind."""
    kind = kind_of(document)
    return [Issue(where, Message.of(f"kinds.{kind}_given").text())] if kind and kind not in read else []


def wrong_text(text: str, *read: str, where: str = "") -> list[Issue]:
    """Return the problem of a text that is not one object of JSON: a report of HTML, or the answers of `batch`, an object each line."""
    if text.lstrip("\ufeff \t\r\n")[:14].lower() == "<!doctype html" and REPORT not in read:
        return [Issue(where, Message.of("kinds.report_given").text())]
    return wrong_kind(_first_line(text), *read, where=where) if "\n" in text.strip() else []


def _first_line(text: str) -> Any:
    """Parse the first line of a text as JSON; None if it is not a whole value."""
    try:
        return json.loads(text.strip().partition("\n")[0])
    except (ValueError, RecursionError):
        return None
