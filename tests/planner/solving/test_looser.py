"""Latency limits that are worth loosening: found from the candidates, stated with their worth, and checked."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.messages import translated
from planner.plan import Plan
from planner.report.page import one_page
from planner.report.why.looser import sentences
from planner.report.words import whole
from planner.verify.plan import verify_plan

SPEC = {
    "name": "a limit just above a step",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "DeepSeek-V3", "demand": {"requests_per_s": 4}, "disaggregation": "never",
            "lengths": {"input": 1000, "output": 500}, "origins": [{"region": "cn-zhongwei", "share": 1}], "precision": ["int8"],
            "slo": {"ttft": {"p95": "5 s"}, "tpot": {"p95": "17 ms"}},
        }
    ],
    "sites": [{"region": "cn-zhongwei"}],
    "offers": [{"system": "CloudMatrix 384 / Atlas 900 A3 SuperPoD", "how": "buy", "price": "60M CNY"}],
    "currency": "CNY", "exchange": {"CNY": {"per_usd": 7.0}}, "solver": {"replicas": "divisible"},
}  # fmt: skip


def solved(tpot: str) -> Plan:
    document = copy.deepcopy(SPEC)
    document["workloads"][0]["slo"]["tpot"]["p95"] = tpot
    return planner.solve(document)


@pytest.fixture(scope="module")
def plan():
    return solved("17 ms")


def test_the_rate_under_the_looser_limit_is_that_of_a_plan_that_is_asked_for_it(plan):
    (row,) = plan["looser"]
    assert (row["workload"], row["metric"], row["percentile"], row["share"]) == ("chat", "tpot", "p95", 1.0)
    last = row["steps"][-1]
    assert last["limit_s"] == pytest.approx(0.02125) and last["times"] >= 2.0

    def rate(found):
        return max(
            point["capacity"] / sum(pool["systems_per_replica"] * 384 for pool in point["pools"])
            for point in found["workloads"][0]["points"]
        )

    assert rate(solved("21.25 ms")) / rate(plan) == pytest.approx(last["times"], rel=0.02)
    assert row["worth"] == pytest.approx(plan["workloads"][0]["cost"] * (1 - 1 / last["times"]))


def test_the_page_names_the_limit_and_its_worth(plan):
    (row,) = plan["looser"]
    page = " ".join(one_page(plan).split())
    assert "Limits worth loosening tpot p95 of chat at" in page and "instead of 17 ms" in page
    assert f"{whole(row['worth'])} CNY less of the cost" in page
    (told,) = sentences(plan)
    assert "17 ms" in translated(told, "zh") != told


def test_a_limit_far_from_a_step_is_not_named():
    assert "looser" not in solved("300 ms").document


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda row: row.update(limit_s=0.07), "looser[0].limit_s"),
        (lambda row: row.update(system="DGX H100"), "looser[0].system"),
        (lambda row: row.update(worth=2 * row["worth"]), "looser[0].worth"),
        (lambda row: row["steps"][0].update(limit_s=0.2), "looser[0].steps[0].limit_s"),
        (lambda row: row["steps"][0].update(times=1.5), "looser[0].steps[0].times"),
        (lambda row: row.update(workload="none"), "looser[0].workload"),
    ],
)
def test_verify_compares_what_a_row_says(plan, change, path):
    wrong = json.loads(plan.to_json())
    change(wrong["looser"][0])
    assert path in [finding.path for finding in verify_plan(Plan(wrong))]
