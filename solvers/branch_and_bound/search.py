"""Branch and bound over the few yes-or-no columns of a program whose many other columns are continuous or counts.

Sites, placements and designs are the hard integers; counts cost little once those are settled. So the search branches
on the binaries alone with warm linear programs, whose optima are the bounds. A dive comes first: often its plan is good
enough already. Where every binary is whole, or can be made so at no cost, counts are made whole too, and where that is not
good enough a solver is asked. It sees arrays and a few functions; which solver answers them is not its business."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.arrays import Floats, Ints

INTEGRALITY_TOL = 1e-6  # a value this close to an integer is settled
WARM_STARTS = 2  # answers of programs alike that are looked at
TRIED_PER_NODE = 4  # binaries whose two children are solved before one of them is branched on
LEARNT = 16  # gains of a binary that are remembered
LOOKS_FAR = 0.002  # a child that costs this much more than its parent, relatively, is not solved to the end at first
LEAF_GAP = 0.5  # of the asked gap, to which counts are found: the bound of a leaf may be better than that of its node
FREE = 0.1  # of the asked gap: what a dive may lose in one step without looking at the other side
LEFT_OF_GAP, MOST_LEFT = (
    0.1,
    1e-5,
)  # share of the asked gap, and how much of it, that is for rounding: a search stops before
ROUNDING = 1e-9  # relative differences of optima below this are the solver's
HARD_ROOT, HARD = (
    12_000,
    25_000,
)  # simplex iterations of the first relaxation alone, and of all, from which on a search is hard and a plan found in another way is asked for


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The optimum of a linear program: infinite where it has no solution, None where the time was up, and without x
    where only a bound was reached. `basis` is the solver's own note of where it stood, to start the next one from."""

    value: float | None
    x: Floats | None = None
    basis: object = None


@dataclass(frozen=True, slots=True)
class SubMipResult:
    """What a mixed-integer solve under the given bounds found and proved; `bound` is infinite where infeasible."""

    value: float
    x: Floats | None
    bound: float


# (lower, upper, basis to start from, value from which on the bound is enough) -> answer
Relax = Callable[[Floats, Floats, object, float], NodeResult]
# (lower, upper, start, stop as soon as this value is reached, relative gap) -> answer
Finish = Callable[[Floats, Floats, Floats | None, float, float], SubMipResult]
# (lower, upper, good enough, value to stay below) -> answer that was found quickly, and the bound of the relaxation; binaries are settled
Count = Callable[[Floats, Floats, float, float], SubMipResult]
Pseudocosts = dict[tuple[int, int], list[float]]  # (binary, side) -> gains per unit


@dataclass(frozen=True, slots=True)
class BranchAndBoundResult:
    """`complete` is False when the node limit or the time ended the search; the bound holds all the same."""

    value: float
    x: Floats | None
    bound: float
    complete: bool


@dataclass(order=True, slots=True)
class _Node:
    """Bounds of a part of the search, and the optimum of its relaxation; without x only its bound is known."""

    value: float
    order: int
    lower: Floats = field(compare=False)
    upper: Floats = field(compare=False)
    x: Floats | None = field(compare=False)
    basis: object = field(compare=False)


@dataclass(slots=True)
class BranchAndBound:
    """One search; `run` returns what it found."""

    binary: Ints
    counts: Ints
    relax: Relax
    count: Count
    finish: Finish
    round_free: Callable[[Floats], Floats]  # makes whole what it can at no cost
    gap: float
    node_limit: int
    known: Sequence[
        Floats
    ] = ()  # answers of programs alike, which may hold here too, the most promising first; not a number where unknown
    pseudocosts: Pseudocosts = field(default_factory=dict)
    branching_sets: Sequence[
        tuple[Ints, Ints]
    ] = ()  # sets of binaries of which only one has any above 0: whether the first is decided before each of its own
    mip_start: Callable[[], tuple[float, Floats | None, float]] | None = (
        None  # value and columns of a plan found in another way, if any, and what is proven there; asked once the search turns out to be hard
    )
    mip_start_first: bool = False  # the mip_start is asked before anything else
    effort: Callable[[], float] = lambda: math.inf  # simplex iterations so far
    report: Callable[[float, float], None] | None = None  # (best value, bound)
    value: float = math.inf
    x: Floats | None = None
    out_of_time: bool = False
    _proven: float = -math.inf  # by the mip_start, of all there is
    _nodes: list[_Node] = field(default_factory=list)
    _order: int = 0
    _closed: float = math.inf  # the least bound of nodes that are closed although a better plan may be in them
    _counted: dict[bytes, SubMipResult] = field(default_factory=dict)  # by the binaries: counts that were found quickly
    _asked: dict[bytes, SubMipResult] = field(default_factory=dict)  # and those of the solver

    def run(self, lower: Floats, upper: Floats, start: Floats | None, start_value: float) -> BranchAndBoundResult:
        if start is not None:
            self.value, self.x = start_value, start
        if (
            self.mip_start_first
            and self._take_mip_start(0)
            and self.x is not None
            and self.value - self._proven <= (1 - ROUNDING) * self.gap * abs(self.value)
        ):
            return BranchAndBoundResult(self.value, self.x, min(self._proven, self.value), True)
        root = self.relax(lower, upper, None, math.inf)
        if root.x is None:
            bound = (
                self._proven if root.value is None else root.value if self.x is None else min(root.value, self.value)
            )
            return BranchAndBoundResult(self.value, self.x, bound, root.value is not None)
        self._push(root, lower, upper, root.basis)
        self._take_mip_start(HARD_ROOT)
        for columns in (np.concatenate([self.binary, self.counts]), self.binary):
            for x in self.known[:WARM_STARTS]:
                if not self._good(max(root.value, self._proven)):
                    self._try_again(x, columns, root, lower, upper)
        if not self._good(max(root.value, self._proven)):
            self._dive(root, lower, upper)
        visited = 0
        while self._nodes and not self._good(max(self._nodes[0].value, self._proven)):
            if self._take_mip_start(HARD):
                continue
            if self.out_of_time or visited >= self.node_limit:
                return BranchAndBoundResult(self.value, self.x, self.bound(), False)
            if self.report is not None:
                self.report(self.value, self.bound())
            visited += 1
            self._visit(heapq.heappop(self._nodes))
        return BranchAndBoundResult(self.value, self.x, self.bound(), True)

    def _take_mip_start(self, hard: int) -> bool:
        """Takes the plan found in another way, and what is proven there, once the search turns out to be that hard; whether it just did."""
        if self.mip_start is None or self.effort() < hard:
            return False
        (*other, self._proven), self.mip_start = self.mip_start(), None
        self._offer(*other)
        return True

    def bound(self) -> float:
        """No plan costs less than this."""
        return min(max(min(self._nodes[0].value if self._nodes else math.inf, self._closed), self._proven), self.value)

    def _target(self, bound: float) -> float:
        return bound + max(self.gap - min(LEFT_OF_GAP * self.gap, MOST_LEFT), ROUNDING) * abs(bound) + ROUNDING

    def _enough(self) -> float:
        """The least bound, and a little, that makes the best plan good enough."""
        share = max(self.gap - min(LEFT_OF_GAP * self.gap, MOST_LEFT), ROUNDING)
        return (
            self.value - share / (1 + share) * abs(self.value) * (1 - 1e-4) if math.isfinite(self.value) else math.inf
        )

    def _good(self, bound: float) -> bool:
        """The best plan is within the gap of a node's bound, so the node need not be opened."""
        return self.value <= self._target(bound)

    def _push(self, relaxed: NodeResult, lower: Floats, upper: Floats, basis: object) -> None:
        self._order += 1
        heapq.heappush(self._nodes, _Node(relaxed.value, self._order, lower, upper, relaxed.x, relaxed.basis or basis))

    def _offer(self, value: float, x: Floats | None) -> None:
        if x is not None and value < self.value:
            self.value, self.x = value, x

    def _settled(self, lower: Floats, upper: Floats, x: Floats) -> tuple[Floats, Floats]:
        lower, upper = lower.copy(), upper.copy()
        lower[self.binary] = upper[self.binary] = np.round(x[self.binary])
        return lower, upper

    def _visit(self, node: _Node) -> None:
        if node.x is None:  # its bound is the least now, so it is worth knowing in full
            relaxed = self.relax(node.lower, node.upper, node.basis, math.inf)
            if relaxed.value is None:
                self._give_back(node)
            elif math.isfinite(relaxed.value):
                self._push(relaxed, node.lower, node.upper, node.basis)
            return
        between, whole = _fractional(node.x, self.binary), self.round_free(node.x)
        if undecided := _fractional(whole, self.binary).size:
            between = _fractional(whole, self.binary)
        if undecided or not self._leaf(node, whole):
            self._branch(node, between)

    def _give_back(self, node: _Node) -> None:
        self.out_of_time = True
        heapq.heappush(self._nodes, node)

    def _branch(self, node: _Node, between: Ints) -> None:
        best: tuple[float, list] | None = None
        tried = 0
        shares = self._shares(node.x, between)
        for column in self._ranked(shares):
            known = all((column, side) in self.pseudocosts for side in (0, 1))
            if best is not None and (known or tried >= TRIED_PER_NODE):
                break
            tried += not known
            children = [self._child(node, column, side) for side in (0, 1)]
            if any(child[0].value is None for child in children):
                self._give_back(node)
                return
            gains = [max(child[0].value - node.value, 0.0) for child in children]
            for side, gain in enumerate(gains):
                if math.isfinite(gain):
                    distance = shares[column] if side == 0 else 1 - shares[column]
                    learnt = self.pseudocosts.setdefault((column, side), [])
                    learnt.append(gain / distance)
                    del learnt[:-LEARNT]
            alive = [child for child in children if not self._good(child[0].value) and math.isfinite(child[0].value)]
            if len(alive) < 2:  # settled without branching; what is good enough is closed by its bound
                self._closed = min(
                    [self._closed, *(child[0].value for child in children if self._good(child[0].value))]
                )
                for child in alive:
                    self._push(*child, node.basis)
                return
            score = max(gains[0], 1e-9) * max(gains[1], 1e-9)
            if best is None or score > best[0]:
                best = score, children
        for child in best[1]:
            self._push(*child, node.basis)

    def _child(self, node: _Node, column: int, side: int) -> tuple[NodeResult, Floats, Floats]:
        lower, upper = node.lower.copy(), node.upper.copy()
        if column < len(lower):
            lower[column] = upper[column] = side
        else:
            upper[self.branching_sets[column - len(lower)][side]] = 0.0
        far = node.value + max(LOOKS_FAR, 2 * self.gap) * abs(node.value)
        enough = self._enough()
        return self.relax(lower, upper, node.basis, min(far, enough)), lower, upper

    def _shares(self, x: Floats, between: Ints) -> dict[int, float]:
        """What is to be branched on, and how far it is chosen: branching_sets, by their number beyond those of columns, and the binaries in none that is open."""
        shares = {len(x) + number: float(x[half].sum()) for number, (half, _) in enumerate(self.branching_sets)}
        shares = {number: share for number, share in shares.items() if INTEGRALITY_TOL < share < 1 - INTEGRALITY_TOL}
        inner = {int(column) for number in shares for half in self.branching_sets[number - len(x)] for column in half}
        return shares | {int(column): float(x[column]) for column in between if int(column) not in inner}

    def _ranked(self, shares: dict[int, float]) -> list[int]:
        """Most promising first: by the product of expected gains, untried ones at the mean of the tried, then by
        how undecided they are."""
        means = {key: float(np.mean(gains)) for key, gains in self.pseudocosts.items()}
        usual = float(np.mean(list(means.values()))) if means else 1.0

        def score(column: int) -> tuple[float, float]:
            down = means.get((column, 0), usual) * shares[column]
            up = means.get((column, 1), usual) * (1 - shares[column])
            return -max(down, 1e-9) * max(up, 1e-9), abs(shares[column] - 0.5)

        return sorted(shares, key=score)

    def _leaf(self, node: _Node, whole: Floats) -> bool:
        """The node with every binary as in `whole`: find the counts; if the plan is not good enough, prove what the node holds, or False
        where it has to be branched on."""
        key = np.round(whole[self.binary]).tobytes()
        lower, upper = self._settled(node.lower, node.upper, whole)
        rounded = self._round(key, lower, upper, node.value)
        bound = node.value
        if not self._good(bound):
            if key not in self._asked:
                self._asked[key] = self.finish(lower, upper, rounded.x, self._target(bound), LEAF_GAP * self.gap)
            answer = self._asked[key]
            self._offer(answer.value, answer.x)
        if not self._good(bound):
            whole_node = (lower[self.binary] == node.lower[self.binary]) & (
                upper[self.binary] == node.upper[self.binary]
            )
            if not whole_node.all():
                if _fractional(node.x, self.binary).size:
                    return False
                answer = self.finish(node.lower, node.upper, answer.x, self._target(bound), self.gap)
                self._offer(answer.value, answer.x)
            bound = max(bound, answer.bound)
        self._closed = min(self._closed, bound)
        return True

    def _round(self, key: bytes, lower: Floats, upper: Floats, bound: float) -> SubMipResult:
        """Counts made whole where these bounds round_free all binaries."""
        if key not in self._counted:
            self._counted[key] = self.count(lower, upper, self._target(bound), self.value)
            self._offer(self._counted[key].value, self._counted[key].x)
        return self._counted[key]

    def _try_again(self, x: Floats, columns: Ints, root: NodeResult, lower: Floats, upper: Floats) -> None:
        """The best with these columns as in a known answer, as far as it tells them, and the others made whole."""
        counted, columns = len(columns) > len(self.binary), columns[np.isfinite(x[columns])]
        whole = np.round(x[columns])
        if (whole < lower[columns]).any() or (whole > upper[columns]).any() or not np.isfinite(x[self.counts]).all():
            return
        lower, upper = lower.copy(), upper.copy()
        lower[columns] = upper[columns] = whole
        if (lower[self.binary] < upper[self.binary]).any():
            last: NodeResult | None = self._relax_settled(lower, upper, root.basis, self.value)
            last = (
                None
                if last.x is None
                else dive(self._relax_settled, last, lower, upper, self.binary, _most_chosen, self.gap, self.value)
            )
            if last is None:
                return
            lower, upper = self._settled(lower, upper, last.x)
        target = self._target(root.value)
        found = self.count(lower, upper, target, self.value if counted else min(self.value, target))
        self._offer(found.value, found.x)

    def _relax_settled(self, lower: Floats, upper: Floats, basis: object, stop_at: float) -> NodeResult:
        found = self.relax(lower, upper, basis, stop_at)
        return found if found.x is None else replace(found, x=self.round_free(found.x))

    def _dive(self, root: NodeResult, lower: Floats, upper: Floats) -> None:
        """A plan: binaries, then counts, made whole one by one. With a plan in hand only one that is good enough is worth the way."""
        most = self.value if self.x is None else min(self.value, self._target(root.value))
        last = dive(
            self._relax_settled,
            replace(root, x=self.round_free(root.x)),
            lower,
            upper,
            self.binary,
            _most_chosen,
            self.gap,
            most,
        )
        if last is not None:
            self._round(np.round(last.x[self.binary]).tobytes(), *self._settled(lower, upper, last.x), root.value)


def dive(
    relax: Relax,
    last: NodeResult,
    lower: Floats,
    upper: Floats,
    columns: Ints,
    first: Callable[[Floats, Ints], int],
    gap: float,
    most: float,
) -> NodeResult | None:
    """Columns made whole one by one, `first` the next among those between, each to the near side if that costs next to nothing, else to the
    side that costs less; None where both have no answer, or none below `most`."""
    lower, upper = lower.copy(), upper.copy()
    while (between := _fractional(last.x, columns)).size:
        column = between[first(last.x, between)]
        near = float(np.round(last.x[column]))
        far = near + (1.0 if last.x[column] > near else -1.0)

        def at(whole: float, stop: float, column: int = column, basis: object = last.basis) -> NodeResult:
            low, high = lower.copy(), upper.copy()
            low[column] = high[column] = whole
            return relax(low, high, basis, min(stop, most))

        best, whole = at(near, last.value + max(FREE * gap, ROUNDING) * abs(last.value)), near
        if best.x is None:
            other = at(far, math.inf)
            limit = math.inf if other.x is None else other.value
            if best.value is not None and math.isfinite(best.value) and best.value < limit:
                best = at(near, limit)
            if best.x is None:
                best, whole = other, far
        if best.x is None:
            return None
        last = best
        lower[column] = upper[column] = whole
    return last


def _fractional(x: Floats, columns: Ints) -> Ints:
    part = x[columns]
    return columns[np.abs(part - np.round(part)) > INTEGRALITY_TOL]


def _most_chosen(x: Floats, between: Ints) -> int:
    """A chosen place or design settles its rivals."""
    return int(np.argmax(x[between]))
