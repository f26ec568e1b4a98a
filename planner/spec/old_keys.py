"""Keys of a spec under the names that earlier releases gave them: read as today's, named in a note on the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import Issue, path_text


@dataclass(frozen=True, slots=True)
class Renaming:
    """A key of the blocks at `place`; "*" stands for each entry of a list."""

    place: str
    old: str
    new: str


RENAMINGS = (
    Renaming("sites.*", "network", "fabric"),
    Renaming("sites.*", "fabrics", "topologies"),
    Renaming("owned.*", "network", "topology"),
    Renaming("robust", "worlds", "scenarios"),
)


@dataclass(frozen=True, slots=True, order=True)
class Renamed:
    """A key of a document under its old name; `path`: where it stands, `new`: today's path."""

    path: str
    new: str


def with_new_keys(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Renamed, ...]]:
    """Copy a document with today's keys, and list those that were renamed; one beside its own new name stays, for the parser to refuse."""
    found: list[Renamed] = []
    for renaming in RENAMINGS:
        for place in _places(document, renaming.place.split(".")):
            block = _at(document, place)
            if renaming.old in block and renaming.new not in block:
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
