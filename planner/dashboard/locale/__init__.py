"""Texts of the dashboard by language: a JSON file each, all with the same keys. Knows nothing of their use."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DEFAULT = "en"
_HOME = Path(__file__).parent


class Words:
    """Texts of one language: `words("metric.chips")`, `words("status.gap", gap="0.1 %")`."""

    def __init__(self, language: str = DEFAULT):
        self.language = language
        self.texts: dict[str, str] = _texts(language)

    def __call__(self, key: str, **values: Any) -> str:
        return self.texts[key].format(**values)

    def get(self, key: str, otherwise: str) -> str:
        """The text of a name that a plan brings along, or the name itself where no text is known."""
        return self.texts.get(key, otherwise)


def languages() -> dict[str, str]:
    """Name of each language in itself, by code, the default first."""
    codes = sorted((path.stem for path in _HOME.glob("*.json")), key=lambda code: (code != DEFAULT, code))
    return {code: _texts(code)["language"] for code in codes}


@cache
def _texts(language: str) -> dict[str, str]:
    return json.loads((_HOME / f"{language}.json").read_text("utf-8"))
