"""Node relaxation: the LP relaxation within the bounds of a search node, over the slots of a view, warm-started from an earlier solution.

With a Benders master set, each solve also leaves its duals there as a cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.method import InteriorSolution, solve_interior_point
from solvers.decomposition.interior_point.settings import METHOD
from solvers.decomposition.interior_point.starting_points import warm_start_from
from solvers.decomposition.root_relaxation import build_block_program
from solvers.decomposition.slots import SlotView

if TYPE_CHECKING:
    from solvers.decomposition.benders_master import BendersMaster
    from solvers.decomposition.reformulation import Reformulation

ITERATION_LIMIT = 50  # interior-point iterations per node while diving; the full limit applies only if nothing is found
UNSERVED_SHARE_TOL = 1e-4  # share of the objective that penalties on unserved demand may reach in a feasible solution
UNSERVABLE_PENALTY = 10.0  # penalty on demand that nothing can serve, as a multiple of the objective
LEAST_IMPROVEMENT = 1e-4  # relative to the objective: what a new incumbent must save


@dataclass(frozen=True, slots=True)
class Node:
    """Search node: bounds of the first-stage columns, and the solution of the LP relaxation within them."""

    lower: Floats
    upper: Floats
    found: InteriorSolution


def count_columns_of(dec: Reformulation) -> np.ndarray:
    """Mark the first-stage columns that are counts of systems."""
    result, place = np.zeros(dec.first_stage.size, dtype=bool), dec.first_stage.columns["n"]
    result[place[place >= 0]] = True
    return result


class NodeRelaxation:
    """LP relaxation of search nodes, over the slots of a view and some fleet options.

    `integer_columns`: mask of the first-stage columns that the search makes integer; `tolerance`: relative gap of each solve."""

    def __init__(
        self,
        dec: Reformulation,
        view: SlotView,
        fleet_options: Ints,
        integer_columns: np.ndarray,
        tolerance: float,
        seconds_left: Callable[[], float],
    ):
        self.dec, self.view, self.seconds_left = dec, view, seconds_left
        self.fleet_options, self.integer_columns, self.tolerance = fleet_options, integer_columns, tolerance
        self.solve_count, self.iterations = 0, METHOD.iteration_limit
        self.count_columns, self.keep_job_pace = count_columns_of(dec), False
        self.master: BendersMaster | None = None  # receives the duals of each solve as a cut
        self.unmet: Floats | None = None  # penalty on unserved demand [D, T], where some may stay unserved

    def solve(
        self, lower: Floats, upper: Floats, start: InteriorSolution, cutoff: float = np.inf, onto: Ints | None = None
    ) -> Node | None:
        """Solve the LP relaxation within these bounds, warm-started from `start`.

        None where it is infeasible, not better than `cutoff`, or not solved in time. `onto` [slots]: the slots of `start` that ours
        correspond to, where it has others."""
        dec, master = self.dec, self.master
        opened = np.append(upper, 1.0)[dec.first_stage.columns["open"]] > 0
        lower, upper, self.solve_count = lower.copy(), upper.copy(), self.solve_count + 1
        y = dec.first_stage.columns["y"]
        upper[y[np.flatnonzero((y >= 0) & ~opened[dec.view.site])]] = 0.0
        lower, upper, broken = dec.first_stage.propagate_bounds(lower, np.maximum(lower, upper))
        fleet_options = self.fleet_options[opened[dec.data.option_site[self.fleet_options]]]
        placements = dec.view.training[upper[y[dec.view.training]] > 0]
        count = np.bincount(dec.data.point_job[placements], minlength=len(dec.data.job_work))
        if broken or (count == 0).any() or self.seconds_left() <= 0:
            return None
        program = build_block_program(dec, self.view, fleet_options, placements, lower, upper, self.unmet)
        same = np.arange(self.view.slots) if onto is None else onto
        if master is not None and program.impossible:
            self._add_unserved_demand_cut(master, program, start, cutoff)

        def add_cut(found: InteriorSolution, above: float) -> bool:
            return master is not None and master.add_cut(dec.extend_duals(found), (lower, upper), above)

        found = solve_interior_point(
            program,
            self.tolerance,
            self.seconds_left,
            warm_start_from(start.blocks, start.warm, program, same, self.keep_job_pace),
            cutoff,
            self.iterations,
            None if master is None else add_cut,
        )
        if found is None:
            return None
        add_cut(found, -np.inf)
        if found.unserved_share > UNSERVED_SHARE_TOL:
            dec.log(
                f"{dec.format_value(found.value)}, of which {found.unserved_share:.2%} is the price of what nothing carries"
            )
            return None
        return Node(lower, upper, found)

    def _add_unserved_demand_cut(
        self, master: BendersMaster, program: BlockProgram, start: InteriorSolution, cutoff: float
    ) -> None:
        """Add a Benders cut for demand that no option at this node can serve.

        Its dual is raised until that demand alone costs more than the incumbent, and the duals of what could serve it follow."""
        duals, demand = self.dec.extend_duals(start), self.view.demand
        lacking = ~program.carrying & (demand > 0)
        if not lacking.any() or duals.delta.shape != demand.shape:
            return
        dear = duals.delta + np.where(
            lacking, UNSERVABLE_PENALTY * max(abs(cutoff), abs(start.value), 1.0) / np.where(lacking, demand, 1.0), 0.0
        )
        beta, demands = duals.beta.copy(), self.view.arc_demand
        np.maximum.at(beta, self.dec.data.arc_pool, np.where(lacking[demands], dear[demands] - self.view.arc_cost, 0.0))
        absent = np.ones_like(duals.alpha, dtype=bool)
        absent[program.linking.fleet_options] = ~program.there
        master.add_cut(
            replace(
                duals,
                delta=dear,
                beta=beta,
                alpha=self.dec.view.raise_alpha_of_absent(absent, beta, duals.sigma, duals.alpha),
            )
        )

    def values(self, chosen: Node) -> Floats:
        """Return the values of the first-stage columns at a node."""
        return map_columns(chosen.found.blocks.first_stage, self.dec.first_stage, chosen.found.point().first_stage)

    def improvement_cutoff(self, best: Node) -> float:
        """Return the objective below which a node improves on the incumbent."""
        return best.found.value - LEAST_IMPROVEMENT * abs(best.found.value)
