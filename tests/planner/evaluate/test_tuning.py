"""The tunings of a training job: all weights, all weights on packed examples, adapters beside frozen weights."""

from __future__ import annotations

import copy

import pytest

import planner
from models.training.layouts import Layouts
from models.transformer.architecture import parameter_counts
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.estimate.case import resolve_case
from planner.evaluate.interruptions import state_sizes
from planner.evaluate.layouts import evaluate_layouts, memory_needed

WORKLOAD = {
    "name": "tune", "kind": "training", "architecture": "Llama-3.1-70B", "tokens": "60B", "deadline": "30 d",
    "sequence_tokens": 8192, "batch_tokens": 524288,
}  # fmt: skip
CASE = {"workload": WORKLOAD, "system": "DGX H100", "chips": 64}
LAYOUT = Layouts.of(tp=8, pp=2, dp=4)


def facts_of(**tuning):
    return resolve_case({**CASE, "workload": {**WORKLOAD, **tuning}})


def step_of(**tuning):
    setup = facts_of(**tuning).training_setup("bf16")
    return evaluate_layouts(setup, LAYOUT), float(memory_needed(setup, LAYOUT)[0])


def test_frozen_weights_have_no_gradients_of_their_own():
    whole, memory = step_of()
    tuned, less = step_of(tuning="lora")
    # two of three passes over the matrices, and thin products beside them
    assert 0.6 * whole.breakdown["compute"][0] < tuned.breakdown["compute"][0] < 0.8 * whole.breakdown["compute"][0]
    assert tuned.breakdown["attention"][0] == pytest.approx(whole.breakdown["attention"][0])
    assert tuned.step_s[0] < 0.9 * whole.step_s[0]
    assert tuned.breakdown["dp"][0] <= whole.breakdown["dp"][0]
    # per parameter 4 bytes of gradient and 12 / dp of optimizer state
    parameters = parameter_counts(facts_of().architecture).total / 16
    assert memory - less > 0.9 * parameters * (4 + 12 / 4)


def test_mfu_counts_what_the_tuning_needs():
    whole, tuned = step_of()[0], step_of(tuning="lora")[0]
    assert whole.mfu[0] * whole.step_s[0] * 2 / 3 < tuned.mfu[0] * tuned.step_s[0] < whole.mfu[0] * whole.step_s[0]


def test_larger_adapters_cost_more():
    small, some = step_of(tuning="lora", adapters={"rank": 8})
    for adapters in ({"rank": 128}, {"rank": 8, "targets": "all"}):
        large, more = step_of(tuning="lora", adapters=adapters)
        assert large.step_s[0] > small.step_s[0] and large.breakdown["compute"][0] > small.breakdown["compute"][0]
        assert more > some


def test_packed_examples_shorten_attention_only():
    whole, memory = step_of(tuning="sft")
    packed, same = step_of(tuning="sft", example_tokens=1024)
    assert packed.breakdown["attention"][0] == pytest.approx(whole.breakdown["attention"][0] / 8)
    assert packed.breakdown["compute"][0] == whole.breakdown["compute"][0] and same == memory
    assert step_of(tuning="sft")[0].step_s[0] == step_of()[0].step_s[0]


def test_a_checkpoint_holds_what_is_trained_and_a_restart_loads_all():
    found = {
        tuning: state_sizes(facts.job, facts.constants.reliability)
        for tuning in ("sft", "lora")
        for facts in [facts_of(tuning=tuning)]
    }
    assert found["lora"][0] < 1e-3 * found["sft"][0]
    assert found["lora"][1] > 2 * parameter_counts(facts_of().architecture).total
    assert found["sft"][1] == found["sft"][0]


def test_a_network_that_cannot_be_trained_on_a_system_can_be_tuned_there():
    node = {**CASE, "system": "HGX H20 8-GPU server", "chips": 8}
    assert estimate({**node, "workload": WORKLOAD}).answer is None
    assert estimate({**node, "workload": {**WORKLOAD, "tuning": "lora"}}).answer is not None


@pytest.mark.parametrize(
    "tuning",
    [
        {"tuning": "lora"},
        {"tuning": "lora", "adapters": {"rank": 64, "targets": "all"}, "example_tokens": 512},
        {"tuning": "sft", "example_tokens": 512},
    ],
)
def test_plans_of_every_tuning_hold(tuning):
    spec = {
        "name": "tuning", "workloads": [{**WORKLOAD, **tuning}], "sites": [{"region": "us-virginia"}],
        "offers": [{"system": "DGX H100", "how": "on_demand", "price": "20 USD/h"}],
    }  # fmt: skip
    plan = planner.solve(copy.deepcopy(spec))
    assert plan.has_answer and planner.verify_plan(plan) == []
    full = planner.solve(spec | {"workloads": [WORKLOAD]})
    assert plan.objective["value"] <= full.objective["value"]
    points = [w["workloads"][0]["points"][0] for w in (plan, full)]
    assert (
        points[0]["capacity"] / points[0]["pools"][0]["systems_per_replica"]
        > points[1]["capacity"] / points[1]["pools"][0]["systems_per_replica"]
    )


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"tuning": "qlora"}, "workload.tuning"),
        ({"adapters": {"rank": 8}}, "workload.adapters"),
        ({"tuning": "sft", "adapters": {"rank": 8}}, "workload.adapters"),
        ({"tuning": "lora", "adapters": {"rank": 0}}, "workload.adapters.rank"),
        ({"example_tokens": 512}, "workload.example_tokens"),
        ({"tuning": "sft", "example_tokens": 8193}, "workload.example_tokens"),
    ],
)
def test_a_wrong_tuning_is_named_with_its_place(change, path):
    with pytest.raises(SpecError) as error:
        facts_of(**change)
    assert [problem.path for problem in error.value.problems] == [path]
