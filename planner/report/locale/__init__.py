"""The language of a reader with the units of the figures: what pages and charts are drawn with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.messages import DEFAULT, Message, Said, named, said, texts, translated
from planner.report.locale.display import PLAIN, Display


class Words:
    """The messages in one language, `words("metric.chips")`, `words("day.days", phase="first", days="90")`, and the units of their figures."""

    def __init__(self, language: str = DEFAULT, display: Display = PLAIN):
        self.language = language
        self.display = display

    def __call__(self, code: str, /, **values: Any) -> str:
        return str(Message.of(code, **values).text(self.language))

    def get(self, code: str, otherwise: str) -> str:
        """Return the text for a name from a plan, or the name itself if there is none."""
        return self(code) if code in texts(DEFAULT) else otherwise

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
