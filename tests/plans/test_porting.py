"""Porting an architecture to a family of chips: paid once, by those who need it, and weighed against staying where one is."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

OFFERS = [
    {"system": "DGX H100", "how": "buy", "price": "310000 USD"},
    {"system": "MI300X 8x OAM node", "how": "buy", "price": "100000 USD"},
]


@pytest.fixture(scope="module")
def spec(tiny):
    """`spec(cost)`: two workloads of one architecture; MI300X nodes at a third of the price, once the architecture runs on them."""

    def make(cost=None, **changes):
        document = tiny(offers=copy.deepcopy(OFFERS), **changes)
        del document["sites"][0]["systems"]
        document["workloads"].append(copy.deepcopy(document["workloads"][0]) | {"name": "more"})
        if cost is not None:
            document["porting"] = [{"family": "cdna3", "cost": cost}]
        return document

    return make


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


def systems(plan):
    return {row["system"] for row in plan["fleet"]}


@pytest.fixture(scope="module")
def cheap(spec):
    return solved(spec("5000 USD"))


def test_without_a_cost_the_cheap_system_wins(spec):
    plan = solved(spec())
    assert systems(plan) == {"MI300X 8x OAM node"} and "porting" not in plan["costs"]


def test_a_small_cost_is_paid_once(cheap, spec):
    """Two workloads run one architecture: one port, each bears half of it."""
    free = solved(spec())
    assert systems(cheap) == {"MI300X 8x OAM node"} and cheap["costs"]["porting"] == 5000
    assert cheap["totals"]["cost"] == pytest.approx(free["totals"]["cost"] + 5000)
    for before, after in zip(free["workloads"], cheap["workloads"], strict=True):
        assert after["cost"] == pytest.approx(before["cost"] + 2500, rel=1e-6)


def test_a_large_cost_keeps_the_work_where_it_is(spec):
    plan = solved(spec("10M USD"))
    assert systems(plan) == {"DGX H100"} and "porting" not in plan["costs"]


def test_between_them_lies_the_difference(spec, cheap):
    """Porting pays as long as it costs less than the plan without the family costs more."""
    margin = solved(spec("10M USD"))["totals"]["cost"] - solved(spec())["totals"]["cost"]
    assert systems(solved(spec(f"{margin * 0.99:.0f} USD"))) == {"MI300X 8x OAM node"}
    assert systems(solved(spec(f"{margin * 1.01:.0f} USD"))) == {"DGX H100"}


def test_each_architecture_pays_for_itself(spec):
    document = spec("5000 USD")
    document["workloads"][1]["architecture"] = "llama-3.1-8b"
    plan = solved(document)
    assert plan["costs"]["porting"] in (5000, 10000)
    ported = {row["system"] for row in plan["cost_lines"] if row["component"] == "porting"}
    used = {
        w["name"]
        for w in plan["workloads"]
        for p in w["points"]
        if any(pool["system"].startswith("MI300X") for pool in p["pools"])
    }
    assert len(ported) == len(used)


def test_a_named_architecture_alone_is_ported(spec):
    document = spec()
    document["workloads"][1]["architecture"] = "llama-3.1-8b"
    document["workloads"][0]["demand"] = {"requests_per_s": 8000}
    document["porting"] = [{"family": "cdna3", "architecture": "llama-3.1-8b", "cost": "10M USD"}]
    plan = solved(document)
    of = {w["name"]: {pool["system"] for p in w["points"] for pool in p["pools"]} for w in plan["workloads"]}
    assert "MI300X 8x OAM node" in of["chat"] and of["more"] == {"DGX H100"}


def test_a_job_is_ported_too(spec):
    job = {"name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "80B", "deadline": "60 d"}
    document = spec("10M USD")
    document["workloads"] = [job]
    assert systems(solved(document)) == {"DGX H100"}


@pytest.mark.parametrize(
    ("porting", "path", "word"),
    [
        ({"family": "ascend", "cost": "1 USD"}, "porting[0].family", "known here: cdna3, hopper"),
        (
            {"family": "cdna3", "architecture": "DeepSeek-V3", "cost": "1 USD"},
            "porting[0].architecture",
            "no workload runs",
        ),
        ({"family": "cdna3", "cost": 5}, "porting[0].cost", "currency"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(spec, porting, path, word):
    with pytest.raises(SpecError) as error:
        resolve_document(spec() | {"porting": [porting]})
    assert any(problem.path == path and word in problem.message for problem in error.value.problems), str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["costs"].update(porting=4999),
        lambda d: d["cost_lines"].remove(next(row for row in d["cost_lines"] if row["component"] == "porting")),
        lambda d: d["workloads"][0].update(cost=d["workloads"][0]["cost"] - 2500),
        lambda d: d["spec"]["porting"][0].update(cost="6000 USD"),
    ],
)
def test_what_is_bent_is_found(cheap, change):
    document = copy.deepcopy(dict(cheap.document))
    change(document)
    assert verify_plan(Plan(document))


SITES = [{"region": "us-virginia", "systems": ["DGX H100"]}, {"region": "us-ohio", "systems": ["MI300X 8x OAM node"]}]


def test_what_only_a_failure_needs_is_ported(spec):
    """With one family at each site, surviving the loss of either takes the port; without it, the dearer systems alone do."""
    document = spec("10M USD", sites=copy.deepcopy(SITES))
    alone = solved(document)
    for workload in document["workloads"]:
        workload["spread"] = {"survive": 1}
    plan = solved(document)
    assert "porting" not in alone["costs"] and plan["costs"]["porting"] == 10e6
    assert {row["zone"] for row in plan["failures"]} == {"us-virginia", "us-ohio"}
    free = solved({key: value for key, value in document.items() if key != "porting"})
    assert plan["totals"]["cost"] == pytest.approx(free["totals"]["cost"] + 10e6)
    for workload in document["workloads"]:  # on what needs no port at either site, none is paid
        workload["spread"] = {"survive": 1}
    document["sites"][1]["systems"] = ["DGX H100", "MI300X 8x OAM node"]
    assert "porting" not in solved(document)["costs"]
