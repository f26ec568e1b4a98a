"""Input of the least fleet block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastFleet:
    """Rows F over the systems held in a window: `weight` [F, K] of a system of each fleet option, `window` [F], `least` [F] in all.

    `slot` [F]: the slot of a row over the systems that run in it, of a program in which some are counted by slot; -1 for the rows of a window.
    """

    weight: Floats
    window: Ints
    least: Floats
    slot: Ints | None = None

    def problems(self, fleet_options: int, windows: int) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        rows = len(self.least)
        slot = self.window if self.slot is None else self.slot
        if self.weight.shape != (rows, fleet_options) or not self.window.shape == slot.shape == (rows,):
            yield f"least_fleet: expected {rows} rows over {fleet_options} fleet options"
        elif (self.window < 0).any() or (self.window >= windows).any():
            yield f"least_fleet.window: index outside [0, {windows})"
        elif not np.isfinite(self.weight).all() or (self.weight < 0).any() or not np.isfinite(self.least).all():
            yield "least_fleet: expected weights of at least 0, and finite sides"
