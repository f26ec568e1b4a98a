"""Carry what a change does to a plan with replicas in fractions over to the plan with whole replicas that a visitor sees. No Streamlit here."""

from __future__ import annotations

from planner.plan import Plan
from planner.plan.rows.money import Totals
from planner.plan.rows.workloads import Workload


def carried_over(shown: Plan, before: Plan, after: Plan) -> Plan:
    """Estimate the main figures of `shown` after a change: each times the ratio of the two plans with replicas in fractions.

    What a plan in fractions has none of `before` is taken as it is `after`. Chips are rounded to whole ones.
    """
    here, old, new = shown.totals, before.totals, after.totals
    totals: Totals = {
        **new,
        "cost": _scaled(here["cost"], old["cost"], new["cost"]),
        "chips": round(_scaled(here["chips"], old["chips"], new["chips"])),
        "peak_power_w": _scaled(here["peak_power_w"], old["peak_power_w"], new["peak_power_w"]),
        "carbon_kg": _scaled(here["carbon_kg"], old["carbon_kg"], new["carbon_kg"]),
    }
    first, second = (
        {row["name"]: row["cost_per_million_tokens"] for row in plan.document["workloads"]} for plan in (shown, before)
    )
    workloads: list[Workload] = [
        {
            **row,
            "cost_per_million_tokens": _price(
                row["cost_per_million_tokens"], first.get(row["name"]), second.get(row["name"])
            ),
        }
        for row in after.document["workloads"]
    ]
    return Plan({**after.document, "totals": totals, "workloads": workloads})


def _scaled(shown: float, before: float, after: float) -> float:
    return shown * after / before if before else after


def _price(after: float | None, shown: float | None, before: float | None) -> float | None:
    return after if after is None or shown is None or not before else _scaled(shown, before, after)
