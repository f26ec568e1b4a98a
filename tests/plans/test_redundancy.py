"""Deployments that carry their load when one system fails, by trying every failure."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.verify.plan import verify_plan
from tests.plans.test_deployments import question

CASES = [
    (architecture, rate, disaggregation)
    for architecture in ("Meta-Llama-3.1-8B", "Meta-Llama-3.1-70B", "DeepSeek-V3")
    for rate in (0.05, 3.0, 40.0)
    for disaggregation in ("allowed", "never", "always")
]


def redundant(architecture, rate, disaggregation="allowed", redundancy="N+1"):
    document = question(architecture, rate)
    document["workloads"][0] |= {"redundancy": redundancy, "disaggregation": disaggregation}
    return document


def left_after_each_failure(plan):
    """Yield by deployment, slot and role the workers left when one system fails, those of a replica, and those at work."""
    for row in plan["deployments"]:
        for slot in plan["schedule"]:
            workers = slot.get("resident", {}).get(row["point"])
            if workers is None or not slot["active"].get(row["point"]):
                continue
            for pool, resident in zip(row["pools"], workers):
                on_one_system = 1 if pool["systems_per_worker"] >= 1 else round(1 / pool["systems_per_worker"])
                for lost in range(1, min(on_one_system, resident) + 1):  # a system may hold fewer
                    yield resident - lost, pool["workers_per_replica"], slot["active"][row["point"]]


@pytest.mark.parametrize(("architecture", "rate", "disaggregation"), CASES)
def test_every_single_failure_leaves_the_load_and_a_replica(architecture, rate, disaggregation):
    plan = planner.solve(redundant(architecture, rate, disaggregation))
    assert plan.has_answer and plan["replicas"] == "whole"
    failures = list(left_after_each_failure(plan))
    assert failures
    for left, of_replica, active in failures:
        assert left >= of_replica and left >= of_replica * active - 1e-6
    without = planner.solve(
        {**redundant(architecture, rate, disaggregation), "workloads": question(architecture, rate)["workloads"]}
    )
    assert plan.objective["value"] >= without.objective["value"] * (1 - plan["spec"]["solver"]["gap"] - 0.01)


def test_verify_finds_a_missing_spare():
    plan = planner.solve(redundant("Meta-Llama-3.1-70B", 3.0))
    wrong = copy.deepcopy(plan.document)
    of_replica = {row["point"]: [pool["workers_per_replica"] for pool in row["pools"]] for row in wrong["deployments"]}
    for slot in wrong["schedule"]:
        slot["resident"] = {name: of_replica[name] for name in slot["resident"]}
    assert any("lost with a system" in str(finding) for finding in verify_plan(Plan(wrong)))


def test_a_share_is_held_beyond_the_systems_at_work():
    plain, spare = (
        planner.solve(question("Meta-Llama-3.1-70B", 400.0)),
        planner.solve(redundant("Meta-Llama-3.1-70B", 400.0, redundancy=0.5)),
    )
    assert verify_plan(spare) == []
    held = lambda plan: sum(row["count"] for row in plan["fleet"])
    assert held(spare) >= 1.4 * held(plain)


@pytest.mark.parametrize("block", [{"solver": {"replicas": "divisible"}}, {"robust": {"confidence": 0.8}}])
def test_what_has_no_whole_replicas_is_refused(block):
    with pytest.raises(SpecError, match=r"workloads\[0\].redundancy"):
        planner.solve({**redundant("Meta-Llama-3.1-8B", 1.0), **block})
