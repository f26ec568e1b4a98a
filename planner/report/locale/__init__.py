"""Texts of charts and pages by language: one JSON file for each, all with the same keys.

Sentences of plans, studies and errors are messages (`planner.messages`); a text without a message stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.messages import Said, named, said, translated
from planner.report.locale.display import PLAIN, Display

DEFAULT = "en"
_HOME = Path(__file__).parent


class Words:
    """The texts of one language, `words("metric.chips")`, `words("status.gap", gap="0.1 %")`, and the units of their figures."""

    def __init__(self, language: str = DEFAULT, display: Display = PLAIN):
        self.language = language
        self.display = display
        self.texts: dict[str, str] = _texts(language)

    def __call__(self, key: str, **values: Any) -> str:
        return self.texts[key].format(**values)

    def get(self, key: str, otherwise: str) -> str:
        """Return the text for a name from a plan, or the name itself if there is none."""
        return self.texts.get(key, otherwise)

    def phrase(self, text: str) -> str:
        """Say a text in this language, such as the name of a limit; a text without a message, such as a user's, stays as it is."""
        return translated(text, self.language)

    def named(self, topic: str, name: str) -> str:
        """Say a name that models and plans use, such as a part of a step, in this language."""
        return self.phrase(named(topic, name))

    def said(self, row: Mapping[str, Any], key: str) -> str:
        """Say a text of a plan's row in this language, by the code beside it."""
        return self.phrase(said(row, key))

    def knows(self, text: str) -> bool:
        """Tell whether a text can be said in this language."""
        return self.language == DEFAULT or not text or isinstance(text, Said)


def languages() -> dict[str, str]:
    """List the languages, each by its own name, with the default first."""
    codes = sorted((path.stem for path in _HOME.glob("??.json")), key=lambda code: (code != DEFAULT, code))
    return {code: _texts(code)["language"] for code in codes}


@cache
def _texts(language: str) -> dict[str, str]:
    texts: dict[str, str] = json.loads((_HOME / f"{language}.json").read_text("utf-8"))
    return texts
