"""The maximum flow between two nodes of a small graph (Ford and Fulkerson, 1956, with breadth-first search)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

RESIDUAL_TOL = 1e-12  # capacity below which an edge counts as full


def max_flow(source: str, target: str, capacities: Mapping[tuple[str, str], float]) -> float:
    """Compute the largest flow that the edges carry from source to target.

    >>> max_flow("a", "c", {("a", "b"): 0.5, ("b", "c"): 1.0, ("a", "c"): 0.25})
    0.75
    """
    left: dict[tuple[str, str], float] = defaultdict(float, capacities)
    total = 0.0
    while (path := _shortest_path(source, target, left)) is not None:
        room = min(left[edge] for edge in path)
        for start, end in path:
            left[start, end] -= room
            left[end, start] += room
        total += room
    return total


def _shortest_path(source: str, target: str, left: Mapping[tuple[str, str], float]) -> list[tuple[str, str]] | None:
    """Find a path of fewest edges with capacity left; None where there is none."""
    before, reached = {source: ""}, [source]
    for node in reached:
        for (start, end), room in left.items():
            if start == node and end not in before and room > RESIDUAL_TOL:
                before[end] = node
                reached.append(end)
    if target not in before:
        return None
    path, node = [], target
    while node != source:
        path.append((before[node], node))
        node = before[node]
    return path
