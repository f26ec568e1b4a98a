"""Costs of holdings and work at other prices, as a linear function of the uncertain prices.

Systems signed at the start have their typical price; what they use later, such as electricity, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats
from planner.resolve.price_steps import STEP
from solvers.stochastic.data import UseCosts

OFFERS = ("offers[", "offers/")  # beginnings of the paths of prices of systems: of the spec, and of the catalog


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of units at one set of prices."""

    holding: Floats  # [U]
    arc: Floats  # [A, T]
    way: Floats  # [G, T]
    job: Floats  # [H, T]
    use: Floats  # [K, T]

    def parts(self) -> tuple[Floats, ...]:
        """Return all of them."""
        return self.holding, self.arc, self.way, self.job, self.use


@dataclass(frozen=True, slots=True)
class MovingPrices:
    """Costs at typical prices, and by price the part that is proportional to it."""

    paths: tuple[str, ...]
    typical: Costs
    by_price: tuple[Costs, ...]  # as `paths`

    @classmethod
    def of(cls, typical: Costs, raised: Sequence[tuple[str, Callable[[], Costs]]], signed: Bools) -> MovingPrices:
        """Derive the parts from costs with each price raised by `STEP`; `signed` [U]: holdings signed at the start, whose price stays."""
        parts = []
        for path, costs in raised:
            moved = [(each - base) / STEP for each, base in zip(costs().parts(), typical.parts(), strict=True)]
            if path.startswith(OFFERS):
                moved[0] = np.where(signed, 0.0, moved[0])
            parts.append(Costs(*moved))
        return cls(tuple(path for path, _ in raised), typical, tuple(parts))

    def restricted(self, own: Bools, ways: Bools, uses: Bools, keep: Bools) -> MovingPrices:
        """Keep some holdings, ways, uses by jobs and fleet options."""

        def some(costs: Costs) -> Costs:
            return Costs(costs.holding[own], costs.arc, costs.way[ways], costs.job[uses], costs.use[keep])

        return MovingPrices(self.paths, some(self.typical), tuple(some(each) for each in self.by_price))

    def weight(self) -> Floats:
        """Return how much each price moves any unit at most, as a share of its cost, [price]: the scale of distances between scenarios."""
        found = np.zeros(len(self.paths))
        for p, part in enumerate(self.by_price):
            for moved, base in zip(part.parts(), self.typical.parts(), strict=True):
                share = np.divide(np.abs(moved), np.abs(base), out=np.zeros(moved.shape), where=np.abs(base) > 0)
                found[p] = max(found[p], float(share.max(initial=0.0)))
        return found

    def of_scenarios(self, factors: Floats) -> tuple[Floats, UseCosts]:
        """Return the costs of holdings [S, U] and of work by factors on the prices [S, price]."""
        found = []
        for i, base in enumerate(self.typical.parts()):
            parts = np.array([each.parts()[i] for each in self.by_price]).reshape(len(self.paths), *base.shape)
            found.append(base[None] + np.tensordot(factors - 1.0, parts, axes=1))
        holding, arc, way, job, use = found
        return holding, UseCosts(arc=arc, way=way, job=job, use=use)
