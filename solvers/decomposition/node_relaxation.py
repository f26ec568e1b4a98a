"""What is asked while something is made whole: the linear part within bounds, over the slots of a view, from an answer before it."""

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

PATIENCE = 50  # iterations of a look, unless nothing is found
LITTLE = 1e-4  # of the value, that this price may come to in an answer
LACKING = 10.0  # times the value, that demand costs which nothing can serve
WORTH = 1e-4  # of the value, that other choices must save


@dataclass(frozen=True, slots=True)
class Node:
    """Bounds of the whole structure's columns that fix what was decided, and the linear part within them."""

    lower: Floats
    upper: Floats
    found: InteriorSolution


def count_columns_of(dec: Reformulation) -> np.ndarray:
    """Which of the whole structure's columns are counts of systems."""
    result, place = np.zeros(dec.first_stage.size, dtype=bool), dec.first_stage.columns["n"]
    result[place[place >= 0]] = True
    return result


class NodeRelaxation:
    """Over the slots of a view and these fleet options, for the columns `integer_columns` of the whole structure, each so far from proven."""

    def __init__(
        self,
        dec: Reformulation,
        view: SlotView,
        fleet_options: Ints,
        integer_columns: np.ndarray,
        tolerance: float,
        seconds_left: Callable[[], float],
    ):
        self.dec, self.view, self.fleet_options, self.integer_columns, self.tolerance, self.seconds_left = (
            dec,
            view,
            fleet_options,
            integer_columns,
            tolerance,
            seconds_left,
        )
        self.solve_count, self.iterations, self.count_columns, self.keep_job_pace = (
            0,
            METHOD.iteration_limit,
            count_columns_of(dec),
            False,
        )
        self.master: BendersMaster | None = None  # are told what a look proves
        self.unmet: Floats | None = None  # what demand costs that nothing carries, where some may be left so

    def solve(
        self, lower: Floats, upper: Floats, start: InteriorSolution, cutoff: float = np.inf, onto: Ints | None = None
    ) -> Node | None:
        """The linear part within bounds; `onto` [slots]: those of the start, if it has others."""
        dec, opened = self.dec, np.append(upper, 1.0)[self.dec.first_stage.columns["open"]] > 0
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
        if self.master is not None and program.impossible:
            self._add_unserved_demand_cut(program, start, cutoff)
        prove = (
            None
            if self.master is None
            else lambda found, above: self.master.add_cut(dec.extend_duals(found), (lower, upper), above)
        )
        found = solve_interior_point(
            program,
            self.tolerance,
            self.seconds_left,
            warm_start_from(start.blocks, start.warm, program, same, self.keep_job_pace),
            cutoff,
            self.iterations,
            prove,
        )
        if found is None:
            return None
        if prove is not None:
            prove(found, -np.inf)
        if found.unserved_share > LITTLE:
            dec.log(
                f"{dec.format_value(found.value)}, of which {found.unserved_share:.2%} is the price of what nothing carries"
            )
            return None
        return Node(lower, upper, found)

    def _add_unserved_demand_cut(self, program: BlockProgram, start: InteriorSolution, cutoff: float) -> None:
        """A cut where demand is left that nothing at all can serve: it alone is dearer than the best, and so is what would serve it."""
        duals, demand = self.dec.extend_duals(start), self.view.demand
        lacking = ~program.carrying & (demand > 0)
        if not lacking.any() or duals.delta.shape != demand.shape:
            return
        dear = duals.delta + np.where(
            lacking, LACKING * max(abs(cutoff), abs(start.value), 1.0) / np.where(lacking, demand, 1.0), 0.0
        )
        beta, demands = duals.beta.copy(), self.view.arc_demand
        np.maximum.at(beta, self.dec.data.arc_pool, np.where(lacking[demands], dear[demands] - self.view.arc_cost, 0.0))
        absent = np.ones_like(duals.alpha, dtype=bool)
        absent[program.linking.fleet_options] = ~program.there
        self.master.add_cut(
            replace(
                duals,
                delta=dear,
                beta=beta,
                alpha=self.dec.view.raise_alpha_of_absent(absent, beta, duals.sigma, duals.alpha),
            )
        )

    def values(self, chosen: Node) -> Floats:
        """Of the whole structure's columns."""
        return map_columns(chosen.found.blocks.first_stage, self.dec.first_stage, chosen.found.point().first_stage)

    def worth(self, best: Node) -> float:
        """Below which others are better."""
        return best.found.value - WORTH * abs(best.found.value)
