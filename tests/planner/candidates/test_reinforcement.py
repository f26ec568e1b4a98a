"""Splits and layouts of reinforcement learning against brute force, and plans against each of their points alone."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest

import planner
from models.training.layouts import with_levels
from planner.candidates import reinforcement as candidates
from planner.candidates.layouts import layout_choices, legal_sizes, search_layouts
from planner.candidates.reinforcement import counts_up_to
from planner.candidates.serving import serving_layouts
from planner.candidates.splits import SplitSearch, separate, splits_of
from planner.estimate.case import resolve_case
from planner.evaluate.interruptions import RunTerms
from planner.evaluate.layouts import TrainingSetup
from planner.evaluate.reinforcement import GivenSplit, evaluate_split
from planner.problem.facts import ScaleOut

JOB = {
    "kind": "reinforcement",
    "architecture": "Llama-3.1-8B",
    "prompts": 32,
    "samples": 8,
    "mini_batches": 2,
    "lengths": {"prompt": 200, "response": 800, "limit": 4096, "cv": 1.0, "endless": 0.01},
}
SPEC = {
    "name": "learning",
    "workloads": [{**JOB, "name": "learn", "iterations_per_hour": 60}],
    "sites": [{"region": "us-texas", "electricity_price": "60 USD/MWh"}],
    "offers": [
        {"system": "DGX H100", "how": "buy", "supply": 6},
        {"system": "DGX H200", "how": "buy", "supply": 3},
    ],
}


def spec(**changed):
    found = copy.deepcopy(SPEC)
    found["workloads"][0].update(changed)
    return found


@pytest.fixture(scope="module")
def case():
    return resolve_case({"workload": JOB, "system": "DGX H100", "chips": 16})


@pytest.mark.parametrize("way", ["colocated", "asynchronous"])
def test_no_layout_of_either_pool_is_better_than_the_one_found(case, way):
    """Every layout of one pool beside the one found of the other, evaluated one by one."""
    job, system = case.learning, case.system
    setup = TrainingSetup(job, system, "bf16", case.constants, case.scaleout)
    search = SplitSearch(job, case.constants)
    turns = way == "colocated"
    rolling = 16 if turns else 8
    found = min(
        (s for s in splits_of(search, [setup], 16, 8, None if turns else 8) if s.way == way),
        key=lambda s: s.iteration_s,
    )
    chips = found.update.chips
    sizes = search_layouts(setup, with_levels(legal_sizes(job, chips, system), layout_choices(system)))
    engines = serving_layouts(job.architecture, system, True)
    best_update = found.update.updates.layouts.row(0)
    best_engine = {
        name: int(np.asarray(getattr(found.engines.layouts, name))[found.engine]) for name in ("tp", "pp", "dp", "ep")
    }

    def iteration_s(update, engine):
        given = GivenSplit(way, update, ("bf16", engine), None if turns else (system, case.scaleout), rolling)
        try:
            return evaluate_split(setup, job, given, RunTerms(system.chips))[0].iteration_s
        except ValueError:  # does not fit
            return np.inf

    assert iteration_s(best_update, best_engine) == pytest.approx(found.iteration_s, rel=1e-12)
    every = [{name: int(getattr(engines, name)[i]) for name in best_engine} for i in range(len(engines))]
    assert min(iteration_s(best_update, engine) for engine in every) == pytest.approx(found.iteration_s, rel=1e-9)
    steps = range(0, len(sizes), max(len(sizes) // 40, 1))  # sorted by the time of a step
    # The update layout is that of the fastest step, which scoring may miss by little.
    assert min(iteration_s(sizes.layouts.row(i), best_engine) for i in steps) >= found.iteration_s * (1 - 0.02)


def test_every_share_of_the_chips_is_tried(case):
    job, system = case.learning, case.system
    setup = TrainingSetup(job, system, "bf16", case.constants, ScaleOut(system.nic_bytes_per_s))
    search = SplitSearch(job, case.constants)
    found = splits_of(search, [setup], 64, 8)
    by_hand = [
        split
        for share in range(8, 64, 8)
        for split in separate(search, [setup], 64 - share, (system, setup.scaleout, share))
    ]
    assert found[0].iteration_s == min([split.iteration_s for split in by_hand] + [s.iteration_s for s in found])
    assert counts_up_to(13) == [1, 2, 3, 4, 6, 8, 12]


def cost_of(document):
    plan = planner.solve(document)
    return plan.objective["value"] if plan.has_answer else np.inf, plan


SLOTS = {"calls": 3, "service": "4 s", "environments": 256, "slot_price": "1 USD/h"}


@pytest.mark.parametrize(
    "changed",
    [{}, {"ways": ["asynchronous"], "iterations_per_hour": 90}, {"tools": SLOTS, "iterations_per_hour": 10}],
    ids=["all ways", "asynchronous", "priced slots"],
)
def test_a_plan_is_as_cheap_as_the_best_of_all_splits(changed, monkeypatch):
    """The program over every split that is fast enough, rather than over the few selected."""
    chosen, _ = cost_of(spec(**changed))
    offered = []

    def all_of(every, needed, most):
        able = [one for one in every if one.figures.tokens_per_s >= needed]
        offered.extend(able)
        return able

    monkeypatch.setattr(candidates, "select_offered", all_of)
    monkeypatch.setattr(candidates, "best_of", lambda every, one: [one])
    assert chosen == pytest.approx(cost_of(spec(**changed))[0], rel=2e-3)
    assert len(offered) > 5


def test_selection_keeps_the_cheapest_fast_enough_and_rising_ones():
    figures = [(1, 10.0), (2, 30.0), (3, 25.0), (4, 70.0), (6, 90.0), (8, 91.0)]
    every = [
        SimpleNamespace(price=price, price_at_work=price, figures=SimpleNamespace(tokens_per_s=rate))
        for price, rate in figures
    ]
    assert [one.price for one in candidates.select_offered(every, 20.0, 3)] == [2, 4, 6]
    assert [one.price for one in candidates.select_offered(every, 92.0, 3)] == []
    assert [one.price for one in candidates.best_of(every, every[3])] == [4, 2, 3]


def test_iterations_by_a_deadline_and_by_the_hour_are_the_same_work():
    by_hour, _ = cost_of(spec())
    stated = spec(iterations=60 * 8760)
    del stated["workloads"][0]["iterations_per_hour"]
    assert cost_of(stated)[0] == pytest.approx(by_hour, rel=1e-9)


def test_rows_state_what_binds_and_what_an_iteration_costs():
    _, plan = cost_of(spec())
    row = plan["workloads"][0]
    point = row["points"][0]
    iteration = point["iteration"]
    assert row["kind"] == "reinforcement" and row["iterations"] == pytest.approx(60 * 8760)
    assert row["cost_per_iteration"] == pytest.approx(row["cost_per_million_tokens"] * 256 * 1000 / 1e6)
    assert point["capacity"] == pytest.approx(iteration["iterations_per_hour"] / 3600 * 256 * 1000)
    assert iteration["iterations_per_hour"] >= 60 * (1 - 1e-9)
    assert 1 <= len(iteration["splits"]) <= 3 and iteration["splits"][0]["iteration_s"] == iteration["iteration_s"]
    assert set(iteration["idle"]) == {pool["role"] for pool in point["pools"]}


def test_too_few_systems_are_explained():
    few = spec(iterations_per_hour=150)
    few["offers"] = [{"system": "DGX H100", "how": "buy", "supply": 1}]
    few["solver"] = {"time_limit": "300 s"}
    plan = planner.solve(few)
    assert plan.status == "infeasible"
    assert {row["path"] for row in plan["diagnosis"]["conflict"]} >= {"offers[0].supply"}


def test_a_job_yields_to_serving_by_the_hour():
    """Beside a service with a quiet night the two need fewer systems than apart."""
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "lengths": {"input": 1000, "output": 300, "input_cv": 1.0, "output_cv": 1.0},
        "demand": {"output_tokens": "10B tokens/day", "profile": [0.1] * 12 + [1.9] * 12}, "origins": [{"region": "us-texas", "share": 1.0}],
    }  # fmt: skip
    both = spec(iterations_per_hour=30)
    both["workloads"].append(chat)
    shared, _ = cost_of(both)
    apart, _ = cost_of({**both, "sharing": "none"})
    assert shared < apart * (1 - 0.02)


def test_pools_on_two_kinds_of_system_where_one_kind_is_not_enough():
    """Of two systems each, one kind does at most what its two do; half as much again needs both kinds."""
    large = {"ways": ["asynchronous"], "prompts": 256, "mini_batches": 4}
    one_kind = spec(**large, iterations_per_hour=5)
    one_kind["offers"] = [{"system": "DGX H200", "how": "buy", "supply": 2}]
    most = cost_of(one_kind)[1]["workloads"][0]["points"][0]["iteration"]["iterations_per_hour"]
    both = spec(**large, iterations_per_hour=round(1.3 * most))
    both["offers"] = [{"system": name, "how": "buy", "supply": 2} for name in ("DGX H100", "DGX H200")]
    cost, plan = cost_of(both)
    assert np.isfinite(cost)
    roles = {pool["role"]: pool["system"] for pool in plan["workloads"][0]["points"][0]["pools"]}
    assert set(roles.values()) == {"DGX H100", "DGX H200"}


def test_two_pools_have_a_network():
    """Two systems without a network between them cannot exchange weights."""
    _, plan = cost_of(spec(ways=["asynchronous"], iterations_per_hour=5))
    for pool in plan["workloads"][0]["points"][0]["pools"]:
        assert pool["topology"] != "scale-up"


@pytest.mark.parametrize("ways", [["colocated"], ["asynchronous"]])
def test_a_job_at_one_of_two_sites_is_planned_at_the_cheaper_one(ways):
    both, offers = spec(ways=ways), [{"system": "DGX H100", "how": "buy", "supply": 6}]
    both["offers"] = offers
    both["sites"].append({"region": "us-virginia", "electricity_price": "60 USD/MWh"})
    alone = [planner.solve({**both, "sites": [site]})["totals"]["cost"] for site in both["sites"]]
    plan = planner.solve(both)
    assert plan.has_answer
    assert plan["totals"]["cost"] == pytest.approx(min(alone), rel=1e-3)
    assert len({row["site"] for row in plan["fleet"]}) == 1
