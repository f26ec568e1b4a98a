"""Group specs that differ in numbers alone, and choose the leads of each group, whose plans show the others where to search.

Leads depend on the specs and their order alone, so that an answer is the same from one process or many. Nothing else rests on a group: each
spec is resolved, bounded and verified by itself (`planner.solving.kept`), and one that has little in common with its leads takes longer.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.solving.kept.program import Evaluations, Kept, PointKey

LEAST = 6  # specs of a group, from which on some of them lead
LEADS = ((1, 1), (12, 3), (60, 5))  # specs of a group, and how many lead from there on
NAMES = ("id", "name")  # keys of a spec on which no plan depends
NUMBER = 0  # stands for every number, with a unit or without


def groups(documents: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """List the positions of specs that differ in numbers alone, of groups that are worth leads."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position, document in enumerate(documents):
        found[shape_of(document)].append(position)
    return [members for members in found.values() if len(members) >= LEAST]


def leads_of(members: Sequence[int]) -> list[int]:
    """Choose the members that lead: the first alone, or evenly spaced ones with both ends.

    >>> leads_of(range(7)), leads_of(range(21)), leads_of(range(201))
    ([0], [0, 10, 20], [0, 50, 100, 150, 200])
    """
    count = max(leads for least, leads in LEADS if len(members) >= least)
    last = len(members) - 1
    return [members[last * k // max(count - 1, 1)] for k in range(count)]


def in_turn(documents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Kept | None]]:
    """Yield the positions of specs, those that lead first, each with the evaluations and points kept for its answer, which is to be found before the next one."""
    families, evaluations, known = groups(documents), Evaluations(), dict[int, set[PointKey]]()
    group = {position: family[0] for family in families for position in family}
    leads = sorted(lead for family in families for lead in leads_of(family))
    for lead in leads:
        kept = Kept(evaluations)
        yield lead, kept
        known.setdefault(group[lead], set()).update(kept.used)
    for position in sorted(set(range(len(documents))) - set(leads)):
        first = group.get(position)
        yield position, None if first is None else Kept(evaluations, frozenset(known[first]))


def shape_of(document: Mapping[str, Any]) -> str:
    """Hash a spec without its numbers and its name."""
    plain = _plain({key: value for key, value in document.items() if key not in NAMES})
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Put one number in place of each: of 3, "3 MW" and "-0.5 USD", but not of true, "DGX H100" or a list."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NUMBER
    if isinstance(value, str) and value.lstrip(" +-.")[:1].isdigit():
        return NUMBER
    return value
