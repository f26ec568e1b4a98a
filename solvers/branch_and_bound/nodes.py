"""Nodes of the search tree, the results of their linear and mixed-integer programs, and the queue of open nodes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from solvers.arrays import Floats


@dataclass(frozen=True, slots=True)
class NodeResult:
    """Result of the LP relaxation at a node.

    `value`: the optimum; infinite where infeasible, None where time ran out. `x` is None where the LP stopped at its cutoff, which is
    then the value. `basis`: the solver's optimal basis, from which child nodes start.
    """

    value: float | None
    x: Floats | None = None
    basis: object = None


@dataclass(frozen=True, slots=True)
class SubMipResult:
    """Incumbent and bound of a mixed-integer program within the bounds of a node; `bound` is infinite where infeasible."""

    value: float
    x: Floats | None
    bound: float


Relax = Callable[[Floats, Floats, object, float], NodeResult]
"""(lower, upper, starting basis, cutoff) -> LP relaxation."""
SubMip = Callable[[Floats, Floats, Floats | None, float, float], SubMipResult]
"""(lower, upper, MIP start, target value that ends the search, relative gap) -> incumbent and bound."""
RoundCounts = Callable[[Floats, Floats, float, float], SubMipResult]
"""(lower, upper, target value, cutoff) -> a quickly found solution, and the bound of its relaxation; all binaries are fixed."""


@dataclass(order=True, slots=True)
class Node:
    """Bounds of a node and the optimum of its relaxation; without `x` only a bound on that optimum is known."""

    value: float
    order: int
    lower: Floats = field(compare=False)
    upper: Floats = field(compare=False)
    x: Floats | None = field(compare=False)
    basis: object = field(compare=False)


@dataclass(slots=True)
class NodeQueue:
    """Open nodes, best bound first, and the least bound of the nodes closed by the gap.

    A node may be closed although it contains a better solution, when that solution cannot be better by more than the gap. Its bound
    still limits what the search has proven.
    """

    least_closed: float = math.inf
    _nodes: list[Node] = field(default_factory=list)
    _order: int = 0

    def __bool__(self) -> bool:
        return bool(self._nodes)

    @property
    def least_open(self) -> float:
        """Least bound of the open nodes; infinite where none is open."""
        return self._nodes[0].value if self._nodes else math.inf

    @property
    def bound(self) -> float:
        """Lower bound on every solution that the search has not compared with the incumbent."""
        return min(self.least_open, self.least_closed)

    def push(self, result: NodeResult, lower: Floats, upper: Floats, parent_basis: object) -> None:
        """Open a node with the result of its relaxation, which must have a value."""
        if result.value is None:
            raise ValueError("a node without a bound cannot be opened")
        self._order += 1
        heapq.heappush(
            self._nodes, Node(result.value, self._order, lower, upper, result.x, result.basis or parent_basis)
        )

    def put_back(self, node: Node) -> None:
        """Reopen a node whose children could not be solved."""
        heapq.heappush(self._nodes, node)

    def pop(self) -> Node:
        """Take the open node with the least bound; the first opened among equals."""
        return heapq.heappop(self._nodes)

    def close(self, bound: float) -> None:
        """Record the bound of a node that the gap closes."""
        self.least_closed = min(self.least_closed, bound)
