"""Workers on nodes: how few nodes hold blocks of chips, what stays free between them, and what moving them together gains."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Ints


@dataclass(frozen=True, slots=True)
class Packing:
    """Blocks packed on nodes: `free` chips of each node in use, the fullest first, and the most blocks on one node."""

    free: tuple[int, ...]
    most_blocks: int

    @property
    def nodes(self) -> int:
        """Nodes in use."""
        return len(self.free)

    @property
    def partly(self) -> int:
        """Nodes in use that have chips free."""
        return sum(free > 0 for free in self.free)

    def stranded(self, chips: int) -> int:
        """Count the free chips of nodes in use on which no further block of so many chips fits."""
        return sum(free % chips for free in self.free)


def packed(blocks: Mapping[int, int], node_chips: int) -> Packing:
    """Pack blocks on as few nodes as first-fit-decreasing needs: the fewest where sizes divide one another.

    Shapes: number of blocks by their chips [1]; blocks beyond a node take whole nodes. Exact for powers of two on nodes of a power of two.
    Reference: Coffman, Garey and Johnson, Journal of Complexity 3 (1987) (bin packing with divisible item sizes).

    >>> found = packed({4: 1, 2: 1, 1: 3}, 8)
    >>> found.nodes, found.partly, found.free
    (2, 1, (0, 7))
    """
    free: list[int] = []
    held: list[int] = []
    for chips, count in sorted(blocks.items(), reverse=True):
        for _ in range(count):
            if chips >= node_chips:
                whole, rest = divmod(chips, node_chips)
                free += [0] * whole + ([node_chips - rest] if rest else [])
                held += [1] * (whole + (rest > 0))
                continue
            place = next((i for i, room in enumerate(free) if room >= chips), None)
            if place is None:
                free.append(node_chips)
                held.append(0)
                place = len(free) - 1
            free[place] -= chips
            held[place] += 1
    return Packing(tuple(sorted(free)), max(held, default=0))


def nodes_without_moves(workers: Ints, chips: Sequence[int], node_chips: int, following: Ints) -> Ints:
    """Count the nodes in use in each slot where no worker ever moves, [slot].

    In each slot the oldest workers of a kind stop first, and new ones go to the fullest node that has room, larger kinds first. Slots
    follow one another in rings, each of which is gone round twice, so that what the first round leaves is there for the second.
    Shapes: workers [kind, slot], chips of a worker of each kind, at most those of a node, `following` [slot] the slot after each; result
    [node]. Reference: Coffman, Garey and Johnson, SIAM Journal on Computing 12 (1983) (dynamic bin packing, best fit).

    >>> nodes_without_moves(np.array([[8, 4], [0, 1]]), [1, 4], 8, np.array([1, 0])).tolist()
    [1, 1]
    """
    slots = workers.shape[1]
    found = np.zeros(slots, dtype=np.int64)
    order = sorted(range(len(chips)), key=lambda k: -chips[k])
    seen = np.zeros(slots, dtype=bool)
    for start in range(slots):
        if seen[start]:
            continue
        ring = [start]
        while (after := int(following[ring[-1]])) != start:
            ring.append(after)
        seen[ring] = True
        free: list[int] = []
        placed: list[deque[int]] = [deque() for _ in chips]
        for t in ring * 2:
            for k in order:
                while len(placed[k]) > workers[k, t]:
                    free[placed[k].popleft()] += chips[k]
            for k in order:
                while len(placed[k]) < workers[k, t]:
                    able = [i for i, room in enumerate(free) if room >= chips[k]]
                    if not able:
                        free.append(node_chips)
                        able = [len(free) - 1]
                    place = min(able, key=lambda i: free[i])
                    free[place] -= chips[k]
                    placed[k].append(place)
            found[t] = sum(room < node_chips for room in free)
    return found
