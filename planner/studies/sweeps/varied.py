"""Read which values a sweep tries at which paths of a spec, and choose combinations of them.

`PATH=V1,V2,…` lists values; `PATH=A:B:N` spaces N values evenly from A to B, both included, in the unit of A and B. Combinations are all
of them (`grid`), the spec's own values with one path moved at a time (`one`), or a Latin hypercube (`lhs`).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.spec.document import at, edited

MOST_POINTS = 100_000  # combinations of one sweep
DIGITS = 12  # significant digits of a value between two ends
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(.*?)\s*$")
Point = dict[str, Any]  # value by path


@dataclass(frozen=True, slots=True)
class Varied:
    """A path of the spec and the values that a sweep tries there, in their order."""

    path: str
    values: tuple[Any, ...]
    ends: tuple[float, float] | None = None
    """Both ends of a range; None for a list of values."""
    unit: str = ""

    def between(self, share: float) -> Any:
        """Return the value at a share of the way through a range, or of a list its member there."""
        if self.ends is None:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        low, high = self.ends
        return _written(low + share * (high - low), self.unit)


def read_varied(texts: Sequence[str], document: Mapping[str, Any], option: str = "--vary") -> list[Varied]:
    """Read each `PATH=VALUES` of an option. Raises SpecError with every text that is not understood and every path that leads nowhere."""
    found: list[Varied] = []
    problems: list[Issue] = []
    for text in texts:
        path, equals, values = text.partition("=")
        try:
            if not equals or not path.strip() or not values.strip():
                raise ValueError(Message.of("sweep.expected", given=text).text())
            one = _read(path.strip(), values.strip())
            edited(document, ((one.path, one.values[0]),))
            found.append(one)
        except SpecError as error:
            problems += error.problems
        except ValueError as error:
            problems.append(Issue(path.strip() or option, str(error)))
    twice = {one.path for one in found if [other.path for other in found].count(one.path) > 1}
    problems += [Issue(path, Message.of("sweep.path_twice").text()) for path in sorted(twice)]
    if problems or not found:
        raise SpecError(problems or [Issue(option, Message.of("sweep.expected", given="").text())])
    return found


def _read(path: str, values: str) -> Varied:
    """Read a range of evenly spaced values or a list of values. Raises ValueError."""
    parts = values.split(":")
    if len(parts) == 3 and parts[2].strip().isdecimal() and all(map(_NUMBER.match, parts[:2])):
        (low, unit), (high, other) = (_amount(part) for part in parts[:2])
        count = int(parts[2])
        if (unit and other and unit != other) or count < 2 or low == high:
            raise ValueError(Message.of("sweep.range_expected", given=values).text())
        unit = unit or other
        steps = [low + (high - low) * step / (count - 1) for step in range(count)]
        return Varied(path, tuple(_written(step, unit) for step in steps), (low, high), unit)
    return Varied(path, tuple(_value(text) for text in _listed(values)))


def _listed(values: str) -> list[Any]:
    """Split a list at its commas, outside brackets and quotes of JSON; the whole may be a list of JSON itself."""
    try:
        whole = json.loads(values)
        if isinstance(whole, list) and whole:
            return whole
    except ValueError:
        pass
    parts, depth, quoted, begin = [], 0, False, 0
    for place, letter in enumerate(values):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "[{") - (letter in "]}")
            if letter == "," and depth == 0:
                parts.append(values[begin:place])
                begin = place + 1
    return [*parts, values[begin:]]


def _value(text: Any) -> Any:
    """Read a value of JSON, or take the text as it stands."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _amount(text: str) -> tuple[float, str]:
    found = _NUMBER.match(text)
    assert found is not None
    return float(found[1]), found[2]


def number_of(value: Any) -> float:
    """Return the number of a value that may have a unit.

    >>> number_of("3 MW"), number_of(0.25)
    (3.0, 0.25)
    """
    return _amount(str(value))[0]


def _written(value: float, unit: str) -> Any:
    """Write a value as a spec states it: a number, or a text with its unit, which keeps the space before it.

    >>> _written(3.0, " MW"), _written(0.25, ""), _written(4.0, "B tokens/day")
    ('3 MW', 0.25, '4B tokens/day')
    """
    rounded = float(f"{value:.{DIGITS}g}")
    number = int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
    return f"{number}{unit}" if unit else number


# -- combinations ------------------------------------------------------------------------------------------------------


def grid(varied: Sequence[Varied], option: str = "--vary") -> list[Point]:
    """Combine all values, the last path fastest. Raises SpecError above the most combinations."""
    count = 1
    for one in varied:
        count *= len(one.values)
    _check(count, option)
    paths = [one.path for one in varied]
    return [dict(zip(paths, chosen, strict=True)) for chosen in itertools.product(*(one.values for one in varied))]


def one_at_a_time(varied: Sequence[Varied], document: Mapping[str, Any]) -> list[Point]:
    """Keep the values of the spec and move one path at a time; the spec as it is comes first.

    Raises SpecError where the spec states no value at a path, for a row could not say what stands there.
    """
    base = {one.path: at(document, one.path) for one in varied}
    if missing := [path for path, value in base.items() if value is None]:
        raise SpecError([Issue(path, Message.of("sweep.no_own_value").text()) for path in missing])
    points = [base, *({**base, one.path: value} for one in varied for value in one.values)]
    _check(len(points))
    return [point for place, point in enumerate(points) if point not in points[:place]]


def latin_hypercube(varied: Sequence[Varied], count: int, seed: int) -> list[Point]:
    """Draw `count` combinations, of which each path's values fill its range evenly (McKay, Beckman and Conover 1979).

    Of every path exactly one value lies in each of `count` equal parts of its range; a list of values counts as a range of equal parts.
    """
    from scipy.stats import qmc

    _check(count)
    shares = qmc.LatinHypercube(d=len(varied), rng=seed).random(count)
    return [{one.path: one.between(float(share)) for one, share in zip(varied, row, strict=True)} for row in shares]


def _check(count: int, option: str = "--vary") -> None:
    if count > MOST_POINTS:
        raise SpecError([Issue(option, Message.of("sweep.too_many", count=count, most=MOST_POINTS).text())])
