"""Whole workers of separate pools against enumeration: every pair of layouts, batch and numbers of workers of small systems, mixed as may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import planner
from models.arrays import Floats
from models.serving.percentiles import within_slo
from planner.candidates import worker_numbers
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.serving import serving_layouts
from planner.evaluate import disaggregated, serving
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from tests.conftest import ALL_CASES

CASES = 200 if ALL_CASES else 4
MOST = 5  # workers of either role in a group
HOURLY, HOURS = 60.0, 8760.0
BATCHES = np.array([1.0, 4.0, 16.0, 64.0, 256.0])
MOST_SYSTEMS = 6
CHIPS = 8


@pytest.fixture(autouse=True)
def small_grids(monkeypatch):
    """Shorten the grid of batches and the numbers of workers, for the planner and the enumeration alike."""
    monkeypatch.setattr(serving, "BATCHES", BATCHES)
    monkeypatch.setattr(worker_numbers, "DECODE_WORKERS", np.arange(1, MOST + 1))
    monkeypatch.setattr(worker_numbers, "MOST_WORKERS", MOST)


def drawn(number: int) -> dict[str, Any]:
    """Draw a question of one serving workload on one kind of rented system."""
    rng = np.random.default_rng(number)
    prompt, output = int(rng.choice([200, 800, 3000])), int(rng.choice([50, 200, 600]))
    arch, size = (("Llama-3.2-3B", 3), ("Llama-3.1-8B", 8), ("Qwen3-30B-A3B", 4))[rng.integers(3)]
    asked = rng.uniform(0.3, 3.0) * 1.5e6 / size / (prompt + 12 * output)
    return {
        "name": f"whole workers {number}",
        "horizon": {"years": 1, "discount_rate": 0},
        "workloads": [
            {
                "name": "chat", "kind": "serving", "architecture": arch, "demand": {"requests_per_s": float(asked)},
                "lengths": {"input": prompt, "output": output, "input_cv": 0.5, "output_cv": 0.5},
                "origins": [{"region": "us-virginia", "share": 1}],
                "slo": {
                    "ttft": {"p95": f"{rng.choice([0.3, 0.8, 3.0])} s"}, "tpot": {"p95": f"{rng.choice([8, 15, 40])} ms"},
                },
                "precision": ["fp8"], "disaggregation": "always",
            }
        ],
        "sites": [{"region": "us-virginia"}],
        "offers": [{"system": "DGX H100", "how": "on_demand", "price": f"{HOURLY} USD/h"}],
        "simplicity": {"within": 0},
        "solver": {"gap": 1e-7, "replicas": "whole", "points_per_system": 100},
    }  # fmt: skip


def capacities(problem: ResolvedSpec, workload: ServingFacts, option: FleetOption, chips: int) -> Floats:
    """Enumerate [c] the most requests/s that a deployment of any group carries on c chips, at most so many."""
    most = np.zeros(chips + 1)
    system, constants = option.system, problem.constants.serving
    for choice in serving.engine_choices(workload, system):
        layouts = serving_layouts(workload.architecture, system, True)
        batches = serving.batch_grid(np.asarray(layouts.dp))
        numbers = np.arange(1, MOST + 1)
        n_p, n_d = (part.ravel() for part in np.meshgrid(numbers, numbers))
        found = disaggregated.evaluate(
            workload, (system, system), (option.scaleout, option.scaleout),
            (layouts.take((slice(None), None, None, None)), layouts.take((slice(None), None, None))),
            batches[..., None], (n_p, n_d), choice, constants,
        )  # fmt: skip
        rate = np.broadcast_to(found.point.requests_per_s, np.shape(found.point.requests_per_s))
        first, second = (np.asarray(layouts.chips)[side] for side in np.ogrid[: len(layouts), : len(layouts)])
        for p, d, b, k in np.argwhere(within_slo(found.point, serving.limits_at_site(workload.spec, 0.0))):
            wide, deep = int(first[p, 0]), int(second[0, d])
            for workers in range(int(n_p[k]), chips // wide + 1):
                others = np.arange(n_d[k], max((chips - workers * wide) // deep, -1) + 1)
                held = workers * wide + others * deep
                carried = rate[p, d, b, k] * np.minimum(workers / n_p[k], others / n_d[k])
                np.maximum.at(most, held, carried)
    return np.maximum.accumulate(most)


def fewest_systems(spec: dict[str, Any]) -> float:
    """Enumerate the fewest systems of which deployments, alone or together, carry the demand; infinite where none keeps the limits."""
    problem = resolve_document(spec)
    (workload,), (option, *_) = problem.serving, build_fleet_options(problem)[0]
    chips = MOST_SYSTEMS * CHIPS
    alone = capacities(problem, workload, option, chips)
    together = alone.copy()
    for held in range(2, chips + 1):
        for part in range(1, held // 2 + 1):
            together[held] = max(together[held], together[part] + together[held - part])
    if not alone.any():
        return math.inf
    enough = np.flatnonzero(together >= workload.peak_requests_per_s * (1 - 1e-9))
    return math.ceil(enough[0] / CHIPS) if enough.size else math.nan


@pytest.mark.parametrize("number", range(CASES))
def test_the_plan_costs_what_enumeration_finds(number):
    spec = drawn(number)
    fewest, plan = fewest_systems(spec), planner.solve(spec)
    if math.isnan(fewest):
        assert sum(row["count"] for row in plan["fleet"]) > MOST_SYSTEMS
    elif math.isinf(fewest):
        assert plan.status == "infeasible"
    else:
        assert plan.status in ("optimal", "within_gap") and verify_plan(plan) == []
        assert plan["objective"]["value"] == pytest.approx(fewest * HOURLY * HOURS, rel=1e-6)
