"""Keys of a spec or a case under the names that earlier releases gave them: read as today's, named in a note on the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import Issue, path_text


@dataclass(frozen=True, slots=True)
class Renaming:
    """A key of the blocks at `place`; "*" stands for each entry of a list, and an empty place for the document.

    `is_old` tells whether a block means the old key, where today's keys have another one of this name.
    """

    place: str
    old: str
    new: str
    is_old: Callable[[Mapping[str, Any]], bool] = lambda block: True


RENAMINGS = (
    Renaming("sites.*", "network", "fabric"),
    Renaming("sites.*", "fabrics", "topologies"),
    Renaming("owned.*", "network", "topology"),
    Renaming("robust", "worlds", "scenarios"),
)


def _names_a_topology(case: Mapping[str, Any]) -> bool:
    """Tell whether the `fabric` of a case is a topology: a record of the catalog stood beside it as `network`, or it has a topology's name."""
    from planner.spec.fabrics import PATTERN, PROVIDER  # needs pydantic, which reading a plan does not

    value = case["fabric"]
    return "network" in case or value == PROVIDER or not isinstance(value, str) or bool(re.fullmatch(PATTERN, value))


OF_CASES = (Renaming("", "fabric", "topology", _names_a_topology), Renaming("", "network", "fabric"))
"""Keys of cases: they called the topology a fabric, and the fabric a network."""


@dataclass(frozen=True, slots=True, order=True)
class Renamed:
    """A key of a document under its old name; `path`: where it stands, `new`: today's path."""

    path: str
    new: str


def with_new_keys(
    document: Mapping[str, Any], renamings: Sequence[Renaming] = RENAMINGS
) -> tuple[Mapping[str, Any], tuple[Renamed, ...]]:
    """Copy a document with today's keys, and list those that were renamed; one beside its own new name stays, for the parser to refuse."""
    found: list[Renamed] = []
    for renaming in renamings:
        for place in _places(document, renaming.place.split(".") if renaming.place else ()):
            block = _at(document, place)
            if renaming.old in block and renaming.new not in block and renaming.is_old(block):
                found.append(Renamed(path_text((*place, renaming.old)), path_text((*place, renaming.new))))
                renamed = {renaming.new if key == renaming.old else key: value for key, value in block.items()}
                document = _replaced(document, place, renamed)
    return document, tuple(found)


def in_written_keys(problems: Iterable[Issue], renamed: Iterable[Renamed]) -> list[Issue]:
    """Return the problems of a document at the places where its writer finds them, under the old keys."""
    written = {key.new: key.path for key in renamed}
    moved = []
    for problem in problems:
        new = next(
            (key for key in written if problem.path == key or problem.path.startswith((f"{key}[", f"{key}."))), None
        )
        path = problem.path if new is None else written[new] + problem.path[len(new) :]
        moved.append(Issue(path, problem.message))
    return moved


def as_written(document: Mapping[str, Any], parts: Sequence[str | int]) -> list[str | int]:
    """Return a path, in today's keys or older ones, in the keys that the document has; as it is where it has neither.

    >>> as_written({"robust": {"worlds": 400}}, ["robust", "scenarios"])
    ['robust', 'worlds']
    """
    written = list(parts)
    for renaming in RENAMINGS:
        place = renaming.place.split(".")
        depth = len(place)
        if len(written) <= depth or written[depth] not in (renaming.old, renaming.new):
            continue
        if all(kind in ("*", part) for kind, part in zip(place, written[:depth], strict=True)):
            block = _at(document, written[:depth])
            there = [key for key in (renaming.new, renaming.old) if isinstance(block, Mapping) and key in block]
            written[depth] = there[0] if there else written[depth]
    return written


def _places(value: Any, pattern: Sequence[str], place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of the blocks that match a pattern."""
    if not pattern:
        if isinstance(value, Mapping):
            yield place
    elif pattern[0] == "*":
        for i, entry in enumerate(value if isinstance(value, list) else ()):
            yield from _places(entry, pattern[1:], (*place, i))
    elif isinstance(value, Mapping) and pattern[0] in value:
        yield from _places(value[pattern[0]], pattern[1:], (*place, pattern[0]))


def _at(value: Any, place: Sequence[str | int]) -> Any:
    """Return what stands at a place; None where nothing does."""
    for part in place:
        try:
            value = value[part]
        except (IndexError, KeyError, TypeError):
            return None
    return value


def _replaced(value: Any, place: Sequence[str | int], by: Any) -> Any:
    """Copy a document with another value at a place; the rest is shared."""
    if not place:
        return by
    first, rest = place[0], place[1:]
    if isinstance(value, list):
        return [_replaced(entry, rest, by) if i == first else entry for i, entry in enumerate(value)]
    return {key: _replaced(entry, rest, by) if key == first else entry for key, entry in value.items()}
