"""Errors of the catalog and the search for names that are close to a mistyped one."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

MESSAGES = Path(__file__).parent / "messages"


@lru_cache(maxsize=65_536)
def name_key(name: str) -> str:
    """Normalise a name so that spelling variants are equal: "H100-SXM" and "h100 sxm".

    >>> name_key("H100-SXM_5 ")
    'h100 sxm 5'
    """
    return " ".join(re.split(r"[\s_-]+", name.strip().casefold())).strip()


def close_names(name: str, known: Iterable[str], count: int = 4) -> tuple[str, ...]:
    """Find known names that resemble `name`, best first: by spelling, then by the letters they share in front.

    >>> close_names("hbm_byte_per_s", ["hbm_bytes_per_s", "tdp_w"])
    ('hbm_bytes_per_s',)
    """
    by_key = {name_key(n): n for n in known}
    key = name_key(name)
    spelled = difflib.get_close_matches(key, by_key, n=count, cutoff=0.6)
    words = set(key.split())
    shared = sorted(
        (k for k in by_key if words & set(k.split()) or (len(key) > 2 and key in k)),
        key=lambda k: (-len(words & set(k.split())), len(k), k),
    )
    return tuple(dict.fromkeys(by_key[k] for k in (*spelled, *shared)))[:count]


class Wrong(str):
    """A sentence on a fault: an English text that keeps its code and its arguments, so that others say it in their language.

    The texts stand in `messages/en.json` and, for whoever says them otherwise, beside it.

    >>> Wrong("catalog.no_such_text", kind="chips", close="")
    'chips have no such text'
    """

    code: str
    arguments: Mapping[str, str]

    def __new__(cls, code: str, **given: object) -> Wrong:
        arguments = {name: value if isinstance(value, str) else str(value) for name, value in given.items()}
        wrong = super().__new__(cls, texts("en")[code].format(**arguments))
        wrong.code, wrong.arguments = code, arguments
        return wrong


@cache
def texts(language: str) -> dict[str, str]:
    """Read the sentences of a language by code."""
    found: dict[str, str] = json.loads((MESSAGES / f"{language}.json").read_text("utf-8"))
    return found


def did_you_mean(close: Sequence[str]) -> str:
    """Write the tail of an error message that lists close names; empty without any."""
    return Wrong("catalog.close_names", names=", ".join(f'"{n}"' for n in close)) if close else ""


class UnknownName(LookupError):
    """No record of that kind has this name or alias."""

    def __init__(self, kind: str, name: str, close: Sequence[str] = ()) -> None:
        super().__init__(kind, name, tuple(close))
        self.kind, self.name, self.close = kind, name, tuple(close)

    def __str__(self) -> str:
        return Wrong("catalog.unknown_name", kind=self.kind, name=self.name, close=did_you_mean(self.close))


class MissingFigure(LookupError):
    """A record lacks a figure that was asked for; the message says how to state it.

    `example`: a value in the figure's unit, `of`: the record that has it; empty where the example is of the unit alone.
    """

    def __init__(self, kind: str, name: str, figure: str, example: str, of: str = "") -> None:
        super().__init__(kind, name, figure, example, of)
        self.kind, self.name, self.figure, self.example, self.of = kind, name, figure, example, of

    @property
    def path(self) -> str:
        """Key under `overrides` that would state the figure."""
        return f"{self.kind}/{self.name}/{self.figure}"

    def __str__(self) -> str:
        return (
            f'{self.kind}: "{self.name}" has no figure {self.figure}; state it under overrides: '
            f'"{self.path}": {{"value": "{self.example}", "note": "…"}}'
        ) + (f" ({self.example} is the figure of {self.of})" if self.of else "")


class CatalogError(ValueError):
    """Everything that is wrong with overlays, blocks or overrides, as (path, message) pairs."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems: list[tuple[str, str]] = sorted(set(problems))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(f"{path}: {message}" for path, message in self.problems)
