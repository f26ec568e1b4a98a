"""Texts of charts and pages by language: one JSON file for each, all with the same keys.

Phrases of plans, which are written in English, have translations in `phrases`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.messages import said
from planner.report.locale import phrases
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
        """Translate a phrase of a plan, such as the name of a limit; a text that nobody of ours wrote stays as it is."""
        return text if self.language == DEFAULT else phrases.translated(text, self.language)

    def said(self, row: Mapping[str, Any], key: str) -> str:
        """Say a text of a plan's row in this language, by the code beside it."""
        return self.phrase(said(row, key))

    def knows(self, text: str) -> bool:
        """Tell whether a phrase of a plan has a translation into this language."""
        return self.language == DEFAULT or phrases.is_known(text, self.language)


def languages() -> dict[str, str]:
    """List the languages, each by its own name, with the default first."""
    codes = sorted((path.stem for path in _HOME.glob("??.json")), key=lambda code: (code != DEFAULT, code))
    return {code: _texts(code)["language"] for code in codes}


@cache
def _texts(language: str) -> dict[str, str]:
    texts: dict[str, str] = json.loads((_HOME / f"{language}.json").read_text("utf-8"))
    return texts
