"""Random specs solved in several ways: values agree within the gaps, and no bound lies above another's value."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from tests.conftest import few_of, long_run
from tests.plans.test_plan_properties import questions

SPECS = few_of(200)
NEAR = 1e-6  # rounding of values and bounds
many = settings(max_examples=SPECS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
some = settings(max_examples=few_of(12), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
Spec = dict[str, Any]


def solved(spec: Spec, **solver: Any) -> tuple[float, float]:
    """Return value and bound; both infinite where nothing fits."""
    plan = planner.solve({**copy.deepcopy(spec), "solver": {**spec["solver"], **solver}})
    if plan.status == "infeasible":
        return math.inf, math.inf
    assert plan.has_answer, plan.status
    return plan.objective["value"], plan["bound"]


def agree(one: tuple[float, float], other: tuple[float, float], one_in_other: float = 1.0) -> None:
    """Compare (value, bound) of the same question, whose amounts are `one_in_other` times as large in the other."""
    if math.inf in one or math.inf in other:
        assert one == other
        return
    assert one[1] * one_in_other <= other[0] * (1 + NEAR) and other[1] <= one[0] * one_in_other * (1 + NEAR)


def renamed(spec: Spec) -> Spec:
    result = copy.deepcopy(spec)
    for workload, name in zip(result["workloads"], ("zz", "aa"), strict=False):
        workload["name"] = name
    return result


def in_other_units(spec: Spec) -> Spec:
    result = copy.deepcopy(spec)
    for metric in result["workloads"][0]["slo"].values():
        metric["p95"] = f"{float(metric['p95'].removesuffix(' ms')) / 1000} s"
    for job in result["workloads"][1:]:
        job["tokens"] = f"{float(job['tokens'].removesuffix('B')) / 1000}T"
        job["deadline"] = f"{24 * int(job['deadline'].removesuffix(' d'))} h"
    return result


@long_run
@many
@given(questions())
def test_ways_to_solve_and_to_write_a_question_agree(spec):
    base = solved(spec)
    for solver in ({"backend": "pulp"}, {"method": "direct"}, {"method": "branch"}):
        agree(base, solved(spec, **solver))
    for other in (renamed(spec), in_other_units(spec)):
        agree(base, solved(other))


@some
@given(questions(training=False), st.floats(-1, 2.5), st.sampled_from(["never", "allowed"]))
def test_divisible_replicas_never_cost_more_than_whole_ones(spec, magnitude, disaggregation):
    """From a small part of what one replica serves to what several do."""
    spec["workloads"][0] |= {"demand": {"requests_per_s": 10**magnitude}, "disaggregation": disaggregation}
    divisible, whole = (solved(spec, replicas=replicas) for replicas in ("divisible", "whole"))
    assert divisible[1] <= whole[0] * (1 + NEAR)


@pytest.mark.parametrize(
    ("disaggregation", "requests_per_s", "architecture", "lengths"),
    [
        ("never", 5.0, "Llama-3.2-1B", {"input": 1500, "output": 300}),
        ("allowed", 75.9, "Qwen3-32B", {"input": 4000, "output": 400}),
    ],
)
def test_divisible_replicas_never_cost_more_where_one_is_enough(disaggregation, requests_per_s, architecture, lengths):
    """The two that once did: the best replica for all of the demand was left out since it serves a little more."""
    chat = {
        "name": "chat", "kind": "serving", "architecture": architecture, "demand": {"requests_per_s": requests_per_s},
        "lengths": lengths, "origins": [{"region": "us-virginia", "share": 1}], "precision": ["fp8"],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "disaggregation": disaggregation,
    }  # fmt: skip
    offers = [{"system": "DGX H200", "how": "buy", "price": "340000 USD"}]
    spec = {
        "name": "one", "workloads": [chat], "sites": [{"region": "us-virginia"}], "offers": offers,
        "simplicity": {"within": 0}, "solver": {"gap": 1e-6},
    }  # fmt: skip
    divisible, whole = (solved(spec, replicas=replicas) for replicas in ("divisible", "whole"))
    assert divisible[1] <= whole[0] * (1 + NEAR)


@pytest.mark.parametrize("times", [2.0])
def test_the_comparison_refuses_a_bound_above_a_value(times):
    with pytest.raises(AssertionError):
        agree((1.0, 1.0), (3.0, 2.5), times)
