"""What is decided once made whole by branch and bound from within: much is decided at once where that costs little, and the search goes on
from a node that it left as long as there is time. Sites, designs and places of jobs are decided on merged slots or over all, counts over all.
Better choices are then looked at as they are proposed (proposing.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_master import Proposals
from solvers.decomposition.interior_point.method import ITERATIONS, Inside
from solvers.decomposition.node_relaxation import PATIENCE, Chosen, Looks, counted
from solvers.decomposition.root_relaxation import LEAST, PLACES, Linear, mattering, near_places, nearly
from solvers.decomposition.slot_clustering import APART, APART_LARGE, grouping, groups_for
from solvers.decomposition.slots import Slotwise
from solvers.decomposition.sub_mips import nearest_choices, nearest_counts

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Decomposition

TOLERANCE = 5e-4  # of the value, how far from proven each look on merged slots may be
FINER = 42  # merged slots
ONE_BY_ONE, MANY_CERTAIN = (
    4,
    5,
)  # steps of large questions that are done one by one after several that were dear together, unless so many are certain
PARTS = 3  # so much of what is not certain is decided at a time, or less where that costs too much
CERTAIN = 0.05  # how near to whole what is certain is
COSTS, COSTS_LARGE = 5e-4, 3e-3  # of the value, that more than one decision may cost together
FEW_JOBS = 3  # that are offered more places where something whole is known
STEEP = (
    5e-3  # of the value, that a step may cost where questions are large as long as another is left that may cost less
)
DEEPER = 1e-3  # of the value, that each decision is taken to cost there as long as nothing whole is known
HOPELESS = (
    0.2,
    9.0,
)  # of the value, that a step may cost, first and where nothing was found: prices of what there is no room for grow beyond
AGAIN, AGAIN_LARGE = (
    1,
    4,
)  # times the looks that the first choices took, that better ones on merged slots may take, also where questions are large
PLACES_LARGE, LEAST_LARGE = (
    160,
    2.0,
)  # places of jobs, about, and systems of a kind from which on it matters, where questions are large


class Step(NamedTuple):
    """How sure a column is, and what it is to be."""

    sure: float
    column: int
    goal: float


@dataclass(frozen=True, slots=True)
class Node:
    """What is left to be looked at: bounds, at least at this value, from where to start, with so many `undecided`; `at_once`: where that is their
    answer, and more than so many were decided together."""

    value: float
    undecided: int
    least: Floats
    most: Floats
    start: Inside
    at_once: int = 0


@dataclass(slots=True)
class Offered:
    """To which jobs more places were offered."""

    fewest: float = np.inf  # jobs, while nothing whole was known
    decided: set[bytes] = field(default_factory=set)

    def may(self, state: Chosen, jobs: Ints, best: Chosen | None) -> bool:
        """Whether these jobs, that have no place yet, may be: before anything whole is known as long as they are fewer each time, then a few once."""
        if best is None:
            return 0 < len(jobs) < self.fewest
        return 0 < len(jobs) <= FEW_JOBS and state.least.tobytes() not in self.decided

    def note(self, state: Chosen, jobs: Ints) -> None:
        self.fewest = min(self.fewest, len(jobs))
        self.decided.add(state.least.tobytes())


def _doubtful(ranked: list[Step]) -> int:
    """How many steps are not certain."""
    return max(sum(step.sure < 1 - CERTAIN for step in ranked), 1)


def choices(
    dec: Decomposition, linear: Linear, left: Callable[[], float], proposals: Proposals | None = None
) -> tuple[Chosen, Ints, Ints] | None:
    """(the best choices found, group of each slot, fleet options that were looked at); None where none were found. On merged slots, or where there are
    `proposals` to know of it the first ones over all slots."""
    whole, y = dec.whole, dec.whole.columns["y"]
    places = nearly(dec, linear.found, linear.at, PLACES_LARGE if linear.large else PLACES)
    most = whole.most.copy()
    most[y[np.setdiff1d(np.flatnonzero(y >= 0), places)]] = 0.0
    group = (
        np.arange(dec.view.slots)
        if proposals is not None
        else grouping(dec.view, groups_for(dec.view, FINER), APART_LARGE if linear.large else APART)
    )
    costs = COSTS_LARGE if linear.large else COSTS
    fleet_options = mattering(dec, linear.found, places, LEAST_LARGE if linear.large else LEAST)
    search = Search(
        dec,
        dec.view.merged(group),
        fleet_options,
        whole.integer & ~counted(dec),
        TOLERANCE,
        costs,
        0 if proposals is not None else AGAIN_LARGE if linear.large else AGAIN,
        left,
        linear.large,
    )
    search.proposals = proposals
    start, onto = (
        (linear.found, None)
        if proposals is not None
        else (linear.merged, linear.group[np.unique(group, return_index=True)[1]])
    )
    root = search.look(np.zeros(whole.size), most, start, onto=onto)
    if root is not None:
        dec.say(
            f"choices: {dec.amount(root.found.value)} before any, {len(search.fleet_options)} fleet options, {len(places)} places"
        )
    found = None if root is None else search.run(root)
    return None if found is None else (found, group, search.fleet_options)


class Search(Looks):
    """Whole choices by looks at more and more that is decided."""

    def __init__(
        self,
        dec: Decomposition,
        view: Slotwise,
        fleet_options: Ints,
        fixing: np.ndarray,
        tolerance: float,
        costs: float,
        again: int,
        left: Callable[[], float],
        large: bool = False,
    ):
        """`costs`: of the value, that more than one decision may cost together; `again`: times the looks that the first whole answer took, that
        better ones may take."""
        super().__init__(dec, view, fleet_options, fixing, tolerance, left)
        self.costs, self.again, self.large = costs, again, large
        self.one_by_one = 0  # steps that are done one by one, since several were dear together
        self.job, self.site = np.full(dec.whole.size, -1), np.full(dec.whole.size, -1)  # of each choice of a place
        y = dec.whole.columns["y"]
        self.job[y[y >= 0]], self.site[y[y >= 0]] = dec.data.point_job[y >= 0], dec.view.site[y >= 0]
        self.place_of = np.full(
            dec.whole.size, -1
        )  # of a window in which a job may run somewhere: the choice of the place
        run = dec.whole.columns["run"]
        self.place_of[run[run >= 0]] = np.broadcast_to(y[:, None], run.shape)[run >= 0]

    def run(self, root: Chosen) -> Chosen | None:
        """The best that is whole; what takes long to tell is passed over, unless nothing is found."""
        self.iterations = PATIENCE
        found = self._searched(root, self.costs, HOPELESS[0])
        self.iterations = ITERATIONS
        return found or self._searched(root, 0.0, HOPELESS[1])

    def _searched(self, root: Chosen, costs: float, hopeless: float) -> Chosen | None:
        """The best that is whole under a node, depth first until there is any; as it nearly is where time ends before."""
        best, state, last, nodes, at_once, most, fewest = None, root, root, [], self.fixing.size, 1, np.inf
        stuck, enough, offered = None, np.inf, Offered()
        while True:
            if best is None and self.left() <= 0:
                self.dec.say(f"no time for {len(self.open(last) or [])} that are open")
                return self.rounded(last)
            ranked = [] if state is None else self.open(state)
            if ranked and len(ranked) < fewest:
                last, fewest = state, len(ranked)
            if ranked is None:
                self.dec.say("no whole choices near by, or not in time")
                stuck, state = state, None
            if ranked:
                most = max(most, _doubtful(ranked))
                further = self._further(
                    state, ranked, nodes, costs, self._cutoff(state.found.value, best, hopeless), at_once
                )
                stuck, state, at_once = state, further, self.fixing.size
                continue
            if state is not None:
                self.dec.say(f"whole: {self.dec.amount(state.found.value)}")
                best, enough, stuck = state, min(enough, (1 + self.again) * self.looked), None
                if best.found.value - root.found.value <= self.tolerance * abs(best.found.value):  # looks say no more
                    return best
            lacking = last if best is None else stuck if self.large else None
            if lacking is not None and not (self.fixing & self.counts).any() and self.left() > 0:
                homeless = self._homeless(lacking)
                if offered.may(lacking, homeless, best):
                    offered.note(lacking, homeless)
                    state = self._widened(lacking, homeless, self._cutoff(lacking.found.value, best, hopeless))
                    if state is not None:
                        continue
            stuck = None
            nodes = [node for node in nodes if best is None or (node.value < self.worth(best) and not node.at_once)]
            if not nodes or self.left() <= 0 or self.looked >= enough:
                return best
            each = ((best or last).found.value - root.found.value) / most  # that deciding may cost
            if best is None and self.large:
                each = max(each, DEEPER * abs(root.found.value))
            deep = best is None and (self.fixing & self.counts).any()  # counts have no end of nodes that are as good
            node = (
                nodes.pop()
                if deep
                else nodes.pop(
                    min(
                        range(len(nodes)),
                        key=lambda i: (nodes[i].at_once > 0, nodes[i].value + each * nodes[i].undecided),
                    )
                )
            )
            at_once = node.at_once or at_once
            state = (
                Chosen(node.least, node.most, node.start)
                if node.at_once
                else self.look(node.least, node.most, node.start, self._cutoff(node.value, best, hopeless))
            )

    def rounded(self, state: Chosen) -> Chosen:
        """With all that is open as it nearly is."""
        while left_open := self.open(state, up=True):
            state = Chosen(*self._as_it_is(state, left_open), state.found)
        return state

    def _homeless(self, state: Chosen) -> Ints:
        """The jobs that have no place yet."""
        return np.setdiff1d(np.arange(len(self.dec.data.job_work)), self.job[(self.job >= 0) & (state.least > 0.5)])

    def _widened(self, state: Chosen, jobs: Ints, cutoff: float) -> Chosen | None:
        """With more places for these jobs: of those near the linear answer there is room for none."""
        dec, y = self.dec, self.dec.whole.columns["y"]
        opened = np.append(state.most, 1.0)[dec.whole.columns["open"]] > 0
        more = near_places(dec, dec.certify(dec.spread(state.found), self.view).entering, jobs, opened)
        self.fleet_options = np.union1d(self.fleet_options, dec.view.use_option[np.isin(dec.view.use_point, more)])
        most = state.most.copy()
        most[y[more]] = dec.whole.most[y[more]]
        dec.say(f"{len(more)} places for the {len(jobs)} jobs that have none")
        return self.look(state.least, most, state.found, cutoff)

    def _cutoff(self, value: float, best: Chosen | None, hopeless: float) -> float:
        return value + hopeless * max(abs(value), 1.0) if best is None else self.worth(best)

    def open(self, state: Chosen, up: bool = False) -> list[Step] | None:
        """What is not decided, surest first: counts where nothing else is left, as they follow, `up` where rows allow if asked; else what whole
        choices near by have, of a job its place, windows after it. None where there are no whole choices."""
        values, free = self.values(state), self.fixing & (state.least < state.most)
        if not (free & ~self.counts).any():
            at, goal = np.flatnonzero(free), nearest_counts(self, state, values) if up else None
            goal = np.round(values) if goal is None else goal
            return sorted(
                (Step(1 - abs(values[c] - np.round(values[c])), int(c), float(goal[c])) for c in at), reverse=True
            )
        goal = nearest_choices(self, state, values)
        if goal is None:
            return None
        at = np.flatnonzero(
            free & ~self.counts & ~((self.place_of >= 0) & free[self.place_of]) & ((self.job < 0) | (goal > 0.5))
        )
        return sorted((Step(1 - abs(values[c] - goal[c]), int(c), float(goal[c])) for c in at), reverse=True)

    def _further(
        self, state: Chosen, ranked: list[Step], nodes: list[Node], costs: float, cutoff: float, at_once: int
    ) -> Chosen | None:
        """The state with as many of the surest decided, `at_once` at most, as cost little together, which is then a node for fewer; or with one,
        which is then a node the other way."""
        certain = min(sum(step.sure >= 1 - CERTAIN for step in ranked), at_once)
        rest = min(-(-(len(ranked) - certain) // PARTS), at_once - certain)
        self.one_by_one = max(self.one_by_one - 1, 0) if certain < MANY_CERTAIN else 0
        while costs and certain + rest > 1 and self.left() > 0 and not self.one_by_one:
            little = min(state.found.value + costs * abs(state.found.value), cutoff)
            look = self.look(*self._as_it_is(state, ranked[: certain + rest]), state.found, little)
            if look is not None and look.found.value < little:
                self.dec.say(f"{self.dec.amount(look.found.value)}, {certain + rest} of {len(ranked)} decided")
                nodes.append(
                    Node(
                        state.found.value,
                        _doubtful(ranked),
                        state.least,
                        state.most,
                        state.found,
                        (certain + rest) // 2,
                    )
                )
                return look
            certain, rest = (certain, rest // 2) if rest else (certain // 2, 0)
            if self.large and certain < MANY_CERTAIN:
                self.one_by_one = ONE_BY_ONE
        column, goal = ranked[0].column, ranked[0].goal
        value, least, most = self.values(state)[column], state.least.copy(), state.most.copy()
        if self.job[column] >= 0:
            most[column] = 0.0
        elif value < goal:
            most[column] = goal - 1
        else:
            least[column] = goal + 1
        nodes.append(Node(state.found.value, _doubtful(ranked), least, np.maximum(least, most), state.found))
        steep = min(state.found.value + STEEP * max(abs(state.found.value), 1.0), cutoff) if self.large else cutoff
        decided = self._as_it_is(state, ranked[:1])
        look = self.look(*decided, state.found, steep)
        if look is None or look.found.value >= steep:
            nodes += [Node(steep, _doubtful(ranked), *decided, state.found)] if steep < cutoff else []
            return None
        self.dec.say(f"{self.dec.amount(look.found.value)}, 1 of {len(ranked)} decided")
        return look

    def _as_it_is(self, state: Chosen, ranked: list[Step]) -> tuple[Floats, Floats]:
        """Bounds with these steps done, and sites open where jobs are to run."""
        least, most = state.least.copy(), state.most.copy()
        opened = self.dec.whole.columns["open"]
        for _, column, goal in ranked:
            if self.job[column] < 0:
                least[column] = most[column] = np.clip(goal, least[column], most[column])
        for _, column, _ in ranked:
            if self.job[column] < 0:
                continue
            mine = self.job == self.job[column]
            least[mine] = most[mine] = 0.0
            least[column] = most[column] = 1.0
            gate = opened[self.site[column]]
            if gate >= 0 and self.fixing[gate] and state.most[gate] > 0:
                least[gate] = most[gate] = 1.0
        return least, most
