"""Questions whose studies were once wrong, small enough to be solved in a second or two: each with its right value, derived a second way."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from planner.spec.document import edited
from planner.studies.base.planned import REPLICAS
from planner.studies.frontier import frontier
from planner.studies.ladder import ladder
from planner.studies.sharing import sharing
from planner.studies.sharing_capabilities import SILOED, VALLEYS
from planner.studies.urgent import urgent

SLO = {"ttft": {"p95": "1 s"}, "tpot": {"p95": "40 ms"}}
EAST, WEST = "us-virginia", "us-oregon"
DISCOUNTED_S = 365 * 86400 * sum(1.08**-year for year in (1, 2, 3))  # three years at 8 %, paid at the end of each
BOUGHT = {"system": "DGX H100", "how": "buy", "price": "310000 USD"}


def chat(requests_per_s: float, **more: Any) -> dict[str, Any]:
    return {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": requests_per_s},
        "lengths": {"input": 800, "output": 200}, "origins": [{"region": EAST, "share": 1}], "slo": SLO, "precision": ["fp8"],
    } | more  # fmt: skip


def job(name: str, tokens: str, deadline: str) -> dict[str, Any]:
    return {
        "name": name, "kind": "training", "architecture": "Llama-3.1-8B", "tokens": tokens, "batch_tokens": "4194304",
        "sequence_tokens": 4096, "deadline": deadline, "precision": ["bf16"],
    }  # fmt: skip


def asked(workloads: list[dict[str, Any]], offers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    sites = [{"region": EAST, "power": "2 MW", "systems": ["DGX H100", "DGX H200"]}]
    return copy.deepcopy(
        {"name": "case", "horizon": {"years": 3}, "workloads": workloads, "sites": sites, "offers": offers} | more
    )


def test_tokens_of_an_api_alone_are_its_price_times_the_tokens():
    """40 requests/s of 800 and 200 tokens over three years, discounted: demand moves the whole cost, prices of systems nothing."""
    api = {"name": "x", "region": EAST, "input": "0.05 USD/1M tokens", "output": "0.2 USD/1M tokens", "latency": {"ttft": {"p95": "0.5 s"}, "tpot": {"p95": "20 ms"}}}  # fmt: skip
    spec = asked([chat(40)], [BOUGHT], apis=[api])
    found = planner.sensitivity(spec)
    assert found.base.plan == pytest.approx(40 * (800 * 0.05e-6 + 200 * 0.2e-6) * DISCOUNTED_S, rel=1e-6)
    moved = {bar.factor.path: bar for bar in found.bars}
    demand, offer, tokens = (
        moved[path] for path in ("workloads[0].demand.requests_per_s", "offers[0].price", "apis[0]")
    )
    assert demand.low.value == pytest.approx(0.85 * found.value) and demand.high.value == pytest.approx(
        1.15 * found.value
    )
    assert tokens.low.value == pytest.approx(0.8 * found.value) and offer.swing == 0 and found.bars[0] is demand
    assert "tokens/s of x" in demand.low.change
    carbon = frontier(spec, "carbon", 3)
    assert [point.measure for point in carbon.points] == [0.0] and carbon.points[0].cost == pytest.approx(found.value)
    names = [row["name"] for row in planner.alternatives(spec, within=0.0).rows]
    assert "without x" in names and len(names) == len(set(names))


def test_one_queue_of_three_origins_shares_no_better_with_a_tighter_rule():
    """On one site and one kind of system, no capability switched off makes the plan better than the gaps explain."""
    thirds = [{"region": region, "share": share} for region, share in ((EAST, 0.34), (WEST, 0.33), ("us-texas", 0.33))]
    spec = asked([chat(40, origins=thirds), job("pre", "20B", "60 d")], [BOUGHT])
    found = sharing(spec)
    rows = {row.capability: row for row in found.rows_off}
    assert all(row.worse is None or row.worse > -0.01 for row in found.rows_off)
    assert rows[VALLEYS].chips >= found.base.chips
    assert f"separate ones {rows[SILOED].utilisation:.1%}" in found.words[1]
    assert f"{found.base.utilisation:.1%} of the time" in found.words[1]


def test_less_demand_is_a_fraction_and_the_own_demand_a_point_of_the_frontier():
    spec = asked([chat(3)], [BOUGHT])
    climbed = ladder(spec, ["less: workloads[0].demand.requests_per_s=-30%"])
    cold = planner.solve(edited(spec, (("workloads[0].demand.requests_per_s", 2.1),)))
    levelised = cold["totals"]["cost"] / (2.1 * 200 * DISCOUNTED_S) * 1e6
    assert climbed.rungs[-1].cost_per_million_tokens == pytest.approx(levelised, rel=0.01)
    assert 1.0 in [point.measure for point in frontier(spec, "throughput", 3).points]


def test_divisible_replicas_of_a_small_demand_start_a_study_no_higher_than_the_plan():
    """Whole replicas of a small demand have larger batches; divisible ones may have these too."""
    found = planner.alternatives(asked([chat(3)], [BOUGHT]), within=0.0)
    assert REPLICAS in found.base.relaxed and found.base.start <= found.base.plan * (1 + 1e-6)


def test_an_urgent_job_costs_the_throughput_that_two_plans_differ_by():
    """On the five systems of the plan; replicas are divisible, and the answer says what whole ones would change."""
    spec = asked(
        [chat(400)],
        [BOUGHT, {"system": "DGX H200", "how": "buy", "price": "360000 USD"}],
        objective={"maximise": "throughput", "workload": "chat"},
        limits={"budget": "2M USD"},
    )
    rush = job("rush", "50B", "20 d")
    found = urgent(spec, rush)
    held = edited(spec, (("simplicity", {"within": 0}), ("solver.replicas", "divisible"), ("limits", None)))
    supply = planner.solve(edited(held, (("limits", {"budget": "2M USD"}),)))["fleet"]
    counts = {row["system"]: row["count"] for row in supply}
    kept = [offer | {"supply": counts[offer["system"]]} for offer in spec["offers"] if offer["system"] in counts]
    held = edited(held, (("offers", kept), ("limits", {"budget": "2M USD"})))
    plans = [planner.solve(edited(held, (("workloads", [*held["workloads"], *more]),))) for more in ([], [rush])]
    lost = plans[0].objective["value"] - plans[1].objective["value"]
    assert "DGX H200" in counts and lost > 0
    assert found.insertions[0].cost == pytest.approx(lost, rel=0.01)
    assert REPLICAS in found.base.relaxed and "Replicas are divisible in this study" in " ".join(found.words)


@pytest.mark.parametrize("requests_per_s", [300, 340])
def test_a_found_plan_is_not_lost_over_an_edge_that_nothing_uses(requests_per_s):
    """Two sites, one of them empty: the plan that is found is the one that is printed, and holds."""
    spec = asked([chat(requests_per_s), job("pre", "200B", "60 d")], [BOUGHT])
    spec["sites"].append(spec["sites"][0] | {"region": WEST})
    plan = planner.solve(spec)
    assert plan.has_answer and planner.verify_plan(plan) == []
    assert plan["totals"]["cost"] == pytest.approx(plan.objective["value"]) and plan["bound"] <= plan.objective["value"]
