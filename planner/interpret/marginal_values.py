"""Marginal values of limits, in the form that a plan states. How they are computed: `planner.solving.marginal_values`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.messages import Message, with_codes
from planner.plan import binds
from planner.plan.rows.money import Limit
from planner.plan.rows.quality import RunnerUp

FAILED_NOTE = Message.of("limit.not_priced_failed").text()
POINTS_NOTE = Message.of("limit.decides_points").text()

ByLimit = Mapping[tuple[str, str | None], float]  # by path and name; without a name, of all limits of the path


@dataclass(frozen=True, slots=True)
class MarginalValues:
    """Change of the objective (in `unit`) per unit more of each limit, and the runner-up of each site."""

    unit: str
    fixed: ByLimit  # with the fleet of the plan
    divisible: ByLimit  # with a fleet that may grow, in fractions of systems
    runner_up: list[RunnerUp]  # rows as in docs/plan.md
    notes: Mapping[str, str] = field(default_factory=dict)  # on prices, by path
    otherwise: str = POINTS_NOTE  # note of a limit without a price

    def fill_in(self, rows: list[Limit]) -> list[Limit]:
        """Add marginal values and notes to the limit rows of a plan."""
        return [with_codes(self._filled(row), "note") for row in rows]

    def _filled(self, row: Limit) -> Limit:
        """Add marginal values and a note to one limit row."""
        keys = ((row["path"], None), (row["path"], row["name"]))
        key = next((key for key in keys if key in self.divisible or key in self.fixed), None)
        if key is None:
            note = self.notes.get(row["path"], self.otherwise)
            return {**row, "marginal_value_divisible": None, "note": note}
        return {
            **row,
            "marginal_value": self.fixed.get(key) if binds(row) else None,
            "marginal_value_divisible": self.divisible.get(key) or None,
            "marginal_unit": f"{self.unit}/{row['unit']}",
            "note": self.notes.get(row["path"], ""),
        }


def unpriced() -> MarginalValues:
    """Return no marginal values, as they could not be computed."""
    return MarginalValues("", {}, {}, [], otherwise=FAILED_NOTE)
