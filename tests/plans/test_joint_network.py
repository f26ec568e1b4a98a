"""Pools of a deployment on two kinds of systems stand on one network, whose size counts both kinds together."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.plan import Plan
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
