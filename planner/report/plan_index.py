"""Index the rows of a plan by site, and compute means over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from catalog.units import MWH_J
from planner.messages import named, say
from planner.plan import Plan, binds, is_by_the_bound
from planner.plan.rows.money import Limit
from planner.plan.rows.time import Slot
from planner.report.words import whole


class PlanIndex:
    """The rows of a plan, looked up by site."""

    def __init__(self, plan: Plan):
        self.plan, self.document = plan, plan.document
        self.currency: str = plan.document["spec"].get("currency", "USD")
        self.schedule: dict[str, list[Slot]] = defaultdict(list)
        for row in plan.document["schedule"]:
            self.schedule[row["site"]].append(row)
        self.sites: list[str] = list(dict.fromkeys(row["site"] for row in plan.document["fleet"]))
        self.seconds: dict[int, float] = {row["slot"]: row["seconds"] for row in plan.document["schedule"]}
        self.binding: list[Limit] = [row for row in plan.document["limits"] if binds(row)]
        self.paid: dict[str, float] = {}
        """Mean price of the electricity used, by site [1/J]."""
        for site in self.sites:
            mean = mean_of((row["energy_j"], row["price_per_j"]) for row in self.schedule[site])
            if mean is not None:
                self.paid[site] = mean

    def per_mwh(self, price_per_j: float) -> str:
        """Write a price of electricity."""
        return say("electricity.price", price=f"{price_per_j * MWH_J:,.1f}", currency=self.currency)

    def worth(self, limit: Limit, per: str = "kW", size: float = 1e3) -> str:
        """State the saving of one unit more of a limit; empty if nothing, or if the objective is not cost."""
        divisible = limit["marginal_value_divisible"]
        value = divisible or limit["marginal_value"]
        objective = self.plan.document["spec"].get("objective", {"minimise": "cost"})
        if not value or objective.get("minimise") != "cost":
            return ""
        code = "worth.saves_by_the_bound" if divisible and is_by_the_bound(limit) else "worth.saves"
        return say(code, unit=named("unit", per), amount=whole(-value * size), currency=self.currency)


def mean_of(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Average the values of (weight, value) pairs by their weights; None if these add up to 0."""
    products = [(weight, weight * value) for weight, value in pairs]
    total = sum(weight for weight, _ in products)
    return sum(product for _, product in products) / total if total > 0 else None
