"""What is asked while something is made whole: the linear part within bounds, over the slots of a view, from an answer before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import carried
from solvers.decomposition.interior_point.blocks import Blocks
from solvers.decomposition.interior_point.method import ITERATIONS, Inside, inside, taken_over
from solvers.decomposition.root_relaxation import blocks
from solvers.decomposition.slots import Slotwise

if TYPE_CHECKING:
    from solvers.decomposition.benders_master import Proposals
    from solvers.decomposition.reformulation import Decomposition

PATIENCE = 50  # iterations of a look, unless nothing is found
LITTLE = 1e-4  # of the value, that this price may come to in an answer
LACKING = 10.0  # times the value, that demand costs which nothing can serve
WORTH = 1e-4  # of the value, that other choices must save


@dataclass(frozen=True, slots=True)
class Chosen:
    """Bounds of the whole structure's columns that fix what was decided, and the linear part within them."""

    least: Floats
    most: Floats
    found: Inside


def counted(dec: Decomposition) -> np.ndarray:
    """Which of the whole structure's columns are counts of systems."""
    result, place = np.zeros(dec.whole.size, dtype=bool), dec.whole.columns["n"]
    result[place[place >= 0]] = True
    return result


class Looks:
    """Over the slots of a view and these fleet options, for the columns `fixing` of the whole structure, each so far from proven."""

    def __init__(
        self,
        dec: Decomposition,
        view: Slotwise,
        fleet_options: Ints,
        fixing: np.ndarray,
        tolerance: float,
        left: Callable[[], float],
    ):
        self.dec, self.view, self.fleet_options, self.fixing, self.tolerance, self.left = (
            dec,
            view,
            fleet_options,
            fixing,
            tolerance,
            left,
        )
        self.looked, self.iterations, self.counts, self.paced = 0, ITERATIONS, counted(dec), False
        self.proposals: Proposals | None = None  # are told what a look proves
        self.unmet: Floats | None = None  # what demand costs that nothing carries, where some may be left so

    def look(
        self, least: Floats, most: Floats, start: Inside, cutoff: float = np.inf, onto: Ints | None = None
    ) -> Chosen | None:
        """The linear part within bounds; `onto` [slots]: those of the start, if it has others."""
        dec, opened = self.dec, np.append(most, 1.0)[self.dec.whole.columns["open"]] > 0
        least, most, self.looked = least.copy(), most.copy(), self.looked + 1
        y = dec.whole.columns["y"]
        most[y[np.flatnonzero((y >= 0) & ~opened[dec.view.site])]] = 0.0
        least, most, broken = dec.whole.forced(least, np.maximum(least, most))
        fleet_options = self.fleet_options[opened[dec.data.option_site[self.fleet_options]]]
        places = dec.view.training[most[y[dec.view.training]] > 0]
        count = np.bincount(dec.data.point_job[places], minlength=len(dec.data.job_work))
        if broken or (count == 0).any() or self.left() <= 0:
            return None
        program = blocks(dec, self.view, fleet_options, places, least, most, self.unmet)
        same = np.arange(self.view.slots) if onto is None else onto
        if self.proposals is not None and program.impossible:
            self._know_lacking(program, start, cutoff)
        told = (
            None
            if self.proposals is None
            else lambda found, above: self.proposals.know(dec.spread(found), (least, most), above)
        )
        found = inside(
            program,
            self.tolerance,
            self.left,
            taken_over(start.blocks, start.warm, program, same, self.paced),
            cutoff,
            self.iterations,
            told,
        )
        if found is None:
            return None
        if told is not None:
            told(found, -np.inf)
        if found.lacking > LITTLE:
            dec.say(f"{dec.amount(found.value)}, of which {found.lacking:.2%} is the price of what nothing carries")
            return None
        return Chosen(least, most, found)

    def _know_lacking(self, program: Blocks, start: Inside, cutoff: float) -> None:
        """A cut where demand is left that nothing at all can serve: it alone is dearer than the best, and so is what would serve it."""
        prices, demand = self.dec.spread(start), self.view.demand
        lacking = ~program.carrying & (demand > 0)
        if not lacking.any() or prices.delta.shape != demand.shape:
            return
        dear = prices.delta + np.where(
            lacking, LACKING * max(abs(cutoff), abs(start.value), 1.0) / np.where(lacking, demand, 1.0), 0.0
        )
        beta, demands = prices.beta.copy(), self.view.arc_demand
        np.maximum.at(beta, self.dec.data.arc_pool, np.where(lacking[demands], dear[demands] - self.view.arc_cost, 0.0))
        absent = np.ones_like(prices.alpha, dtype=bool)
        absent[program.linked.fleet_options] = ~program.there
        self.proposals.know(
            replace(
                prices, delta=dear, beta=beta, alpha=self.dec.view.alpha_of(absent, beta, prices.sigma, prices.alpha)
            )
        )

    def values(self, chosen: Chosen) -> Floats:
        """Of the whole structure's columns."""
        return carried(chosen.found.blocks.structure, self.dec.whole, chosen.found.point().structure)

    def worth(self, best: Chosen) -> float:
        """Below which others are better."""
        return best.found.value - WORTH * abs(best.found.value)
