"""Plans of drawn jobs of reinforcement learning hold: no law and no figure of `verify` refuses what the planner made."""

from __future__ import annotations

import random

import pytest

import planner
from planner.verify.plan import verify_plan

SITE = {"region": "us-texas", "electricity_price": "60 USD/MWh"}


def drawn(seed: int) -> dict:
    """Draw a job: networks with and without experts, every algorithm and way, lengths without spread and with much, with and without tools."""
    choice = random.Random(seed).choice
    job = {
        "name": "learn", "kind": "reinforcement", "architecture": choice(["Llama-3.1-8B", "Qwen3-32B", "Qwen3-30B-A3B"]),
        "algorithm": choice(["grpo", "ppo", "dpo"]), "prompts": choice([8, 32, 256, 1024]), "samples": choice([1, 4, 16]), "mini_batches": choice([1, 2, 4]),
        "iterations_per_hour": choice([0.5, 4, 20]), "reference": choice([True, False]), "tuning": choice(["full", "full", "lora"]),
        "lengths": {
            "prompt": choice([1, 200, 4000]), "response": choice([10, 800, 3000]), "limit": choice([4096, 16384]), "cv": choice([0.01, 0.5, 1.0, 3.0]),
            "endless": choice([0.0, 0.01, 0.1]),
        },
        "ways": [choice(["asynchronous", "colocated", "streaming", "synchronous"])], "staleness": choice([0.0, 0.5, 1.0, 4.0]),
        "precision": [choice(["bf16", "fp8"])], "rollout_precision": [choice(["bf16", "fp8"])], "partial_rollout": choice([True, False]),
    }  # fmt: skip
    if job["algorithm"] == "dpo":
        job["samples"] = 2
    elif choice([True, False]) and job["lengths"]["response"] > 10:
        job["tools"] = {"calls": choice([1, 5]), "service": "2 s", "answer": choice([10, 100])}
    offers = [{"system": choice(["DGX H100", "DGX H200", "DGX B200"]), "how": "buy", "supply": choice([8, 32])}]
    return {"name": "drawn", "workloads": [job], "sites": [SITE], "offers": offers}


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_of_a_drawn_job_holds(seed):
    plan = planner.solve(drawn(seed))
    assert not plan.has_answer or verify_plan(plan) == []


def test_most_drawn_jobs_have_a_plan():
    """Else the test above shows nothing."""
    assert sum(planner.solve(drawn(seed)).has_answer for seed in range(3)) >= 2
