"""What a fleet costs at other prices: each uncertain price of the catalog as a part of the cost of systems that goes up and down with it.

Costs are linear in each price while the fleet stays, so one formulation with the price a little higher gives its part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation, formulate
from planner.formulate.functionals import COST
from planner.problem.facts import Problem
from planner.problem.scenarios import Scenarios
from planner.resolve.price_steps import STEP, Raised


@dataclass(frozen=True, slots=True)
class Prices:
    """`parts` [price, holding]: how much of what one system costs goes with each price; energy and traffic are left to the final check."""

    paths: tuple[str, ...]
    typical: np.ndarray  # [holding]
    parts: np.ndarray

    def of_worlds(self, worlds: Scenarios) -> np.ndarray:
        """[world, holding] what one system costs."""
        factors = np.array([worlds.prices[path] - 1.0 for path in self.paths]).reshape(len(self.paths), worlds.count)
        return self.typical + factors.T @ self.parts


def prices_of(candidates: Candidates, form: Formulation, steps: Raised) -> Prices:
    """FleetOptions that a price would take out of the question keep the typical one."""
    base = form.data.holding_cost[COST]
    parts = [
        (formulate(other, _moved(other, candidates)).data.holding_cost[COST] - base) / STEP for other in steps.values()
    ]
    return Prices(tuple(steps), base, np.array(parts).reshape(len(parts), len(base)))


def _moved(problem: Problem, candidates: Candidates) -> Candidates:
    """The candidates on the fleet options of a problem that differs in a price."""
    fleet_options = {(option.name, option.offer.path): option for option in build_fleet_options(problem)[0]}
    known = {w.name: w for w in (*problem.serving, *problem.training)}
    at = {
        id(option): fleet_options.get((option.name, option.offer.path), option) for option in candidates.fleet_options
    }

    def moved(points):
        return tuple(
            replace(
                p,
                workload=known[p.workload.name],
                uses=tuple(replace(use, option=at[id(use.option)]) for use in p.uses),
            )
            for p in points
        )

    return replace(
        candidates, fleet_options=tuple(at[id(option)] for option in candidates.fleet_options),
        pools=tuple(replace(pool, workload=known[pool.workload.name], points=moved(pool.points)) for pool in candidates.pools),
        training={job: moved(points) for job, points in candidates.training.items()},
    )  # fmt: skip
