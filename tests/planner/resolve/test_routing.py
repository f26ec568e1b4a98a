"""The block `routing` of a workload in plans and cases: what it changes, and what is refused."""

from __future__ import annotations

import copy

import pytest

import planner
from models.transformer import routing as routings
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.spec.document import edited

WORKLOAD = {
    "kind": "serving",
    "architecture": "Qwen3-30B-A3B",
    "lengths": {"input": 1000, "output": 300},
    "precision": ["fp8"],
    "disaggregation": "never",
}
CASE = {
    "workload": WORKLOAD,
    "system": "DGX H200",
    "chips": 8,
    "layout": {"tp": 1, "pp": 1, "dp": 8, "ep": 8},
    "load": {"concurrency": 512},
}
SPEC = {
    "schema_version": 1,
    "name": "routed",
    "workloads": [
        {
            **WORKLOAD,
            "name": "chat",
            "demand": {"requests_per_s": 400},
            "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"tpot": {"p95": "40 ms"}},
            "routing": {"popularity": 0.6, "redundant_experts": 32, "capacity_factor": 1.5},
        }
    ],
    "sites": [{"region": "us-virginia", "systems": ["DGX H200"]}],
    "offers": [{"system": "DGX H200", "how": "buy", "price": "330000 USD"}],
    "simplicity": {"within": 0},
    "solver": {"replicas": "divisible"},
}


def answer(**routing):
    case = copy.deepcopy(CASE)
    if routing:
        case["workload"]["routing"] = routing
    found = estimate(case).answer
    assert found is not None
    return found


def test_a_case_states_what_its_routing_does():
    usual, skewed = answer(), answer(popularity=1.2)
    copied = answer(popularity=1.2, redundant_experts=64)
    assert (
        "routing" not in usual and skewed["routing"]["held_experts"] == 128 and copied["routing"]["held_experts"] == 192
    )
    assert 1 <= copied["routing"]["fullest_rank"] < skewed["routing"]["fullest_rank"]
    assert copied["memory_bytes"] > skewed["memory_bytes"] and copied["tokens_per_s"] > skewed["tokens_per_s"]
    assert answer(capacity_factor=1.0)["routing"]["dropped_share"] > 0


def test_a_plan_with_a_routing_holds_and_even_experts_cost_no_more():
    assert planner.verify_plan(planner.solve(SPEC)) == []
    skewed, even = (
        planner.solve(edited(copy.deepcopy(SPEC), [("workloads[0].routing", {"popularity": exponent})]))
        for exponent in (1.5, 0)
    )
    assert even["bound"] < skewed.objective["value"]


@pytest.mark.parametrize(
    "edits, words",
    [
        ([("workloads[0].architecture", "Llama-3.1-8B")], "has no experts"),
        ([("workloads[0].routing", {"popularity": 1, "imbalance": 2})], "remove one of them"),
        ([("workloads[0].routing", {"capacity_factor": 0})], "capacity_factor"),
    ],
)
def test_what_cannot_be_is_refused(edits, words):
    with pytest.raises(SpecError, match=words) as caught:
        planner.solve(edited(copy.deepcopy(SPEC), edits))
    assert caught.value.problems[0].path.startswith("workloads[0].routing")


def test_a_case_without_experts_is_refused():
    case = edited(
        copy.deepcopy(CASE), [("workload.architecture", "Llama-3.1-8B"), ("workload.routing", {"popularity": 1})]
    )
    with pytest.raises(SpecError, match="has no experts"):
        estimate(case)


TRAINED = {
    "workload": {"name": "job", "kind": "training", "architecture": "Qwen3-30B-A3B", "tokens": "1T tokens", "deadline": "90 d"},
    "system": "DGX H200", "chips": 64,
}  # fmt: skip


def trained(**routing):
    found = estimate(edited(copy.deepcopy(TRAINED), [("workload.routing", routing or None)])).answer
    assert found is not None
    return found


def test_a_training_case_states_what_its_routing_does():
    usual, skewed = trained(), trained(popularity=0.8)
    assert "routing" not in usual and skewed["routing"] == {
        "fullest_rank": pytest.approx(skewed["routing"]["fullest_rank"]),
        "dropped_share": 0.0,
    }
    assert skewed["routing"]["fullest_rank"] > 1.0 or skewed["layout"]["ep"] == 1
    dropped = trained(popularity=0.8, capacity_factor=1.0)
    assert dropped["routing"]["dropped_share"] > 0.05 and dropped["step_s"] < skewed["step_s"]


def test_a_plan_of_training_with_a_routing_holds():
    job = {
        **TRAINED["workload"],
        "name": "job",
        "tokens": "300B tokens",
        "routing": {"popularity": 0.6, "capacity_factor": 1.25},
    }
    plan = planner.solve({**SPEC, "workloads": [job], "offers": [{"system": "DGX H200", "how": "buy", "supply": 32}]})
    assert plan.has_answer and planner.verify_plan(plan) == []


@pytest.mark.parametrize(
    ("edit", "path", "words"),
    [
        (("workload.routing", {"redundant_experts": 8}), "workload.routing.redundant_experts", "without copies"),
        (("workload.architecture", "Llama-3.1-8B"), "workload.routing", "has no experts"),
    ],
)
def test_what_cannot_be_in_training_is_refused(edit, path, words):
    with pytest.raises(SpecError) as caught:
        estimate(edited(copy.deepcopy(TRAINED), [("workload.routing", {"popularity": 0.5}), edit]))
    assert [(p.path, words in p.message) for p in caught.value.problems] == [(path, True)]


LEARNED = {
    "workload": {
        "name": "rl", "kind": "reinforcement", "architecture": "Qwen3-30B-A3B", "prompts": 64, "samples": 8, "mini_batches": 2,
        "lengths": {"prompt": 300, "response": 1000, "limit": 4096, "endless": 0}, "ways": ["synchronous"],
    },
    "system": "DGX H200", "chips": 32, "rollout_chips": 16, "layout": {"tp": 1, "pp": 1, "dp": 16, "ep": 16, "zero": 1},
}  # fmt: skip


def learned(**routing):
    found = estimate(edited(copy.deepcopy(LEARNED), [("workload.routing", routing or None)])).answer
    assert isinstance(found, dict)
    return found, {pool["role"]: pool.get("routing") for pool in found["pools"]}


def test_reinforcement_routes_alike_in_rollout_and_update():
    usual, none = learned()
    even, _ = learned(popularity=0.0)
    skewed, loads = learned(popularity=1.0)
    copied, held = learned(popularity=1.0, redundant_experts=64)
    assert none == {"rollout": None, "update": None}
    assert skewed["parts_s"]["update"] > even["parts_s"]["update"]
    assert skewed["parts_s"]["generation"] >= even["parts_s"]["generation"]
    expected = routings.fullest_rank(128, 1.0, 128, 16)
    assert loads["update"]["fullest_rank"] == pytest.approx(expected) and loads["update"]["dropped_share"] == 0.0
    # Copies are held by engines alone: the update takes as long, on ranks as full.
    assert held["update"] == loads["update"] and copied["parts_s"]["update"] == skewed["parts_s"]["update"]
    assert usual["iteration_s"] > 0


def test_dropped_tokens_shorten_the_update_of_reinforcement():
    skewed, dropped = learned(popularity=1.0)[0], learned(popularity=1.0, capacity_factor=1.0)
    assert dropped[1]["update"]["dropped_share"] > 0.05
    assert dropped[0]["parts_s"]["update"] < skewed["parts_s"]["update"]


@pytest.mark.parametrize(
    ("edits", "path", "words"),
    [
        ([("workload.algorithm", "dpo"), ("workload.samples", 2), ("workload.ways", ["colocated"]), ("rollout_chips", None)],
         "workload.routing.redundant_experts", "without copies"),
        ([("workload.architecture", "Llama-3.1-8B")], "workload.routing", "has no experts"),
    ],
)  # fmt: skip
def test_what_cannot_be_in_reinforcement_is_refused(edits, path, words):
    routed = [("workload.routing", {"redundant_experts": 8})]
    with pytest.raises(SpecError) as caught:
        estimate(edited(copy.deepcopy(LEARNED), [*routed, *edits]))
    assert [(p.path, words in p.message) for p in caught.value.problems] == [(path, True)]
