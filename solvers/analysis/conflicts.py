"""Minimal conflicts among limits, and minimum sets of limits that resolve all conflicts.

Not here: which limits fail together (`solvers.analysis.elastic`), and by how much they must change (`solvers.analysis.relief`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


def minimal_conflict(things: Sequence[Thing], fails: Callable[[Sequence[Thing]], bool]) -> list[Thing]:
    """Find an irreducible subset of `things` that fails on its own, where all together fail; early things are preferred.

    QuickXplain: divide and conquer, with about k log(n/k) calls of `fails` for k of n things. `fails` must not turn false when things are
    added. Where it cannot tell it returns False, and the subset may then be larger than necessary.
    Junker, AAAI 2004, algorithm 1.

    >>> minimal_conflict("abcdefgh", lambda some: {"c", "g"} <= set(some))
    ['c', 'g']
    """

    def conflict_beyond(background: list[Thing], grown: bool, some: list[Thing]) -> list[Thing]:
        """Find a part of `some` that conflicts with `background`, which may conflict alone where it has `grown`."""
        if grown and fails(background):
            return []
        if len(some) == 1:
            return some
        first, second = some[: len(some) // 2], some[len(some) // 2 :]
        late = conflict_beyond(background + first, True, second)
        return conflict_beyond(background + late, bool(late), first) + late

    return conflict_beyond([], True, list(things)) if things else []


def minimum_hitting_sets(conflicts: Sequence[Sequence[Thing]]) -> list[tuple[Thing, ...]]:
    """Find all smallest sets that contain something of every conflict: the least that must be given up.

    Reiter, Artificial Intelligence 32 (1987), section 4.

    >>> minimum_hitting_sets([["a", "b"], ["b", "c"]]), minimum_hitting_sets([["a"], ["c"]])
    ([('b',)], [('a', 'c')])
    """
    union = list(dict.fromkeys(thing for conflict in conflicts for thing in conflict))
    for size in range(1, len(conflicts) + 1):
        found = [some for some in itertools.combinations(union, size) if all(set(some) & set(c) for c in conflicts)]
        if found:
            return found
    return [()]
