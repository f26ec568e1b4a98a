"""How the figures and texts of a kind of record are specified. The kinds themselves are in schemas.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """`units` are the SI units it may have; any currency may stand where USD does. `values`: how many numbers it is,
    0 for a series of any length."""

    units: tuple[str, ...]
    words: str
    required: bool = False
    values: int = 1


@dataclass(frozen=True, slots=True)
class TextSpec:
    """`choices` closes the set of values; `refers` names the kind in which the value must be a record, or, where
    `foreign`, a name of a provider's own such as "azure:canadaeast"; `rows`: it is a list."""

    words: str
    choices: tuple[str, ...] = ()
    refers: str = ""
    foreign: bool = False
    required: bool = False
    rows: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """`families` are patterns of figure names that a record makes up itself, such as a tariff's bands;
    `open` kinds may hold any figure in any unit."""

    kind: str
    words: str
    figures: Mapping[str, FigureSpec] = field(default_factory=dict)
    text: Mapping[str, TextSpec] = field(default_factory=dict)
    families: Mapping[str, FigureSpec] = field(default_factory=dict)
    open: bool = False

    def figure(self, name: str) -> FigureSpec | None:
        """Look up the specification of a figure by its name; None where the kind has no such figure."""
        if name in self.figures:
            return self.figures[name]
        for pattern, spec in self.families.items():
            if re.fullmatch(pattern, name):
                return spec
        return FigureSpec((), "") if self.open else None


def one(unit: str, words: str, required: bool = False) -> FigureSpec:
    """Specify a figure that is one number of a unit."""
    return FigureSpec((unit,), words, required)


NOTES = {
    "note": TextSpec("what a user should know of the whole record"),
    "announcement": TextSpec("what an announcement under audit says of it, in its words"),
}
CONTENTS = TextSpec("what the price contains: energy, delivery, demand and levies, each included, separate or unknown")
MAKER = {
    "vendor": TextSpec("who makes it"),
    "year": TextSpec("year of the launch"),
}
