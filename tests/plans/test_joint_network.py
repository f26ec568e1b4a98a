"""Pools of a deployment on two kinds of systems stand on one network, whose size counts both kinds together."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.plan import Plan
from planner.report.page import one_page
from planner.verify.plan import verify_plan
from tests.plans.test_kv_exchange import EXCHANGE, SPEC


def spec(requests_per_s, **changes):
    """Prefill on Ascend and decode on H20, which may exchange caches; both take 8 ports of a rail."""
    document = copy.deepcopy(SPEC) | changes
    document["workloads"][0] |= {"demand": {"requests_per_s": requests_per_s}, "kv_exchange": EXCHANGE}
    return document


def crossing(plan):
    return [
        row
        for work in plan["workloads"]
        for row in work["points"]
        if len({pool["system"] for pool in row["pools"]}) > 1
    ]


def assert_joined(plan):
    """Each point with two pools states one path; pools on two kinds of systems stand on one network of the plan."""
    for work in plan["workloads"]:
        for row in work["points"]:
            systems = {pool["system"] for pool in row["pools"]}
            if len({pool["role"] for pool in row["pools"]} & {"prefill", "decode", "update", "rollout"}) == 2:
                assert row["path"]["kind"] == "network" and 0 <= row["path"]["share"] <= 1
            if len(systems) > 1:
                shared = [
                    net
                    for net in plan["fabrics"]
                    if net["site"] == row["site"] and systems <= set(net.get("members", ()))
                ]
                assert len(shared) == 1 and shared[0]["taken"] <= 1 and shared[0]["design"] == row["path"]["design"]


@pytest.fixture(scope="module")
def small():
    return planner.solve(spec(180))


def test_the_network_has_one_row(small):
    """The parts are those of one network of all systems."""
    assert crossing(small)
    [row] = small["fabrics"]
    held = {held["system"]: held["count"] for held in small["fleet"]}
    assert row["members"] == held and row["systems"] == sum(held.values())
    assert row["taken"] == pytest.approx(row["systems"] / row["size"]) and row["ports"] == 8 * row["systems"]
    assert_joined(small)
    assert verify_plan(small) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("members", {"Atlas 800T A2": 1, "HGX H20 8-GPU server": 1}),
        ("taken", 0.01),
        ("switches", 1),
        ("system", "Atlas 800T A2"),
    ],
)
def test_verify_counts_the_network_again(small, name, value):
    bent = copy.deepcopy(small.document)
    bent["fabrics"][0][name] = value
    assert verify_plan(Plan(bent))


def test_more_systems_than_one_network_holds_are_found(small):
    """A plan whose kinds fit their networks alone, and not together."""
    bent = copy.deepcopy(small.document)
    for row in bent["fleet"]:
        row["count"] = 40
    assert any("on one network" in str(found) and "share" in str(found) for found in verify_plan(Plan(bent)))


def test_pools_on_networks_of_other_sizes_are_found(small):
    """The names of the designs are the same; one switch and two tiers are two networks."""
    bent = copy.deepcopy(small.document)
    pool = crossing(bent)[0]["pools"][0]
    pool["network_size"] = 2048 if pool["network_size"] == 64 else 64
    for row in bent["fleet"]:
        if row["system"] == pool["system"]:
            row["network_size"] = pool["network_size"]
    assert any("share a network" in str(found) for found in verify_plan(Plan(bent)))


def test_the_path_of_the_caches(small):
    """Qwen3-32B keeps keys and values of 64 layers x 8 heads x 128: 131,072 elements a token, of 1,200 tokens a prompt. A chip sends 50 GB/s and
    converts 20 GB/s, one after the other; the pool with fewer chips bounds both."""
    for row in crossing(small):
        path, precision = row["path"], row["pools"][0].get("kv_precision", "16 bit")
        chips = min(
            pool["workers"] * pool["layout"]["tp"] * pool["layout"]["pp"] * pool["layout"]["dp"]
            for pool in row["pools"]
        )
        assert (path["kind"], path["design"], path["size"]) == ("network", "rail-only", row["pools"][0]["network_size"])
        link = min(rate(small, pool) for pool in row["pools"])
        assert path["bytes_per_s"] == pytest.approx(chips / (1 / link + 1 / 20e9))
        element = path["used_bytes_per_s"] / (row["capacity"] * 1200 * 2 * 64 * 8 * 128)
        assert element == pytest.approx(round(element), rel=0.05) and round(element) in (1, 2), precision
        assert path["share"] == pytest.approx(path["used_bytes_per_s"] / path["bytes_per_s"]) and 0 < path["share"] < 1


def rate(plan, pool):
    """The rate of a chip on its network: 50 GB/s less what messages never reach."""
    [network] = plan["fabrics"]
    return network["uniform_bytes_per_s"]


@pytest.mark.parametrize("name", ["kind", "design", "size", "bytes_per_s", "used_bytes_per_s", "share"])
def test_verify_computes_the_path_again(small, name):
    bent = copy.deepcopy(small.document)
    path = crossing(bent)[0]["path"]
    path[name] = "scale-up" if isinstance(path[name], str) else path[name] * 2
    assert any("path" in str(found) for found in verify_plan(Plan(bent)))


def test_a_plan_states_the_path_of_its_pools_only(small):
    bent = copy.deepcopy(small.document)
    del crossing(bent)[0]["path"]
    assert any("path" in str(found) for found in verify_plan(Plan(bent)))


def test_the_page_says_the_path(small):
    assert "KV caches over one rail-only network of 64" in one_page(small)
