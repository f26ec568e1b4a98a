"""Sentences for users: a code with named arguments, and a text for each language.

`en/` and `zh/` hold one JSON file for each topic, with the same codes in both: {"code": "text with {argument}"}. A plan stores code,
arguments and the English text; whoever compares sentences compares codes. Not here: labels of pages and charts (`planner.report.locale`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DEFAULT = "en"
LANGUAGES = (DEFAULT, "zh")
_HOME = Path(__file__).parent

Argument = str | int | float


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A sentence: its code, and its arguments as sorted (name, value) pairs. Numbers are printed with four significant digits."""

    code: str
    pairs: tuple[tuple[str, Argument], ...] = ()

    @classmethod
    def of(cls, code: str, **arguments: Argument) -> Message:
        """Build a message. Raises KeyError for a code without a text, or an argument that the text needs and does not get.

        >>> Message.of("list.more", count=3).text()
        'and 3 more'
        """
        message = cls(code, tuple(sorted(arguments.items())))
        message.text()
        return message

    @property
    def arguments(self) -> dict[str, Argument]:
        """Return the arguments by name."""
        return dict(self.pairs)

    def text(self, language: str = DEFAULT) -> str:
        """Write the sentence in a language."""
        return texts(language)[self.code].format(**{name: _shown(value) for name, value in self.pairs})

    def row(self) -> dict[str, Any]:
        """Return code, arguments and English text as a plan stores them."""
        return {"code": self.code, "arguments": self.arguments, "text": self.text()}


def of_row(row: Mapping[str, Any]) -> Message | None:
    """Read a message from the row of a plan; None for a code or arguments that this release does not know."""
    try:
        return Message.of(row["code"], **row["arguments"])
    except (KeyError, TypeError):
        return None


@cache
def texts(language: str) -> dict[str, str]:
    """Read the texts of a language by code."""
    found: dict[str, str] = {}
    for path in sorted((_HOME / language).glob("*.json")):
        found |= json.loads(path.read_text("utf-8"))
    return found


def _shown(value: Argument) -> str:
    """Print an argument: texts and whole numbers as they are, other numbers with four significant digits.

    >>> _shown(12345), _shown(0.123456), _shown("4 chips")
    ('12,345', '0.1235', '4 chips')
    """
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
