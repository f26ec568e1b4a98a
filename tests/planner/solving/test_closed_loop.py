"""A number of sessions as the demand: the rate that plans find is that of the closed loop, and checks find rows that are not."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import planner
from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from planner.candidates.fleet_options import build_fleet_options
from planner.errors import SpecError
from planner.evaluate.serving import engine_choices, evaluate
from planner.pipeline import check_document
from planner.plan import Plan
from planner.resolve.resolver import resolve
from planner.solving.closed_loop import solve_closed
from planner.spec.document import edited
from planner.spec.load.closed_loop import MOST_OFF, first_rate
from planner.spec.model import parse_spec
from planner.verify.plan import verify_plan
from tests.conftest import ALL_CASES
from tests.plans.serving_enumeration import DAY, assert_fewest, fewest_systems

SPEC: dict[str, Any] = {
    "name": "agents at once",
    "workloads": [
        {
            "name": "agents", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"sessions": 500, "profile": DAY},
            "lengths": {"input": 4000, "output": 300}, "session": {"calls": 10, "growth": 800, "wait": "6 s"},
            "origins": [{"region": "us-texas", "share": 1}], "slo": {"task": {"p95": "4 min"}}, "disaggregation": "never",
        },
    ],
    "sites": [{"region": "us-texas"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 40}],
    "solver": {"replicas": "divisible", "gap": 0.02, "time_limit": "60 s"},
    "simplicity": {"within": 0},
}  # fmt: skip
DEMAND = "workloads[0].demand"
CASES = 150 if ALL_CASES else 4  # cases of drawn sessions


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.solve(SPEC)


def test_so_many_sessions_send_calls_at_the_rate_of_the_plan(plan):
    """X = N / (R + (1 - 1/n) Z) for each point, in the busiest hour."""
    (row,) = plan["closed_loops"]
    busiest = max(plan["schedule"], key=lambda each: sum(each["active"].values()))
    points = plan["workloads"][0]["points"]
    at_work = sum(
        point["capacity"] * busiest["active"].get(point["id"], 0.0) * (point["call_s"] + 0.9 * 6.0) for point in points
    )
    assert row["reached"] == pytest.approx(at_work, rel=1e-6)
    assert at_work == pytest.approx(500, rel=MOST_OFF)
    calls = sum(point["capacity"] * busiest["active"].get(point["id"], 0.0) for point in points)
    assert calls == pytest.approx(10 * row["tasks_per_s"] * max(DAY) * 24 / sum(DAY), rel=1e-6)


def test_the_plan_is_that_of_its_rate(plan):
    rate = plan["closed_loops"][0]["tasks_per_s"]
    same = planner.solve(edited(SPEC, ((f"{DEMAND}.sessions", None), (f"{DEMAND}.tasks_per_s", rate))))
    assert same.objective["value"] == pytest.approx(plan.objective["value"], rel=0.02)
    assert plan["spec"] == SPEC


class FixedCalls:
    """Plans in which calls take a time that depends on the rate as given."""

    def __init__(self, call_s: Any):
        self.call_s, self.rates = call_s, []

    def __call__(self, document: dict[str, Any]) -> Plan:
        rate = document["workloads"][0]["demand"]["tasks_per_s"]
        self.rates.append(rate)
        sessions = 10 * rate * (self.call_s(rate) + 0.9 * 6.0)
        return Plan(
            {
                "status": "optimal", "objective": {"value": 1.0}, "totals": {},
                "workloads": [{"name": "agents", "session": {"sessions": sessions}}],
            }
        )  # fmt: skip


@pytest.mark.parametrize("call_s", [lambda rate: 2.0, lambda rate: 1.0 + 0.2 * rate, lambda rate: 30.0 / (1.0 + rate)])
def test_the_search_ends_where_the_sessions_are_those_asked_for(call_s):
    plans = FixedCalls(call_s)
    found = solve_closed(SPEC, plans, lambda line: None)
    assert found["closed_loops"][0]["reached"] == pytest.approx(500, rel=MOST_OFF)
    assert len(plans.rates) <= 8


def test_where_plans_swing_between_fast_and_slow_points_rates_between_them_are_tried():
    plans = FixedCalls(lambda rate: 2.0 + 8.0 / (1.0 + math.exp(-20.0 * (rate - 4.0))))
    assert solve_closed(SPEC, plans, lambda line: None)["closed_loops"][0]["reached"] == pytest.approx(
        500, rel=MOST_OFF
    )


def test_a_search_that_does_not_settle_gives_no_plan():
    swings = iter([2.0, 200.0] * 20)
    found = solve_closed(SPEC, FixedCalls(lambda rate: next(swings)), lambda line: None)
    assert found.status == "limit" and found.objective["value"] is None


@pytest.mark.parametrize(
    ("key", "value"), [("sessions", 501), ("tasks_per_s", 1.0), ("reached", 500.5), ("workload", "others")]
)
def test_rows_that_are_wrong_are_found(plan, key, value):
    bent = copy.deepcopy(plan.document)
    bent["closed_loops"][0][key] = value
    assert any("closed_loops" in found.path or "routes" in found.path for found in verify_plan(Plan(bent)))
    del bent["closed_loops"]
    assert verify_plan(Plan(bent))


def test_first_rates_keep_the_limits():
    workload = parse_spec(SPEC).workloads[0]
    assert first_rate(workload) == pytest.approx(500 / (10 * 10.0 + 9 * 6.0))
    assert first_rate(parse_spec(edited(SPEC, (("workloads[0].slo.task.p95", "100 s"),))).workloads[0]) == 5.0


def test_what_has_no_closed_loop_says_so():
    with pytest.raises(SpecError, match=r"demand\.sessions: only plans find the rate"):
        resolve(parse_spec(SPEC))
    with pytest.raises(SpecError, match=r"demand\.sessions: of tasks, which need a session"):
        parse_spec(edited(SPEC, (("workloads[0].session", None), ("workloads[0].slo", {}))))
    with pytest.raises(SpecError, match=r"demand\.sessions: is not known together with an objective of throughput"):
        planner.solve(edited(SPEC, (("objective", {"maximise": "throughput"}),)))
    assert check_document(SPEC)["workloads"] == 1


# -- against enumeration -----------------------------------------------------------------------------------------------


def drawn(seed: int) -> dict[str, Any]:
    """Draw sessions at once: tasks, waits, ways for caches to wait and limits."""
    rng = np.random.default_rng(seed)
    calls = int(rng.integers(1, 20))
    session = {
        "calls": calls, "calls_cv": float(rng.choice([0.0, 0.5])) if calls > 1 else 0.0, "growth": int(rng.integers(0, 3000)),
        "wait": f"{rng.uniform(0, 60):.3g} s", "caches": list(rng.permutation(["resident", "offloaded", "dropped"])[: rng.integers(1, 4)]),
    }  # fmt: skip
    changes = {
        "session": session, "lengths.input": int(rng.integers(100, 8000)), "lengths.output": int(rng.integers(20, 800)),
        "demand": {"sessions": int(rng.integers(20, 3000)), **({"profile": DAY} if rng.random() < 0.5 else {})},
        "slo": {"task": {"p95": f"{calls * rng.uniform(10, 60) + 300:.4g} s"}, "ttft": {"p95": f"{rng.uniform(0.5, 4):.3g} s"}},
    }  # fmt: skip
    free = (("sites[0].electricity_price", "0 USD/MWh"), ("offers[0].supply", 1000), ("solver.gap", 1e-6))
    return edited(SPEC, (*((f"workloads[0].{key}", value) for key, value in changes.items()), *free))


@pytest.mark.parametrize("seed", range(CASES))
def test_plans_take_the_fewest_systems_of_all_ways_at_the_rate_that_the_sessions_make(seed):
    """N = calls (R + Z) summed over the points at work, each evaluated alone; and no way to run serves that rate on fewer systems."""
    spec = drawn(seed)
    plan = planner.solve(spec)
    if not plan.has_answer:
        assert plan.status == "infeasible"
        assert_fewest(at_rate(spec, first_rate(parse_spec(spec).workloads[0])))
        return
    (row,) = plan["closed_loops"]
    rated = at_rate(spec, row["tasks_per_s"])
    assert verify_plan(plan) == []
    assert sum(held["count"] for held in plan["fleet"]) == math.ceil(fewest_systems(rated) - 1e-6)
    demand, session = spec["workloads"][0]["demand"], spec["workloads"][0]["session"]
    peak = max(DAY) * 24 / sum(DAY) if "profile" in demand else 1.0
    calls_per_s = session["calls"] * row["tasks_per_s"] * peak
    busiest = max(plan["schedule"], key=lambda each: sum(each["active"].values()))
    points = [p for p in plan["workloads"][0]["points"] if busiest["active"].get(p["id"], 0.0) > 0]
    served = [point["capacity"] * busiest["active"][point["id"]] for point in points]
    assert sum(served) == pytest.approx(calls_per_s, rel=1e-6)
    between_s = (1 - 1 / session["calls"]) * float(session["wait"].split()[0])
    at_work = sum(rate * (call_s(rated, point) + between_s) for rate, point in zip(served, points, strict=True))
    assert at_work == pytest.approx(demand["sessions"], rel=MOST_OFF * 1.001)


def at_rate(spec: dict[str, Any], tasks_per_s: float) -> dict[str, Any]:
    return edited(spec, ((f"{DEMAND}.sessions", None), (f"{DEMAND}.tasks_per_s", tasks_per_s)))


def call_s(rated: dict[str, Any], point: dict[str, Any]) -> float:
    """Evaluate the mean time of a call at a point of a plan [s]."""
    problem = resolve(parse_spec(rated))
    (workload,), (pool,) = problem.serving, point["pools"]
    option = next(each for each in build_fleet_options(problem)[0] if each.fabric == pool["topology"])
    choice = next(c for c in engine_choices(workload, option.system) if (c.waiting, c.kv_precision) == (pool.get("waiting", c.waiting), pool.get("kv_precision", c.kv_precision)))  # fmt: skip
    layout = ServingLayouts(*(pool["layout"][name] for name in ("tp", "pp", "dp", "ep")))
    found = evaluate(
        workload, option.system, option.scaleout, layout, float(pool["batch"]), choice, problem.constants.serving
    )
    return float(latency_s(found, "e2e", "mean"))


@pytest.mark.parametrize("ask", [planner.solve, check_document])
def test_names_shape_and_what_loops_do_not_go_with_are_told_in_one_round(ask):
    wrong = edited(SPEC, (("workloads[0].architecture", "Llama-9"), ("sites[0].region", "us-texaz")))
    names = ["sites[0].region", "workloads[0].architecture"]

    def told(document: dict[str, Any]) -> list[str]:
        with pytest.raises(SpecError) as refused:
            ask(document)
        return sorted(problem.path for problem in refused.value.problems)

    assert told(wrong) == names
    assert told({**wrong, "colour": 1}) == ["colour", *names]
    assert told({**wrong, "objective": {"maximise": "throughput"}}) == [*names, f"{DEMAND}.sessions"]
