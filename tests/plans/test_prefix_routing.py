"""Routing of prefixes in plans and estimates: what it changes, the row that states it, checks of rows, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.plan import Plan
from planner.report.report import render
from planner.spec.document import edited

CACHE = {
    "prefix_tokens": 7000, "reuse": {"prefixes": 20000, "zipf": 0.9}, "routing": "prefix", "workers": 12,
    "tiers": [{"name": "hbm", "capacity": "200 GB"}, {"name": "dram", "capacity": "1 TB", "bandwidth": "200 GB/s"}],
}  # fmt: skip
SPEC: dict[str, Any] = {
    "name": "routed",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 400},
            "lengths": {"input": 8000, "output": 200}, "origins": [{"region": "us-virginia", "share": 1}], "slo": {"tpot": {"p95": "60 ms"}},
            "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never", "cache": CACHE,
        }
    ],
    "sites": [{"region": "us-virginia"}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD", "supply": 400}],
    "solver": {"replicas": "divisible"},
    "simplicity": {"within": 0},
}  # fmt: skip
ROUTING, WORKERS = "workloads[0].cache.routing", "workloads[0].cache.workers"


def solved(*edits: tuple[str, Any]) -> Plan:
    plan = planner.solve(edited(copy.deepcopy(SPEC), edits))
    assert plan.status in ("optimal", "within_gap")
    return plan


def row(plan: Plan) -> dict[str, Any]:
    return plan["workloads"][0]["prefix_routing"]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solved()


@pytest.fixture(scope="module")
def random() -> Plan:
    return solved((ROUTING, "random"))


def test_routing_by_prefix_finds_more_at_the_price_of_a_full_system(plan, random):
    assert planner.verify_plan(plan) == [] and planner.verify_plan(random) == []
    found, other = row(plan), row(random)
    assert (found["policy"], found["workers"]) == ("prefix", 12) and found["imbalance"] > 1.0 == other["imbalance"]
    for each in found["points"]:
        assert each["hit_rate"] > each["hit_rate_other"] + 0.1
    assert all(each["hit_rate_other"] > each["hit_rate"] + 0.1 for each in other["points"])
    assert found["systems"] <= sum(held["count"] for held in plan["fleet"]) + 1e-9
    assert "by prefix" in render(plan, "md") and "at random" in render(random, "md")


def test_at_random_each_system_draws_all_prefixes(random):
    """As a workload plans whose systems each draw as many prefixes as all of them."""
    alone = solved((ROUTING, None), (WORKERS, None))
    assert alone.objective["value"] == pytest.approx(random.objective["value"], rel=1e-9)
    assert "prefix_routing" not in alone["workloads"][0]


def test_one_worker_is_routed_alike():
    costs = [solved((ROUTING, way), (WORKERS, 1)).objective["value"] for way in ("prefix", "random")]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


def test_an_estimate_is_of_the_fullest_system_and_its_rate_of_the_mean():
    """Rooms as large as all prefixes: hits are the same, so that only the imbalance is left between them."""
    workload = {k: v for k, v in SPEC["workloads"][0].items() if k not in ("name", "demand", "origins")}
    large = {**CACHE, "reuse": {"prefixes": 300, "zipf": 1.0}}
    case = {
        "workload": {**workload, "cache": large},
        "system": "DGX H100",
        "chips": 8,
        "load": "max",
        "layout": {"tp": 1},
    }
    routed, plain = (estimate(edited(case, [("workload.cache.routing", way)])).answer for way in ("prefix", "random"))
    assert routed is not None and plain is not None
    assert (
        routed["tiers"]["imbalance"] > 1.2 and plain["tiers"]["imbalance"] == 1.0 and routed["tiers"]["workers"] == 12
    )
    share = routed["requests_per_s"] / plain["requests_per_s"]
    assert 0.2 < share < 0.8 and routed["latency_s"]["ttft"]["p95"] == pytest.approx(
        plain["latency_s"]["ttft"]["p95"], rel=1e-6
    )


@pytest.mark.parametrize("key", ["workers", "systems", "imbalance"])
def test_bent_rows_are_found(plan, key):
    bent = copy.deepcopy(plan.document)
    bent["workloads"][0]["prefix_routing"][key] += 1
    assert any("prefix_routing" in found.path for found in planner.verify_plan(Plan(bent)))


@pytest.mark.parametrize("key", ["hit_rate", "hit_rate_other", "capacity_other"])
def test_bent_figures_of_points_are_found(plan, key):
    bent = copy.deepcopy(plan.document)
    bent["workloads"][0]["prefix_routing"]["points"][0][key] *= 1.001
    assert any("prefix_routing" in found.path for found in planner.verify_plan(Plan(bent)))
    del bent["workloads"][0]["prefix_routing"]
    assert planner.verify_plan(Plan(bent))


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([(ROUTING, "balance")], "lies between them"),
        ([(WORKERS, None)], 'expected "routing" with "workers"'),
        ([(ROUTING, None)], 'expected "routing" with "workers"'),
        ([(ROUTING, "sticky")], "random"),
        (
            [("workloads[0].cache", {"prefix_tokens": 10, "hit_rate": 0.5, "routing": "prefix", "workers": 2})],
            "follows from",
        ),
    ],
)
def test_what_cannot_be_is_refused(edits, words):
    with pytest.raises(SpecError, match=words) as caught:
        planner.solve(edited(copy.deepcopy(SPEC), edits))
    assert caught.value.problems[0].path.startswith("workloads[0].cache")


def test_a_closed_loop_on_one_of_several_systems_is_refused():
    workload = {k: v for k, v in SPEC["workloads"][0].items() if k not in ("name", "demand", "origins")}
    case = {"workload": workload, "system": "DGX H100", "chips": 8, "load": {"concurrency": 64}}
    with pytest.raises(SpecError, match=r"workload\.cache\.routing: clients of one system"):
        estimate(case)
