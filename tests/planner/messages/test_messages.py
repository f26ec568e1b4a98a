"""Every message has a text in every language, with the same arguments, and no code stands in two files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest

import planner.messages as messages
from planner.messages import DEFAULT, LANGUAGES, Message, of_row, texts

HOME = Path(messages.__file__).parent


def places(text: str) -> set[str]:
    """Return the names of the arguments that a text has room for."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != DEFAULT])
def test_every_language_has_every_code_with_the_same_arguments(language):
    assert texts(language).keys() == texts(DEFAULT).keys()
    wrong = [code for code, text in texts(DEFAULT).items() if places(texts(language)[code]) != places(text)]
    assert not wrong


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_code_stands_in_two_files(language):
    counts = Counter(code for path in (HOME / language).glob("*.json") for code in json.loads(path.read_text("utf-8")))
    assert not [code for code, count in counts.items() if count > 1]


def test_a_message_comes_back_from_its_row():
    message = Message.of("list.more", count=3)
    assert of_row(message.row()) == message
    assert message.text("zh") != message.text()


def test_a_row_of_another_release_is_no_message():
    assert of_row({"code": "no.such", "arguments": {}}) is None
    assert of_row({"code": "list.more", "arguments": {}}) is None


def test_an_unknown_code_is_an_error():
    with pytest.raises(KeyError):
        Message.of("no.such")
