"""A plan with reinforcement learning holds; with any of its figures bent, or with parts that contradict each other, it does not."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.plan import findings

JOB = {
    "name": "learn", "kind": "reinforcement", "architecture": "Llama-3.1-8B", "iterations_per_hour": 60, "prompts": 32, "samples": 8, "mini_batches": 2,
    "lengths": {"prompt": 200, "response": 800, "limit": 4096, "cv": 1.0, "endless": 0.01},
}  # fmt: skip
SITE = {"region": "us-texas", "electricity_price": "60 USD/MWh"}
OFFERS = [{"system": name, "how": "buy", "supply": 8} for name in ("DGX H100", "DGX H200")]


def solved(**changed):
    document = {"name": "learning", "workloads": [{**JOB, **changed}], "sites": [SITE], "offers": OFFERS}
    plan = planner.solve(document)
    assert plan.has_answer
    return plan.document


@pytest.fixture(scope="module", params=["asynchronous", "colocated", "streaming"])
def document(request):
    return solved(ways=[request.param])


def said(document):
    return findings(resolve(parse_spec(document["spec"])), document)


def numbers(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from numbers(value, (*path, index))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path


def changed(document, path, change):
    bent = copy.deepcopy(document)
    place = bent["workloads"][0]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return bent


def test_the_plan_holds(document):
    assert said(document) == []


def test_every_number_of_its_rows_counts(document):
    row = document["workloads"][0]
    for path in numbers(row):
        value = row
        for key in path:
            value = value[key]
        bend = (lambda v: v + 1) if isinstance(value, int) else (lambda v: v * (1 + 2e-5) if v else 1e-5)
        assert said(changed(document, path, bend)), path


@pytest.mark.parametrize("key", ["way", "binds"])
def test_words_of_an_iteration_count(document, key):
    other = {"way": "synchronous", "binds": "moonlight"}[key]
    assert said(changed(document, ("points", 0, "iteration", key), lambda _: other))


def test_an_iteration_may_not_be_left_out(document):
    bent = copy.deepcopy(document)
    del bent["workloads"][0]["points"][0]["iteration"]
    assert any("iteration" in str(finding) for finding in said(bent))


def test_a_faster_split_may_not_stand_behind(document):
    bent = copy.deepcopy(document)
    splits = bent["workloads"][0]["points"][0]["iteration"]["splits"]
    if len(splits) > 1:
        splits[:2] = splits[1::-1]
        assert said(bent)


def test_precisions_are_those_asked_for():
    document = solved(ways=["asynchronous"], rollout_precision=["fp8"])
    row = document["workloads"][0]["points"][0]
    assert row["pools"][1]["precision"] == "fp8" and said(document) == []
    bent = copy.deepcopy(document)
    bent["spec"]["workloads"][0]["rollout_precision"] = ["bf16"]
    assert said(bent)


def test_dpo_and_ppo_hold_too():
    for algorithm in (
        {"algorithm": "dpo", "samples": 2},
        {"algorithm": "ppo", "reward": "Llama-3.1-8B", "tuning": "lora"},
    ):
        assert said(solved(**algorithm, iterations_per_hour=20)) == []
