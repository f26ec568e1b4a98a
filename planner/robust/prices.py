"""Compute the cost of holdings at other prices, as a linear function of the uncertain prices.

Costs are linear in each price for a given fleet, so that one formulation with the price a little higher gives its part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation, formulate
from planner.money.terms import COST
from planner.problem.scenarios import Scenarios
from planner.resolve.price_steps import STEP, Raised
from planner.scenarios.mover import Mover


@dataclass(frozen=True, slots=True)
class HoldingPrices:
    """Cost of one system of each holding, as a linear function of the uncertain prices; the final check adds energy and traffic."""

    paths: tuple[str, ...]  # paths of the uncertain prices
    typical: Floats  # [holding]
    parts: Floats  # [price, holding] cost that is proportional to the price

    def of_scenarios(self, scenarios: Scenarios) -> Floats:
        """Compute the cost of one system, [scenario, holding]."""
        rows = [scenarios.prices[path] - 1.0 for path in self.paths]
        factors: Floats = np.array(rows).reshape(len(self.paths), scenarios.count)
        return self.typical + factors.T @ self.parts


def prices_of(candidates: Candidates, form: Formulation, steps: Raised) -> HoldingPrices:
    """Derive the cost of holdings by price; fleet options that a higher price would rule out keep their typical cost."""
    base = form.data.holding_cost[COST]
    parts = [
        (formulate(other, Mover.to(other, candidates).candidates).data.holding_cost[COST] - base) / STEP
        for other in steps.values()
    ]
    return HoldingPrices(tuple(steps), base, np.array(parts).reshape(len(parts), len(base)))
