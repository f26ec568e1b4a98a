"""Input of the hourly block: holdings that are paid for in the slots in which their systems run.

Part of `solvers.model.data.PlanData`, which names the sizes. Not here: the rows (`solvers.model.hourly`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.arrays import Bools, Floats, Functionals, Ints
from solvers.model.checks import wrong_costs


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyData:
    """Holdings whose systems run by the slot; what they cost to hold at all stands in `PlanData.holding_cost`, and is 0 as a rule."""

    holding: Bools  # [U] counted by slot
    least_slots: Ints  # [U] slots for which a system runs at least, once it has started
    cost: Functionals = field(default_factory=dict)  # [U, T] per system that runs in a slot
    start_cost: Functionals = field(default_factory=dict)  # [U, T] per system that starts in a slot

    def parts(self) -> tuple[Functionals, ...]:
        """All costs."""
        return self.cost, self.start_cost

    def starts(self) -> Bools:
        """[U]: starts cost something, or bind for several slots."""
        counted = self.least_slots > 1
        for values in self.start_cost.values():
            counted = counted | (values > 0).any(axis=1)
        found: Bools = self.holding & counted
        return found

    def supplies(self, covers: Bools, limits: int, member: Ints) -> Bools:
        """[S]: supplies of which several holdings that are counted by slot take at a time, so that each slot has its own sum.

        `covers` [U, V]: windows of the holdings. `member`: rows (supply, holding) of the `limits`.
        """
        taken = np.zeros((limits, covers.shape[1]), dtype=np.int64)
        np.add.at(taken, member[:, 0], (covers & self.holding[:, None])[member[:, 1]])
        found: Bools = taken.max(axis=1, initial=0) > 1
        return found

    def without_starts(self) -> HourlyData:
        """Return the same holdings with starts that are free and bind for one slot."""
        return replace(self, start_cost={}, least_slots=np.ones_like(self.least_slots))

    def throughout(self, functional: str) -> Floats:
        """[U]: what a system costs that runs in every slot."""
        cost = self.cost.get(functional)
        return np.zeros(len(self.holding)) if cost is None else cost.sum(axis=1)

    def problems(self, holdings: int, slots: int, ordered: bool) -> Iterator[str]:
        """Describe wrong shapes and values; `ordered`: whether the order of slots is known."""
        shapes = {"cost": (self.cost, (holdings, slots)), "start_cost": (self.start_cost, (holdings, slots))}
        yield from wrong_costs(shapes, "hourly.", least=0.0)
        if self.holding.shape != (holdings,) or self.least_slots.shape != (holdings,):
            yield f"hourly: expected {holdings} values of holding and least_slots"
        elif (self.least_slots < 1).any():
            yield "hourly.least_slots: expected values of at least 1"
        elif self.starts().any() and not ordered:
            yield "hourly: starts need the order of slots"
