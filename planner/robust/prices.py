"""Compute the cost of holdings at other prices, as a linear function of the uncertain prices.

Costs are linear in each price for a given fleet, so that one formulation with the price a little higher gives its part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.formulation import Formulation, formulate
from planner.money.terms import COST
from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import Scenarios
from planner.resolve.price_steps import STEP, Raised


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
        (formulate(other, _moved(other, candidates)).data.holding_cost[COST] - base) / STEP for other in steps.values()
    ]
    return HoldingPrices(tuple(steps), base, np.array(parts).reshape(len(parts), len(base)))


def _moved(problem: ResolvedSpec, candidates: Candidates) -> Candidates:
    """Move the candidates to the fleet options of a problem that differs in a price."""
    options = {(option.name, option.offer.path): option for option in build_fleet_options(problem)[0]}
    serving = {workload.name: workload for workload in problem.serving}
    known = serving | {job.name: job for job in problem.training}
    option_at = {
        id(option): options.get((option.name, option.offer.path), option) for option in candidates.fleet_options
    }

    def moved(points: Iterable[OperatingPoint]) -> tuple[OperatingPoint, ...]:
        return tuple(
            replace(
                point,
                workload=known[point.workload.name],
                uses=tuple(replace(use, option=option_at[id(use.option)]) for use in point.uses),
            )
            for point in points
        )

    return replace(
        candidates, fleet_options=tuple(option_at[id(option)] for option in candidates.fleet_options),
        pools=tuple(replace(pool, workload=serving[pool.workload.name], points=moved(pool.points)) for pool in candidates.pools),
        training={job: moved(points) for job, points in candidates.training.items()},
    )  # fmt: skip
