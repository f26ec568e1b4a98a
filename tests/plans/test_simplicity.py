"""Plans of few parts: what they state, limits on parts, and what happens where those cannot be kept."""

from __future__ import annotations

import copy
import json
import math

import pytest

import planner
from planner.messages import listed, translated
from planner.plan import Plan
from planner.report.page import one_page
from planner.report.why.verdict import percent, proof_clauses
from planner.spec.model import PER_DEPLOYMENT, Simplicity
from planner.verify.plan import verify_plan

CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 300.0},
    "lengths": {"input": 800, "output": 200}, "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"],
    "origins": [{"region": "us-virginia", "share": 0.5}, {"region": "us-oregon", "share": 0.5}],
}  # fmt: skip
SPEC = {
    "name": "parts",
    "workloads": [CHAT, {**CHAT, "name": "other", "architecture": "Qwen3-32B", "demand": {"requests_per_s": 40.0}}],
    "sites": [{"region": "us-virginia"}, {"region": "us-oregon"}, {"region": "us-texas"}],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "300000 USD", "supply": 3},
        {"system": "DGX H200", "how": "reserved"},
        {"system": "DGX B200", "how": "reserved", "price": "60 USD/h"},
    ],
    "solver": {"gap": 0.001},
}


def solved(**parts):
    return planner.solve({**copy.deepcopy(SPEC), "simplicity": parts})  # a plan with an answer was verified


@pytest.fixture(scope="module")
def simple():
    return solved(within=0.05)


def test_fewer_parts_cost_no_more_than_allowed(simple):
    best, row = solved(within=0), simple["simplicity"]
    assert "simplicity" not in best.document
    assert row["deployments"] <= row["best"]["deployments"]
    assert simple.objective["value"] <= best.objective["value"] * (1.05 + best.gap)
    assert row["best"]["value"] == pytest.approx(best.objective["value"], rel=0.01)


def test_verify_counts_again(simple):
    for name in ("deployments", "kinds", "sites"):
        wrong = json.loads(simple.to_json())
        wrong["simplicity"][name] += 1
        assert any(finding.path.startswith("simplicity") for finding in verify_plan(Plan(wrong)))
    wrong = json.loads(simple.to_json())
    wrong["simplicity"]["best"]["value"] *= 0.5
    assert any(finding.path == "simplicity.best.value" for finding in verify_plan(Plan(wrong)))


@pytest.mark.parametrize(
    ("limits", "counted"),
    [
        ({"most_sites": 1}, lambda plan: len({row["site"] for row in plan["fleet"]})),
        ({"most_kinds": 1}, lambda plan: max(sum(row["site"] == site for row in plan["fleet"]) for site in {row["site"] for row in plan["fleet"]})),
    ],
)  # fmt: skip
def test_limits_on_parts_are_kept_and_stated(limits, counted):
    plan = solved(within=0, **limits)
    assert counted(plan) == 1
    (name,) = limits
    (row,) = (row for row in plan["limits"] if row["path"] == f"simplicity.{name}")
    assert row["value"] == row["limit"] == 1


def test_no_kind_is_held_below_the_least_number():
    plan = solved(within=0, least_systems=4)
    counts = {}
    for row in plan["fleet"]:
        key = row["site"], row["system"]
        counts[key] = counts.get(key, 0) + row["count"]
    assert counts and min(counts.values()) >= 4
    wrong = json.loads(plan.to_json())
    wrong["spec"]["simplicity"]["least_systems"] = 10**5
    assert any("at least 100000" in str(finding) for finding in verify_plan(Plan(wrong)))


def test_a_least_number_that_no_offer_reaches_is_in_conflict_and_repaired():
    spec = {**copy.deepcopy(SPEC), "offers": SPEC["offers"][:1], "simplicity": {"least_systems": 8}}
    plan = planner.solve(spec)
    assert plan.status == "infeasible"
    conflict = {limit["path"] for limit in plan["diagnosis"]["conflict"]}
    assert "simplicity.least_systems" in conflict, conflict


def test_the_page_says_how_far_the_best_plan_found_is_and_what_fewer_parts_cost(simple):
    """The gap asked for is compared with that of the best plan found, so that status and sentence agree."""
    best = simple["simplicity"]["best"]
    assert best["gap"] == pytest.approx(abs(best["value"] - simple["bound"]) / best["value"], abs=1e-12)
    document = json.loads(simple.to_json())
    document["bound"] = 0.98 * best["value"]
    document["status"], document["solver"]["ended_by"] = "limit", "search"
    document["gap"], document["simplicity"]["best"]["gap"] = 1 - document["bound"] / simple.objective["value"], 0.02
    document["simplicity"]["best"]["deployments"] = simple["simplicity"]["deployments"] + 9
    ladder = document["simplicity"]["ladder"]
    ladder.insert(0, {**ladder[0], "deployments": simple["simplicity"]["deployments"] + 9})
    assert verify_plan(Plan(document)) == []
    loss = simple.objective["value"] / best["value"] - 1
    page = " ".join(one_page(Plan(document)).split())
    told = f"for {percent(loss)} more" if loss > 1e-6 else "at no cost"
    few = simple["simplicity"]["deployments"]
    own = percent(document["gap"])
    assert f"proven within {own} of the optimum; you asked for 0.1%, the search ended first" in page
    assert f"Simplified from {few + 9} deployments to {few} {told}" in page
    document["simplicity"]["best"]["gap"] = 0.001
    assert [finding.path for finding in verify_plan(Plan(document))] == ["simplicity.best.gap"]


STEPS = {
    **SPEC,
    "workloads": [{**CHAT, "demand": {"requests_per_s": 900.0}}],
    "sites": [{"region": "us-virginia"}],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "400000 USD", "supply": 1},
        {"system": "DGX B200", "how": "on_demand", "price": "60 USD/h"},
    ],
}  # one of each kind is cheapest; two of the second are one deployment, and dearer


def with_steps(**parts):
    return planner.solve({**copy.deepcopy(STEPS), "simplicity": parts})


def test_a_ladder_is_stated_checked_and_printed_in_both_languages():
    plan = with_steps(per_deployment=0.0)
    row = plan["simplicity"]
    assert row["ladder"][0]["deployments"] == row["best"]["deployments"]
    below = [rung for rung in row["ladder"] if rung["deployments"] < row["deployments"]]
    assert below and all(rung["above"] >= 0.0 for rung in below)
    share = percent(below[0]["above"])
    count = below[0]["deployments"]
    told = [translated(listed(proof_clauses(plan)), language) for language in ("en", "zh")]
    about = below[0]["estimated"]
    assert f"{count} for {'about ' if about else ''}{share} more" in told[0]
    assert f"{count} 个{'约' if about else ''}花费多 {share}" in told[1]
    for name, value in (("above", 0.5), ("deployments", 99)):
        wrong = json.loads(plan.to_json())
        wrong["simplicity"]["ladder"][-1][name] = value
        assert any(finding.path.startswith("simplicity.ladder") for finding in verify_plan(Plan(wrong)))
    wrong = json.loads(plan.to_json())
    cheap = {"deployments": 0, "value": 0.9 * row["best"]["value"], "above": 0.0, "estimated": False}
    wrong["simplicity"]["ladder"].append(cheap)
    assert [finding.path for finding in verify_plan(Plan(wrong))] == ["simplicity.ladder"]


def test_a_deployment_saved_costs_no_more_than_stated_and_a_stated_band_alone_asks_for_the_fewest():
    rates = [
        Simplicity.model_validate(stated).rate
        for stated in ({}, {"within": 0.01}, {"per_deployment": 0.1}, {"within": 0.3, "per_deployment": 0.0})
    ]
    assert rates == [PER_DEPLOYMENT, math.inf, 0.1, 0.0]
    many, few, fewest = (
        with_steps(within=0.49, **parts) for parts in ({"per_deployment": 0.0}, {"per_deployment": 0.49}, {})
    )
    assert many["simplicity"]["deployments"] > 1 and many.objective["value"] < few.objective["value"]
    assert few["simplicity"]["deployments"] == fewest["simplicity"]["deployments"] == 1
