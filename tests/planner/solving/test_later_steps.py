"""A later step loses no plan: one whose plan does not hold, or that fails, is undone, and a note says so."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

import planner
from planner.cli.main import main
from planner.facts.later_steps import CONFIDENCE, SECTION_OF, SIMPLEST
from planner.plan import Plan, parse_plan
from planner.report.page import one_page
from planner.solving import confidence_gain
from planner.verify.plan import verify_plan
from solvers.search import joint
from solvers.search.parts import parts_of


@pytest.fixture(scope="module")
def spec(tiny) -> dict:
    """Sixteen systems of one kind, and a band that pays for two more."""
    found = tiny()
    found["workloads"][0]["demand"] = {"requests_per_s": 20000}
    found["offers"] = [{"system": "DGX H100", "how": "buy"}]
    found["solver"] = {"gap": 1e-4}
    found["simplicity"] = {"within": 0.14}
    return found


@pytest.fixture(scope="module")
def plain(spec) -> Plan:
    return planner.solve(copy.deepcopy(spec) | {"simplicity": {"within": 0}}, threads=1)


def half_empty(solution):
    """The solution with half of its systems."""
    return replace(solution, values={**solution.values, "n": solution.values["n"] // 2})


def fails(*_):
    raise ZeroDivisionError("a bug")


def codes(plan: Plan) -> list[str]:
    return [row["code"] for row in plan.document.get("notes", ())]


@pytest.mark.parametrize(
    "broken", [lambda *a: confidence_gain.Chosen(a[2], half_empty(a[3])), fails], ids=["wrong", "fails"]
)
def test_a_plan_of_higher_confidence_that_does_not_hold_is_left_out(spec, plain, broken, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(confidence_gain, "most_confident", broken)
    plan = planner.solve(spec, threads=1)
    assert codes(plan) == [f"steps.{CONFIDENCE}_left_out"] and "confidence_gain" not in plan.document
    assert plan.objective["value"] == pytest.approx(plain.objective["value"]) and verify_plan(plan) == []
    assert "did not pass its own check" in " ".join(one_page(plan).split())
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    assert main(["plan", str(file)]) == 0


def test_a_simpler_plan_that_does_not_hold_is_left_out(spec, plain, monkeypatch):
    def simpler(data, best, *_):
        before = best.value, parts_of(data, best.values)
        return replace(half_empty(best), before=before, earlier=best)

    monkeypatch.setattr(joint, "with_fewer_parts", simpler)
    plan = planner.solve(spec, threads=1)
    assert codes(plan) == [f"steps.{SIMPLEST}_left_out"] and "simplicity" not in plan.document
    assert plan.objective["value"] == pytest.approx(plain.objective["value"]) and verify_plan(plan) == []


def test_steps_that_hold_are_kept_and_nothing_is_said(spec):
    plan = planner.solve(spec, threads=1)
    assert "confidence_gain" in plan.document and codes(plan) == []


@pytest.mark.parametrize("code", SECTION_OF)
def test_a_note_on_a_step_that_was_not_undone_is_found(spec, code):
    document = json.loads(planner.solve(spec, threads=1).to_json())
    assert SECTION_OF[code] in document
    document["notes"] = [{"path": "simplicity", "code": code, "arguments": {}, "text": "", "source": ""}]
    assert any("is not true" in str(finding) for finding in verify_plan(parse_plan(json.dumps(document))))
