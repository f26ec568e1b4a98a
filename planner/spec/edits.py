"""How a change of a spec is written: numbers in the form and unit that the user chose, and sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from catalog.units import UnitError, parse, parse_money, show

_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def written_up(written: Any, amount: float, unit: str) -> Any:
    """`amount` of an SI `unit` (or a currency) rounded up to three digits, in the form and unit of what was `written`.

    >>> written_up("2 MW", 2.0341e6, "W"), written_up(60, 60.2, "system"), written_up("30 d", 2.7e6, "s")
    ('2.04 MW', 61, '31.3 d')
    """
    if unit == "system":
        return math.ceil(amount - 1e-6)
    number = _NUMBER.match(str(written))
    rest = str(written)[number.end() :] if number else f" {unit}"
    base = _amount(f"1{rest}", unit)
    size = _up(amount / base)
    if not 0.01 <= size < 10_000 and _amount(text := show(size * base, unit), unit) >= amount:
        return text
    return f"{size:.12g}{rest}"


def scaled(written: Any, factor: float) -> Any:
    """A number of a spec, or the one that a text begins with, times a factor; None where there is none.

    >>> scaled("400B tokens/day", 1.15), scaled(60, 0.9), scaled(0.5, 1.1), scaled("buy", 2)
    ('460B tokens/day', 54, 0.55, None)
    """
    if isinstance(written, bool):
        return None
    if isinstance(written, int):
        return math.ceil(written * factor - 1e-9)
    if isinstance(written, float):
        return float(f"{written * factor:.9g}")
    number = _NUMBER.match(written) if isinstance(written, str) else None
    return f"{float(number.group()) * factor:.9g}{written[number.end() :]}" if number else None


def _amount(text: str, unit: str) -> float:
    try:
        return parse(text, unit)
    except (KeyError, UnitError):
        return parse_money(text)[0]


def _up(value: float) -> float:
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / step - 1e-9) * step


def change_words(path: str, old: Any, new: Any) -> str:
    """A change of the spec as a sentence.

    >>> change_words("sites[0].power", "2 MW", "2.04 MW"), change_words("limits.licences", [], ["DGX H200"])
    ('set sites[0].power to 2.04 MW instead of 2 MW', 'add DGX H200 to limits.licences')
    """
    if isinstance(old, list) and isinstance(new, list) and new[: len(old)] == old:
        added = [_item(item) for item in new[len(old) :]]
        return f"add {either(added, 'and')} to {path}"
    if path == "limits.export_control":
        return f"set {path} to false, if the rule does not bind you"
    return f"remove {path} ({old})" if new is None else f"set {path} to {new} instead of {old}"


def _item(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    if "kind" in item:
        return item["kind"] + (", set up before the start," if item.get("setup") == "0 s" else "")
    return f"{item['system']} ({item['how'].replace('_', ' ')})"


def either(names: Iterable[str], word: str = "or") -> str:
    """Names as a list in words."""
    *first, last = list(names)
    return f"{', '.join(first)} {word} {last}" if first else str(last)
