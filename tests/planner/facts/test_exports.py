"""A chip is barred from China by a rule with source and date; where none is known, it stands there with a note."""

from __future__ import annotations

import copy

import pytest

import planner
from catalog.lookup import Catalog
from planner.facts.exports import LICENSED_FROM, export_rule, export_status, processing_performance
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from tests.planner.facts.base import CHIP, SYSTEM

CATALOG = Catalog()
ROBOT = {
    "name": "robot", "kind": "serving", "architecture": "Qwen3-0.6B", "demand": {"requests_per_s": 0.5},
    "lengths": {"input": 100, "output": 10}, "origins": [{"region": "cn-beijing", "share": 1}],
    "slo": {"e2e": {"p95": "1 s"}}, "precision": ["int8"], "disaggregation": "never",
}  # fmt: skip


def asked(system: str, price: str = "600 USD", **more) -> dict:
    offers = [{"system": system, "how": "buy", "price": price}]
    sites = [{"region": "cn-beijing", "topologies": ["scale-up"]}]
    return copy.deepcopy({"name": "edge", "workloads": [ROBOT], "sites": sites, "offers": offers, **more})


def own(rate: str) -> dict:
    """Return a catalog of one chip with a stated rate of 16 bit and no other, of unknown status."""
    chip, system = copy.deepcopy(CHIP), copy.deepcopy(SYSTEM)
    chip["figures"]["bf16_flop_per_s"]["value"] = rate
    del chip["figures"]["fp8_flop_per_s"]
    return {"chips": [chip], "systems": [system]}


def test_every_bar_of_the_catalog_names_a_dated_source():
    for chip in CATALOG.records("chips"):
        if export_status(chip) in ("barred", "licence"):
            source = CATALOG.source(export_rule(chip))
            assert source.date and source.confidence in "AB", chip.name
        else:
            assert not chip.words("export_rule"), chip.name


@pytest.mark.parametrize(
    ("chip", "performance"),
    [("RTX 4090", 5285), ("RTX-3060", 816), ("Jetson Orin Nano 8GB Super", 264), ("H100 SXM5 80GB", 15832), ("TPU v4", 4400)],
)  # fmt: skip
def test_performance_is_rate_times_width(chip, performance):
    assert processing_performance(CATALOG.get("chips", chip)) == pytest.approx(performance, rel=1e-3)


@pytest.mark.parametrize(("rate", "status"), [("299 TFLOP/s", "unknown"), ("301 TFLOP/s", "licence")])
def test_an_unknown_status_is_a_licence_from_the_performance_of_the_rule_on(rate, status):
    # 4,800 / 16 bit = 300 TFLOP/s
    assert LICENSED_FROM / 16 == 300
    document = asked("own system", "100k USD", catalog=own(rate))
    problem = resolve_document(document)
    assert problem.systems["own system"].export_cn == status
    assert [note.path for note in problem.notes if note.message.code == "export.unknown"] == (
        ["offers[0]"] if status == "unknown" else []
    )


@pytest.mark.parametrize("system", ["Jetson Orin Nano module", "Jetson AGX Orin module"])
def test_a_module_of_unknown_status_is_planned_with_a_note(system):
    plan = planner.solve(asked(system), threads=1)
    assert plan.document["fleet"][0]["system"] == system
    [note] = [note for note in plan.document["notes"] if note["code"] == "export.unknown"]
    assert note["source"] == "BIS-2023" and note["arguments"]["site"] == "cn-beijing"
    assert not list(verify_plan(plan))


def test_without_the_rule_or_outside_china_nothing_is_noted():
    free = asked("Jetson Orin Nano module", limits={"export_control": False})
    abroad = asked("Jetson Orin Nano module")
    abroad["sites"][0]["region"] = "us-texas"
    for document in (free, abroad):
        assert not [note for note in resolve_document(document).notes if note.message.code == "export.unknown"]


def test_the_repair_of_a_barred_module_is_no_server():
    barred = {"chips/Jetson Orin Nano 8GB Super/export_cn": {"value": "barred", "note": "a rule to come"}}
    found = planner.solve(asked("Jetson Orin Nano module", overrides=barred), threads=1).document["diagnosis"]
    assert [row["path"] for row in found["conflict"]] == ["limits.export_control"]
    assert "its stated status" in found["conflict"][0]["words"]
    assert [row["path"] for row in found["repair"]] == ["limits.export_control"]


def test_the_repair_of_a_barred_server_is_a_server_and_names_the_rule():
    document = asked("DGX H100", "300k USD")
    document["workloads"][0]["precision"] = ["bf16"]
    found = planner.solve(document, threads=1).document["diagnosis"]
    assert "BIS-2023 (2023-10-25)" in found["conflict"][0]["words"]
    [change] = found["repair"]
    assert change["path"] == "offers"
    form = CATALOG.get("systems", change["to"][-1]["system"]).words("form")
    assert form in ("node", "node part", "cloud node")


def test_a_network_too_large_for_a_device_is_not_sent_to_a_rack():
    document = asked("Jetson Orin Nano module", sites=[{"region": "us-texas", "topologies": ["scale-up"]}])
    document["workloads"][0] |= {"architecture": "Meta-Llama-3.1-70B", "origins": [{"region": "us-texas", "share": 1}]}
    found = planner.solve(document, threads=1).document["diagnosis"]
    offered = [way["system"] for row in found["repair"] if row["path"] == "offers" for way in row["to"][1:]]
    assert all(CATALOG.get("systems", name).words("form") == "computer" for name in offered)
