"""Whole replicas of plans that are found by decomposition, which knows the duals of limits alone and merges windows."""

from __future__ import annotations

import pytest

import planner

JOB = {
    "name": "run",
    "kind": "training",
    "architecture": "Llama-3.2-1B",
    "tokens": "4B",
    "start": "10 d",
    "deadline": "100 d",
}


@pytest.mark.parametrize("jobs", [[], [JOB]], ids=["serving", "with a job"])
def test_a_plan_found_slot_by_slot_is_made_whole(tiny, jobs):
    """Against the same question in one piece: both hold, and neither bound lies beyond the other's value."""
    spec = tiny()
    spec["workloads"][0]["demand"] |= {"profile": [0.4] * 8 + [1.6] * 8 + [1.0] * 8}
    spec["workloads"] += jobs
    plans = [
        planner.solve(spec | {"solver": {"method": method, "replicas": "whole", "gap": 1e-2, "time_limit": "30 s"}})
        for method in ("decomposed", "direct")
    ]
    for plan, other in (plans, plans[::-1]):
        assert plan["replicas"] == "whole" and planner.verify_plan(plan) == []
        assert plan["bound"] <= other.objective["value"] * (1 + 1e-6)
