"""Plans of drawn sessions hold: no law and no figure of `verify` refuses what the planner made."""

from __future__ import annotations

import random

import pytest

import planner
from planner.verify.plan import verify_plan

SITE = {"region": "us-texas", "electricity_price": "60 USD/MWh"}


def drawn(seed: int) -> dict:
    """Draw sessions: dense and expert networks, one call to twenty, with and without waits, growth, spread and a limit on the whole task."""
    choice = random.Random(seed).choice
    work = {
        "name": "agents", "kind": "serving", "architecture": choice(["Llama-3.1-8B", "Qwen3-32B", "Qwen3-30B-A3B"]),
        "demand": {"tasks_per_s": choice([0.05, 0.5, 2.0])},
        "lengths": {
            "input": choice([100, 2000, 8000]), "output": choice([5, 100, 800]), "input_cv": choice([0.0, 0.5, 2.0]), "output_cv": choice([0.0, 1.0, 3.0]),
        },
        "session": {"calls": choice([1, 4, 20]), "calls_cv": choice([0.0, 0.5]), "growth": choice([0, 200, 500]), "wait": choice(["0 s", "2 s", "60 s"])},
        "origins": [{"region": "us-texas", "share": 1.0}], "slo": {"ttft": {"p95": "20 s"}},
        "precision": [choice(["bf16", "fp8"])], "kv_precision": [choice(["bf16", "fp8"])], "disaggregation": choice(["never", "always"]),
    }  # fmt: skip
    if work["session"]["calls"] == 1:
        work["session"]["calls_cv"] = 0.0
    if choice([True, False]):
        work["slo"]["task"] = {"p95": "2 h"}
    offers = [{"system": choice(["DGX H100", "DGX H200", "DGX B200"]), "how": "buy", "supply": 200}]
    return {
        "name": "drawn",
        "workloads": [work],
        "sites": [SITE],
        "offers": offers,
        "solver": {"replicas": "divisible"},
    }


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_of_drawn_sessions_holds(seed):
    plan = planner.solve(drawn(seed))
    assert not plan.has_answer or verify_plan(plan) == []


def test_a_prompt_that_costs_next_to_nothing_has_a_plan():
    """Over 128 attention ranks a pass is hardly longer with 100 tokens more in it."""
    spec = drawn(0)
    spec["workloads"][0] |= {
        "architecture": "Qwen3-30B-A3B", "demand": {"tasks_per_s": 2.0}, "disaggregation": "always",
        "lengths": {"input": 100, "output": 100, "input_cv": 0.0, "output_cv": 3.0}, "session": {"calls": 4, "calls_cv": 0.5, "growth": 0, "wait": "2 s"},
        "precision": ["fp8"], "kv_precision": ["bf16"],
    }  # fmt: skip
    for system in ("DGX H100", "DGX H200", "DGX B200"):
        spec["offers"][0]["system"] = system
        assert planner.solve(spec).has_answer


def test_most_drawn_sessions_have_a_plan():
    """Else the test above shows nothing."""
    assert sum(planner.solve(drawn(seed)).has_answer for seed in range(5)) >= 3
