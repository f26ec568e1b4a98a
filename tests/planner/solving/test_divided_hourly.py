"""A plan that falls back to divisible replicas holds whole hourly systems, and its gap is that of the plan, not of the relaxation."""

from __future__ import annotations

import pytest

from planner.pipeline import solve_unverified
from planner.verify.plan import verify_plan
from solvers.search import joint
from solvers.search.proven import unknown


def test_divisible_replicas_stand_on_whole_hourly_systems(tiny, monkeypatch):
    monkeypatch.setattr(joint, "with_whole_replicas", lambda data, divisible, options, begin: unknown(divisible))
    spec = tiny(offers=[{"system": "DGX H100", "how": "on_demand", "price": "40 USD/h"}])
    spec["workloads"][0]["demand"] = {"requests_per_s": 300, "profile": [0.2] * 8 + [1.7] * 8 + [1.1] * 8}
    plan = solve_unverified(spec)
    assert plan.document["replicas"] == "divisible"
    assert verify_plan(plan) == []
    assert plan.document["gap"] == pytest.approx((plan.value - plan.document["bound"]) / plan.value, rel=1e-6)
    assert plan.status == ("optimal" if plan.document["gap"] <= 1e-6 else "limit")
