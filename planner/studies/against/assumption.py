"""An assumption of a plan beside what was measured since: the figure as planned, as it was, and how the spec would state it now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.units import show
from planner.messages import Message
from planner.report.words import amount
from planner.spec.document import Edits

SAME = 1e-6
"""Relative difference below which a figure is as planned: what people write has six digits or fewer."""
RATE, INPUT, OUTPUT, THROUGHPUT, TTFT, TPOT, STEP, PRICE, POWER = (
    "rate", "input", "output", "throughput", "ttft", "tpot", "step_time", "price", "power",
)  # fmt: skip
KINDS = (RATE, INPUT, OUTPUT, THROUGHPUT, TTFT, TPOT, STEP, PRICE, POWER)
Restated = Callable[[Mapping[str, Any]], Edits]
"""Edits that put an actual figure into a spec in which others may have been put already."""


def as_stated(document: Mapping[str, Any]) -> Edits:
    """Leave a spec as it is."""
    return ()


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure of a plan, `planned`, and what was measured, `actual`, both in `unit`.

    `low`, `high`: between which it was stated to fall; `after`: as predicted once the models are calibrated on the same files; `moved`: the part
    of the plan's cost that moves in proportion to the figure while the fleet stays, None where only a new plan tells; `used`: whether the plan
    can use it.
    """

    kind: str
    of: str
    planned: float
    actual: float
    unit: str
    low: float | None = None
    high: float | None = None
    after: float | None = None
    moved: float | None = None
    used: bool = True
    restated: Restated = as_stated

    @property
    def name(self) -> str:
        """Name the assumption in words."""
        return Message.of(f"actual.{self.kind}", of=self.of).text()

    @property
    def factor(self) -> float:
        """Divide the actual figure by the planned one."""
        return self.actual / self.planned

    @property
    def error(self) -> float:
        """Compute |actual / planned - 1|."""
        return abs(self.factor - 1.0)

    @property
    def error_after(self) -> float | None:
        """Compute |actual / predicted - 1| once the models are calibrated; None where no model predicts the figure."""
        return None if self.after is None else abs(self.actual / self.after - 1.0)

    @property
    def is_same(self) -> bool:
        """Tell whether the figure is as planned."""
        return self.error <= SAME

    @property
    def is_outside(self) -> bool | None:
        """Tell whether the actual figure lies outside the stated interval; None where none was stated."""
        if self.low is None and self.high is None:
            return None
        below = self.low is not None and self.actual < self.low * (1.0 - SAME)
        return below or (self.high is not None and self.actual > self.high * (1.0 + SAME))

    def shown(self, value: float | None) -> str:
        """Write a value of the figure with its unit."""
        if value is None:
            return ""
        return show(value, self.unit) if self.unit in ("s", "W") else f"{amount(value)} {self.unit}"
