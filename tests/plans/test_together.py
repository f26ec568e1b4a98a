"""Blocks of a spec beside each other: APIs, quality mixes, spread, waiting requests, spares, whole replicas and robust plans."""

from __future__ import annotations

import json

import numpy as np
import pytest

import planner
from planner.plan import Plan
from planner.problem.scenarios import draw
from planner.resolve.price_steps import raised
from planner.resolve.resolver import resolve_document
from planner.verify.check import read_through
from planner.verify.plan import verify_plan
from planner.verify.robust.check import cost_by_price, outcome_in
from tests.conftest import long_run

KEEPS = {"ttft": {"p99": "500 ms"}, "tpot": {"p95": "30 ms"}}
SCORES = {"Llama-3.2-1B": 30.0, "Llama-3.2-3B": 50.0}
DAY = [1] * 12 + [2] * 12


def mixed(least=40, mix="mean"):
    """Two architectures, of which half and half keep the floor."""
    return {
        "alternatives": [{"architecture": name, "quality": q, "source": "made up"} for name, q in SCORES.items()],
        "quality_floor": {"least": least, "source": "made up", "mix": mix},
    }


def gateway(**changes):
    return {"name": "gateway", "region": "us-ohio", "output": "0.03 USD/1M tokens", "latency": KEEPS} | changes


@pytest.fixture(scope="session")
def spec(tiny):
    """`spec(workload={...}, robust={...})`: 4,000 requests a second of one workload, one kind of system."""

    def make(workload=None, robust=None, **changes):
        document = tiny(**changes)
        document["workloads"][0] |= {"demand": {"requests_per_s": 4000}} | (workload or {})
        document["solver"] = {"gap": 0.15, "replicas": "divisible"}  # nothing here depends on the last per cent
        if robust is not None:
            document["robust"] = {"scenarios": 50, "confidence": 0.8} | robust
        return document

    return make


# -- APIs beside robust ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def tokens(spec):
    """An API that sells a little and dear, so that the plan makes its tokens itself."""
    ranges = {"apis[0].output": {"low": "1 USD/1M tokens", "high": "3 USD/1M tokens"}}
    api = gateway(output="2 USD/1M tokens", supply=200_000)
    return planner.solve(spec(apis=[api], prices={"ranges": ranges}, robust={}), threads=1)


def test_tokens_that_a_scenario_lacks_are_bought_and_paid(tokens):
    """In each scenario, own systems first, then tokens of the API; all by hand."""
    assert verify_plan(tokens) == []
    kept = tokens["robustness"]["fresh"]
    assert kept["kept"] >= 0.8 and "api" not in tokens["costs"]
    problem = resolve_document(tokens["spec"])
    scenarios = draw(problem, 60, 5)
    amounts = cost_by_price(problem, tokens.document, raised(problem, ()), read_through)
    found = outcome_in(problem, tokens.document, scenarios, amounts, read_through)
    without = {**tokens["spec"], "apis": [gateway(output="2 USD/1M tokens", supply=1)], "prices": {}}
    bare = outcome_in(resolve_document(without), tokens.document, scenarios, amounts, read_through)
    output, seconds = 200, float(problem.calendar.seconds @ problem.calendar.discount)
    asked = 4000 * scenarios.demand["chat"]
    bought = asked * (bare.undone[:, 0] - found.undone[:, 0])
    assert (bought > 1).sum() >= 5 and (found.undone[:, 0] > 1e-6).any()
    assert (bought * output <= 200_000 * (1 + 1e-6)).all()
    short = found.undone[:, 0] > 1e-6
    assert bought[short] * output == pytest.approx(np.full(short.sum(), 200_000), rel=1e-4)
    paid = bought * output * 2e-6 * scenarios.prices["apis[0].output"] * seconds
    elsewhere = {path: amount for path, amount in amounts.items() if not path.startswith("apis")}
    drift = sum(amount * (scenarios.prices[path] - 1) for path, amount in elsewhere.items())
    operated = found.cost - tokens["totals"]["cost"] - drift - paid  # what more or less electricity costs
    assert np.abs(operated).max() <= tokens["costs"]["energy"] < paid.max() / 5


@long_run
def test_an_api_without_a_limit_keeps_every_promise_at_a_price(spec):
    plan = planner.solve(spec(apis=[gateway(output="2 USD/1M tokens")], robust={}), threads=1)
    fresh = plan["robustness"]["fresh"]
    assert verify_plan(plan) == [] and fresh["kept"] == 1.0
    assert fresh["cost"]["p95"] > plan["totals"]["cost"]
    assert plan["robustness"]["price"] == pytest.approx(0.0, abs=1e-6 * plan["totals"]["cost"])


@long_run
def test_the_dearest_scenarios_count_the_tokens_bought(spec):
    """With `cvar`, more systems are held than by the cost as predicted, since tokens are dear; the tail is no dearer."""
    dear = gateway(output="4 USD/1M tokens")
    usual, averse = (planner.solve(spec(apis=[dear], robust={"measure": m}), threads=1) for m in ("chance", "cvar"))
    count = lambda plan: sum(row["count"] for row in plan["fleet"] if row["how"] == "buy")
    tail = lambda plan: plan["robustness"]["fresh"]["cost"]["p95"]
    assert verify_plan(averse) == [] and count(averse) > count(usual) and tail(averse) < tail(usual)


def test_the_check_finds_costs_without_the_tokens(tokens):
    document = json.loads(tokens.to_json())
    for name in document["robustness"]["fresh"]["cost"]:
        document["robustness"]["fresh"]["cost"][name] *= 0.9
    assert any("fresh.cost" in str(finding) for finding in verify_plan(Plan(document)))


# -- quality mixes beside spread and waiting requests ------------------------------------------------------------------

ZONES = [{"region": name, "systems": ["DGX H100"]} for name in ("us-virginia", "us-ohio", "us-oregon")]


@pytest.mark.parametrize("mix", ["mean", "hour"])
def test_a_mix_is_spread_and_may_wait(spec, mix):
    workload = mixed(mix=mix) | {
        "demand": {"requests_per_s": 4000, "profile": DAY, "deferral": "2 h"},
        "spread": {"largest_share": 0.6, "zones": 2, "least_share": 0.3},
    }
    plan = planner.solve(spec(workload, sites=ZONES), threads=1)
    assert plan.has_answer and verify_plan(plan) == []
    rows = {row["zone"]: row for row in plan["spread"]}
    assert {row["workload"] for row in rows.values()} == {"chat"} and len(rows) == 3
    assert max(row["largest_share"] for row in rows.values()) <= 0.6 + 1e-9
    (quality,) = plan["quality"]
    assert quality["reached"] >= 40 - 1e-6 and (mix == "mean" or quality["lowest_hour"] >= 40 - 1e-4)
    document = json.loads(plan.to_json())
    document["spread"][0]["largest_share"] += 0.01
    assert any(finding.path.startswith("spread") for finding in verify_plan(Plan(document)))


def test_a_mix_survives_the_failure_of_a_zone(spec):
    plan = planner.solve(spec(mixed() | {"spread": {"survive": 1}}, sites=ZONES[:2]), threads=1)
    assert plan.has_answer and verify_plan(plan) == []
    names = {each["name"] for each in plan["quality"][0]["architectures"]} - {None}
    for row in plan["failures"]:
        served = sum(route["tokens_per_s"] for route in row["routes"]) / 200
        assert served == pytest.approx(4000, rel=1e-6)
        assert {route["workload"] for route in row["routes"]} <= names
    document = json.loads(plan.to_json())
    document["failures"][0]["routes"][0]["tokens_per_s"] *= 0.9
    assert any("failures" in finding.path for finding in verify_plan(Plan(document)))


# -- quality mixes beside robust ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def robust_mix(spec):
    return planner.solve(spec(mixed(), robust={}), threads=1)


def test_a_split_of_requests_is_kept_in_every_scenario(robust_mix):
    """Each architecture has its planned requests, by the growth of all: the systems of one cannot help where those of the other lack."""
    plan = robust_mix
    fresh = plan["robustness"]["fresh"]
    assert verify_plan(plan) == [] and fresh["kept"] >= 0.8
    assert fresh["workloads"].keys() == {f"chat ({name})" for name in SCORES}
    assert plan["quality"][0]["reached"] >= 40 - 1e-6
    problem = resolve_document(plan["spec"])
    scenarios = draw(problem, 20, 3)
    assert np.array_equal(*(scenarios.demand[w.name] for w in problem.serving))  # one demand
    assert plan["totals"]["cost"] >= plan["robustness"]["nominal"]["value"] * (1 - 1e-9)


def test_the_check_finds_a_false_share_of_a_mix(robust_mix):
    document = json.loads(robust_mix.to_json())
    document["robustness"]["fresh"]["kept"] = 1.0
    assert any("robustness" in str(finding) for finding in verify_plan(Plan(document)))


# -- all blocks at once ------------------------------------------------------------------------------------------------


BATTERY = {"energy": "200 kWh", "power": "50 kW", "energy_price": "60 USD/kWh", "power_price": "20 USD/kW"}


def everything(robust=False):
    """A tiny spec with every block that others used to refuse; budgets of phases and spares only where it is not robust."""
    site = lambda region: {"region": region, "systems": ["DGX H100"]}
    document = {
        "name": "everything",
        "workloads": [
            {
                "name": "chat",
                "kind": "serving",
                "architecture": "Llama-3.2-1B",
                "demand": {"requests_per_s": 4000, "profile": DAY, "deferral": "2 h"},
                "lengths": {"input": 500, "output": 200},
                "origins": [{"region": "us-virginia", "share": 1}],
                "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}},
                "precision": ["bf16"],
                "disaggregation": "never",
                "spread": {"largest_share": 0.7, "zones": 2, "least_share": 0.1, "survive": 1},
                "redundancy": 0.1,
                **mixed(),
            },
        ],
        "sites": [
            site("us-virginia")
            | {"delivery": "0.03 USD/kWh", "electricity": {"demand_charge": "15 USD/kW-month", "battery": BATTERY}},
            site("us-ohio"),
        ],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
        "apis": [gateway(output="2 USD/1M tokens", supply=200_000)],
        "lines": [{"kind": "TLS"}],
        "porting": [{"family": "hopper", "cost": "10000 USD"}],
        "simplicity": {"within": 0},
        "solver": {"gap": 0.2, "replicas": "divisible", "time_limit": "60 s"},
    }
    if robust:
        document["robust"] = {"scenarios": 50, "confidence": 0.6, "prices": False}
    else:
        document["phases"] = [{"name": "first", "start": "0 d", "budget": "9M USD"}, {"name": "second", "start": "0.5 year", "budget": "9M USD"}]  # fmt: skip
    return document


@pytest.mark.parametrize("robust", [False, True])
def test_all_blocks_at_once_solve_and_hold(robust):
    plan = planner.solve(everything(robust), threads=1)
    assert plan.has_answer and verify_plan(plan) == []
    tables = {"spread", "failures", "quality", "lines", "electricity"} | ({"robustness"} if robust else {"phases"})
    assert all(plan[name] for name in tables) and plan["costs"]["porting"] == 20_000
    assert plan["quality"][0]["reached"] >= 40 - 1e-6
    if robust:
        assert plan["robustness"]["fresh"]["kept"] >= 0.6
        assert {"lines", "spread", "deferral", "electricity"} <= set(plan["robustness"]["left_out"])
    else:
        assert all(0 < row["paid"] <= 9e6 for row in plan["phases"])
