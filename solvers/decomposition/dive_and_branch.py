"""Diving and branching on the first stage: fix the surest columns jointly where that costs little, one by one where it does not, and
return to open nodes while time is left.

Nodes are solved by `node_relaxation.py`. Binaries (sites, designs, placements of jobs) are decided on merged slots or on all slots,
counts of systems on all. The Benders loop then searches for better binaries (`benders_loop.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_master import BendersMaster
from solvers.decomposition.interior_point.method import InteriorSolution
from solvers.decomposition.interior_point.settings import METHOD
from solvers.decomposition.node_relaxation import ITERATION_LIMIT, Node, NodeRelaxation, count_columns_of
from solvers.decomposition.root_relaxation import (
    ROOT_SETTINGS,
    RootRelaxation,
    active_options,
    cheapest_open_placements,
    priced_placements,
)
from solvers.decomposition.slot_clustering import JOB_WEIGHT, JOB_WEIGHT_LARGE, cluster_count, cluster_slots
from solvers.decomposition.slots import SlotView
from solvers.decomposition.sub_mips import nearest_binaries, nearest_counts

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation


@dataclass(frozen=True, slots=True)
class DiveSettings:
    """Tuning constants of diving and branching; amounts of cost are relative to the objective, `large` applies to very large programs."""

    relative_tolerance: float = 5e-4  # gap of each node on merged slots
    merged_slots: int = 42  # slots after merging, about
    certain_within: float = 0.05  # distance from its goal at which a column is certain
    uncertain_parts: int = 3  # one in so many of the uncertain columns is fixed together with the certain ones
    joint_cost: float = 5e-4  # rise of the objective that fixing several columns together may cause
    joint_cost_large: float = 3e-3
    single_steps: int = 4  # columns that are then fixed one by one in large programs, after joint fixing cost too much
    certain_for_joint: int = 5  # certain columns with which joint fixing is tried nevertheless
    step_cost_large: float = 5e-3  # rise that fixing one column may cause while nodes with less are open
    column_cost_large: float = 1e-3  # rise that each open column is taken to cause, until there is an incumbent
    cutoff_slack: float = 0.2  # rise of a node over its parent at which it is cut off, until there is an incumbent
    cutoff_slack_last: float = 9.0  # the same in the second dive, after the first found nothing
    further_solves: int = 1  # nodes solved after the first incumbent, as a multiple of those before it
    further_solves_large: int = 4
    placements_large: int = 160  # placements of jobs that are considered, about
    active_systems_large: float = 2.0  # systems from which on a fleet option is considered
    # jobs without a placement, at most, for which more placements are tried once there is an incumbent
    jobs_offered: int = 3


SETTINGS = DiveSettings()


class Fixing(NamedTuple):
    """A column that may be fixed next, the value to fix it at, and how near it is to that value."""

    certainty: float
    column: int
    goal: float


@dataclass(frozen=True, slots=True)
class OpenNode:
    """Open node of the search: bounds, a lower bound on its objective, and the solution to start from.

    `uncertain`: columns that were not certain there. `at_once`: where above 0, the node is the parent of a joint fixing, `start` is its
    solution, and at most a number of columns are to be fixed together next time."""

    value: float
    uncertain: int
    lower: Floats
    upper: Floats
    start: InteriorSolution
    at_once: int = 0


@dataclass(slots=True)
class PlacementOffers:
    """Record of the nodes at which jobs without a placement were offered more of them."""

    fewest: float = np.inf  # such jobs at any node so far
    offered_at: set[bytes] = field(default_factory=set)

    def allows(self, state: Node, jobs: Ints, best: Node | None) -> bool:
        """Whether to offer these jobs more: without an incumbent if they are fewer than before, with one if they are few and new."""
        if best is None:
            return 0 < len(jobs) < self.fewest
        return 0 < len(jobs) <= SETTINGS.jobs_offered and state.lower.tobytes() not in self.offered_at

    def record(self, state: Node, jobs: Ints) -> None:
        """Note that these jobs were offered more placements at a node."""
        self.fewest = min(self.fewest, len(jobs))
        self.offered_at.add(state.lower.tobytes())


def _uncertain_count(fixings: list[Fixing]) -> int:
    """Count the columns that are not certain, at least 1."""
    return max(sum(step.certainty < 1 - SETTINGS.certain_within for step in fixings), 1)


def find_binaries(
    dec: Reformulation,
    root_lp: RootRelaxation,
    seconds_left: Callable[[], float],
    master: BendersMaster | None = None,
) -> tuple[Node, Ints, Ints] | None:
    """Find first-stage binaries; return (node, group of each slot, fleet options considered), or None where none were found.

    Searches on merged slots; with a Benders master, over all slots for the first incumbent alone, leaving cuts in the master."""
    first_stage, y = dec.first_stage, dec.first_stage.columns["y"]
    count = SETTINGS.placements_large if root_lp.large else ROOT_SETTINGS.placements
    placements = priced_placements(dec, root_lp.found, root_lp.at, count)
    upper = first_stage.upper.copy()
    upper[y[np.setdiff1d(np.flatnonzero(y >= 0), placements)]] = 0.0
    group = (
        np.arange(dec.view.slots)
        if master is not None
        else cluster_slots(
            dec.view, cluster_count(dec.view, SETTINGS.merged_slots), JOB_WEIGHT_LARGE if root_lp.large else JOB_WEIGHT
        )
    )
    joint_cost = SETTINGS.joint_cost_large if root_lp.large else SETTINGS.joint_cost
    least = SETTINGS.active_systems_large if root_lp.large else ROOT_SETTINGS.relevant_systems
    fleet_options = active_options(dec, root_lp.found, placements, least)
    further_solves = SETTINGS.further_solves_large if root_lp.large else SETTINGS.further_solves
    search = DiveAndBranch(
        dec,
        dec.view.merged(group),
        fleet_options,
        first_stage.integer & ~count_columns_of(dec),
        SETTINGS.relative_tolerance,
        joint_cost,
        0 if master is not None else further_solves,
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
    """Depth-first dive to an integer node, then best-first over the open nodes."""

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
        """`joint_cost`: relative rise of the objective that joint fixing may cause; `further_solves`: nodes after the first incumbent,
        as a multiple of those before it; `large`: whether to dive as in very large programs."""
        super().__init__(dec, view, fleet_options, integer_columns, tolerance, seconds_left)
        self.joint_cost, self.further_solves, self.large = joint_cost, further_solves, large
        self.single_steps = 0  # columns still to be fixed one by one, since joint fixing cost too much
        # job and site of each column that places a job, -1 for the others
        self.job, self.site = np.full(dec.first_stage.size, -1), np.full(dec.first_stage.size, -1)
        y = dec.first_stage.columns["y"]
        self.job[y[y >= 0]], self.site[y[y >= 0]] = dec.data.point_job[y >= 0], dec.view.site[y >= 0]
        # for each column by which a job may run in a window: the column of its placement, -1 for the others
        self.placement_of = np.full(dec.first_stage.size, -1)
        run = dec.first_stage.columns["run"]
        self.placement_of[run[run >= 0]] = np.broadcast_to(y[:, None], run.shape)[run >= 0]

    def run(self, root: Node) -> Node | None:
        """Search below a node; nodes that take many iterations are skipped, unless nothing is found otherwise."""
        self.iterations = ITERATION_LIMIT
        found = self._dive(root, self.joint_cost, SETTINGS.cutoff_slack)
        self.iterations = METHOD.iteration_limit
        return found or self._dive(root, 0.0, SETTINGS.cutoff_slack_last)

    def _dive(self, root: Node, joint_cost: float, cutoff_slack: float) -> Node | None:
        """Search below a node, depth first until there is an incumbent; where time ends before, round the deepest node."""
        best: Node | None = None
        state: Node | None = root
        stuck: Node | None = None
        nodes: list[OpenNode] = []
        last, offers = root, PlacementOffers()
        at_once, most_uncertain, fewest, node_limit = self.integer_columns.size, 1, np.inf, np.inf
        while True:
            if best is None and self.seconds_left() <= 0:
                self.dec.log(f"no time for {len(self.open_columns(last) or [])} that are open")
                return self.round_remaining(last)
            fixings = [] if state is None else self.open_columns(state)
            if state is None:
                pass
            elif fixings is None:
                self.dec.log("no whole choices near by, or not in time")
                stuck, state = state, None
            elif fixings:
                if len(fixings) < fewest:
                    last, fewest = state, len(fixings)
                most_uncertain = max(most_uncertain, _uncertain_count(fixings))
                further = self._fix_next(
                    state, fixings, nodes, joint_cost, self._cutoff(state.found.value, best, cutoff_slack), at_once
                )
                stuck, state, at_once = state, further, self.integer_columns.size
                continue
            else:  # an integer node
                self.dec.log(f"whole: {self.dec.format_value(state.found.value)}")
                best, node_limit, stuck = state, min(node_limit, (1 + self.further_solves) * self.solve_count), None
                if best.found.value - root.found.value <= max(
                    self.tolerance * abs(best.found.value), self.dec.absolute_gap
                ):
                    return best  # within the gap to which nodes are solved
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
            nodes = [
                node
                for node in nodes
                if best is None or (node.value < self.improvement_cutoff(best) and not node.at_once)
            ]
            if not nodes or self.seconds_left() <= 0 or self.solve_count >= node_limit:
                return best
            cost_per_fixing = ((best or last).found.value - root.found.value) / most_uncertain
            if best is None and self.large:
                cost_per_fixing = max(cost_per_fixing, SETTINGS.column_cost_large * abs(root.found.value))
            # with counts, too many nodes are equally good for best-first search
            depth_first = best is None and (self.integer_columns & self.count_columns).any()
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
        """Fix all open columns at their goals without solving."""
        while left_open := self.open_columns(state, up=True):
            state = Node(*self._fixed_bounds(state, left_open), state.found)
        return state

    def _unplaced_jobs(self, state: Node) -> Ints:
        """Return the jobs without a fixed placement."""
        return np.setdiff1d(np.arange(len(self.dec.data.job_work)), self.job[(self.job >= 0) & (state.lower > 0.5)])

    def _offer_placements(self, state: Node, jobs: Ints, cutoff: float) -> Node | None:
        """Solve the node again with more placements for these jobs, where none of those priced in fits."""
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
        """Return the objective at which a child of a node with this value is cut off."""
        return value + cutoff_slack * max(abs(value), 1.0) if best is None else self.improvement_cutoff(best)

    def open_columns(self, state: Node, up: bool = False) -> list[Fixing] | None:
        """List the columns not yet fixed, surest first, with the values to fix them at; None where the rows allow no integer values.

        Binaries take the values of the nearest feasible ones (`sub_mips.py`), a job's placement before its windows. Counts follow when all
        binaries are fixed: the nearest integers, or with `up` a rounding that keeps power and job systems."""
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
        """Fix the surest columns, at most `at_once`, and return the child, or None where it is cut off.

        As many are fixed together as cost little, and the parent stays open for fewer; or one is fixed, and its other branch stays open."""
        certain = min(sum(step.certainty >= 1 - SETTINGS.certain_within for step in fixings), at_once)
        rest = min(-(-(len(fixings) - certain) // SETTINGS.uncertain_parts), at_once - certain)
        self.single_steps = max(self.single_steps - 1, 0) if certain < SETTINGS.certain_for_joint else 0
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
            if self.large and certain < SETTINGS.certain_for_joint:
                self.single_steps = SETTINGS.single_steps
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
        step_cost = SETTINGS.step_cost_large * max(abs(state.found.value), 1.0)
        step_cutoff = min(state.found.value + step_cost, cutoff) if self.large else cutoff
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
        """Fix these columns in the bounds of a node, and open the sites at which jobs are placed."""
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
