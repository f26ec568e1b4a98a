"""Sentences for users: a code with named arguments, and a text for each language.

`en/` and `zh/` hold one JSON file for each topic, with the same codes in both: {"code": "text with {argument}"}. A plan stores code,
arguments and the English text; whoever compares sentences compares codes. A text keeps its message (`Said`), so that a page says it in
another language: labels of pages and charts and heads of tables too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from catalog.errors import Wrong
from catalog.errors import texts as catalog_texts

DEFAULT = "en"
LANGUAGES = (DEFAULT, "zh")
_HOME = Path(__file__).parent
_APART = re.compile(r"[^a-z0-9]+")  # what stands between the words of a name

NUMBER = "amount.number"
"""Code of an amount that is shortened."""
BESIDE = "_message"
"""End of the key of a plan's row under which the code and the arguments of the text stand."""

Argument = str | int | float
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A sentence: its code, and its arguments as sorted (name, value) pairs. Numbers are printed with four significant digits."""

    code: str
    pairs: tuple[tuple[str, Argument], ...] = ()

    @classmethod
    def of(cls, code: str, /, **arguments: Argument) -> Message:
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
        """Write the sentence in a language, as a text that keeps the message; its arguments that are messages too."""
        shown = {name: _shown(value, language) for name, value in self.pairs}
        return Said(_sentence(language, self.code).format(**shown), self)

    def coded(self) -> dict[str, Any]:
        """Return code and arguments as a plan stores them beside the English text; an argument that is a message is an object too."""
        return {
            "code": self.code,
            "arguments": {
                name: value.message.coded() if isinstance(value, Said) else value for name, value in self.pairs
            },
        }

    def row(self) -> dict[str, Any]:
        """Return code, arguments and English text as a plan stores them."""
        return {**self.coded(), "text": self.text()}


class Said(str):
    """The text of a message, which keeps the message: it is printed and compared as any text, and can be said in another language."""

    message: Message

    def __new__(cls, text: str, message: Message) -> Said:
        said = super().__new__(cls, text)
        said.message = message
        return said

    def __reduce__(self) -> tuple[type[Said], tuple[str, Message]]:
        """Return what a copy in another process is built from."""
        return type(self), (str(self), self.message)


def say(code: str, /, **arguments: Argument) -> str:
    """Write the English text of a message, which keeps the message. Raises KeyError as `Message.of` does.

    >>> translated(say("list.more", count=3), "zh")
    '另有 3 项'
    """
    return Message.of(code, **arguments).text()


def of_row(row: Mapping[str, Any]) -> Message | None:
    """Read a message from the row of a plan; None for a code or arguments that this release does not know."""
    try:
        return Message.of(row["code"], **{name: _argument(value) for name, value in row["arguments"].items()})
    except (KeyError, TypeError, AttributeError):
        return None


def _argument(value: Any) -> Argument:
    """Read an argument from a row: the text of a message where it is an object. Raises KeyError for a code that this release does not know."""
    if not isinstance(value, Mapping):
        given: Argument = value
        return given
    return Message.of(value["code"], **{name: _argument(inner) for name, inner in value["arguments"].items()}).text()


def with_codes(row: Row, *keys: str) -> Row:
    """Return a row of a plan with code and arguments of each of these texts that is a message, under `KEY_message`.

    >>> with_codes({"name": Message.of("list.more", count=3).text(), "note": "a text of the user"}, "name", "note")
    {'name': 'and 3 more', 'name_message': {'code': 'list.more', 'arguments': {'count': 3}}, 'note': 'a text of the user'}
    """
    found: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", row).items():
        found[key] = value
        if key in keys and isinstance(value, Said):
            found[f"{key}{BESIDE}"] = value.message.coded()
    return cast("Row", found)


def said(row: Mapping[str, Any], key: str) -> str:
    """Read a text of a plan's row with the message beside it; the text alone where the plan or this release has no code for it."""
    message = of_row(row.get(f"{key}{BESIDE}") or {})
    text: str = row[key]
    return text if message is None else Said(text, message)


def sentences_in(coded: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a sentence as a plan stores it, and the sentences inside."""
    yield coded
    for value in coded["arguments"].values():
        if isinstance(value, Mapping):
            yield from sentences_in(value)


def codes_in(coded: Mapping[str, Any]) -> set[str]:
    """Return the codes of a sentence as a plan stores it, and of the sentences inside."""
    return {each["code"] for each in sentences_in(coded)}


def listed(sentences: Iterable[str], between: str = "semicolon") -> str:
    """Join sentences or names by semicolons, or by another mark of the topic `list`, those that are empty left out; a single one stays as it is."""
    first, *rest = [*filter(None, sentences)] or [""]
    for each in rest:
        first = Message.of(f"list.{between}", first=first, second=each).text()
    return first


def commas(names: Iterable[str]) -> str:
    """Join names by commas; a single one stays as it is."""
    return listed(names, "comma")


def stopped(clause: str) -> str:
    """End a clause with a full stop."""
    return Message.of("list.stop", clause=clause).text()


def languages() -> dict[str, str]:
    """List the languages, each by its own name, with the default first."""
    return {language: texts(language)["language.name"] for language in LANGUAGES}


def after_each_other(sentences: Iterable[str]) -> str:
    """Join sentences that end with a full stop; a single one stays as it is."""
    first, *rest = sentences
    for each in rest:
        first = Message.of("list.sentences", first=first, second=each).text()
    return first


def enumerated(names: Iterable[object], word: str = "and") -> str:
    """Join at least one name as a list in a sentence, the last two by "and" or "or"; a single one stays as it is.

    >>> enumerated(["a", "b", "c"]), enumerated(["a", "b"], "or"), enumerated(["a"])
    ('a, b and c', 'a or b', 'a')
    """
    *first, last = (name if isinstance(name, str) else str(name) for name in names)
    if not first:
        return last
    text = first[0]
    for each in first[1:]:
        text = Message.of("list.comma", first=text, second=each).text()
    return Message.of(f"list.{word}", first=text, second=last).text()


def named(topic: str, name: str) -> str:
    """Say a name that models, programs and plans use, such as a part of a step: the message `topic.name`; a name without a text stays as it is.

    >>> named("part", "kv_memory"), named("part", "of tomorrow")
    ('kv memory', 'of tomorrow')
    """
    code = f"{topic}.{_APART.sub('_', name.lower())}"
    return Message.of(code).text() if code in texts(DEFAULT) and not isinstance(name, Said) else name


def said_of(wrong: str) -> str:
    """Return a sentence of the catalog on a fault as a text of a message; another text stays as it is."""
    if not isinstance(wrong, Wrong):
        return wrong
    return Message.of(wrong.code, **{name: said_of(value) for name, value in wrong.arguments.items()}).text()


def translated(text: str, language: str) -> str:
    """Say a text in a language; a text that is no message stays as it is."""
    return text.message.text(language) if isinstance(text, Said) else text


def in_full(text: str) -> str:
    """Write a text with the amounts that it shortens to the unit, as a file for other programs holds them.

    >>> in_full(say("amount.in_unit", amount=say("amount.number", value=87_282_844.0), unit="CNY"))
    '87,282,844 CNY'
    """
    if not isinstance(text, Said):
        return text
    message = text.message
    if message.code == NUMBER:
        return f"{float(message.arguments['value']):,.0f}"
    told = {name: in_full(value) if isinstance(value, str) else value for name, value in message.pairs}
    return Message.of(message.code, **told).text()


@cache
def _sentence(language: str, code: str) -> str:
    """Return the text of a code, from the file of its topic alone where that has it: a command that says little reads little."""
    found = _of_file(_HOME / language / f"{code.partition('.')[0]}.json").get(code)
    return texts(language)[code] if found is None else found


@cache
def _of_file(path: Path) -> dict[str, str]:
    """Read the texts of a file; none where there is no such file."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


@cache
def texts(language: str) -> dict[str, str]:
    """Read the texts of a language by code; among them the texts of the catalog."""
    found = dict(catalog_texts(language))
    for path in sorted((_HOME / language).glob("*.json")):
        found |= _of_file(path)
    return found


LARGE = 1e15  # numbers from here are printed with an exponent
SHORTENED = 1e6
"""Amounts from here on are written with four digits and a word for their scale, where a text asks for it by `{name:short}`."""


class _Number(str):
    """A number as `_shown` prints it, which a text may also ask for shortened."""

    value: float
    language: str

    @classmethod
    def of(cls, value: float, language: str) -> _Number:
        number = cls(_plain(value))
        number.value, number.language = value, language
        return number

    def __format__(self, form: str) -> str:
        return shortened(self.value, self.language) if form == "short" else super().__format__(form)


def shortened(value: float, language: str = DEFAULT) -> str:
    """Write an amount as people read it: from a million on with four digits and the largest scale of the language that it reaches.

    So it differs by 0.05 % at most. Scales of English are those in which a spec states amounts ("146B CNY"); Chinese counts in 万, 亿 and 万亿.

    >>> shortened(146_032_477_790.0), shortened(146_032_477_790.0, "zh"), shortened(87_282_844.0, "zh"), shortened(-999_999.0), shortened(999.94e6)
    ('146B', '1,460 亿', '8,728 万', '-999,999', '999.9M')
    """
    if not SHORTENED - 0.5 <= abs(value) < math.inf:
        return f"{value:,.0f}"
    reach = abs(value) * (1 + 5e-5)  # half a unit of the fourth digit more, so that 999.96 million is 1 billion
    factor, word = next((factor, word) for factor, word in _scales(language) if reach >= factor)
    scaled = value / factor
    number = f"{scaled:,.0f}" if abs(scaled) >= 999.95 else f"{scaled:.4g}"
    return _sentence(language, "amount.scaled").format(number=number, scale=word)


def scale_ends(language: str = DEFAULT) -> tuple[tuple[float, str], ...]:
    """List the scales of large numbers of a language with the text that follows the number, the largest first.

    >>> scale_ends()[-1], scale_ends("zh")[-1]
    ((1000000.0, 'M'), (10000.0, ' 万'))
    """
    form = _sentence(language, "amount.scaled")
    return tuple((factor, form.format(number="", scale=word)) for factor, word in _scales(language))


@cache
def _scales(language: str) -> tuple[tuple[float, str], ...]:
    """Read the scales of large numbers of a language with their words, the largest first."""
    pairs = (each.split() for each in _sentence(language, "amount.scales").split(", "))
    return tuple((float(factor), word) for factor, word in pairs)


def _shown(value: Argument, language: str = DEFAULT) -> str:
    """Print an argument: texts and whole numbers as they are, other numbers with four significant digits, or whole from 10,000; messages in the language.

    >>> _shown(12345), _shown(0.123456), _shown(26156.4), _shown("4 chips")
    ('12,345', '0.1235', '26,156', '4 chips')
    """
    return translated(value, language) if isinstance(value, str) else _Number.of(value, language)


def _plain(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 9999.5 <= abs(value) < LARGE else f"{value:,.4g}"
