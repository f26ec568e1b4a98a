"""Plans with agentic sessions: what is asked, what is chosen, what holds; every way for a cache to wait enumerated against the plan."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import planner
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.model import parse_spec
from tests.plans.serving_enumeration import CASES, assert_fewest, said

SESSION = {"calls": 8, "calls_cv": 0.5, "growth": 600, "wait": "10 s"}
AGENTS = {
    "name": "agents", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"tasks_per_s": 3},
    "lengths": {"input": 3000, "output": 200, "input_cv": 0.5, "output_cv": 1.0}, "origins": [{"region": "us-texas", "share": 1}],
    "session": SESSION, "slo": {"task": {"p95": "4 min"}}, "disaggregation": "never",
}  # fmt: skip
SPEC: dict[str, Any] = {
    "name": "sessions",
    "workloads": [AGENTS],
    "sites": [{"region": "us-texas", "electricity_price": "60 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 40}],
    "solver": {"replicas": "divisible"},
    "simplicity": {"within": 0},
}
W = "workloads[0]"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    plan = planner.solve(edited(SPEC, ((f"{W}.disaggregation", "allowed"), (f"{W}.kv_precision", ["bf16", "fp8"]))))
    assert plan.has_answer
    return plan.document


def test_the_plan_holds_and_obeys_littles_law(document):
    assert said(document) == []
    (row,) = document["workloads"]
    found = row["session"]
    assert found["tasks_per_s"] == pytest.approx(3.0) and found["calls_per_s"] == pytest.approx(24.0)
    assert found["waiting_sessions"] == pytest.approx(3.0 * 7 * 10)
    assert found["prompt_tokens"] == pytest.approx(3000 + 0.5 * (8 * 1.25 - 1) * 800)
    calls = [point["call_s"] for point in row["points"]]
    assert 24 * min(calls) * (1 - 1e-9) <= found["sessions"] - found["waiting_sessions"] <= 24 * max(calls) * (1 + 1e-9)
    assert sum(found["waiting"].values()) == pytest.approx(210.0)
    assert {pool["kv_precision"] for point in row["points"] for pool in point["pools"]} <= {"bf16", "fp8"}


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("session", "sessions"), 1.5, "session.sessions"),
        (("session", "waiting_bytes"), 2.0, "session.waiting_bytes"),
        (("session", "slot"), 99, "session.slot"),
        (("points", 0, "call_s"), 0.5, "points[0].call_s"),
        (("points", 0, "pools", 0, "waiting"), "dropped", ""),
        (("points", 0, "pools", 0, "kv_precision"), "int4", "points[0]"),
        (("slo", 0, "predicted_s"), 0.9, "slo"),
    ],
)
def test_a_bent_figure_is_found(document, path, value, place):
    bent = copy.deepcopy(document)
    node = bent["workloads"][0]
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = node[path[-1]] * value if isinstance(value, float) else value
    assert any(place in str(finding) for finding in said(bent))


def test_a_session_of_one_call_is_a_request():
    asked = (("demand", {"requests_per_s": 24}), ("slo", {"e2e": {"p95": "8 s"}}))
    plain = edited(SPEC, ((f"{W}.session", None), *((f"{W}.{key}", value) for key, value in asked)))
    one = edited(SPEC, ((f"{W}.session", {"calls": 1, "growth": 500, "wait": "30 s"}), (f"{W}.demand", {"tasks_per_s": 24}),
                        (f"{W}.slo", {"task": {"p95": "8 s"}})))  # fmt: skip
    assert planner.solve(one).objective["value"] == pytest.approx(planner.solve(plain).objective["value"], rel=1e-9)


def test_longer_waits_and_more_growth_never_cost_less():
    patient = edited(SPEC, ((f"{W}.slo.task.p95", "20 min"),))
    costs = [
        planner.solve(edited(patient, ((f"{W}.session.{key}", value),))).objective["value"]
        for key, value in (("wait", "1 s"), ("wait", "20 s"), ("growth", 1500))
    ]
    usual = planner.solve(patient).objective["value"]
    # Time of a tool counts in the time of the task too.
    assert costs[0] <= usual * (1 + 1e-3) and usual <= costs[1] * (1 + 1e-3) and usual <= costs[2] * (1 + 1e-3)


def test_round_trips_count_for_each_call():
    workload = parse_spec(SPEC).workloads[0]
    (limit,) = workload.limits()
    assert limit.key == "task.p95" and limit.at_site(0.1).seconds == pytest.approx(240 - 8 * 2 * 0.1)
    assert limit.at_origin(10.0, 0.1) == pytest.approx(10 + 8 * 2 * 0.1)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ((("session", None),), "demand.tasks_per_s and slo.task: of tasks, which need a session"),
        ((("cache", {"prefix_tokens": 100, "hit_rate": 0.5}),), "a session keeps its own cache"),
        ((("demand", {"tasks_per_s": 1, "requests_per_s": 2}),), "give exactly one"),
        ((("session", {"calls": 1, "calls_cv": 1}),), "tasks of 1 call on average all have 1 call"),
        ((("session", {"calls": 0.5}),), "at least 1"),
        ((("session", {"calls": 3, "caches": []}),), "at least 1 entries"),
    ],
)
def test_bad_sessions_are_refused_with_a_remedy(edits, words):
    with pytest.raises(SpecError) as error:
        parse_spec(edited(SPEC, tuple((f"{W}.{key}", value) for key, value in edits)))
    assert words in str(error.value) and W in str(error.value)


def test_robust_plans_refuse_sessions():
    robust = edited(SPEC, (("robust", {"confidence": 0.8}),))
    with pytest.raises(SpecError, match=r"workloads\[0\]\.session: robust plans do not hold sessions"):
        resolve(parse_spec(robust))


def test_a_closed_loop_in_estimate():
    workload = {key: value for key, value in AGENTS.items() if key not in ("name", "demand", "origins")}
    case = {"workload": workload, "system": "DGX H100", "chips": 8, "load": {"concurrency": 100}}
    answer = estimate(case).answer
    assert answer is not None
    # X = N / (R + Z): 100 sessions, each of which waits 7/8 of 10 s for each of its calls.
    rate = 100 / (answer["latency_s"]["e2e"]["mean"] + 8.75)
    assert answer["requests_per_s"] == pytest.approx(rate, rel=1e-6)
    assert answer["session"]["sessions"] == pytest.approx(100, rel=1e-6)
    assert answer["latency_s"]["task"]["mean"] == pytest.approx(8 * answer["latency_s"]["e2e"]["mean"] + 70, rel=1e-6)
    few = estimate({**case, "load": {"concurrency": 1}}).answer
    assert few is not None and few["latency_s"]["task"]["mean"] < answer["latency_s"]["task"]["mean"]


def drawn(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    calls = int(rng.integers(1, 20))
    session = {
        "calls": calls, "calls_cv": float(rng.choice([0.0, 0.5])) if calls > 1 else 0.0, "growth": int(rng.integers(0, 3000)),
        "wait": f"{rng.uniform(0, 60):.3g} s", "caches": list(rng.permutation(["resident", "offloaded", "dropped"])[: rng.integers(1, 4)]),
    }  # fmt: skip
    changes = {
        "session": session, "lengths.input": int(rng.integers(100, 8000)), "lengths.output": int(rng.integers(20, 800)),
        "demand": {"tasks_per_s": round(float(rng.uniform(1, 40) / calls), 4)}, "kv_precision": [["bf16"], ["fp8"], ["bf16", "fp8"]][rng.integers(3)],
        "slo": {"task": {"p95": f"{calls * rng.uniform(10, 60) + 300:.4g} s"}, "ttft": {"p95": f"{rng.uniform(0.5, 4):.3g} s"}},
    }  # fmt: skip
    free = (("sites[0].electricity_price", "0 USD/MWh"), ("offers[0].supply", 1000))
    return edited(SPEC, (*((f"{W}.{key}", value) for key, value in changes.items()), *free))


@pytest.mark.parametrize("seed", range(CASES))
def test_plans_take_the_fewest_systems_of_all_ways(seed):
    """With power for nothing, cost is that of systems: the plan has as many as the best way of all needs."""
    assert_fewest(drawn(seed))
