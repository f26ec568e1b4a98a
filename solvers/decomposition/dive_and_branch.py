"""What is decided once made whole by branch and bound from within: much is decided at once where that costs little, and the search goes on
from a node that it left as long as there is time. Sites, designs and places of jobs are decided on merged slots or over all, counts over all.
Better choices are then looked at as they are proposed (proposing.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_master import BendersMaster
from solvers.decomposition.interior_point.method import InteriorSolution
from solvers.decomposition.interior_point.settings import METHOD
from solvers.decomposition.node_relaxation import PATIENCE, Node, NodeRelaxation, count_columns_of
from solvers.decomposition.root_relaxation import (
    LEAST,
    PLACES,
    RootRelaxation,
    active_options,
    cheapest_open_placements,
    priced_placements,
)
from solvers.decomposition.slot_clustering import APART, APART_LARGE, cluster_count, cluster_slots
from solvers.decomposition.slots import SlotView
from solvers.decomposition.sub_mips import nearest_binaries, nearest_counts

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation

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


class Fixing(NamedTuple):
    """How sure a column is, and what it is to be."""

    certainty: float
    column: int
    goal: float


@dataclass(frozen=True, slots=True)
class OpenNode:
    """What is left to be looked at: bounds, at least at this value, from where to start, with so many `uncertain`; `at_once`: where that is their
    answer, and more than so many were decided together."""

    value: float
    uncertain: int
    lower: Floats
    upper: Floats
    start: InteriorSolution
    at_once: int = 0


@dataclass(slots=True)
class PlacementOffers:
    """To which jobs more places were offered."""

    fewest: float = np.inf  # jobs, while nothing whole was known
    offered_at: set[bytes] = field(default_factory=set)

    def allows(self, state: Node, jobs: Ints, best: Node | None) -> bool:
        """Whether these jobs, that have no place yet, may be: before anything whole is known as long as they are fewer each time, then a few once."""
        if best is None:
            return 0 < len(jobs) < self.fewest
        return 0 < len(jobs) <= FEW_JOBS and state.lower.tobytes() not in self.offered_at

    def record(self, state: Node, jobs: Ints) -> None:
        self.fewest = min(self.fewest, len(jobs))
        self.offered_at.add(state.lower.tobytes())


def _uncertain_count(fixings: list[Fixing]) -> int:
    """How many steps are not certain."""
    return max(sum(step.certainty < 1 - CERTAIN for step in fixings), 1)


def find_binaries(
    dec: Reformulation,
    root_lp: RootRelaxation,
    seconds_left: Callable[[], float],
    master: BendersMaster | None = None,
) -> tuple[Node, Ints, Ints] | None:
    """(the best choices found, group of each slot, fleet options that were looked at); None where none were found. On merged slots, or where there are
    `master` to know of it the first ones over all slots."""
    first_stage, y = dec.first_stage, dec.first_stage.columns["y"]
    placements = priced_placements(dec, root_lp.found, root_lp.at, PLACES_LARGE if root_lp.large else PLACES)
    upper = first_stage.upper.copy()
    upper[y[np.setdiff1d(np.flatnonzero(y >= 0), placements)]] = 0.0
    group = (
        np.arange(dec.view.slots)
        if master is not None
        else cluster_slots(dec.view, cluster_count(dec.view, FINER), APART_LARGE if root_lp.large else APART)
    )
    joint_cost = COSTS_LARGE if root_lp.large else COSTS
    fleet_options = active_options(dec, root_lp.found, placements, LEAST_LARGE if root_lp.large else LEAST)
    search = DiveAndBranch(
        dec,
        dec.view.merged(group),
        fleet_options,
        first_stage.integer & ~count_columns_of(dec),
        TOLERANCE,
        joint_cost,
        0 if master is not None else AGAIN_LARGE if root_lp.large else AGAIN,
        seconds_left,
        root_lp.large,
    )
    search.master = master
    start, onto = (
        (root_lp.found, None)
        if master is not None
        else (root_lp.merged, root_lp.group[np.unique(group, return_index=True)[1]])
    )
    root = search.solve(np.zeros(first_stage.size), upper, start, onto=onto)
    if root is not None:
        dec.log(
            f"choices: {dec.format_value(root.found.value)} before any, {len(search.fleet_options)} fleet options, {len(placements)} places"
        )
    found = None if root is None else search.run(root)
    return None if found is None else (found, group, search.fleet_options)


class DiveAndBranch(NodeRelaxation):
    """Whole choices by looks at more and more that is decided."""

    def __init__(
        self,
        dec: Reformulation,
        view: SlotView,
        fleet_options: Ints,
        integer_columns: np.ndarray,
        tolerance: float,
        joint_cost: float,
        further_solves: int,
        seconds_left: Callable[[], float],
        large: bool = False,
    ):
        """`joint_cost`: of the value, that more than one decision may cost together; `further_solves`: times the looks that the first whole answer took, that
        better ones may take."""
        super().__init__(dec, view, fleet_options, integer_columns, tolerance, seconds_left)
        self.joint_cost, self.further_solves, self.large = joint_cost, further_solves, large
        self.single_steps = 0  # steps that are done one by one, since several were dear together
        self.job, self.site = (
            np.full(dec.first_stage.size, -1),
            np.full(dec.first_stage.size, -1),
        )  # of each choice of a place
        y = dec.first_stage.columns["y"]
        self.job[y[y >= 0]], self.site[y[y >= 0]] = dec.data.point_job[y >= 0], dec.view.site[y >= 0]
        self.placement_of = np.full(
            dec.first_stage.size, -1
        )  # of a window in which a job may run somewhere: the choice of the place
        run = dec.first_stage.columns["run"]
        self.placement_of[run[run >= 0]] = np.broadcast_to(y[:, None], run.shape)[run >= 0]

    def run(self, root: Node) -> Node | None:
        """The best that is whole; what takes long to tell is passed over, unless nothing is found."""
        self.iterations = PATIENCE
        found = self._dive(root, self.joint_cost, HOPELESS[0])
        self.iterations = METHOD.iteration_limit
        return found or self._dive(root, 0.0, HOPELESS[1])

    def _dive(self, root: Node, joint_cost: float, cutoff_slack: float) -> Node | None:
        """The best that is whole under a node, depth first until there is any; as it nearly is where time ends before."""
        best, state, last, nodes, at_once, most_uncertain, fewest = (
            None,
            root,
            root,
            [],
            self.integer_columns.size,
            1,
            np.inf,
        )
        stuck, node_limit, offers = None, np.inf, PlacementOffers()
        while True:
            if best is None and self.seconds_left() <= 0:
                self.dec.log(f"no time for {len(self.open_columns(last) or [])} that are open")
                return self.round_remaining(last)
            fixings = [] if state is None else self.open_columns(state)
            if fixings and len(fixings) < fewest:
                last, fewest = state, len(fixings)
            if fixings is None:
                self.dec.log("no whole choices near by, or not in time")
                stuck, state = state, None
            if fixings:
                most_uncertain = max(most_uncertain, _uncertain_count(fixings))
                further = self._fix_next(
                    state, fixings, nodes, joint_cost, self._cutoff(state.found.value, best, cutoff_slack), at_once
                )
                stuck, state, at_once = state, further, self.integer_columns.size
                continue
            if state is not None:
                self.dec.log(f"whole: {self.dec.format_value(state.found.value)}")
                best, node_limit, stuck = state, min(node_limit, (1 + self.further_solves) * self.solve_count), None
                if best.found.value - root.found.value <= self.tolerance * abs(best.found.value):  # looks say no more
                    return best
            unfinished = last if best is None else stuck if self.large else None
            if (
                unfinished is not None
                and not (self.integer_columns & self.count_columns).any()
                and self.seconds_left() > 0
            ):
                unplaced = self._unplaced_jobs(unfinished)
                if offers.allows(unfinished, unplaced, best):
                    offers.record(unfinished, unplaced)
                    state = self._offer_placements(
                        unfinished, unplaced, self._cutoff(unfinished.found.value, best, cutoff_slack)
                    )
                    if state is not None:
                        continue
            stuck = None
            nodes = [node for node in nodes if best is None or (node.value < self.worth(best) and not node.at_once)]
            if not nodes or self.seconds_left() <= 0 or self.solve_count >= node_limit:
                return best
            cost_per_fixing = ((best or last).found.value - root.found.value) / most_uncertain  # that deciding may cost
            if best is None and self.large:
                cost_per_fixing = max(cost_per_fixing, DEEPER * abs(root.found.value))
            depth_first = (
                best is None and (self.integer_columns & self.count_columns).any()
            )  # counts have no end of nodes that are as good
            node = (
                nodes.pop()
                if depth_first
                else nodes.pop(
                    min(
                        range(len(nodes)),
                        key=lambda i: (nodes[i].at_once > 0, nodes[i].value + cost_per_fixing * nodes[i].uncertain),
                    )
                )
            )
            at_once = node.at_once or at_once
            state = (
                Node(node.lower, node.upper, node.start)
                if node.at_once
                else self.solve(node.lower, node.upper, node.start, self._cutoff(node.value, best, cutoff_slack))
            )

    def round_remaining(self, state: Node) -> Node:
        """With all that is open as it nearly is."""
        while left_open := self.open_columns(state, up=True):
            state = Node(*self._fixed_bounds(state, left_open), state.found)
        return state

    def _unplaced_jobs(self, state: Node) -> Ints:
        """The jobs that have no place yet."""
        return np.setdiff1d(np.arange(len(self.dec.data.job_work)), self.job[(self.job >= 0) & (state.lower > 0.5)])

    def _offer_placements(self, state: Node, jobs: Ints, cutoff: float) -> Node | None:
        """With more places for these jobs: of those near the linear answer there is room for none."""
        dec, y = self.dec, self.dec.first_stage.columns["y"]
        opened = np.append(state.upper, 1.0)[dec.first_stage.columns["open"]] > 0
        more = cheapest_open_placements(
            dec, dec.lagrangian_bound(dec.extend_duals(state.found), self.view).pricing_reduced_cost, jobs, opened
        )
        self.fleet_options = np.union1d(self.fleet_options, dec.view.use_option[np.isin(dec.view.use_point, more)])
        upper = state.upper.copy()
        upper[y[more]] = dec.first_stage.upper[y[more]]
        dec.log(f"{len(more)} places for the {len(jobs)} jobs that have none")
        return self.solve(state.lower, upper, state.found, cutoff)

    def _cutoff(self, value: float, best: Node | None, cutoff_slack: float) -> float:
        return value + cutoff_slack * max(abs(value), 1.0) if best is None else self.worth(best)

    def open_columns(self, state: Node, up: bool = False) -> list[Fixing] | None:
        """What is not decided, surest first: counts where nothing else is left, as they follow, `up` where rows allow if asked; else what whole
        choices near by have, of a job its place, windows after it. None where there are no whole choices."""
        values, free = self.values(state), self.integer_columns & (state.lower < state.upper)
        if not (free & ~self.count_columns).any():
            at, goal = np.flatnonzero(free), nearest_counts(self, state, values) if up else None
            goal = np.round(values) if goal is None else goal
            return sorted(
                (Fixing(1 - abs(values[c] - np.round(values[c])), int(c), float(goal[c])) for c in at), reverse=True
            )
        goal = nearest_binaries(self, state, values)
        if goal is None:
            return None
        at = np.flatnonzero(
            free
            & ~self.count_columns
            & ~((self.placement_of >= 0) & free[self.placement_of])
            & ((self.job < 0) | (goal > 0.5))
        )
        return sorted((Fixing(1 - abs(values[c] - goal[c]), int(c), float(goal[c])) for c in at), reverse=True)

    def _fix_next(
        self, state: Node, fixings: list[Fixing], nodes: list[OpenNode], joint_cost: float, cutoff: float, at_once: int
    ) -> Node | None:
        """The state with as many of the surest decided, `at_once` at most, as cost little together, which is then a node for fewer; or with one,
        which is then a node the other way."""
        certain = min(sum(step.certainty >= 1 - CERTAIN for step in fixings), at_once)
        rest = min(-(-(len(fixings) - certain) // PARTS), at_once - certain)
        self.single_steps = max(self.single_steps - 1, 0) if certain < MANY_CERTAIN else 0
        while joint_cost and certain + rest > 1 and self.seconds_left() > 0 and not self.single_steps:
            joint_cutoff = min(state.found.value + joint_cost * abs(state.found.value), cutoff)
            child = self.solve(*self._fixed_bounds(state, fixings[: certain + rest]), state.found, joint_cutoff)
            if child is not None and child.found.value < joint_cutoff:
                self.dec.log(f"{self.dec.format_value(child.found.value)}, {certain + rest} of {len(fixings)} decided")
                nodes.append(
                    OpenNode(
                        state.found.value,
                        _uncertain_count(fixings),
                        state.lower,
                        state.upper,
                        state.found,
                        (certain + rest) // 2,
                    )
                )
                return child
            certain, rest = (certain, rest // 2) if rest else (certain // 2, 0)
            if self.large and certain < MANY_CERTAIN:
                self.single_steps = ONE_BY_ONE
        column, goal = fixings[0].column, fixings[0].goal
        value, lower, upper = self.values(state)[column], state.lower.copy(), state.upper.copy()
        if self.job[column] >= 0:
            upper[column] = 0.0
        elif value < goal:
            upper[column] = goal - 1
        else:
            lower[column] = goal + 1
        nodes.append(
            OpenNode(state.found.value, _uncertain_count(fixings), lower, np.maximum(lower, upper), state.found)
        )
        step_cutoff = (
            min(state.found.value + STEEP * max(abs(state.found.value), 1.0), cutoff) if self.large else cutoff
        )
        child_bounds = self._fixed_bounds(state, fixings[:1])
        child = self.solve(*child_bounds, state.found, step_cutoff)
        if child is None or child.found.value >= step_cutoff:
            nodes += (
                [OpenNode(step_cutoff, _uncertain_count(fixings), *child_bounds, state.found)]
                if step_cutoff < cutoff
                else []
            )
            return None
        self.dec.log(f"{self.dec.format_value(child.found.value)}, 1 of {len(fixings)} decided")
        return child

    def _fixed_bounds(self, state: Node, fixings: list[Fixing]) -> tuple[Floats, Floats]:
        """Bounds with these steps done, and sites open where jobs are to run."""
        lower, upper = state.lower.copy(), state.upper.copy()
        opened = self.dec.first_stage.columns["open"]
        for _, column, goal in fixings:
            if self.job[column] < 0:
                lower[column] = upper[column] = np.clip(goal, lower[column], upper[column])
        for _, column, _ in fixings:
            if self.job[column] < 0:
                continue
            mine = self.job == self.job[column]
            lower[mine] = upper[mine] = 0.0
            lower[column] = upper[column] = 1.0
            gate = opened[self.site[column]]
            if gate >= 0 and self.integer_columns[gate] and state.upper[gate] > 0:
                lower[gate] = upper[gate] = 1.0
        return lower, upper
