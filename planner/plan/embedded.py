"""Carry a plan inside an HTML report as data that no browser runs, and read it back."""

from __future__ import annotations

import re

OPENS = '<script type="application/json" id="flopwatt-plan">'
CLOSES = "</script>"
_REPORT = re.compile(rb"\s*<!doctype html", re.IGNORECASE)


def as_data(text: str) -> str:
    """Wrap the JSON text of a plan in an element of HTML; no character of it can end the element.

    >>> as_data('{"name": "</script>"}')
    '<script type="application/json" id="flopwatt-plan">{"name": "\\\\u003c/script>"}</script>'
    """
    return f"{OPENS}{text.replace('<', chr(92) + 'u003c')}{CLOSES}"


def is_report(text: bytes) -> bool:
    """Tell whether a file is a page of HTML and no JSON."""
    return _REPORT.match(text) is not None


def plan_text(page: str) -> str | None:
    """Return the JSON text of the plan in a report; None in a page that holds none."""
    _, opened, rest = page.partition(OPENS)
    text, closed, _ = rest.partition(CLOSES)
    return text if opened and closed else None
