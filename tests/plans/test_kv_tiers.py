"""Tiers of KV cache as a decision of plans: the choice against enumeration, supply and prices, the table, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.report import render
from planner.spec.document import edited
from tests.conftest import few_of, long_run

TIERS = [
    {
        "name": "dram",
        "sizes": ["1 TB"],
        "bandwidth": "200 GB/s",
        "latency": "10 us",
        "price": "4 USD/GB",
        "power_per_tb": "40 W",
    },
    {
        "name": "cxl",
        "sizes": ["16 TB"],
        "bandwidth": "60 GB/s",
        "price": "5 USD/GB",
        "shared_by": 64,
        "pool_bandwidth": "2 TB/s",
    },
    {"name": "nvme", "sizes": ["8 TB"], "bandwidth": "25 GB/s", "latency": "100 us", "price": "0.1 USD/GB"},
]
SPEC: dict[str, Any] = {
    "schema_version": 1,
    "name": "tiers",
    "horizon": {"start": "2027-01-01", "years": 1},
    "objective": {"minimise": "cost"},
    "workloads": [
        {
            "name": "sessions",
            "kind": "serving",
            "architecture": "Llama-3.1-70B",
            "demand": {"requests_per_s": 30},
            "lengths": {"input": 12000, "output": 300},
            "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "10 s"}, "tpot": {"p95": "60 ms"}},
            "precision": ["fp8"],
            "disaggregation": "never",
            "cache": {"prefix_tokens": 11000, "reuse": {"requests": 12, "gap": "120 s"}},
        }
    ],
    "sites": [{"region": "us-virginia", "power": "2 MW", "systems": ["DGX H100"]}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD", "supply": 100}],
    "kv_tiers": [{"tiers": TIERS}],
    "simplicity": {"within": 0, "most_kinds": 1},
    "solver": {"gap": 1e-6, "replicas": "divisible", "time_limit": "120 s"},
}


def solved(*edits: tuple[str, Any]) -> Plan:
    plan = planner.solve(edited(copy.deepcopy(SPEC), edits))
    assert plan.status == "optimal"
    return plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solved()


def one_size(tier: int | None, rate: Any = None) -> Plan:
    """Solve with one tier on offer, or with tiers that hold nothing to speak of."""
    only = {**TIERS[2], "sizes": ["1 MB"]} if tier is None else TIERS[tier]
    return solved(
        ("kv_tiers[0].tiers", [only]), *([] if rate is None else [("workloads[0].demand.requests_per_s", rate)])
    )


def test_the_plan_buys_tiers_says_what_they_earn_and_holds(plan):
    assert planner.verify_plan(plan) == []
    (row, *others) = plan["kv_tiers"]
    (held,) = plan["fleet"]
    assert held["system"].startswith("DGX H100 + ") and held["offer"].startswith("offers[0] + ")
    assert {r["tier"] for r in (row, *others)} == {part.split()[0] for part in held["system"].split(" + ")[1:]}
    for row in plan["kv_tiers"]:
        assert row["systems"] == held["count"] and row["earns"] > 0
        (point,) = row["points"]
        assert 0 < point["computed_share"] < point["computed_without"] <= 1 and 0 < point["capacity_without"] < 1
    assert {"kv_tiers[0].tiers[0].price", "kv_tiers[0].tiers[1].power_per_tb"} <= {
        a["path"] for a in plan["assumptions"]
    }
    assert "Tiers of KV cache" in render(plan, "md")


def test_the_plan_costs_no_more_than_any_tier_alone_or_none(plan):
    without = one_size(None)
    alone = [one_size(tier) for tier in range(3)]
    assert plan.objective["value"] <= min(p.objective["value"] for p in (*alone, without)) * (1 + 1e-6)
    assert without.objective["value"] > 1.5 * plan.objective["value"]


@long_run
@settings(max_examples=few_of(40))
@given(
    rate=st.sampled_from([3, 10, 40, 90]),
    tiers=st.lists(st.sampled_from(range(3)), min_size=2, max_size=3, unique=True),
)
def test_the_choice_equals_enumeration(rate, tiers):
    chosen = [TIERS[t] for t in sorted(tiers)]
    demand = ("workloads[0].demand.requests_per_s", rate)
    both = solved(demand, ("kv_tiers[0].tiers", chosen)).objective["value"]
    sets = [[tier for k, tier in enumerate(chosen) if bits >> k & 1] for bits in range(1, 2 ** len(chosen))]
    best = min(solved(demand, ("kv_tiers[0].tiers", s)).objective["value"] for s in sets)
    assert both <= best * (1 + 1e-6)
    (held,) = solved(demand, ("kv_tiers[0].tiers", chosen))["fleet"]
    names = [part.split()[0] for part in held["system"].split(" + ")[1:]]
    again = solved(demand, ("kv_tiers[0].tiers", [tier for tier in chosen if tier["name"] in names] or chosen[:1]))
    assert again.objective["value"] == pytest.approx(both, rel=2e-6)


def test_a_tier_equals_one_that_the_workload_states_at_the_price_of_both():
    """A set of one tier is a system at a higher price whose workload states the tier: same fleet, same cost."""
    tier = {name: value for name, value in TIERS[2].items() if name not in ("sizes", "price")}
    stated = [{**tier, "capacity": "8 TB"}]
    fixed = solved(
        ("kv_tiers", None), ("workloads[0].cache.tiers", stated), ("offers[0].price", "310800 USD")
    )  # 8 TB at 0.1 USD/GB
    bought = one_size(2)
    assert bought.objective["value"] == pytest.approx(fixed.objective["value"], rel=1e-9)
    assert bought["fleet"][0]["count"] == fixed["fleet"][0]["count"]
    assert bought["kv_tiers"][0]["price"] == pytest.approx(800 * bought["fleet"][0]["count"])


def test_systems_with_tiers_count_against_the_supply_of_their_offer(plan):
    count = plan["fleet"][0]["count"]
    short = planner.solve(edited(copy.deepcopy(SPEC), [("offers[0].supply", count - 1)]))
    assert short.status == "infeasible"
    (limit,) = (row for row in plan["limits"] if row["path"] == "offers[0].supply")
    assert limit["value"] == count and limit["limit"] == 100


def test_wrong_rows_are_found(plan):
    def findings(change) -> str:
        document = copy.deepcopy(plan.document)
        change(document["kv_tiers"])
        return " ".join(map(str, planner.verify_plan(Plan(document))))

    assert "kv_tiers[0]" in findings(lambda rows: rows[0].update(earns=rows[0]["earns"] * 1.001))
    assert "kv_tiers[0]" in findings(lambda rows: rows[0]["points"][0].update(capacity_without=0.5))
    assert "kv_tiers" in findings(lambda rows: rows.pop())


@pytest.mark.parametrize(
    "edit, path, words",
    [
        (
            ("workloads[0].cache", {"prefix_tokens": 11000, "hit_rate": 0.5}),
            "kv_tiers",
            "no workload has a cache with reuse",
        ),
        (
            ("workloads[0].cache.tiers", [{"name": "dram", "capacity": "1 TB", "bandwidth": "50 GB/s"}]),
            "workloads[0].cache.tiers",
            "decided by kv_tiers",
        ),
        (("kv_tiers", None), "workloads[0].cache.tiers", "needs"),
        (("kv_tiers[0].sites", ["us-texas"]), "kv_tiers[0].sites", "no site of the spec"),
        (("kv_tiers[0].systems", ["DGX H200"]), "kv_tiers[0].systems", "cannot be bought"),
        (("kv_tiers", [{"tiers": TIERS}, {"tiers": TIERS}]), "kv_tiers[1]", "join the two blocks"),
        (("kv_tiers[0].tiers", TIERS[::-1]), "kv_tiers[0].tiers", "in the order"),
        (
            ("kv_tiers[0].tiers", [{**tier, "sizes": ["1 TB", "2 TB", "3 TB"]} for tier in TIERS]),
            "kv_tiers[0].tiers",
            "63 combinations",
        ),
        (("kv_tiers[0].tiers[0].sizes", ["1 TB", "1.00001 TB"]), "kv_tiers[0].tiers", "the same to four digits"),
    ],
)
def test_what_cannot_be_is_refused(edit, path, words):
    with pytest.raises(SpecError) as caught:
        planner.solve(edited(copy.deepcopy(SPEC), [edit]))
    assert any(problem.path == path and words in problem.message for problem in caught.value.problems), caught.value
