"""The texts: every language has the same keys and places to fill, every key is used, and none is missing."""

import re
import string
from pathlib import Path

import pytest

from planner.dashboard.locale import Words, languages
from planner.report import words

HOME = Path(__file__).resolve().parents[3]
CODE = "\n".join(path.read_text() for path in (HOME / "planner" / "dashboard").glob("*.py"))
TEXTS = Words().texts
# Keys that are put together from names in the plan.
FAMILIES = ("status.", "goal.", "how.", "component.", "group.", "stage.", "field.", "section.", "metric.per_million.")


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", languages())
def test_every_language_says_the_same(language):
    texts = Words(language).texts
    assert set(texts) == set(TEXTS)
    assert {key: places(text) for key, text in texts.items()} == {key: places(text) for key, text in TEXTS.items()}
    assert all(text.strip() for text in texts.values())


def test_every_key_in_the_code_has_a_text_and_every_text_is_used():
    named = set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)+)"', CODE))
    asked = set(re.findall(r'\bt\(\s*"([a-z_.]+)"', CODE))
    assert asked <= set(TEXTS)
    unused = {key for key in TEXTS if key not in named and not key.startswith(FAMILIES)} - {
        "language",
        "totals",
        "versions",
    }
    assert not unused


def test_every_status_and_component_of_a_plan_has_a_text():
    assert {f"status.{name}" for name in words.STATUS_WORDS} <= set(TEXTS)
    assert {f"component.{name}" for name in words.COMPONENT_WORDS} <= set(TEXTS)
