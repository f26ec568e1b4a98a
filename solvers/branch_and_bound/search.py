"""Branch and bound over the few binaries of a program whose other columns are continuous or integer counts.

Sites, placements and network designs are the hard integers; counts cost little once those are fixed. So the search branches on the
binaries alone, with warm-started LP relaxations as bounds. A dive comes first: its solution is often within the gap already. At a
node where every binary is integer, or can be rounded at no cost, the counts are rounded too; where that is not within the gap, a
sub-MIP decides. The search sees arrays and a few functions. Not here: the solver behind them (`solvers.branch_and_bound.run`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.branching import Candidate, Pseudocosts, branching_candidates, restrict
from solvers.branch_and_bound.dive import dive, fractional, largest_value
from solvers.branch_and_bound.nodes import Node, NodeQueue, NodeResult, Relax, RoundCounts, SubMip, SubMipResult
from solvers.branch_and_bound.settings import SETTINGS, BranchAndBoundSettings

FindMipStart = Callable[[], tuple[float, Floats | None, float]]
"""() -> (value, columns or None, proven lower bound) of a solution found by another method."""


@dataclass(frozen=True, slots=True)
class BranchAndBoundResult:
    """Incumbent and lower bound; `complete` is False where the node limit or the time ended the search, and the bound still holds."""

    value: float
    x: Floats | None
    bound: float
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProblem:
    """The program as the search sees it: column numbers, and functions that solve parts of it."""

    binaries: Ints
    counts: Ints  # the other integer columns
    relax: Relax
    round_counts: RoundCounts
    solve_sub_mip: SubMip
    round_free: Callable[[Floats], Floats]  # rounds binaries that cost nothing, where rows permit
    branching_sets: Sequence[tuple[Ints, Ints]] = ()  # two sets of binaries of which only one may contain a nonzero


@dataclass(slots=True)
class BranchAndBound:
    """State of one search; `run` returns its result."""

    problem: SearchProblem
    gap: float
    node_limit: int
    settings: BranchAndBoundSettings = SETTINGS
    earlier_solutions: Sequence[Floats] = ()  # solutions of similar programs, most promising first; NaN where unknown
    pseudocosts: Pseudocosts = field(default_factory=Pseudocosts)
    mip_start: FindMipStart | None = None  # called once, as soon as the search proves hard
    mip_start_first: bool = False  # call it before the root relaxation
    hand_over_gap: float = math.inf  # relative gap at the root from which on the search ends there
    iterations: Callable[[], float] = lambda: math.inf  # simplex iterations so far
    is_slow: Callable[[], bool] = lambda: False  # asked at each node; the search ends there where it is
    report: Callable[[float, float], None] | None = None  # called with (incumbent value, lower bound)
    value: float = math.inf
    x: Floats | None = None
    out_of_time: bool = False
    _start_bound: float = -math.inf  # lower bound on the whole program that came with the MIP start
    _queue: NodeQueue = field(default_factory=NodeQueue)
    _rounded: dict[bytes, SubMipResult] = field(default_factory=dict)  # rounded counts by the values of the binaries
    _sub_mips: dict[bytes, SubMipResult] = field(default_factory=dict)  # solved sub-MIPs, likewise

    def run(self, lower: Floats, upper: Floats, start: Floats | None, start_value: float) -> BranchAndBoundResult:
        """Search between these bounds, from the solution `start` if there is one."""
        if start is not None:
            self.value, self.x = start_value, start
        if self.mip_start_first and self._take_mip_start(0) and self._start_is_enough():
            return BranchAndBoundResult(self.value, self.x, min(self._start_bound, self.value), True)
        root = self.problem.relax(lower, upper, None, math.inf)
        if root.x is None or root.value is None:
            return self._without_root(root)
        self._queue.push(root, lower, upper, root.basis)
        self._take_mip_start(self.settings.hard_root_iterations)
        self._run_heuristics(root, root.value, lower, upper)
        wide = self.value - self.bound() > self.hand_over_gap * abs(self.value)
        visited = self.node_limit if wide else 0
        while self._queue and not self._within_gap(max(self._queue.least_open, self._start_bound)):
            if self._take_mip_start(self.settings.hard_iterations):
                continue
            if self.out_of_time or visited >= self.node_limit or self.is_slow():
                return BranchAndBoundResult(self.value, self.x, self.bound(), False)
            if self.report is not None:
                self.report(self.value, self.bound())
            visited += 1
            self._visit(self._queue.pop())
        return BranchAndBoundResult(self.value, self.x, self.bound(), True)

    def bound(self) -> float:
        """Lower bound on the optimum."""
        return min(max(self._queue.bound, self._start_bound), self.value)

    # --- incumbent, bound and gap ---------------------------------------------------------------------------------

    def _take_mip_start(self, least_iterations: int) -> bool:
        """Call the MIP start once the search took a number of iterations; return whether this call did so."""
        if self.mip_start is None or self.iterations() < least_iterations:
            return False
        (value, x, self._start_bound), self.mip_start = self.mip_start(), None
        self._offer(value, x)
        return True

    def _start_is_enough(self) -> bool:
        gap = (1 - self.settings.value_tol) * self.gap * abs(self.value)
        return self.x is not None and self.value - self._start_bound <= gap

    def _without_root(self, root: NodeResult) -> BranchAndBoundResult:
        """Result where the root relaxation has no solution, or none in time."""
        if root.value is None:
            return BranchAndBoundResult(self.value, self.x, self._start_bound, False)
        proven = root.value if self.x is None else min(root.value, self.value)
        return BranchAndBoundResult(self.value, self.x, proven, True)

    def _target(self, bound: float) -> float:
        """Largest value within the gap of a bound."""
        return self.settings.target(bound, self.gap)

    def _within_gap(self, bound: float) -> bool:
        """Whether the incumbent is within the gap of a node's bound, so that the node need not be opened."""
        return self.value <= self._target(bound)

    def _offer(self, value: float, x: Floats | None) -> None:
        """Make a better solution the incumbent."""
        if x is not None and value < self.value:
            self.value, self.x = value, x

    # --- heuristics at the root -----------------------------------------------------------------------------------

    def _run_heuristics(self, root: NodeResult, root_value: float, lower: Floats, upper: Floats) -> None:
        """Look for a first solution: repair solutions of similar programs, then dive."""
        binaries, counts = self.problem.binaries, self.problem.counts
        for columns in (np.concatenate([binaries, counts]), binaries):
            for x in self.earlier_solutions[: self.settings.earlier_solutions_tried]:
                if not self._within_gap(max(root_value, self._start_bound)):
                    self._repair(x, columns, root, root_value, lower, upper)
        if not self._within_gap(max(root_value, self._start_bound)):
            self._dive(root, root_value, lower, upper)

    def _repair(
        self, x: Floats, columns: Ints, root: NodeResult, root_value: float, lower: Floats, upper: Floats
    ) -> None:
        """Fix `columns` as in an earlier solution, where it knows them, then dive on the other binaries and round the counts."""
        binaries = self.problem.binaries
        with_counts, columns = len(columns) > len(binaries), columns[np.isfinite(x[columns])]
        fixed = np.round(x[columns])
        if (fixed < lower[columns]).any() or (fixed > upper[columns]).any():
            return
        if not np.isfinite(x[self.problem.counts]).all():
            return
        lower, upper = lower.copy(), upper.copy()
        lower[columns] = upper[columns] = fixed
        if (lower[binaries] < upper[binaries]).any():
            first = self._relax_and_round(lower, upper, root.basis, self.value)
            last = (
                None
                if first.x is None
                else dive(self._relax_and_round, first, lower, upper, binaries, largest_value, self.gap, self.value)
            )
            if last is None or last.x is None:
                return
            lower, upper = self._fix_binaries(lower, upper, last.x)
        target = self._target(root_value)
        found = self.problem.round_counts(lower, upper, target, self.value if with_counts else min(self.value, target))
        self._offer(found.value, found.x)

    def _dive(self, root: NodeResult, root_value: float, lower: Floats, upper: Floats) -> None:
        """Dive on the binaries, then round the counts. With an incumbent, only a solution within the gap is worth the time."""
        cutoff = self.value if self.x is None else min(self.value, self._target(root_value))
        first = root if root.x is None else replace(root, x=self.problem.round_free(root.x))
        last = dive(self._relax_and_round, first, lower, upper, self.problem.binaries, largest_value, self.gap, cutoff)
        if last is not None and last.x is not None:
            self._round_counts(self._key(last.x), *self._fix_binaries(lower, upper, last.x), root_value)

    def _relax_and_round(self, lower: Floats, upper: Floats, basis: object, cutoff: float) -> NodeResult:
        found = self.problem.relax(lower, upper, basis, cutoff)
        return found if found.x is None else replace(found, x=self.problem.round_free(found.x))

    # --- nodes ----------------------------------------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        """Solve a leaf, or branch."""
        if node.x is None:  # its LP stopped at the cutoff; now that its bound is the least, solve it in full
            relaxed = self.problem.relax(node.lower, node.upper, node.basis, math.inf)
            if relaxed.value is None:
                self._put_back(node)
            elif math.isfinite(relaxed.value):
                self._queue.push(relaxed, node.lower, node.upper, node.basis)
            return
        open_columns, rounded = fractional(node.x, self.problem.binaries), self.problem.round_free(node.x)
        still_open = fractional(rounded, self.problem.binaries)
        if still_open.size or not self._solve_leaf(node, node.x, rounded):
            self._branch(node, node.x, still_open if still_open.size else open_columns)

    def _put_back(self, node: Node) -> None:
        self.out_of_time = True
        self._queue.put_back(node)

    def _branch(self, node: Node, x: Floats, open_columns: Ints) -> None:
        """Branch on the candidate whose children gain most, by strong branching until its pseudocosts are known."""
        best: tuple[float, list[tuple[NodeResult, Floats, Floats]]] | None = None
        tried = 0
        shares = branching_candidates(x, open_columns, self.problem.branching_sets)
        for candidate in self.pseudocosts.ranked(shares):
            known = self.pseudocosts.known(candidate)
            if best is not None and (known or tried >= self.settings.strong_branching_candidates):
                break
            tried += not known
            children = [self._child(node, candidate, side) for side in (0, 1)]
            values = [result.value for result, _, _ in children if result.value is not None]
            if len(values) < 2:
                self._put_back(node)
                return
            gains = [max(value - node.value, 0.0) for value in values]
            for side, gain in enumerate(gains):
                if math.isfinite(gain):
                    distance = shares[candidate] if side == 0 else 1 - shares[candidate]
                    self.pseudocosts.record(candidate, side, gain, distance)
            alive = [
                child
                for child, value in zip(children, values, strict=True)
                if math.isfinite(value) and not self._within_gap(value)
            ]
            if len(alive) < 2:  # at most one child is left: no branching needed
                for value in values:
                    if self._within_gap(value):
                        self._queue.close(value)
                for child in alive:
                    self._queue.push(*child, node.basis)
                return
            score = max(gains[0], 1e-9) * max(gains[1], 1e-9)
            if best is None or score > best[0]:
                best = score, children
        if best is None:
            raise ValueError("a node without a fractional candidate cannot be branched on")
        for child in best[1]:
            self._queue.push(*child, node.basis)

    def _child(self, node: Node, candidate: Candidate, side: int) -> tuple[NodeResult, Floats, Floats]:
        """Solve the LP of a child, up to a value that is enough for now."""
        lower, upper = restrict(node.lower, node.upper, candidate, side, self.problem.branching_sets)
        far = node.value + max(self.settings.child_cutoff, 2 * self.gap) * abs(node.value)
        return (
            self.problem.relax(lower, upper, node.basis, min(far, self.settings.closing_bound(self.value, self.gap))),
            lower,
            upper,
        )

    def _solve_leaf(self, node: Node, x: Floats, rounded: Floats) -> bool:
        """Fix the binaries as in `rounded` and find the counts; return False where the node still has to be branched on.

        If rounding is not within the gap of the node's bound, a sub-MIP with these binaries decides, then one over the node.
        """
        binaries, key = self.problem.binaries, self._key(rounded)
        lower, upper = self._fix_binaries(node.lower, node.upper, rounded)
        first = self._round_counts(key, lower, upper, node.value)
        bound = node.value
        if not self._within_gap(bound):
            if key not in self._sub_mips:
                gap = self.settings.leaf_gap_share * self.gap
                self._sub_mips[key] = self.problem.solve_sub_mip(lower, upper, first.x, self._target(bound), gap)
            answer = self._sub_mips[key]
            self._offer(answer.value, answer.x)
            if not self._within_gap(bound):
                unchanged = (lower[binaries] == node.lower[binaries]) & (upper[binaries] == node.upper[binaries])
                if not unchanged.all():
                    if fractional(x, binaries).size:
                        return False
                    answer = self.problem.solve_sub_mip(node.lower, node.upper, answer.x, self._target(bound), self.gap)
                    self._offer(answer.value, answer.x)
                bound = max(bound, answer.bound)
        self._queue.close(bound)
        return True

    def _round_counts(self, key: bytes, lower: Floats, upper: Floats, bound: float) -> SubMipResult:
        """Round the counts where these bounds fix all binaries; each combination of binaries is rounded once."""
        if key not in self._rounded:
            found = self.problem.round_counts(lower, upper, self._target(bound), self.value)
            self._rounded[key] = found
            self._offer(found.value, found.x)
        return self._rounded[key]

    def _fix_binaries(self, lower: Floats, upper: Floats, x: Floats) -> tuple[Floats, Floats]:
        lower, upper = lower.copy(), upper.copy()
        binaries = self.problem.binaries
        lower[binaries] = upper[binaries] = np.round(x[binaries])
        return lower, upper

    def _key(self, x: Floats) -> bytes:
        """Values of the binaries, to look up what was solved for them."""
        return np.round(x[self.problem.binaries]).tobytes()
