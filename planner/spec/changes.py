"""Compare two specs, and write a change in the form and unit that the user chose.

Not here: what a difference does to the plan (`planner.studies.compare`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.units import UnitError, parse, parse_money, show
from planner.messages import Message, enumerated, named

MISSING = "(not there)"
IDENTITY = (
    ("name",),
    ("region",),
    ("system", "how", "regions"),
    ("kind", "between"),
)  # keys that say which entry of a list it is
COUNTED = ("system", "rack")  # units of which there are whole numbers
UNTOLD = ("$schema", "series")  # series: what was read from the files that the sites name
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


# -- differences -------------------------------------------------------------------------------------------------------


def spec_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the differences of two specs as rows of `path` (in the first spec, or in the second where only that has it), `first`, `second`.

    >>> spec_changes({"sites": [{"region": "a"}, {"region": "b", "power": "2 MW"}]}, {"sites": [{"region": "b", "power": "3 MW"}]})
    [{'path': 'sites[0]', 'first': {'region': 'a'}, 'second': '(not there)'}, {'path': 'sites[1].power', 'first': '2 MW', 'second': '3 MW'}]
    """
    known = [{key: value for key, value in spec.items() if key not in UNTOLD} for spec in (first, second)]
    return [{"path": path, "first": a, "second": b} for path, a, b in _differing("", *known)]


def _differing(path: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    if a == b:
        return
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys((*a, *b)):
            yield from _differing(f"{path}.{key}" if path else key, a.get(key, MISSING), b.get(key, MISSING))
    elif isinstance(a, list) and isinstance(b, list) and (keys := _identity(a, b)):
        mine, other = ({_which(entry, keys): (i, entry) for i, entry in enumerate(entries)} for entries in (a, b))
        for which in dict.fromkeys((*mine, *other)):
            i = mine[which][0] if which in mine else other[which][0]
            yield from _differing(
                f"{path}[{i}]", *(side[which][1] if which in side else MISSING for side in (mine, other))
            )
    else:
        yield path, a, b


def _identity(a: list[Any], b: list[Any]) -> tuple[str, ...] | None:
    """Return the keys that identify the entries of both lists; None where none do."""
    if not all(isinstance(entry, Mapping) for entry in (*a, *b)):
        return None
    for keys in IDENTITY:
        if all(entry.get(keys[0]) is not None for entry in (*a, *b)) and all(
            len({_which(e, keys) for e in side}) == len(side) for side in (a, b)
        ):
            return keys
    return None


def _which(entry: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(entry.get(key)) for key in keys)


# -- writing a change --------------------------------------------------------------------------------------------------


def written_up(written: Any, amount: float, unit: str) -> Any:
    """Write an `amount` of an SI `unit` (or a currency), rounded up to three digits, in the form and unit of what was `written`.

    >>> written_up("2 MW", 2.0341e6, "W"), written_up(60, 60.2, "system"), written_up("30 d", 2.7e6, "s")
    ('2.04 MW', 61, '31.3 d')
    """
    if unit in COUNTED:
        return math.ceil(amount - 1e-6)
    number = _NUMBER.match(str(written))
    rest = str(written)[number.end() :] if number else f" {unit}"
    base = _amount(f"1{rest}", unit)
    size = _up(amount / base)
    if not 0.01 <= size < 10_000 and _amount(text := show(size * base, unit), unit) >= amount:
        return text
    return f"{size:.12g}{rest}"


def scaled(written: Any, factor: float) -> Any:
    """Multiply a number, or the number at the start of a text, by a factor; None without a number.

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


def rescaled(written: Any, factor: float) -> Any:
    """Multiply a number, or the number at the start of a text, by a factor, and round it to three digits away from what was written;
    None without a number.

    >>> rescaled("800 ms", 1.0221), rescaled(2, 0.45678), rescaled("6 MB/s", 1.5)
    ('818 ms', 0.913, '9 MB/s')
    """
    number = _NUMBER.match(str(written))
    if number is None:
        return None
    amount = float(number.group()) * factor
    step = 10.0 ** (math.floor(math.log10(amount)) - 2)
    steps = math.ceil(amount / step - 1e-9) if factor > 1.0 else math.floor(amount / step + 1e-9)
    size = float(f"{steps * step:.6g}")
    return f"{size:.12g}{written[number.end() :]}" if isinstance(written, str) else size


def _amount(text: str, unit: str) -> float:
    try:
        return parse(text, unit)
    except (KeyError, UnitError):
        return parse_money(text)[0]


def _up(value: float) -> float:
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / step - 1e-9) * step


def change_words(path: str, old: Any, new: Any) -> str:
    """Phrase a change of the spec as an instruction.

    >>> change_words("sites[0].power", "2 MW", "2.04 MW"), change_words("limits.licences", [], ["DGX H200"])
    ('set sites[0].power to 2.04 MW instead of 2 MW', 'add DGX H200 to limits.licences')
    >>> change_words("workloads[0].audit", ["SOC 2", "C5"], ["C5"]), change_words("workloads[0].sole_tenant", True, False)
    ('take SOC 2 off workloads[0].audit', 'set workloads[0].sole_tenant to false instead of true')
    """
    if isinstance(old, list) and isinstance(new, list) and new[: len(old)] == old:
        added = [_item(item) for item in new[len(old) :]]
        return Message.of("change.add", names=enumerated(added), path=path).text()
    if isinstance(old, list) and isinstance(new, list) and all(item in old for item in new):
        return Message.of(
            "change.take", names=enumerated(_item(item) for item in old if item not in new), path=path
        ).text()
    if path == "limits.export_control":
        return Message.of("change.export_control", path=path).text()
    if isinstance(old, bool) and isinstance(new, bool):
        return Message.of("change.set", path=path, new=str(new).lower(), old=str(old).lower()).text()
    return (
        Message.of("change.remove", path=path, old=str(old)).text()
        if new is None
        else Message.of("change.set", path=path, new=str(new), old=str(old)).text()
    )


def _item(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    if "kind" in item:
        kind = str(item["kind"])
        return Message.of("change.before_start", kind=kind).text() if item.get("setup") == "0 s" else kind
    return Message.of("change.system", system=item["system"], how=named("obtained", item["how"])).text()
