"""Send what a worker says to the page as lines of JSON in which sentences keep their messages. Plans hold the codes themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.messages import Said, of_row

PLANS = ("plan", "base")


def line_of(message: Mapping[str, Any]) -> str:
    """Write a message to the page: a sentence as an object of its code, its arguments and its text."""
    return json.dumps(coded(message), allow_nan=False)


def heard(line: str | bytes) -> dict[str, Any]:
    """Read such a line; sentences are texts that keep their messages again.

    >>> from planner.messages import Message
    >>> heard(line_of({"say": Message.of("list.more", count=3).text()}))["say"].message.code
    'list.more'
    """
    return said(json.loads(line))


def coded(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message, or a row to keep, with its sentences as objects; its plans as they are."""
    return {key: value if key in PLANS else _coded(value) for key, value in message.items()}


def said(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message, or a row that was kept, whose sentences keep their messages again."""
    return {key: value if key in PLANS else _said(value) for key, value in message.items()}


def _coded(value: Any) -> Any:
    if isinstance(value, Said):
        return value.message.row()
    if isinstance(value, Mapping):
        return {key: _coded(inner) for key, inner in value.items()}
    return [_coded(inner) for inner in value] if isinstance(value, list | tuple) else value


def _said(value: Any) -> Any:
    if isinstance(value, list):
        return [_said(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    message = of_row(value) if value.keys() == {"code", "arguments", "text"} else None
    return Said(value["text"], message) if message else {key: _said(inner) for key, inner in value.items()}
