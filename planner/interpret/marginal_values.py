"""Marginal values of limits as a plan states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.plan import BINDING

POINTS_NOTE = "decides which points may be used, so it has no price in the program; solve with another value to see"


@dataclass(frozen=True, slots=True)
class Explanation:
    """`fixed`, `divisible`: what one unit more of each limit changes, by path and name of its row; `runner_up`: see plan.md."""

    unit: str
    fixed: Mapping[tuple[str, str | None], float]
    divisible: Mapping[tuple[str, str | None], float]
    runner_up: list[dict[str, Any]]
    notes: Mapping[str, str] = field(default_factory=dict)  # on prices, by path

    def of_limits(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Limit rows of a plan with their marginal values filled in."""
        return [self._of(row) for row in rows]

    def _of(self, row: dict[str, Any]) -> dict[str, Any]:
        key = next(
            (
                key
                for key in ((row["path"], None), (row["path"], row["name"]))
                if key in self.divisible or key in self.fixed
            ),
            None,
        )
        if key is None:
            return row | {"marginal_value_divisible": None, "note": self.notes.get(row["path"], POINTS_NOTE)}
        binds = row["slack"] <= BINDING * abs(row["limit"])
        return row | {
            "marginal_value": self.fixed.get(key) if binds else None,
            "marginal_value_divisible": self.divisible.get(key) or None,
            "marginal_unit": f"{self.unit}/{row['unit']}",
            "note": self.notes.get(row["path"], ""),
        }
