"""The places in which two specs differ. Entries of lists are matched by what they are about, not by their position.

Not here: what the difference does to the plan (`planner.studies.compare`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MISSING = "(not there)"
IDENTITY = (
    ("name",),
    ("region",),
    ("system", "how", "regions"),
    ("kind", "between"),
)  # keys that say which entry of a list it is
UNTOLD = ("$schema", "series")  # series: what was read from the files that the sites name


def spec_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of `path` (in the first spec; in the second where only that has it), `first`, `second`.

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


def _identity(a: list, b: list) -> tuple[str, ...] | None:
    """The keys that tell the entries of both lists apart; None where nothing does."""
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
