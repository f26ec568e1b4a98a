"""Input of the relays block: what it costs that a worker loads its weights, and how often systems may load some.

Part of `solvers.model.data.PlanData`, which names the sizes. Not here: the columns and rows (`solvers.model.residency`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Functionals, Ints
from solvers.model.block_data.electricity import Chronology
from solvers.model.checks import wrong_costs

DAY_S = 86_400.0
TIME_TOL_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayData:
    """Price and ceiling of the loads of weights; `cost`: of one worker that loads in a slot, for each row of `PlanData.point_uses`."""

    cost: Functionals = field(default_factory=dict)  # [rows of `point_uses`, T]
    per_day: float = (
        math.inf
    )  # most loads of a system in a day, on average over the systems of a fleet option; inf: any number

    def problems(self, uses: int, slots: int, ordered: bool) -> Iterator[str]:
        """Describe wrong shapes and values; `ordered`: whether the order of slots is known."""
        yield from wrong_costs({"cost": (self.cost, (uses, slots))}, "relays.", least=0.0)
        if not self.per_day >= 0:
            yield "relays.per_day: expected a number of at least 0"
        if not ordered:
            yield "relays: needs the order of slots"


def day_of_slots(order: Chronology, window: Ints) -> Ints:
    """[T]: number of the day that each slot belongs to: 24 hours of a ring of slots, within one window.

    >>> ring = Chronology(next=np.array([1, 2, 3, 0]), step_s=np.full(4, 43_200.0))
    >>> day_of_slots(ring, np.zeros(4, dtype=int)).tolist()
    [0, 0, 1, 1]
    """
    day, count = np.full(len(window), -1), -1
    for first in range(len(window)):
        t, passed, inside = first, math.inf, -1
        while day[t] < 0:
            if passed > DAY_S - TIME_TOL_S or int(window[t]) != inside:
                count, passed, inside = count + 1, 0.0, int(window[t])
            day[t] = count
            passed += float(order.step_s[t])
            t = int(order.next[t])
    return day
