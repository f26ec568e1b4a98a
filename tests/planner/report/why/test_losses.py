"""What the runs of a plan lose: each cause by hand, named above a twentieth on the page, and recomputed by verify."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.messages import translated
from planner.report.page import one_page
from planner.report.why.losses import NAMED_SHARE, clauses, question
from planner.verify.plan import verify_plan

LLAMA3 = {
    "name": "llama3", "kind": "training", "architecture": "Llama-3.1-405B", "tokens": "15.6T", "deadline": "80 d", "sequence_tokens": 8192,
    "batch_tokens": 16777216, "precision": ["bf16"],
}  # fmt: skip
LEARN = {
    "name": "learn", "kind": "reinforcement", "architecture": "Llama-3.1-8B", "iterations_per_hour": 60, "prompts": 32, "samples": 8, "mini_batches": 2,
    "lengths": {"prompt": 200, "response": 800, "limit": 4096, "cv": 1.0, "endless": 0.01}, "ways": ["synchronous"],
}  # fmt: skip


def solved(*jobs, supply=4000):
    document = {
        "name": "losses", "workloads": list(jobs), "sites": [{"region": "us-texas", "electricity_price": "60 USD/MWh"}],
        "offers": [{"system": "DGX H100", "how": "buy", "supply": supply}],
    }  # fmt: skip
    plan = planner.solve(document, threads=1)
    assert plan.has_answer and verify_plan(plan) == []
    return plan


@pytest.fixture(scope="module")
def wide():
    return solved(LLAMA3)


@pytest.fixture(scope="module")
def learning():
    return solved({**LEARN, "controller": {"response": "0.2 s", "workers": 2}}, supply=8)


def test_the_losses_of_a_run_add_up_to_what_its_goodput_lacks(wide):
    (point,) = wide["workloads"][0]["points"]
    assert set(point["losses"]) == {"checkpoints", "work_done_again", "restarts"}
    assert sum(point["losses"].values()) == pytest.approx(1.0 - point["goodput"], rel=1e-9)


def test_what_takes_more_than_a_twentieth_is_named(wide):
    """Tens of thousands of chips at 50,677 h between two failures of one fail every 3 hours or less, and wait ten minutes each time: above 5 %."""
    losses = wide["workloads"][0]["points"][0]["losses"]
    assert losses["restarts"] > NAMED_SHARE > losses["checkpoints"]
    assert clauses(wide) == [f"llama3 restarts and reads checkpoints back {losses['restarts']:.1%} of its time"]
    assert translated(clauses(wide)[0], "zh").startswith("llama3 有")
    assert question() in one_page(wide)


def test_a_slow_controller_of_an_iteration_is_named(learning):
    """256 responses, 0.2 s each, by two workers: 25.6 s of the iteration, in series with the rest."""
    (point,) = learning["workloads"][0]["points"]
    share = 256 * 0.2 / 2 / point["time_s"]["iteration"]
    assert point["losses"]["controller"] == pytest.approx(share, rel=1e-9) and share > NAMED_SHARE
    assert f"the controller of learn takes {share:.1%} of an iteration" in clauses(learning)
    assert point["losses"]["synchronisation"] == point["breakdown"]["synchronisation"]


def test_a_short_run_on_few_chips_names_nothing(learning):
    other = copy.deepcopy(learning.document)
    for name in other["workloads"][0]["points"][0]["losses"]:
        other["workloads"][0]["points"][0]["losses"][name] = NAMED_SHARE
    assert clauses(planner.plan.Plan(other)) == []


def test_verify_computes_them_again(learning):
    for name in ("restarts", "controller"):
        bent = copy.deepcopy(learning.document)
        bent["workloads"][0]["points"][0]["losses"][name] += 0.01
        assert any("losses" in finding for finding in map(str, verify_plan(planner.plan.Plan(bent))))
