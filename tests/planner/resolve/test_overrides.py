"""Overrides that nothing reads are refused, each with its place and the remedy; those that lose a comparison are not."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import planner
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

SPEC = json.loads((Path(__file__).parents[2] / "golden" / "small_spec.json").read_text(encoding="utf-8"))
CASE = {
    "workload": {"kind": "serving", "architecture": "llama-3.1-8b", "lengths": {"input": 1000, "output": 250}, "precision": ["fp8"]},
    "system": "DGX H100", "chips": 8,
}  # fmt: skip
READ = {
    "chips/H100 SXM5 80GB/hbm_bytes_per_s": "3.0 TB/s",
    "systems/DGX H100/power_w": "10 kW",
    "constants/serving.memory_efficiency/value": "0.8",
    "defaults/memory_utilisation/value": "0.85",
}
UNREAD = {
    "chips/H200 SXM 141GB/hbm_bytes_per_s": "4.0 TB/s",
    "chips/H100 SXM5 80GB/tdp_w": "600 W",  # the power of the server is published
    "constants/serving.usable_memory/value": "0.95",
}


def stated(values: dict[str, str]) -> dict:
    return {path: {"value": value, "note": "trial"} for path, value in values.items()}


def refused(call, document: dict) -> dict[str, str]:
    with pytest.raises(SpecError) as error:
        call(document)
    return {problem.path: problem.message for problem in error.value.problems}


def test_all_that_is_unread_is_refused_at_once():
    spec = copy.deepcopy(SPEC) | {"overrides": stated(READ | UNREAD)}
    found = refused(resolve_document, spec)
    assert set(found) == {f"overrides.{path}" for path in UNREAD}
    assert "remove it" in found["overrides.chips/H100 SXM5 80GB/tdp_w"]
    assert "memory_utilisation" in found["overrides.constants/serving.usable_memory/value"]
    resolve_document(copy.deepcopy(SPEC) | {"overrides": stated(READ)})


def test_a_case_refuses_them_too():
    assert set(refused(estimate, CASE | {"overrides": stated(READ | UNREAD)})) >= {
        f"overrides.{path}" for path in UNREAD
    }
    assert estimate(CASE | {"overrides": stated(READ)}).answer is not None
    given = copy.deepcopy(CASE) | {"overrides": stated({"defaults/memory_utilisation/value": "0.85"})}
    given["workload"]["memory_utilisation"] = 0.8
    assert list(refused(estimate, given)) == ["overrides.defaults/memory_utilisation/value"]


def test_an_alias_is_the_record_that_it_names():
    resolve_document(copy.deepcopy(SPEC) | {"overrides": stated({"chips/H100-SXM/hbm_bytes_per_s": "3.0 TB/s"})})


def test_a_price_that_is_not_the_least_was_read_all_the_same():
    spec = copy.deepcopy(SPEC)
    resolve_document(spec | {"overrides": stated({"offers/DGX H100, buy/price": "900000 USD"})})


def test_a_plan_is_verified_with_its_overrides():
    plan = planner.solve(copy.deepcopy(SPEC) | {"overrides": stated(READ)})
    assert verify_plan(plan) == []


def test_a_constant_of_an_overlay_that_the_model_cannot_take_is_named(tmp_path):
    """Whatever kind of figure the overlay calls it."""
    measured = {
        "value": 2,
        "unit": "1",
        "source": ["ml-energy"],
        "date": "2025-01-01",
        "confidence": "B",
        "kind": "measured",
    }
    source = {"ml-energy": {"title": "a leaderboard", "date": None, "confidence": "B"}}
    record = {"name": "power.memory", "figures": {"value": measured}}
    overlay = tmp_path / "mine.json"
    overlay.write_text(json.dumps({"constants": [record], "sources": source}))
    found = refused(lambda document: resolve_document(document, [overlay]), copy.deepcopy(SPEC))
    assert found == {
        "catalog.constants/power.memory/value": "power constants: not in (0, 1] memory; change or remove it"
    }
