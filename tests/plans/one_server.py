"""A question that one DGX H100 answers, for plans whose money can be added up by hand: energy is free, and only what a test states costs."""

from __future__ import annotations

import copy
from typing import Any

import planner
from planner.plan import Plan

SYSTEM = "DGX H100"
NOTHING_ELSE = {
    "residual": [{"age": "5 years", "fraction": 0}], "maintenance": 0, "spare_parts": 0, "staff_per_power": "0 USD/kW-year",
    "staff_per_system": "0 USD/year", "software_per_chip": "0 USD/year", "software_per_system": "0 USD/year", "facility_premium": 0,
}  # fmt: skip
FREE_BUILDING = {"regions/us-virginia/construction_cost": {"value": "0.000001 USD/W", "note": "none"}}
_QUESTION: dict[str, Any] = {
    "name": "one_server",
    "horizon": {"start": "2027-01-01", "years": 3, "discount_rate": 0.08},
    "workloads": [{
        "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 5},
        "lengths": {"input": 500, "output": 100}, "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "100 ms"}}, "precision": ["fp8"], "disaggregation": "never",
    }],
    "sites": [{"region": "us-virginia", "systems": [SYSTEM], "topologies": ["scale-up"], "pue": 1.25, "electricity_price": "0 USD/kWh"}],
    "offers": [{"system": SYSTEM, "how": "buy", "price": "300000 USD"}],
    "economics": NOTHING_ELSE,
    "overrides": FREE_BUILDING,
    "solver": {"gap": 1e-6},
}  # fmt: skip


def question(**changes: Any) -> dict[str, Any]:
    """Write the spec, with some of its blocks replaced."""
    return copy.deepcopy({**_QUESTION, **changes})


def solved(document: dict[str, Any]) -> Plan:
    """Solve a spec that has a plan, which `solve` verifies."""
    plan = planner.solve(document)
    assert plan.has_answer
    return plan


def worth(years: int, rate: float = 0.08) -> float:
    """Compute the present worth of one unit at the end of each year."""
    return sum((1 + rate) ** -(k + 1) for k in range(years))


def cost_of(plan: Plan) -> float:
    """Return the present value of a plan."""
    return float(plan.document["totals"]["cost"])
