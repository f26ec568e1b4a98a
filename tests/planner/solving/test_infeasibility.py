"""An infeasible spec is answered with the limits in conflict and a smallest change that gives it a plan."""

from __future__ import annotations

import copy
import json
from itertools import combinations

import pytest

import planner
from planner.plan import parse_plan
from planner.report.report import render
from planner.solving import repair_search
from planner.spec.changes import written_up
from planner.spec.document import at, edited
from planner.spec.fabrics import FABRIC_DESIGNS
from planner.spec.workloads import PRECISIONS
from planner.verify.plan import verify_plan
from solvers.analysis.conflicts import minimal_conflict, minimum_hitting_sets
from tests.conftest import long_run

CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 3000},
    "lengths": {"input": 1000, "output": 300, "input_cv": 1, "output_cv": 1}, "origins": [{"region": "us-texas", "share": 1.0}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never",
}  # fmt: skip
JOB = {"name": "pretrain", "kind": "training", "architecture": "Qwen3-32B", "tokens": "300B", "deadline": "20 d"}
OFFER = {"system": "DGX H100", "how": "buy"}
TEXAS, BEIJING = {"region": "us-texas", "power": "2 MW"}, {"region": "cn-beijing"}


def spec(workloads=(CHAT,), sites=(TEXAS,), offers=(OFFER,), **rest) -> dict:
    asked = {
        "name": "small",
        "workloads": [*workloads],
        "sites": [*sites],
        "offers": [*offers],
        "solver": {"time_limit": "300 s"},  # a diagnosis that time cuts short is not what is tested here
        **rest,
    }
    return copy.deepcopy(asked)


OREGON, SOUTH = {"region": "us-oregon"}, {"region": "us-oregon", "power": "60 kW"}
LEASED = {"kind": "dedicated line", "setup": "0 s"}
PLANT = {"name": "plant", "capacity": "10 kW", "price": "0.09 USD/kWh", "profile": "flat"}
BATTERY = {"energy": "40 MWh", "power": "10 MW", "sizing": "given", "energy_price": "200 USD/kWh"}
PATIENT = {**CHAT, "demand": {"requests_per_s": 3000, "profile": [0.5] * 12 + [1.5] * 12, "deferral": "2 h"}}
PHASE = {"name": "first", "start": "0 d"}
MOST = {"maximise": "throughput"}

# limit -> (what makes it impossible, the places in conflict, the places of the repair)
CASES = {
    "power": (spec(), {"sites[0].power": "20 kW"}, {"sites[0].power"}, {"sites[0].power"}),
    "supply": (spec(), {"offers[0].supply": 2}, {"offers[0].supply"}, {"offers[0].supply"}),
    "budget": (spec(), {"limits.budget": "1000 USD"}, {"limits.budget"}, {"limits.budget"}),
    "capital in another currency": (spec(), {"limits.capital": "100k CNY"}, {"limits.capital"}, {"limits.capital"}),
    "carbon": (spec(), {"limits.carbon": "1 t"}, {"limits.carbon"}, {"limits.carbon"}),
    "time to first token": (spec(), {"workloads[0].slo.ttft.p95": "5 ms"}, {"workloads[0].slo.ttft.p95"}, {"workloads[0].slo.ttft.p95"}),
    "time per output token": (spec(), {"workloads[0].slo.tpot.p95": "1 ms"}, {"workloads[0].slo.tpot.p95"}, {"workloads[0].slo.tpot.p95"}),
    "end to end": (spec(), {"workloads[0].slo.e2e": {"mean": "500 ms"}}, {"workloads[0].slo.e2e.mean"}, {"workloads[0].slo.e2e.mean"}),
    "distance": (
        spec(), {"workloads[0].origins": [{"region": "de-frankfurt", "share": 1.0}], "workloads[0].slo.ttft.p95": "90 ms"},
        {"workloads[0].slo.ttft.p95"}, {"workloads[0].slo.ttft.p95"},
    ),
    "residency": (spec(), {"workloads[0].residency": ["cn"]}, {"workloads[0].residency"}, {"workloads[0].residency"}),
    "precision": (spec(), {"workloads[0].arithmetic": "fp4"}, {"workloads[0].arithmetic"}, {"workloads[0].arithmetic"}),
    "systems of a site": (spec(), {"sites[0].systems": ["DGX B200"]}, {"sites[0].systems"}, {"sites[0].systems"}),
    "separate pools without a network": (
        spec(), {"workloads[0].disaggregation": "always", "sites[0].topologies": ["scale-up"]},
        {"workloads[0].disaggregation", "sites[0].topologies"}, {"workloads[0].disaggregation"},
    ),
    "memory": (
        spec(), {"workloads[0].architecture": "DeepSeek-V3", "offers": [{"system": "AWS g6e.48xlarge", "how": "on_demand", "price": "30 USD/h"}]},
        {"offers"}, {"offers"},
    ),
    "nothing on offer": (spec(), {"offers": []}, {"offers"}, {"offers"}),
    "export control, licence": (
        spec(sites=[BEIJING]), {"offers": [OFFER, {"system": "DGX H200", "how": "buy"}]}, {"limits.export_control"}, {"limits.licences"},
    ),
    "export control, barred": (spec(sites=[BEIJING]), {"workloads[0].precision": ["fp8", "bf16"]}, {"limits.export_control"}, {"offers"}),
    "region of an offer": (
        spec(sites=[TEXAS, {"region": "us-virginia"}], offers=[{**OFFER, "regions": ["us-texas"]}]), {"sites[0].power": "2 kW"},
        {"sites[0].power", "offers[0].regions"}, {"offers[0].regions"},
    ),
    "deadline": (spec([JOB]), {"workloads[0].deadline": "1 h"}, {"workloads[0].deadline"}, {"workloads[0].deadline"}),
    "deadline beyond the horizon": (
        spec([JOB]), {"workloads[0].tokens": "3000T", "workloads[0].deadline": "100 d", "sites[0].power": "2 GW"},
        {"workloads[0].deadline"}, {"workloads[0].deadline", "horizon.years"},
    ),
    "no network for a job": (
        spec([JOB]), {"sites[0].topologies": ["scale-up"]}, {"sites[0].topologies", "workloads[0].deadline"}, {"sites[0].topologies"},
    ),
    "size of a network": (
        spec([JOB], overrides={"fabrics/InfiniBand NDR/radix": {"value": 8, "note": "sixteen systems in three tiers"}}),
        {"sites[0].topologies": ["fat-tree"], "workloads[0].tokens": "2T"},
        {"workloads[0].deadline", "sites[0].topologies"}, {"sites[0].topologies"},
    ),
    "supply against a deadline": (spec([JOB]), {"offers[0].supply": 8}, {"offers[0].supply", "workloads[0].deadline"}, {"workloads[0].deadline"}),
    "two limits at once": (
        spec(), {"limits.budget": "10k USD", "sites[0].power": "20 kW"}, {"limits.budget", "sites[0].power"}, {"limits.budget", "sites[0].power"},
    ),
    "a job beside most throughput": (
        spec([CHAT, JOB], objective={"maximise": "throughput"}), {"sites[0].power": "50 kW"},
        {"sites[0].power", "workloads[1].deadline"}, {"sites[0].power"},
    ),
    "most throughput of a workload that nothing serves in time": (
        spec(objective=MOST), {"workloads[0].slo.ttft.p95": "5 ms"}, {"workloads[0].slo.ttft.p95"}, {"workloads[0].slo.ttft.p95"},
    ),
    "most throughput without power for one system": (spec(objective=MOST), {"sites[0].power": "1 kW"}, {"sites[0].power"}, {"sites[0].power"}),
    "most throughput of one workload, which nothing serves": (
        spec([CHAT, {**CHAT, "name": "other"}], objective={**MOST, "workload": "other"}), {"workloads[1].residency": ["cn"]},
        {"workloads[1].residency"}, {"workloads[1].residency"},
    ),
    "most throughput of two workloads, of which nothing serves one": (
        spec([CHAT, {**CHAT, "name": "other"}], objective=MOST), {"workloads[1].residency": ["cn"]}, {"workloads[1].residency"}, {"workloads[1].residency"},
    ),
    "start of a job": (spec([{**JOB, "start": "19.9 d"}]), {}, {"workloads[0].start", "workloads[0].deadline"}, {"workloads[0].deadline"}),
    "units of a line": (spec(sites=[OREGON], lines=[{**LEASED, "units": 1, "capacity": "1 Mbit/s"}]), {}, {"lines", "lines[0].units"}, {"lines"}),
    "set-up of a line": (spec(sites=[OREGON], lines=[{**LEASED, "setup": "60 d"}]), {}, {"lines", "lines[0].setup"}, {"lines"}),
    "class of lines": (spec(sites=[OREGON], lines=[{"kind": "TLS"}]), {"workloads[0].security": "private"}, {"workloads[0].security", "lines"}, {"workloads[0].security"}),
    "availability of lines": (
        spec(sites=[OREGON], lines=[{"kind": "TLS", "availability": 0.99}]), {"workloads[0].availability": 0.9999},
        {"workloads[0].availability", "lines"}, {"workloads[0].availability"},
    ),
    "time for updates": (
        spec(sites=[OREGON], lines=[{**LEASED, "units": 2}]), {"workloads[0].traffic": {"weights": {"window": "1 min"}}},
        {"workloads[0].traffic.weights.window", "lines", "lines[0].units"}, {"lines"},
    ),
    "largest share of a zone": (spec(), {"workloads[0].spread": {"largest_share": 0.6}}, {"workloads[0].spread.largest_share"}, {"workloads[0].spread.largest_share"}),
    "number of zones": (spec(), {"workloads[0].spread": {"zones": 2}}, {"workloads[0].spread.zones"}, {"workloads[0].spread.zones"}),
    "failure of a zone": (
        spec(sites=[{"region": "us-texas"}, SOUTH]), {"workloads[0].spread": {"survive": 1}}, {"sites[1].power", "workloads[0].spread.survive"}, {"sites[1].power"},
    ),
    "connection": (spec(), {"sites[0].electricity": {"connection": "20 kW"}}, {"sites[0].electricity.connection"}, {"sites[0].electricity.connection"}),
    "connection beside a contract": (
        spec(), {"sites[0].electricity": {"connection": "20 kW", "ppa": [PLANT]}},
        {"sites[0].electricity.connection", "sites[0].electricity.ppa[0].capacity"}, {"sites[0].electricity.connection"},
    ),
    "least contract against a budget": (
        spec(), {"limits.budget": "8M USD", "sites[0].electricity": {"ppa": [{**PLANT, "capacity": "20 MW", "least": "10 MW"}]}},
        {"limits.budget", "sites[0].electricity.ppa[0].least"}, {"limits.budget"},
    ),
    "given battery against capital": (
        spec(), {"limits.capital": "8M USD", "sites[0].electricity": {"battery": BATTERY}}, {"limits.capital", "sites[0].electricity.battery.sizing"}, {"limits.capital"},
    ),
    "waiting": (spec([PATIENT]), {"sites[0].power": "130 kW"}, {"sites[0].power", "workloads[0].demand.deferral"}, {"sites[0].power"}),
    "power with caps": (spec(), {"sites[0].power": "20 kW", "sites[0].power_caps": [0.7]}, {"sites[0].power"}, {"sites[0].power"}),
    "delivery after a deadline": (spec([JOB]), {"offers[0].available_from": "30 d"}, {"offers[0].available_from", "workloads[0].deadline"}, {"workloads[0].deadline"}),
    "a site after a deadline": (spec([JOB]), {"sites[0].available_from": "30 d"}, {"sites[0].available_from", "workloads[0].deadline"}, {"workloads[0].deadline"}),
    "an order after the start": (spec(), {"offers[0].delivery": {"low": "20 d", "typical": "30 d"}}, {"offers[0].delivery.typical"}, {"offers[0].delivery.typical", "offers[0].delivery.low"}),
    "delivery after the start": (spec(), {"offers[0].available_from": "30 d"}, {"offers[0].available_from"}, {"offers[0].available_from"}),
    "supply of a phase": (spec(phases=[PHASE]), {"offers[0].supply_by_phase": {"first": 2}}, {"offers[0].supply_by_phase.first"}, {"offers[0].supply_by_phase.first"}),
    "capital of a phase": (spec(phases=[PHASE]), {"phases[0].capital": "1M USD"}, {"phases[0].capital"}, {"phases[0].capital"}),
}  # fmt: skip


# how each limit is taken away that is not by leaving it out
GONE = {
    "deadline": "3650 d", "start": "0 s", "disaggregation": "allowed", "precision": list(PRECISIONS), "topologies": list(FABRIC_DESIGNS), "export_control": False,
    "offers": [OFFER, {"system": "DGX B200", "how": "reserved"}], "lines": [{"kind": kind, "setup": "0 s"} for kind in ("TLS", "VPN", "SD-WAN", "dedicated line")],
    "survive": 0, "zones": 1, "sizing": "choose", "setup": "0 s", "deferral": "23 h", "security": "public", "availability": 0, "capacity": "10 MW", "window": "365 d", "first": 1_000_000,
}  # fmt: skip


def freed(document: dict, path: str) -> dict:
    """The document without one limit, and with a horizon in which a deadline may lie."""
    path = path.removesuffix(".typical")  # a time of delivery goes whole
    free = edited(document, ((path, GONE.get(path.rpartition(".")[2])),))
    return (
        edited(free, (("horizon.years", 30 if "3000T" in json.dumps(document) else 10),))
        if path.endswith("deadline")
        else free
    )


# those that hold two conflicts, which only several changes together mend
SEVERAL = ("two limits at once",)


def repaired(document: dict, diagnosis: dict) -> dict:
    return edited(document, tuple((row["path"], row["to"]) for row in diagnosis["repair"]))


# whose layouts are searched anew for each change
LONG = (
    "size of a network", "delivery after a deadline", "no network for a job", "start of a job", "a job beside most throughput",
    "deadline beyond the horizon", "supply against a deadline", "a site after a deadline",
)  # fmt: skip


def short_first(labels) -> list:
    """The labels, the long ones marked."""
    assert set(LONG) <= set(CASES)
    return [pytest.param(label, marks=long_run if label in LONG else ()) for label in labels]


@pytest.mark.parametrize("label", short_first(CASES))
def test_the_conflict_is_named_and_the_repair_works(label):
    base, change, conflict, places = CASES[label]
    document = edited(base, tuple(change.items()))
    plan = planner.solve(document)
    assert plan.status == "infeasible" and not plan.has_answer
    found = plan["diagnosis"]
    assert {row["path"] for row in found["conflict"]} == conflict
    assert {row["path"] for row in found["repair"]} == places and found["repair_checked"]
    for row in found["repair"]:
        stated = at(document, row["path"])
        assert row["from"] == stated or stated is None
    again = planner.solve(repaired(document, found))
    assert again.has_answer and verify_plan(again) == []
    if label not in SEVERAL:  # each member is needed: with any one of them gone there is a plan
        for row in found["conflict"]:
            free = planner.solve(freed(document, row["path"]))
            assert free.has_answer or free.status == "unbounded", row["path"]
    words = " ".join(render(plan, "table").split())
    assert all(" ".join(row["words"].split()) in words for row in (*found["conflict"], *found["repair"]))
    assert verify_plan(parse_plan(plan.to_json())) == []


@pytest.mark.parametrize(
    "label",
    [
        "budget",
        "power",
        "supply against a deadline",
        "region of an offer",
        "waiting",
        "failure of a zone",
        "a job beside most throughput",
    ],
)
@long_run
def test_where_the_points_are_too_many_the_amounts_are_in_conflict_beside_all_else(monkeypatch, label):
    """The repair is as small as ever, for it is no network here; of the conflict, just the amounts are told, and that it is so."""
    base, change, _, places = CASES[label]
    document = edited(base, tuple(change.items()))
    whole = planner.solve(document)["diagnosis"]
    monkeypatch.setattr(repair_search, "COLUMNS_PER_SECOND", 0)
    plan = planner.solve(document)
    found = plan["diagnosis"]
    assert whole["conflict_of"] == "limits"
    assert (
        found["repair"] == whole["repair"]
        and {row["path"] for row in found["repair"]} == places
        and found["repair_checked"]
    )
    assert verify_plan(plan) == []
    assert found["conflict_of"] == "amounts" and {row["path"] for row in found["conflict"]} <= {
        row["path"] for row in whole["conflict"]
    }
    told = " ".join(render(plan, "table").split())
    assert "kept as stated" in told and "a smaller change may exist" in told
    for row in found["conflict"]:  # each of them is needed beside all else
        free = planner.solve(freed(document, row["path"]))
        assert free.has_answer or free.status == "unbounded"
    assert verify_plan(parse_plan(plan.to_json().replace('"conflict_of": "amounts"', '"conflict_of": "all"')))


NUMBERS = (
    "power", "supply", "budget", "carbon", "time to first token", "deadline", "capital in another currency", "connection", "connection beside a contract",
    "least contract against a budget", "given battery against capital", "failure of a zone", "waiting", "start of a job", "supply of a phase", "capital of a phase",
)  # fmt: skip


@pytest.mark.parametrize("label", short_first(NUMBERS))
def test_a_repair_is_smallest(label):
    """Three percent less of the change is not enough (numbers are found to one percent and rounded to three digits)."""
    base, change, _, _ = CASES[label]
    document = edited(base, tuple(change.items()))
    (row,) = planner.solve(document)["diagnosis"]["repair"]
    if isinstance(row["to"], int):
        less = row["to"] - 1
    else:
        number, _, unit = row["to"].partition(" ")
        suffix = number.lstrip("0123456789.")
        less = f"{float(number.removesuffix(suffix)) * 0.97:.9g}{suffix} {unit}"
    assert planner.solve(edited(document, ((row["path"], less),))).status == "infeasible"


@long_run
def test_of_two_ways_out_the_smaller_change_is_taken():
    """The least supply that a job needs by its deadline is found by halving; then one system less is asked for, and half of it."""
    few, enough = 1, 64
    while enough - few > 1:
        middle = (few + enough) // 2
        has = planner.solve(edited(spec([JOB]), (("offers[0].supply", middle),))).has_answer
        few, enough = (few, middle) if has else (middle, enough)
    for supply in (few, enough // 2):
        (row,) = planner.solve(edited(spec([JOB]), (("offers[0].supply", supply),)))["diagnosis"]["repair"]
        if row["path"] == "offers[0].supply":
            change = row["to"] / supply - 1
            assert row["to"] == enough
        else:
            assert row["path"] == "workloads[0].deadline"
            change = float(row["to"].removesuffix(" d")) / 20 - 1
        assert 0 < change <= (enough / supply - 1) * 1.02


def test_a_limit_that_weighs_little_in_the_proof_is_in_the_conflict_all_the_same():
    """With more of the cheaper system the budget is enough, with more money the dearer one is; a system more weighs far less than the budget."""
    offers = [
        {**OFFER, "price": "300000 USD", "supply": 2},
        {"system": "DGX H200", "how": "buy", "price": "400000 USD"},
    ]
    document = spec(offers=offers, limits={"budget": "2M USD"})
    conflict = ("limits.budget", "offers[0].supply", "workloads[0].slo.tpot.p95")
    for path in conflict:
        assert planner.solve(edited(document, ((path, None),))).has_answer
    found = planner.solve(document)["diagnosis"]
    assert {row["path"] for row in found["conflict"]} == set(conflict) and found["conflict_of"] == "limits"
    assert [row["path"] for row in found["repair"]] == ["limits.budget"] and found["repair_checked"]


def test_workloads_that_could_each_be_had_but_not_together():
    """The power that the service alone just needs leaves none for a job that alone would need less."""
    alone = planner.solve(edited(spec(), (("sites[0].power", "20 kW"),)))["diagnosis"]["repair"][0]["to"]
    document = edited(spec([CHAT, {**JOB, "deadline": "90 d"}]), (("sites[0].power", alone),))
    for kept in document["workloads"]:
        assert planner.solve({**document, "workloads": [kept]}).has_answer
    plan = planner.solve(document)
    found = plan["diagnosis"]
    assert plan.status == "infeasible" and "sites[0].power" in {row["path"] for row in found["conflict"]}
    assert len(found["repair"]) == 1 and found["repair_checked"] and planner.solve(repaired(document, found)).has_answer


def test_what_mends_one_workload_is_not_asked_of_the_next():
    """Both need the site earlier: one limit, one change, and nothing told of limits that stand in nobody's way."""
    job = JOB | {"tokens": "1B", "start": "98 d", "deadline": "200 d"}
    chat = CHAT | {"demand": {"requests_per_s": 300, "factor_by_phase": {"delivery": 0, "service": 1}}}
    phases = [{"name": "delivery", "start": "0 d"}, {"name": "service", "start": "98 d"}]
    plan = planner.solve(
        spec((chat, job), [TEXAS | {"available_from": "47 weeks"}], [OFFER | {"supply": 100}], phases=phases)
    )
    assert [limit["path"] for limit in plan["diagnosis"]["conflict"]] == ["sites[0].available_from"]
    assert [change["path"] for change in plan["diagnosis"]["repair"]] == ["sites[0].available_from"]
    assert "47 weeks" in plan["diagnosis"]["conflict"][0]["words"]


def test_edits_leave_the_values_of_others_alone():
    offers = [{"system": "DGX H100", "supply": 4}]
    assert edited({}, (("offers", offers), ("offers[0].supply", 9)))["offers"][0]["supply"] == 9
    assert offers[0]["supply"] == 4


def test_what_no_change_can_mend_is_said():
    """Nothing that is sold holds this network, so no limit is to blame."""
    shape = {
        "layers": 2000,
        "hidden": 65536,
        "heads": 512,
        "kv_heads": 512,
        "head_dim": 128,
        "ffn": 262144,
        "vocab": 128000,
    }
    figures = {name: {"value": value, "note": "made up"} for name, value in shape.items()}
    giant = {
        "name": "giant",
        "text": {"type": "dense", "attention": "mha", "gated": "true", "tied": "false"},
        "figures": figures,
    }
    document = spec([{**CHAT, "architecture": "giant"}], catalog={"architectures": [giant]})
    plan = planner.solve(document)
    found = plan["diagnosis"]
    assert plan.status == "infeasible" and [row["path"] for row in found["conflict"]] == ["workloads[0].architecture"]
    assert found["repair"] == [] and not found["repair_checked"] and "no sufficient change" in render(plan, "md")


def test_a_repair_that_does_not_start_from_the_spec_is_found_out():
    document = json.loads(planner.solve(edited(spec(), (("limits.budget", "1000 USD"),))).to_json())
    document["diagnosis"]["repair"][0]["from"] = "2000 USD"
    assert verify_plan(parse_plan(json.dumps(document)))
    document["diagnosis"] = None
    assert verify_plan(parse_plan(json.dumps(document)))


@pytest.mark.parametrize(
    ("written", "amount", "unit", "expected"),
    [
        ("2 MW", 2_034_100.0, "W", "2.04 MW"),
        ("500 ms", 0.6123, "s", "613 ms"),
        ("30 d", 31.21 * 86400, "s", "31.3 d"),
        ("420M CNY", 431_200_001.0, "CNY", "432M CNY"),
        ("1 USD", 1_166_000.0, "USD", "1.17M USD"),
        ("1 t", 411_000.0, "kg", "411 t"),
        (60, 60.2, "system", 61),
        (60, 61.0, "system", 61),
    ],
)
def test_a_number_is_rounded_up_in_the_words_of_the_user(written, amount, unit, expected):
    assert written_up(written, amount, unit) == expected


def test_conflicts_and_hitting_sets_against_enumeration():
    """All sets of minimal conflicts over five limits in pairs and triples: the conflict found is one of them."""
    for conflicts in combinations([{0, 1}, {1, 2, 3}, {3}, {0, 4}, {2, 4}], 2):
        found = minimal_conflict(range(5), lambda some, all_of=conflicts: any(c <= set(some) for c in all_of))
        minimal = [c for c in conflicts if not any(other < c for other in conflicts)]
        assert set(found) in minimal
        sets = [set(some) for some in minimum_hitting_sets([sorted(c) for c in conflicts])]
        size = min(
            n for n in range(1, 6) for some in combinations(range(5), n) if all(set(some) & c for c in conflicts)
        )
        assert sets and all(len(some) == size and all(some & c for c in conflicts) for some in sets)


def test_owned_systems_alone_that_are_too_few_are_counted_by_the_key_of_the_spec():
    owned = {"system": "DGX H100", "region": "us-texas", "count": 1, "age": "1 year"}
    asked = {**spec(offers=[]), "owned": [owned], "phases": [PHASE, {"name": "second", "start": "200 d"}]}
    asked["horizon"] = {"years": 2}
    plan = planner.solve(asked)
    diagnosis = plan.document["diagnosis"]
    assert {row["path"] for row in diagnosis["conflict"]} == {"owned[0].count"}
    (change,) = diagnosis["repair"]
    assert change["path"] == "owned[0].count"
    repaired = planner.solve(edited(asked, ((change["path"], change["to"]),)))
    assert repaired.has_answer and verify_plan(repaired) == []
    paths = {row["path"] for row in repaired.document["limits"]}
    assert "owned[0].count" in paths and not any(".supply" in path for path in paths)
