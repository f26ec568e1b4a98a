"""Raise the bound of a linear program by branching, the node of the least bound first.

    bound = min over open nodes of max(bound of the parent, bound that the duals of the node prove)

Branched on first are sums of integers of one kind, then the integers of a kind, the dearest first, then the others. A node is bounded by
its duals (weak duality), whatever the tolerance of the solver. A number of linear programs ends the search, not a clock; so does a bound
that hardly rises, or that would end short of the target if it rose on as it has.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.general.dual_bound import value_of_duals
from solvers.interface import Options
from solvers.program import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Ends of the search."""

    nodes: int = 400
    """Most linear programs: of the main example, the next hundred raise its bound by 0.01 %."""
    trial: int = 100
    """Linear programs after which the bound must have risen."""
    least_rise: float = 0.02
    """Share of its rise so far by which it must."""
    whole: float = 1e-6
    """Distance from a whole number below which a value is one."""


SETTINGS = SearchSettings()


@dataclass(frozen=True, slots=True)
class PartProgram:
    """A program that is to be bounded: minimise cost x + constant over `arrays`.

    `kind` [columns]: integers of one kind are counted together, -1 for the others. `price` [columns]: the dearest are decided first.
    """

    arrays: Arrays
    cost: Floats
    constant: float
    kind: Ints
    price: Floats


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """An open node, in the order of the search; `changes`: (column, lower, upper) of its branches, `branch`: column and value to branch on."""

    bound: float
    number: int
    changes: tuple[tuple[int, float, float], ...] = field(compare=False)
    branch: tuple[int, float] | None = field(compare=False)
    basis: Any = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Searched:
    """A bound, inf where the program has no solution; `x`: columns of the node that has it, None where none is known."""

    bound: float
    x: Floats | None = None


def least(part: PartProgram, target: float, options: Options, times: int = 1) -> Searched | None:
    """Bound the least value of a program from below; None where not even its linear program was solved.

    Ends at a bound of `target`, or after the `node_limit` of the options. `times`: by how many times as many linear programs as usual.
    """
    columns = len(part.cost)
    begin = time.perf_counter()
    part = _with_sums(part)
    tree = _Tree(part, replace(options, presolve=False))
    root = tree.solved((), -math.inf, None)
    if root is None:
        return Searched(math.inf)
    if not math.isfinite(root.bound):
        return None
    heap, tried = [root], root.bound
    most = SETTINGS.nodes * times
    nodes = most if options.node_limit is None else min(options.node_limit, most)
    check = SETTINGS.trial

    def ended(bound: float) -> float:
        """Compute the bound at the last linear program, if those to come raise it as much as those so far."""
        return root.bound + (bound - root.bound) * nodes / tree.count

    while heap and heap[0].bound < target - part.constant and tree.count < nodes and options.left_s(begin) > 0:
        if tree.count >= check:
            if heap[0].bound - tried <= SETTINGS.least_rise * (tried - root.bound):
                break
            if math.isfinite(target) and ended(heap[0].bound) < target - part.constant:
                break
            check, tried = tree.count + SETTINGS.trial, heap[0].bound
        if heap[0].branch is None:
            break
        node = heapq.heappop(heap)
        for child in tree.children(node):
            heapq.heappush(heap, child)
    if not heap:
        return Searched(math.inf)
    x = tree.columns_of(heap[0])
    return Searched(part.constant + heap[0].bound, None if x is None else x[:columns])


class _Tree:
    """Linear programs of the nodes, each started from the basis of its parent."""

    def __init__(self, part: PartProgram, options: Options) -> None:
        self.part, self.count = part, 0
        self._lp = WarmStartedLp(part.arrays, part.cost, options)

    def children(self, node: Node) -> list[Node]:
        """Solve both sides of a node's branch; leave out what has no solution."""
        if node.branch is None:
            return []
        column, value = node.branch
        below = (column, -math.inf, math.floor(value))
        above = (column, math.ceil(value), math.inf)
        found = [self.solved((*node.changes, change), node.bound, node.basis) for change in (below, above)]
        return [child for child in found if child is not None]

    def solved(self, changes: tuple[tuple[int, float, float], ...], bound: float, basis: Any) -> Node | None:
        """Solve a node; None where it has no solution. `bound`: that of its parent, which a node without an optimum keeps."""
        arrays, number = self.part.arrays, self.count
        self.count += 1
        lower, upper = self._bounds(changes)
        if (lower > upper).any():
            return None
        self._lp.start_from(basis)
        found = self._lp.solve(lower, upper)
        if found.status == "infeasible":
            return None
        if found.x is None or found.row_duals is None:
            return Node(bound, number, changes, None, None)
        rows = arrays.row_lower, arrays.row_upper
        proven = value_of_duals(found.row_duals, self.part.cost, arrays.matrix, rows, (lower, upper))
        return Node(max(bound, proven), number, changes, self._branch(found.x), self._lp.basis)

    def columns_of(self, node: Node) -> Floats | None:
        """Return the columns of a node's linear program; None where they are not found."""
        self._lp.start_from(node.basis)
        return self._lp.solve(*self._bounds(node.changes)).x

    def _bounds(self, changes: tuple[tuple[int, float, float], ...]) -> tuple[Floats, Floats]:
        """Return the bounds of the columns after some branches."""
        lower, upper = self.part.arrays.lower.copy(), self.part.arrays.upper.copy()
        for column, low, high in changes:
            lower[column], upper[column] = max(lower[column], low), min(upper[column], high)
        return lower, upper

    def _branch(self, x: Floats) -> tuple[int, float] | None:
        """Choose the column to branch on and its value; None where all are whole."""
        part = self.part
        open_ = part.arrays.integer & (np.abs(x - np.round(x)) > SETTINGS.whole)
        if not open_.any():
            return None
        column = int(np.argmax(np.where(open_, part.price, -1.0)))
        return column, float(x[column])


def _with_sums(part: PartProgram) -> PartProgram:
    """Add the sum of the integers of each kind as an integer column, dearer than all single ones, so that branching takes the sums first."""
    member, arrays = np.flatnonzero(part.kind >= 0), part.arrays
    kinds, of_member = np.unique(part.kind[member], return_inverse=True)
    sums, columns = len(kinds), len(part.cost)
    entries = np.concatenate([np.ones(len(member)), -np.ones(sums)])
    row, column = np.append(of_member, np.arange(sums)), np.append(member, columns + np.arange(sums))
    added = sparse.csc_array((entries, (row, column)), shape=(sums, columns + sums))
    widened = sparse.hstack([arrays.matrix, sparse.csc_array((len(arrays.row_lower), sums))])
    none, price = np.zeros(sums), np.zeros(sums)
    lower, upper = (np.bincount(of_member, bound[member], sums) for bound in (arrays.lower, arrays.upper))
    np.maximum.at(price, of_member, part.price[member])
    with_sums = Arrays(
        sparse.vstack([widened, added]).tocsc(),
        np.append(arrays.row_lower, none),
        np.append(arrays.row_upper, none),
        np.append(arrays.lower, lower),
        np.append(arrays.upper, upper),
        np.append(arrays.integer, np.ones(sums, dtype=bool)),
        np.append(arrays.unit, np.ones(sums)),
    )
    above = 1.0 + float(part.price.max(initial=0.0))
    kind = np.append(part.kind, np.full(sums, -1))
    return PartProgram(with_sums, np.append(part.cost, none), part.constant, kind, np.append(part.price, price + above))
