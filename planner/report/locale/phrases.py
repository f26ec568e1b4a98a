"""Translate phrases that a plan holds in English: names of limits, reasons, notes and words of margins.

`phrases_zh.json` maps an English phrase to its translation. A place such as `{site}` stands for any text that holds no phrase of ours:
a name, an amount, a path. Of the patterns that fit a whole text, the one with most text of its own is taken.
Messages (`planner.messages`) are known by their texts too, for places that hold only the text.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from planner.messages import DEFAULT, Said, texts
from planner.messages import translated as said_in

_HOME = Path(__file__).parent
FILES = ("phrases",)
_PLACE = re.compile(r"\{(\w+)\}")


def translated(text: str, language: str) -> str:
    """Translate a phrase; a text without a translation stays as it is.

    >>> translated("power in us-texas", "zh"), translated("a name", "zh")
    ('us-texas 的功率', 'a name')
    """
    return said_in(text, language) if isinstance(text, Said) else _found(text, language) or text


def is_known(text: str, language: str) -> bool:
    """Tell whether a phrase has a translation."""
    return not text or isinstance(text, Said) or _found(text, language) is not None


@cache
def _patterns(language: str) -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    """Read the phrases of a language: whole texts, and patterns with the longest first."""
    table: dict[str, str] = {}
    for code, english in texts(DEFAULT).items():
        table[english.replace("{{", "{").replace("}}", "}")] = (
            texts(language)[code].replace("{{", "{").replace("}}", "}")
        )
    for file in FILES:
        table |= json.loads((_HOME / f"{file}_{language}.json").read_text("utf-8"))
    fixed = {english: other for english, other in table.items() if not _PLACE.search(english)}
    patterns = sorted(
        (english for english in table if _PLACE.search(english)),
        key=lambda text: len(_PLACE.sub("", text)),
        reverse=True,
    )
    return fixed, [(_compiled(english), table[english]) for english in patterns]


def _compiled(english: str) -> re.Pattern[str]:
    parts = _PLACE.split(english)  # fixed text and names of places in turn
    places = {part: f"(?P<{part}>.+?)" for part in parts[1::2]}
    return re.compile(
        "".join(re.escape(part) if i % 2 == 0 else places.pop(part, f"(?P={part})") for i, part in enumerate(parts))
    )


@cache
def _found(text: str, language: str) -> str | None:
    fixed, patterns = _patterns(language)
    if text in fixed:
        return fixed[text]
    if "; " in text and all(is_known(part, language) for part in text.split("; ")):
        return "；".join(translated(part, language) for part in text.split("; "))
    for pattern, other in patterns:
        if found := pattern.fullmatch(text):
            return _PLACE.sub(lambda place: translated(found[place[1]], language), other)
    return None
