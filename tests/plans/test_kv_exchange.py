"""Engines of two vendors exchange KV caches only where the workload says so, at the rate of the conversion and for the price of the port."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.problem.fabrics import exchange_bytes_per_s, may_exchange
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

SPEC = {
    "name": "prefill here, decode there",
    "horizon": {"start": "2027-01-01", "years": 1},
    "workloads": [
        {
            "name": "tutor", "kind": "serving", "architecture": "Qwen3-32B", "demand": {"requests_per_s": 180},
            "lengths": {"input": 1200, "output": 350}, "origins": [{"region": "cn-shanghai", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["int8"], "disaggregation": "always",
        }
    ],
    "sites": [{"region": "cn-zhongwei", "fabrics": ["rail-only"]}],
    "offers": [{"system": "Atlas 800T A2", "how": "buy"}, {"system": "HGX H20 8-GPU server", "how": "buy"}],
    "limits": {"licences": ["HGX H20 8-GPU server"]},
    "overrides": {
        f"systems/{name}/nic_bytes_per_s": {"value": "50 GB/s", "note": "8 ports of 400 Gbit/s, as many rails"} for name in ("Atlas 800T A2", "HGX H20 8-GPU server")
    },
    "solver": {"replicas": "divisible", "gap": 1e-4},
}  # fmt: skip
EXCHANGE = {"conversion": "20 GB/s", "porting": "1000 USD"}


def spec(exchange=None):
    document = copy.deepcopy(SPEC)
    if exchange is not None:
        document["workloads"][0]["kv_exchange"] = exchange
    return document


def kinds(point):
    return {use.option.system.name for use in point.uses}


def crossing(document):
    found = find_candidates(resolve_document(document))
    return [point for pool in found.pools for point in pool.points if len(kinds(point)) > 1], found.dropped["tutor"]


@pytest.fixture(scope="module")
def exchanged():
    return planner.solve(spec(EXCHANGE))


def test_without_the_key_no_pools_of_two_vendors():
    points, dropped = crossing(spec())
    assert points == []
    assert any("`kv_exchange`" in reason and count > 0 for reason, count in dropped.items())


def test_with_the_key_they_are_candidates():
    points, dropped = crossing(spec(EXCHANGE))
    assert points and not any("`kv_exchange`" in reason for reason in dropped)


def test_two_kinds_of_one_vendor_need_no_key():
    document = spec()
    document["sites"][0]["region"], document["workloads"][0]["precision"] = "us-virginia", ["fp8"]
    document["workloads"][0]["origins"] = [{"region": "us-virginia", "share": 1}]
    document["overrides"] = {}
    document["offers"] = [{"system": "DGX H100", "how": "buy"}, {"system": "DGX H200", "how": "buy"}]
    problem = resolve_document({key: value for key, value in document.items() if key != "limits"})
    first, second = (problem.systems[offer["system"]] for offer in document["offers"])
    assert first.vendor == second.vendor == "NVIDIA" and may_exchange(problem.serving[0].spec, first, second)


def test_a_cache_is_converted_after_it_was_sent():
    """25 GB/s and 20 GB/s one after the other: a byte takes 1/25 + 1/20 ns, 11.1 GB/s."""
    problem = resolve_document(spec(EXCHANGE))
    workload, both = problem.serving[0].spec, [problem.systems[offer["system"]] for offer in SPEC["offers"]]
    assert exchange_bytes_per_s(workload, (both[0], both[1]), 25e9) == pytest.approx(1e9 / (1 / 25 + 1 / 20))
    assert exchange_bytes_per_s(workload, (both[0], both[0]), 25e9) == 25e9


def test_the_port_is_paid_once_where_caches_cross(exchanged):
    used = [{pool["system"] for pool in point["pools"]} for point in exchanged["workloads"][0]["points"]]
    assert {offer["system"] for offer in SPEC["offers"]} in used
    assert exchanged["costs"]["porting"] == 1000
    assert verify_plan(exchanged) == []


def test_a_port_that_costs_more_than_it_saves_is_not_made(exchanged):
    """The plan on one kind costs what it costs without the key."""
    alone = planner.solve(spec())
    saved = alone["totals"]["cost"] - exchanged["totals"]["cost"]
    assert saved > 0
    dear = planner.solve(spec(EXCHANGE | {"porting": f"{saved * 2 + 1e5:.0f} USD"}))
    assert "porting" not in dear["costs"] and dear["totals"]["cost"] == pytest.approx(alone["totals"]["cost"], rel=2e-4)


def test_verify_asks_for_the_key(exchanged):
    """A plan whose spec lost the key is refused by the point that crosses."""
    bent = copy.deepcopy(exchanged.document)
    del bent["spec"]["workloads"][0]["kv_exchange"]
    assert any("`kv_exchange`" in str(found) for found in verify_plan(type(exchanged)(bent)))


def test_the_port_may_be_free_and_the_rate_must_be_stated():
    assert crossing(spec(EXCHANGE | {"porting": "0 USD"}))[0]
    with pytest.raises(SpecError, match=r"kv_exchange\.conversion"):
        resolve_document(spec({"porting": "0 USD"}))
