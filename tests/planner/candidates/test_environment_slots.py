"""Environment slots with a price against every split: the plan is that of least rent and slots together."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import planner
from catalog.units import HOUR_S
from models.reinforcement.iteration import COLOCATED
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.splits import SplitSearch, colocated, separate
from planner.evaluate.interruptions import RunTerms
from planner.evaluate.layouts import TrainingSetup
from planner.evaluate.reinforcement import figures_of
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.model import parse_spec
from planner.verify.plan import findings
from tests.conftest import ALL_CASES

CASES = 150 if ALL_CASES else 4
COUNTS = (1, 2, 3, 4, 6, 8)  # systems of a pool, as docs/reinforcement.md states them


def drawn(seed: int) -> dict[str, Any]:
    """Draw a job with slots on one or two kinds of rented systems, energy included in the rent."""
    rng = np.random.default_rng(seed)
    per_h = float(rng.choice([0.01, 0.1, 1.0, 5.0]))
    tools = {
        "calls": float(rng.uniform(0.5, 6)), "think": f"{rng.uniform(0, 4):.2f} s", "service": f"{rng.uniform(0.1, 6):.2f} s",
        "environments": int(rng.choice([16, 64, 256])), "slot_cores": int(rng.integers(1, 9)), "slot_price": f"{per_h} USD/h",
    }  # fmt: skip
    ways = list(rng.permutation(["colocated", "synchronous", "asynchronous", "streaming"])[: rng.integers(1, 5)])
    job = {
        "name": "learn", "kind": "reinforcement", "architecture": str(rng.choice(["Llama-3.1-8B", "Qwen3-8B"])), "prompts": int(rng.choice([16, 32, 64])),
        "samples": 8, "mini_batches": int(rng.choice([1, 2])), "lengths": {"prompt": 200, "response": int(rng.choice([400, 800, 1600])), "limit": 4096},
        "iterations_per_hour": round(float(rng.uniform(2, 50)), 2), "deadline": f"{rng.choice([30, 200, 365])} d", "tools": tools, "ways": ways,
    }  # fmt: skip
    prices = {"DGX H100": float(rng.uniform(15, 30)), "DGX H200": float(rng.uniform(18, 45))}
    names = list(rng.permutation(list(prices))[: rng.integers(1, 3)])
    offers = [
        {"system": name, "how": "on_demand", "price": f"{prices[name]:.2f} USD/h", "supply": int(rng.choice([2, 4, 8]))}
        for name in names
    ]
    return {
        "name": "slots", "workloads": [job], "sites": [{"region": "us-texas"}], "offers": offers, "simplicity": {"within": 0},
        "solver": {"gap": 1e-6, "replicas": "divisible"},
    }  # fmt: skip


def least_cost(spec: dict[str, Any]) -> tuple[float, float]:
    """Enumerate every number of systems of both pools and every way: the least rent and slots of a job, (for the time that it runs, to its deadline).

    Systems are counted by the hour, whole ones in each, so that a plan costs at least the first and at most the second.
    """
    problem = resolve(parse_spec(spec))
    (job,), calendar = problem.training, problem.calendar
    needed = job.spec.tokens / job.spec.deadline
    within = calendar.within(job.spec.start, job.spec.deadline)
    seconds = float((calendar.seconds * calendar.discount)[within].sum())
    tools = spec["workloads"][0]["tools"]
    slots_per_s = tools["environments"] * float(tools["slot_price"].split()[0]) / HOUR_S
    search, running, held = SplitSearch(job, problem.constants), math.inf, math.inf
    for option in build_fleet_options(problem)[0]:
        supply = int(option.offer.supply)
        setup = TrainingSetup(job, option.system, "bf16", problem.constants, option.scaleout)
        terms = RunTerms.of(option.system, option.offer, option.site)
        for n, m in itertools.product(COUNTS, (0, *COUNTS)):
            if n + m > supply:
                continue
            chips, rolling = n * option.system.chips, m * option.system.chips
            found = colocated(search, [setup], chips) if not m else separate(search, [setup], chips, (option.system, option.scaleout, rolling))  # fmt: skip
            for split in found if m or COLOCATED in job.spec.ways else ():
                figures = figures_of(job, split.way, split.update, split.rollout, split.found, terms)
                width = needed / figures.tokens_per_s
                if width <= 1.0 + 1e-9:
                    rent, slots = seconds * (n + m) * option.rent_per_s, seconds * slots_per_s * width
                    running, held = min(running, rent * width + slots), min(held, rent + slots)
    return running, held


@pytest.mark.parametrize("seed", range(CASES))
def test_plans_cost_as_little_as_the_best_of_all_splits(seed):
    spec = drawn(seed)
    running, held = least_cost(spec)
    if not math.isfinite(held):  # without waiting for all that could be changed
        assert not planner.solve(edited(spec, (("solver.time_limit", "1 s"),))).has_answer
        return
    plan = planner.solve(spec)
    assert list(findings(resolve(parse_spec(plan["spec"])), plan.document)) == []
    assert running * (1 - 1e-5) <= plan.objective["value"] <= held * (1 + 1e-5)
    (point,) = plan["workloads"][0]["points"]
    tools = spec["workloads"][0]["tools"]
    assert (
        point["iteration"]["environments"]["cores"] == point["iteration"]["environments"]["slots"] * tools["slot_cores"]
    )
