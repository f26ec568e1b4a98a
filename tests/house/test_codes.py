"""Codes of messages say what a sentence means: they do not number it, and do not repeat its beginning."""

from __future__ import annotations

import re

import pytest

from planner.messages import DEFAULT, texts

MOST_WORDS = 5
COPIED = 4  # words of a sentence that a code may not repeat from its beginning
OF_DATA = ("part", "note", "example", "quantity", "component", "head", "cell", "weekday")
"""Topics whose codes are names that models, catalog, examples and tables use."""
RULES = ("rule.sequence_parallel_needs_tp",)  # named as the rule of `models.training.layouts`
ARTICLES = ("a", "an", "the")


def fault(code: str, text: str) -> str:
    """Say what makes a code mechanical; empty for one that means something."""
    words = code.partition(".")[2].split("_")
    if re.search(r"\d$", code):
        return "ends with a digit"
    if len(words) > MOST_WORDS:
        return f"has more than {MOST_WORDS} words"
    said = [word for word in re.findall(r"[a-z0-9]+", re.sub(r"\{\w+\}", " ", text.lower())) if word not in ARTICLES]
    return "repeats the beginning of its sentence" if len(words) >= COPIED and said[: len(words)] == words else ""


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        ("spec.range_2", "expected {a} to {b}", "digit"),
        ("spec.a_b_c_d_e_f", "", "more than 5 words"),
        ("limit.may_run_in_only", "{workload} may run in {sites} only", "repeats"),
        ("limit.residency_words", "{workload} may run in {sites} only", ""),
        ("list.more", "and {count} more", ""),
    ],
)
def test_mechanical_codes_are_told(code, text, found):
    assert found in fault(code, text) and bool(found) == bool(fault(code, text))


def test_codes_say_what_they_mean():
    held = {code: text for code, text in texts(DEFAULT).items() if code.partition(".")[0] not in OF_DATA}
    wrong = {code: words for code, text in held.items() if code not in RULES and (words := fault(code, text))}
    assert not wrong
