"""Index the rows of a plan by site, and compute means over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from catalog.units import MWH_J
from planner.plan import BY_THE_BOUND, Plan, binds

Row = Mapping[str, Any]


class PlanIndex:
    """The rows of a plan, looked up by site."""

    def __init__(self, plan: Plan):
        self.plan, self.document = plan, plan.document
        self.currency: str = plan["spec"].get("currency", "USD")
        self.schedule: dict[str, list[Row]] = defaultdict(list)
        for row in plan["schedule"]:
            self.schedule[row["site"]].append(row)
        self.sites: list[str] = list(dict.fromkeys(row["site"] for row in plan["fleet"]))
        self.seconds: dict[int, float] = {row["slot"]: row["seconds"] for row in plan["schedule"]}
        self.binding: list[Row] = [row for row in plan["limits"] if binds(row)]
        self.paid: dict[str, float] = {}
        """Mean price of the electricity used, by site [1/J]."""
        for site in self.sites:
            mean = mean_of(self.schedule[site], "energy_j", "price_per_j")
            if mean is not None:
                self.paid[site] = mean

    def per_mwh(self, price_per_j: float) -> str:
        """Write a price of electricity."""
        return f"{price_per_j * MWH_J:,.1f} {self.currency} per MWh"

    def worth(self, limit: Row, per: str = "kW", size: float = 1e3) -> str:
        """State the saving of one unit more of a limit; empty if nothing, or if the objective is not cost."""
        divisible = limit["marginal_value_divisible"]
        value = divisible or limit["marginal_value"]
        objective = self.plan["spec"].get("objective", {"minimise": "cost"})
        if not value or objective.get("minimise") != "cost":
            return ""
        by_bound = " by the bound" if divisible and BY_THE_BOUND in limit["note"] else ""
        return f", and one more {per} would{by_bound} save {-value * size:,.0f} {self.currency}"


def mean_of(rows: Iterable[Row], weight: str, name: str) -> float | None:
    """Average a column of rows by the weights of another; None if they add up to 0."""
    pairs = [(row[weight], row[weight] * row[name]) for row in rows]
    total = sum(w for w, _ in pairs)
    return sum(v for _, v in pairs) / total if total > 0 else None
