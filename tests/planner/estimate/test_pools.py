"""Separate pools of `estimate`: whole numbers of workers on the chips of a case, against stated pools, more chips, and a plan's own pools."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.estimate.answer import estimate
from tests.conftest import few_of

RACK = {
    "workload": {
        "kind": "serving", "architecture": "DeepSeek-R1", "disaggregation": "always", "precision": ["fp8", "fp4"],
        "lengths": {"input": 2000, "output": 2000, "input_cv": 0.3, "output_cv": 0.3},
        "slo": {"ttft": {"p95": "6 s"}, "tpot": {"p95": "60 ms"}},
    },
    "system": "GB200 NVL72", "chips": 72, "load": "max",
}  # fmt: skip
SMALL = {
    "workload": {
        "kind": "serving", "architecture": "Llama-3.1-8B", "disaggregation": "always", "precision": ["fp8"],
        "lengths": {"input": 1500, "output": 200}, "slo": {"ttft": {"p95": "800 ms"}, "tpot": {"p95": "20 ms"}},
    },
    "system": "DGX H100", "chips": 8, "load": "max",
}  # fmt: skip


def rate(case: dict[str, Any], **changes: Any) -> float:
    found = estimate(copy.deepcopy(case | changes))
    return 0.0 if found.answer is None else float(found.answer["requests_per_s"])


def test_72_chips_of_a_rack_do_no_less_than_64_and_than_pools_stated_on_56():
    """Stated pools on 56 chips serve 140 requests/s, and 72 chips were said to serve 158."""
    stated = {"prefill": {"layout": {"dp": 8, "ep": 8}}, "decode": {"layout": {"dp": 32, "ep": 32}}}
    whole = rate(RACK)
    assert whole >= rate(RACK, chips=64) >= 0.99 * rate(RACK, pools=stated)
    assert whole > 190


@settings(max_examples=few_of(12))
@given(st.integers(0, 8))
def test_more_chips_never_do_less(place):
    fewer, more = (2, 3, 4, 5, 6, 7, 8, 16, 24, 32)[place : place + 2]
    assert rate(SMALL, chips=more) >= rate(SMALL, chips=fewer) * (1 - 1e-6)


@settings(max_examples=few_of(12))
@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_the_chosen_pools_do_no_less_than_stated_ones(first, second, workers):
    pools = {"prefill": {"layout": {"tp": first}, "workers": workers}, "decode": {"layout": {"tp": second}}}
    assert rate(SMALL, chips=16) >= rate(SMALL, chips=16, pools=pools) * (1 - 1e-6)


def test_a_plan_and_an_estimate_agree_on_the_pools_of_the_plan():
    workload = SMALL["workload"] | {
        "name": "chat", "demand": {"requests_per_s": 60}, "origins": [{"region": "us-virginia", "share": 1}],
    }  # fmt: skip
    plan = planner.solve(
        {
            "name": "pools",
            "workloads": [workload],
            "sites": [{"region": "us-virginia"}],
            "offers": [{"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
        }
    )
    point = plan["workloads"][0]["points"][0]
    pools = {pool["role"]: {"layout": pool["layout"], "workers": pool["workers"]} for pool in point["pools"]}
    chips = round(8 * sum(pool["systems_per_replica"] for pool in point["pools"]))
    found = estimate(
        copy.deepcopy(SMALL) | {"chips": chips, "pools": pools, "load": {"requests_per_s": point["capacity"]}}
    ).answer
    for metric in ("ttft", "tpot"):
        assert found["latency_s"][metric]["p95"] == pytest.approx(point["latency_s"][f"{metric}.p95"], rel=1e-6)
