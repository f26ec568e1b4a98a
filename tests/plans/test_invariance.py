"""What must not change a plan: the units and the currency in which a question is written, the order of its records, an offer that is worse."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from planner.candidates.search import find_candidates
from planner.resolve.resolver import resolve_document
from planner.solving.answer import answer
from planner.verify.plan import verify_plan
from solvers.search.joint import solve

PER_USD = 7.2
GAPS = {"auto": 1e-5, "decomposed": 1e-4}  # way to solve -> asked gap

BASE = {
    "name": "two places",
    "horizon": {"years": 3},
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B",
            "demand": {"requests_per_s": 2500, "profile": [0.6, 0.6, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.4, 1.4, 1.3, 1.3, 1.2, 1.2, 1.1, 1.0, 0.9, 0.8, 0.8, 0.7, 0.7]},
            "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 0.7}, {"region": "us-texas", "share": 0.3}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never",
        },
        {
            "name": "code", "kind": "serving", "architecture": "Qwen3-32B", "demand": {"requests_per_s": 120}, "lengths": {"input": 3000, "output": 500},
            "origins": [{"region": "us-texas", "share": 1}], "slo": {"tpot": {"p95": "50 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never",
        },
        {"name": "run", "kind": "training", "architecture": "Qwen3-8B", "tokens": "1T", "deadline": "365 d", "preemption": None},
    ],
    "sites": [
        {"region": "us-virginia", "power": "0.12 MW", "fixed_cost": "0.1M USD/year", "topologies": ["rail-only"]},
        {"region": "us-texas", "power": "0.09 MW", "fixed_cost": "0.2M USD/year", "topologies": ["rail-only"]},
    ],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "290000 USD"},
        {"system": "DGX H200", "how": "buy", "price": "330000 USD", "supply": 3},
        {"system": "DGX H200", "how": "reserved", "price": "12 USD/h", "supply": 1},
    ],
}  # fmt: skip


def rewritten(change) -> dict:
    spec = copy.deepcopy(BASE)
    change(spec)
    return spec


def other_units(spec: dict) -> None:
    spec["sites"][0]["power"], spec["sites"][1]["power"] = "120 kW", "90000 W"
    spec["sites"][0]["fixed_cost"] = "100000 USD/year"
    spec["offers"][0]["price"], spec["offers"][2]["price"] = "0.29M USD", "288 USD/day"
    spec["workloads"][0]["slo"] = {"ttft": {"p95": "2000 ms"}, "tpot": {"p95": "0.06 s"}}
    spec["workloads"][0]["demand"]["profile"] = [100 * weight for weight in spec["workloads"][0]["demand"]["profile"]]
    spec["workloads"][1]["demand"] = {"output_tokens": f"{120 * 500 * 86400 / 1e9} B tokens/day"}
    spec["workloads"][2] |= {"tokens": "1000B", "deadline": "8760 h"}


def other_currency(spec: dict) -> None:
    """Amounts stay in US dollars, the plan's own and the site's are in another currency."""
    spec["currency"], spec["exchange"] = "CNY", {"CNY": {"per_usd": PER_USD}}
    spec["offers"][0]["price"] = f"{290000 * PER_USD:.0f} CNY"
    spec["sites"][1]["fixed_cost"] = f"{0.2 * PER_USD}M CNY/year"


def reordered(spec: dict) -> None:
    for key in ("workloads", "sites", "offers"):
        spec[key].reverse()
    for workload in spec["workloads"]:
        if "origins" in workload:
            workload["origins"].reverse()


def worse_offer(spec: dict) -> None:
    spec["offers"].insert(1, {"system": "DGX H100", "how": "buy", "price": "350000 USD"})


def worse_rent(spec: dict) -> None:
    spec["offers"].append({"system": "DGX H100", "how": "reserved", "price": "40 USD/h", "supply": 5})


CHANGES = {change.__name__: change for change in (other_units, other_currency, reordered, worse_offer, worse_rent)}


def planned(spec: dict, method: str):
    spec = {**spec, "solver": {"gap": GAPS[method], "time_limit": "60 s"}}
    problem = resolve_document(spec)
    return answer(
        problem,
        find_candidates(problem),
        spec,
        solve_program=lambda data, options: solve(data, replace(options, method=method, threads=1)),
    )


def fleet(plan) -> dict:
    return {(row["site"], row["system"], row["how"]): row["count"] for row in plan["fleet"]}


@pytest.fixture(scope="module", params=GAPS)
def base(request):
    return request.param, planned(BASE, request.param)


def test_the_question_leaves_something_to_decide(base):
    """Both sites and several systems, and not as many of any as one would like: else nothing below could go wrong."""
    _, plan = base
    assert plan["status"] in ("optimal", "within_gap") and not verify_plan(plan)
    assert len({site for site, _, _ in fleet(plan)}) == 2 and len({system for _, system, _ in fleet(plan)}) == 2
    assert {row["path"] for row in plan["limits"] if row["limit"] and row["slack"] < 1e-6 * row["limit"]} & {
        "offers[1].supply",
        "offers[2].supply",
        "sites[0].power",
        "sites[1].power",
    }


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_does_not_depend_on_how_its_question_is_written(base, change):
    method, plan = base
    other = planned(rewritten(CHANGES[change]), method)
    rate = PER_USD if change == "other_currency" else 1.0
    assert other["objective"]["value"] == pytest.approx(rate * plan["objective"]["value"], rel=GAPS[method])
    assert other["bound"] <= rate * plan["objective"]["value"] * (1 + 1e-9) and rate * plan["bound"] <= other[
        "objective"
    ]["value"] * (1 + 1e-9)
    assert not verify_plan(other)
    assert fleet(other) == fleet(plan)  # to such a gap there is but one that is best


def test_both_ways_to_solve_agree():
    whole, by_slots = (planned(BASE, method) for method in ("auto", "decomposed"))
    assert by_slots["objective"]["value"] == pytest.approx(whole["objective"]["value"], rel=GAPS["decomposed"])
    assert by_slots["bound"] <= whole["objective"]["value"] and fleet(by_slots) == fleet(whole)
