"""Classes of requests by priority: their queues in plans and cases, their limits, and every point enumerated against the plan."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import planner
from models.serving import examples
from models.serving.percentiles import latency_s
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.evaluate.classes import class_points
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.load.classes import RequestClass
from planner.spec.model import parse_spec
from planner.studies.sharing_capabilities import PRIORITIES, capabilities
from tests.plans.serving_enumeration import CASES, assert_fewest, said

CLASSES = [
    {"name": "gold", "share": 0.2, "priority": 1, "ttft": {"p95": "250 ms"}},
    {"name": "silver", "share": 0.3, "priority": 2, "ttft": {"p99": "1 s"}},
    {"name": "rest", "share": 0.5, "priority": 3},
]
SPEC: dict[str, Any] = {
    "name": "classes",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"requests_per_s": 60},
            "lengths": {"input": 4000, "output": 100, "input_cv": 1.0, "output_cv": 1.0}, "origins": [{"region": "us-texas", "share": 1}],
            "classes": CLASSES, "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "disaggregation": "never",
        }
    ],
    "sites": [{"region": "us-texas", "electricity_price": "0 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 1000}],
    "solver": {"replicas": "divisible"},
    "simplicity": {"within": 0},
}  # fmt: skip
W = "workloads[0]"


@pytest.fixture(scope="module", params=["never", "always"])
def document(request) -> dict[str, Any]:
    plan = planner.solve(edited(SPEC, ((f"{W}.disaggregation", request.param),)))
    assert plan.has_answer
    return plan.document


def test_the_plan_holds_and_the_first_class_waits_least(document):
    assert said(document) == []
    queues = document["workloads"][0]["queues"]
    assert [row["class"] for row in queues] == ["gold", "silver", "rest"]
    waits = [row["wait_s"] for row in queues]
    assert waits == sorted(waits) and waits[0] < waits[2]
    assert queues[0]["ttft_s"]["p95"] <= 0.25 and queues[1]["ttft_s"]["p99"] <= 1.0
    assert queues[0]["slo"][0]["slack_s"] == pytest.approx(0.25 - queues[0]["ttft_s"]["p95"])


@pytest.mark.parametrize(
    "path",
    [
        ("queues", 0, "wait_s"),
        ("queues", 1, "ttft_s", "p99"),
        ("queues", 2, "share"),
        ("points", 0, "classes", 0, "wait_s"),
    ],
)
def test_a_bent_queue_is_found(document, path):
    bent = copy.deepcopy(document)
    node = bent["workloads"][0]
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] *= 1.3
    assert said(bent)


def test_one_class_is_the_queue_in_order_of_arrival():
    one, *_ = class_points([RequestClass(name="all", share=1.0)], examples.POINT)
    for quantile in ("mean", 0.5, 0.95, 0.99):
        assert latency_s(one, "ttft", quantile) == pytest.approx(latency_s(examples.POINT, "ttft", quantile), rel=1e-9)
    plain = planner.solve(edited(SPEC, ((f"{W}.classes", None),)))
    alone = planner.solve(edited(SPEC, ((f"{W}.classes", [{"name": "all", "share": 1}]),)))
    assert alone.objective["value"] == pytest.approx(plain.objective["value"], rel=1e-9)


def test_waits_of_all_classes_add_up_to_those_in_order_of_arrival():
    classes = [RequestClass.model_validate(each) for each in CLASSES]
    found = class_points(classes, examples.POINT)
    mean = sum(each.share * point.prefill_wait_s for each, point in zip(classes, found, strict=True))
    assert mean == pytest.approx(examples.POINT.prefill_wait_s, rel=1e-9)


def test_priority_serves_a_class_with_fewer_systems_than_the_limit_for_all():
    strict = edited(SPEC, ((f"{W}.classes", None), (f"{W}.slo.ttft", {"p95": "250 ms"})))
    some = planner.solve(edited(SPEC, ((f"{W}.classes[1].ttft", None),)))
    assert some.objective["value"] <= planner.solve(strict).objective["value"] * (1 + 1e-9)


def test_an_impossible_class_is_named():
    plan = planner.solve(edited(SPEC, ((f"{W}.classes[0].ttft.p95", "20 ms"),)))
    assert plan.status == "infeasible"
    assert "workloads[0].classes[0].ttft.p95" in [row["path"] for row in plan["diagnosis"]["conflict"]]


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ([{"name": "a", "share": 0.5}], "add up to 0.5"),
        ([{"name": "a", "share": 0.5}, {"name": "a", "share": 0.5}], "occurs twice"),
        ([{"name": "a", "share": 1, "priority": 0}], "at least 1"),
    ],
)
def test_bad_classes_are_refused(classes, words):
    with pytest.raises(SpecError, match=words):
        parse_spec(edited(SPEC, ((f"{W}.classes", classes),)))


def test_a_case_states_the_queues():
    workload = {key: value for key, value in SPEC["workloads"][0].items() if key not in ("name", "demand", "origins")}
    answer = estimate({"workload": workload, "system": "DGX H100", "chips": 8}).answer
    assert answer is not None
    waits = [row["wait_s"] for row in answer["queues"]]
    assert waits == sorted(waits)


def test_sharing_says_what_the_order_is_worth():
    problem = resolve(parse_spec(SPEC))
    (found,) = [each for each in capabilities(problem, SPEC) if each.name == PRIORITIES]
    alike = planner.solve(edited(SPEC, found.edits))
    assert alike.status == "infeasible" or alike.objective["value"] >= planner.solve(SPEC).objective["value"] * (
        1 - 1e-9
    )


def drawn(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 5))
    shares = rng.dirichlet(np.ones(number) * 3)
    classes = [
        {
            "name": f"c{i}", "share": float(share), "priority": int(rng.integers(1, 4)),
            **({"ttft": {"p95": f"{rng.uniform(0.1, 2):.3g} s"}} if rng.random() < 0.7 else {}),
        }
        for i, share in enumerate(shares)
    ]  # fmt: skip
    classes[-1]["share"] = 1.0 - sum(each["share"] for each in classes[:-1])
    changes = {
        "classes": classes, "lengths.input": int(rng.integers(100, 8000)), "lengths.output": int(rng.integers(20, 500)),
        "demand": {"requests_per_s": round(float(rng.uniform(2, 150)), 3)}, "slo": {"tpot": {"p95": f"{rng.uniform(15, 80):.3g} ms"}},
    }  # fmt: skip
    return edited(SPEC, tuple((f"{W}.{key}", value) for key, value in changes.items()))


@pytest.mark.parametrize("seed", range(CASES))
def test_plans_take_the_fewest_systems_that_keep_the_limits_of_every_class(seed):
    assert_fewest(drawn(seed))
