"""Start of workers: its parts against arithmetic and numerical integration, what the hours of a plan pay for it, and checks of rows."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from models.serving.decode import ServingLayouts
from models.storage import warm_up_loss_s
from planner.evaluate import serving
from planner.evaluate.residency import ServingPool, worker_ready_s
from planner.problem.engine import EngineChoice
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.model import parse_spec
from planner.verify.plan import findings
from tests.conftest import ALL_CASES
from tests.plans.serving_enumeration import DAY

SPEC: dict[str, Any] = {
    "name": "starts",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"requests_per_s": 150, "profile": DAY},
            "lengths": {"input": 4000, "output": 200}, "origins": [{"region": "us-texas", "share": 1}], "slo": {"tpot": {"p95": "40 ms"}},
            "disaggregation": "never", "cache": {"prefix_tokens": 3500, "hit_rate": 0.9},
        },
        {
            "name": "batch", "kind": "serving", "architecture": "Qwen3-8B", "precision": ["fp8"],
            "demand": {"requests_per_s": 150, "profile": [*DAY[12:], *DAY[:12]]},
            "lengths": {"input": 1000, "output": 200}, "origins": [{"region": "us-texas", "share": 1}], "slo": {"tpot": {"p95": "40 ms"}},
            "disaggregation": "never",
        },
    ],
    "sites": [{"region": "us-texas", "storage_bandwidth": "10 GB/s"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 40}],
    "solver": {"replicas": "whole", "gap": 0.05, "time_limit": "60 s"},
    "simplicity": {"within": 0},
}  # fmt: skip
STARTS = {
    "start": "45 s", "bandwidth": "2 GB/s", "preloaded": 0.75, "preload_bandwidth": "20 GB/s", "data": "3 GB", "warm_up": "20 min",
}  # fmt: skip
CASES = 150 if ALL_CASES else 5
LAYOUT = {"tp": 1, "pp": 1, "dp": 1, "ep": 1}


def facts(**scale_up: Any):
    problem = resolve(parse_spec(edited(SPEC, (("workloads[0].scale_up", scale_up or None),))))
    return problem, problem.serving[0], next(iter(problem.systems.values()))


def ready(**scale_up: Any) -> dict[str, float]:
    problem, workload, system = facts(**scale_up)
    pool = ServingPool(system, no_network(), LAYOUT, 32, 1)
    return worker_ready_s(workload, problem.sites[0], [pool], EngineChoice("fp8", "fp8", "", ""), problem.constants)


def no_network():
    from planner.problem.facts import ScaleOut

    return ScaleOut(0.0)


def test_weights_come_from_storage_and_from_the_system_side_by_side():
    weights = facts()[1].weights_bytes
    assert ready() == {"start": pytest.approx(60.0), "load": pytest.approx(weights / 10e9)}
    parts = ready(**{key: value for key, value in STARTS.items() if key != "warm_up"})
    assert parts == {"start": 45.0, "load": pytest.approx(max((0.25 * weights + 3e9) / 2e9, 0.75 * weights / 20e9))}
    assert ready(preloaded=1, preload_bandwidth="4 GB/s")["load"] == pytest.approx(weights / 4e9)
    assert ready(start="0 s", bandwidth="1 GB/s") == {"start": 0.0, "load": pytest.approx(weights / 1e9)}


def test_a_cold_cache_costs_what_its_slower_requests_cost():
    problem, workload, system = facts(**STARTS)
    layout, choice = ServingLayouts(**LAYOUT), EngineChoice("fp8", "fp8", "", "")
    cold = replace(workload, spec=workload.spec.model_copy(update={"cache": None}))
    warm_rate, cold_rate = (
        float(
            serving.evaluate(each, system, no_network(), layout, 32.0, choice, problem.constants.serving).requests_per_s
        )
        for each in (workload, cold)
    )
    assert cold_rate < 0.7 * warm_rate
    share = (np.arange(100_000) + 0.5) / 100_000  # share of the ramp that is over: times per request fall evenly
    rate = 1.0 / (1.0 / cold_rate + share * (1.0 / warm_rate - 1.0 / cold_rate))
    assert ready(**STARTS)["warm_up"] == pytest.approx(1200.0 * (1.0 - rate.mean() / warm_rate), rel=1e-6)


@given(st.floats(0, 1e4), st.floats(1, 50), st.floats(1, 50))
def test_a_slower_ramp_loses_more_and_less_than_its_length(length, one, other):
    low, high = sorted((one, other))
    assert 0.0 <= warm_up_loss_s(length, low) <= warm_up_loss_s(length, high) + 1e-9 <= length + 1e-8


@pytest.fixture(scope="module")
def plan():
    return planner.solve(edited(SPEC, (("workloads[0].scale_up", STARTS),)))


def test_the_hours_of_a_plan_pay_for_the_start(plan):
    (row,) = (each for each in plan["deployments"] if each["workload"] == "chat")
    assert set(row["load_parts_s"]) == {"start", "load", "warm_up"}
    assert row["load_s"] == pytest.approx(sum(row["load_parts_s"].values()))
    assert row["loads"] > 0, "workers come and go by the hour here"
    point = plan["workloads"][0]["points"][0]
    slots = sorted(plan["schedule"], key=lambda each: each["slot"])
    for before, now in zip([slots[-1], *slots[:-1]], slots, strict=True):
        came = max(now["resident"][point["id"]][0] - before["resident"][point["id"]][0], 0)
        assert now["active"][point["id"]] <= now["resident"][point["id"]][0] - came * row["load_s"] / 3600 + 1e-6


def test_a_slow_start_costs_no_less_than_any_plan_with_a_fast_one_must(plan):
    fast = planner.solve(edited(SPEC, (("workloads[0].scale_up", {"start": "0 s", "bandwidth": "1 TB/s"}),)))
    assert fast["bound"] <= plan.objective["value"] * (1 + 1e-9)


@pytest.mark.parametrize("name", ["start", "load", "warm_up"])
def test_parts_that_are_wrong_or_missing_are_found(plan, name):
    problem = resolve(parse_spec(plan["spec"]))
    assert findings(problem, plan.document) == []
    bent = copy.deepcopy(plan.document)
    bent["deployments"][0]["load_parts_s"][name] *= 1.01
    assert any("load_parts_s" in str(found) for found in findings(problem, bent))
    del bent["deployments"][0]["load_parts_s"][name]
    assert findings(problem, bent)


@pytest.mark.parametrize(
    ("scale_up", "message"),
    [
        ({"preloaded": 0.5}, 'expected "preloaded" with "preload_bandwidth"'),
        ({"preload_bandwidth": "1 GB/s"}, 'expected "preloaded" with "preload_bandwidth"'),
        ({"warm_up": "1 min"}, "of a prefix cache, of which there is none"),
    ],
)
def test_what_does_not_fit_together_is_refused(scale_up, message):
    with pytest.raises(planner.SpecError, match=message):
        parse_spec(edited(SPEC, (("workloads[0].scale_up", scale_up), ("workloads[0].cache", None))))


# -- against all ways to hold workers by the hour ------------------------------------------------------------------------


def drawn(seed: int) -> dict[str, Any]:
    """Draw two services that share a few systems by the hour, whose workers take time to start: how much load do the systems bear?"""
    rng = np.random.default_rng(seed)
    shift = int(rng.integers(0, 24))
    spec = edited(
        SPEC, (("objective", {"maximise": "throughput"}), ("solver.gap", 1e-6), ("solver.points_per_system", 1))
    )
    spec["offers"][0]["supply"] = int(rng.integers(1, 4))
    for workload, profile in zip(spec["workloads"], (DAY, [*DAY[shift:], *DAY[:shift]]), strict=True):
        start = {
            "start": f"{rng.uniform(0, 2400):.0f} s",
            "bandwidth": f"{rng.uniform(0.1, 10):.2f} GB/s",
            "data": f"{rng.uniform(0, 100):.1f} GB",
        }
        if rng.random() < 0.5:
            start |= {
                "preloaded": round(float(rng.uniform(0.1, 1)), 2),
                "preload_bandwidth": f"{rng.uniform(0.1, 20):.2f} GB/s",
            }
        if "cache" in workload and rng.random() < 0.5:
            start["warm_up"] = f"{rng.uniform(1, 40):.1f} min"
        workload |= {
            "scale_up": start,
            "demand": {"requests_per_s": round(float(rng.uniform(5, 25)), 1), "profile": profile},
        }
    return spec  # fmt: skip


def start_s(scale_up: dict[str, Any], weights_bytes: float, warm_up_s: float) -> float:
    """Compute what a worker loses at its start from the texts of the spec [s]."""
    amount = {key: float(str(value).split()[0]) for key, value in scale_up.items()}
    here = amount.get("preloaded", 0.0)
    read_s = ((1 - here) * weights_bytes + amount["data"] * 1e9) / (amount["bandwidth"] * 1e9)
    local_s = here * weights_bytes / (amount.get("preload_bandwidth", 1.0) * 1e9)
    return amount["start"] + max(read_s, local_s) + warm_up_s


def can_serve(systems: int, needs: list[Any], lost: list[float], per_system: list[int]) -> bool:
    """Tell whether so many systems serve both services: all numbers of workers of one, hour by hour around the day.

    The other takes all systems that are left, since a further worker never does harm. `needs`: workers at work, by service and hour;
    `lost`: share of an hour that a worker loses at its start; `per_system`: workers that a system holds.
    """
    held = np.arange(systems * per_system[0] + 1)
    rest = np.floor((systems - held / per_system[0]) * per_system[1] + 1e-9)

    def enough(workers: Any, service: int, hour: int) -> Any:  # [before, now]
        now, before = workers[None, :], workers[:, None]
        return now - lost[service] * np.maximum(now - before, 0) >= needs[service][hour] - 1e-9

    reach = np.eye(len(held), dtype=bool)  # from the workers of the last hour of the day to those of this hour
    for hour in range(24):
        step = enough(held, 0, hour) & enough(rest, 1, hour)
        reach = (reach.astype(np.int64) @ step) > 0
    return bool(np.diag(reach).any())


def most_load(systems: int, needs: list[Any], lost: list[float], per_system: list[int]) -> float:
    """Bisect the largest factor on the load that so many systems serve."""
    low, high = 0.0, 8.0 * systems / min(max(each) for each in needs) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        fits = can_serve(systems, [middle * each for each in needs], lost, per_system)
        low, high = (middle, high) if fits else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(CASES))
def test_systems_bear_as_much_load_as_the_best_of_all_schedules_of_workers(seed):
    spec = drawn(seed)
    plan = planner.solve(spec)
    assert plan.status == "optimal" and findings(resolve(parse_spec(spec)), plan.document) == []
    needs, lost, per_system = [], [], []
    for asked, row, facts in zip(spec["workloads"], plan["workloads"], resolve(parse_spec(spec)).serving, strict=True):
        (point,), (pool,) = row["points"], row["points"][0]["pools"]
        deployed = next(each for each in plan["deployments"] if each["workload"] == row["name"])
        profile = np.array(asked["demand"]["profile"])
        needs.append(asked["demand"]["requests_per_s"] * profile / profile.mean() / point["capacity"])
        seconds = start_s(asked["scale_up"], facts.weights_bytes, deployed["load_parts_s"].get("warm_up", 0.0))
        assert deployed["load_s"] == pytest.approx(seconds)
        lost.append(min(seconds / 3600, 1.0))
        per_system.append(8 // math.prod(pool["layout"].values()))
    systems = spec["offers"][0]["supply"]
    assert plan.objective["value"] == pytest.approx(most_load(systems, needs, lost, per_system), rel=1e-5)
