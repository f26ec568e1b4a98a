"""Read quantities with any unit that arithmetic makes, such as "FLOP/token/parameter", as numbers in SI with dimensions.

A unit that the catalog knows is read as the catalog reads it. Others are products and quotients of units that it knows and of words for things
that are counted. Currencies are dimensions of their own: no amount is turned into another currency without a rate.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from catalog.units import UnitError, si_unit
from planner.errors import words_of
from planner.messages import Message

Dimensions = tuple[tuple[str, int], ...]
NONE: Dimensions = ()
COUNTED = (
    "parameter",
    "node",
    "site",
    "rack",
    "hop",
    "rank",
    "model",
    "layer",
    "step",
    "person",
    "image",
    "stack",
    "lane",
    "cell",
    "device",
)
_SAME = {"system": "node", "server": "node", "card": "chip", "people": "person", "x": "1", "share": "1", "y": "year"}
_SI = {"W": (("J", 1), ("s", -1)), "1": NONE, "degree": NONE}
_OTHER = {"m": ("m", 1.0), "cm": ("m", 1e-2), "mm": ("m", 1e-3), "km": ("m", 1e3), "mm2": ("mm2", 1.0)}
_NUMBER = r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:\.\.\s*({_NUMBER}))?\s*(.*)", re.ASCII | re.DOTALL)
_COUNT = re.compile(r"1[eE]([1-9]\d?)\s*(.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI with its least and largest value; `stated`: as written, `source`: where it is from, `command`: what answered it."""

    value: float
    low: float
    high: float
    dimensions: Dimensions
    stated: str
    source: str = ""
    command: str = ""
    key: str = ""

    @property
    def is_exact(self) -> bool:
        """Tell whether the quantity has no range."""
        return self.low == self.high


def product(factors: Iterable[tuple[Dimensions, int]]) -> Dimensions:
    """Multiply dimensions, each raised to a power.

    >>> product([((("token", 1),), 1), ((("s", 1),), -1)])
    (('s', -1), ('token', 1))
    """
    found: Counter[str] = Counter()
    for dimensions, power in factors:
        for name, exponent in dimensions:
            found[name] += exponent * power
    return tuple(sorted((name, exponent) for name, exponent in found.items() if exponent))


@cache
def unit_of(text: str) -> tuple[float, Dimensions]:
    """Return the factor to SI and the dimensions of a unit. Raises ValueError with a sentence for an unknown one.

    >>> unit_of("TB/s"), unit_of("FLOP/token/parameter")[1]
    ((1000000000000.0, (('byte', 1), ('s', -1))), (('FLOP', 1), ('parameter', -1), ('token', -1)))
    """
    text = " ".join(text.split())
    if found := _known(text):
        return found
    factor, parts = 1.0, []
    for place, piece in enumerate(text.split("/")):
        power = -1 if place else 1
        for word in [piece] if _known(piece.strip()) else re.split(r"[\s*-]+", piece.strip()):
            times, dimensions = _word(word, text)
            factor *= times**power
            parts.append((dimensions, power))
    return factor, product(parts)


def _known(text: str) -> tuple[float, Dimensions] | None:
    try:
        unit, factor = si_unit(text)
    except UnitError:
        return None
    parts: list[tuple[Dimensions, int]] = []
    for place, piece in enumerate(unit.split("/")):
        for word in piece.split():
            parts.append((_SI.get(word, ((_SAME.get(word, word), 1),)), -1 if place else 1))
    return factor, product(parts)


def _word(word: str, whole: str) -> tuple[float, Dimensions]:
    if match := _COUNT.fullmatch(word):
        return 10.0 ** int(match[1]), NONE
    if word in _OTHER:
        return _OTHER[word][1], ((_OTHER[word][0], 1),)
    if found := _known(word):
        return found
    name = word.lower().removesuffix("s")
    name = _SAME.get(word, _SAME.get(name, name))
    if name == "1":
        return 1.0, NONE
    if name in COUNTED or name in ("chip", "token"):
        return 1.0, ((name, 1),)
    raise ValueError(Message.of("audit.unknown_unit", given=whole, known=", ".join(COUNTED)).text())


def number_of(text: str) -> float:
    """Read a number with or without commas. Raises ValueError."""
    return float(text.replace(",", ""))


def parse(value: str | float, source: str = "") -> Quantity:
    """Read "8 chips", "10..99 tokens/s" or a plain number; of a range, the value is the middle. Raises ValueError with a sentence.

    >>> found = parse("2..4 x"); found.value, found.low, found.high, found.dimensions
    (3.0, 2.0, 4.0, ())
    """
    if not isinstance(value, str):
        return Quantity(float(value), float(value), float(value), NONE, f"{value:g}", source)
    match = _RANGE.fullmatch(value)
    try:
        if match is None:
            raise ValueError
        low = number_of(match[1])
        high = number_of(match[2]) if match[2] else low
    except ValueError:
        raise ValueError(Message.of("audit.not_a_quantity", given=value).text()) from None
    try:
        factor, dimensions = unit_of(match[3])
    except UnitError as error:
        raise ValueError(words_of(error)) from None
    if not (math.isfinite(low * factor) and math.isfinite(high * factor)) or low > high:
        raise ValueError(Message.of("audit.not_a_quantity", given=value).text())
    return Quantity((low + high) / 2 * factor, low * factor, high * factor, dimensions, value.strip(), source)


def shown_unit(text: str | float | None) -> str:
    """Return the unit as written in a text, empty for a plain number."""
    match = _RANGE.fullmatch(text) if isinstance(text, str) else None
    return " ".join(match[3].split()) if match else ""


def unit_words(dimensions: Mapping[str, int] | Dimensions) -> str:
    """Write dimensions as a unit in SI.

    >>> unit_words((("s", -1), ("token", 1)))
    'token/s'
    """
    pairs = dict(dimensions)
    if pairs.get("J") == 1 and pairs.get("s") == -1:
        pairs = {"W": 1} | {name: power for name, power in pairs.items() if name not in ("J", "s")}
    over = " ".join(name if power == 1 else f"{name}^{power}" for name, power in pairs.items() if power > 0)
    under = "".join(f"/{name}" * -power for name, power in pairs.items() if power < 0)
    return f"{over or ('1' if under else '')}{under}"


def digits(value: float) -> str:
    """Write a number with four significant digits and commas.

    >>> digits(26.8e9), digits(0.75), digits(101112.2)
    ('26.8e9', '0.75', '101,100')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if 1e-3 <= size < 1e7:
        rounded = float(f"{value:.4g}")
        return f"{rounded:,.0f}" if size >= 1000 else f"{rounded:g}"
    power = 3 * math.floor(math.log10(size) / 3)
    return f"{value / 10.0**power:.4g}e{power}"
