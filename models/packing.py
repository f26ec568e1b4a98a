"""Workers on nodes: how few nodes hold blocks of chips, what stays free between them, and what moving them together gains."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Ints, sum_of


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
        """Count the free chips of nodes in use on which no further block of a number of chips fits."""
        return sum_of(free % chips for free in self.free)


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
    for chips, left in sorted(blocks.items(), reverse=True):
        if chips >= node_chips:
            whole, rest = divmod(chips, node_chips)
            free += ([0] * whole + ([node_chips - rest] if rest else [])) * left
            held += [1] * ((whole + (rest > 0)) * left)
            continue
        for place, room in enumerate(free):
            if left == 0:
                break
            count = min(room // chips, left)
            free[place], held[place], left = room - count * chips, held[place] + count, left - count
        most = node_chips // chips
        while left > 0:
            count = min(most, left)
            free.append(node_chips - count * chips)
            held.append(count)
            left -= count
    return Packing(tuple(sorted(free)), max(held, default=0))


def nodes_without_moves(workers: Ints, chips: Sequence[int], node_chips: int, following: Ints) -> Ints:
    """Count the nodes in use in each slot where no worker ever moves, [slot].

    In each slot the oldest workers of a kind stop first, and new ones go to the fullest node that has room, larger kinds first. Slots
    follow one another in rings, each of which is gone round twice, so that what the first round leaves is there for the second.
    Shapes: workers [kind, slot], chips of a worker of each kind, at most the chips of a node, `following` [slot] the slot after each; result
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
        nodes = _Nodes(node_chips)
        placed: list[deque[int]] = [deque() for _ in chips]
        for t in ring * 2:
            for k in order:
                while len(placed[k]) > workers[k, t]:
                    nodes.leave(placed[k].popleft(), chips[k])
            for k in order:
                while len(placed[k]) < workers[k, t]:
                    placed[k].append(nodes.enter(chips[k]))
            found[t] = nodes.in_use
    return found


class _Nodes:
    """Nodes by their free chips, so that the fullest one with room is found without looking at all of them."""

    def __init__(self, chips: int) -> None:
        self.chips, self.in_use = chips, 0
        self._free: list[int] = []  # by node
        self._by_room: list[list[int]] = [
            [] for _ in range(chips + 1)
        ]  # heaps of nodes, some of which have other room by now

    def leave(self, node: int, chips: int) -> None:
        """Free the chips of a worker."""
        self._set(node, self._free[node] + chips)

    def enter(self, chips: int) -> int:
        """Return the fullest node that has room, the first of equals, after a worker has taken its chips there."""
        for room in range(chips, self.chips + 1):
            heap = self._by_room[room]
            while heap and self._free[heap[0]] != room:
                heapq.heappop(heap)
            if heap:
                node = heapq.heappop(heap)
                break
        else:
            node = len(self._free)
            self._free.append(self.chips)
        self._set(node, self._free[node] - chips)
        return node

    def _set(self, node: int, room: int) -> None:
        self.in_use += (room < self.chips) - (self._free[node] < self.chips)
        self._free[node] = room
        heapq.heappush(self._by_room[room], node)
