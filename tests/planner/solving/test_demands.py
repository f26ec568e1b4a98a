"""No plan is lost over a sweep of demands: each passes its own check, which `planner.solve` runs. Some of these demands once left an unused site on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner

CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "lengths": {"input": 800, "output": 200},
    "origins": [{"region": "us-virginia", "share": 0.6}, {"region": "us-oregon", "share": 0.4}],
    "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "40 ms"}}, "precision": ["fp8"], "disaggregation": "never",
}  # fmt: skip
TUNE = {"name": "tune", "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "200B", "deadline": "60 d"}
SPECS: dict[str, dict[str, Any]] = {
    "alone": {"workloads": [CHAT]},
    "carbon": {"workloads": [CHAT], "objective": {"minimise": "carbon"}},
    "beside a run": {"workloads": [CHAT, TUNE]},
}
SITE = {"systems": ["DGX H100"], "topologies": ["rail-optimised"]}


def assert_all_hold(name: str, demands: range) -> None:
    for demand in demands:
        document = {
            "name": "sweep",
            "horizon": {"years": 3},
            "sites": [SITE | {"region": region} for region in ("us-virginia", "us-oregon")],
            "offers": [
                {"system": "DGX H100", "how": "buy", "price": "310000 USD"},
                {"system": "DGX H100", "how": "on_demand", "price": "20 USD/h"},
            ],
            **copy.deepcopy(SPECS[name]),
        }
        document["workloads"][0]["demand"] = {"requests_per_s": demand}
        assert planner.solve(document, threads=1).has_answer, demand  # BrokenPlanError where its plan does not hold


def test_a_few_demands_beside_each_other_keep_their_plans():
    assert_all_hold("alone", range(315, 346, 15))


@pytest.mark.parametrize("name", SPECS)
def test_no_demand_of_a_long_sweep_loses_its_plan(name):
    assert_all_hold(name, range(200, 401, 3))
