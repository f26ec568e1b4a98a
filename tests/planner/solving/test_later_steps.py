"""A later step loses no plan: one whose plan does not hold, or that fails, is undone, and a note says so."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

import planner
from planner.cli.main import main
from planner.facts.later_steps import CONFIDENCE, LOOSER, MEASURED, ORDER, PLACES, SIMPLEST, undone
from planner.plan import Plan, parse_plan
from planner.report.page import one_page
from planner.solving import answer, confidence_gain
from planner.solving.deadline import Deadline
from planner.solving.standing import Asked, Solved, Standing, Step, after, versions
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
    """Codes of the notes on steps; other notes are on the spec."""
    return [row["code"] for row in plan.document.get("notes", ()) if row["code"].startswith("steps.")]


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


@pytest.mark.parametrize("step", [CONFIDENCE, SIMPLEST, MEASURED, LOOSER])
def test_a_note_on_a_step_that_was_not_left_out_is_found(spec, whole, step):
    path, section = PLACES[step]
    document = json.loads(whole.to_json())
    document[section] = document.get(section) or []
    document["notes"] = [
        *document.get("notes", ()),
        {"path": path, "code": f"steps.{step}_left_out", "arguments": {}, "text": "", "source": ""},
    ]
    assert any("is not true" in str(finding) for finding in verify_plan(parse_plan(json.dumps(document))))


@pytest.fixture(scope="module")
def whole(spec) -> Plan:
    return planner.solve(spec, threads=1)


def figures(plan: Plan) -> dict:
    """The plan but for what it says of itself, and for times."""
    left = {key: value for key, value in plan.document.items() if key not in ("notes", "solver", "versions")}
    return json.loads(json.dumps(left))


def with_step(monkeypatch, name: str, take) -> None:
    """Take another function at a step, or none at all."""
    for listed in ("FINDING", "CHOOSING", "WRITING"):
        steps = [
            replace(step, take=take) if step.name == name else step
            for step in getattr(answer, listed)
            if step.name != name or take is not None
        ]
        monkeypatch.setattr(answer, listed, tuple(steps))


EVERY = (*answer.FINDING, *answer.CHOOSING, *answer.WRITING)


def test_the_steps_that_a_note_names_are_those_that_may_be_left_out():
    assert {step.name for step in EVERY if not step.needed or step.name == SIMPLEST} == set(PLACES)


@pytest.mark.parametrize("name", [step.name for step in EVERY if not step.needed])
def test_a_step_that_fails_leaves_the_plan_without_it_and_a_note(spec, name, monkeypatch):
    with_step(monkeypatch, name, None)
    without = planner.solve(spec, threads=1)
    monkeypatch.undo()
    with_step(monkeypatch, name, fails)
    plan = planner.solve(spec, threads=1)
    assert codes(plan) == [f"steps.{name}_left_out"] and verify_plan(plan) == []
    assert figures(plan) == figures(without) and codes(without) == []


@pytest.mark.parametrize("name", [step.name for step in EVERY if step.needed])
def test_the_error_of_a_step_that_every_plan_needs_is_raised(spec, name, monkeypatch):
    with_step(monkeypatch, name, fails)
    with pytest.raises(ZeroDivisionError):
        planner.solve(spec, threads=1)


@pytest.mark.parametrize("name", ["architectures", "document"])
def test_where_a_later_plan_cannot_be_written_the_one_before_it_stands(spec, plain, name, monkeypatch):
    take = next(step.take for step in answer.WRITING if step.name == name)

    tried: list[str] = []

    def fails_once(asked, now):
        tried.append(name)
        return fails() if len(tried) == 1 else take(asked, now)

    with_step(monkeypatch, name, fails_once)
    plan = planner.solve(spec, threads=1)
    assert codes(plan) == [f"steps.{CONFIDENCE}_left_out"] and verify_plan(plan) == []
    assert plan.objective["value"] == pytest.approx(plain.objective["value"])


@pytest.mark.parametrize("needed", [False, True])
def test_a_failed_step_changes_nothing_of_the_state_but_its_notes(needed):
    said: list[str] = []
    asked = Asked(None, None, {}, (), said.append, 1, Deadline.after(1.0), True)
    before = Standing(notes=(undone(ORDER),))
    step = Step(LOOSER, fails, needed)
    if needed:
        with pytest.raises(ZeroDivisionError):
            after(step, asked, before)
    else:
        assert after(step, asked, before) == replace(before, notes=(undone(ORDER), undone(LOOSER)))
        assert said == ["the step 'looser' is left out: ZeroDivisionError: a bug"]


def test_each_state_with_another_solution_is_kept_under_the_name_of_its_step():
    def taking(solution):
        return lambda asked, now: replace(now, solved=Solved(None, None, None, solution))

    asked = Asked(None, None, {}, (), None, 1, Deadline.after(1.0), True)
    one, two = object(), object()
    steps = [Step("a", taking(one)), Step("b", taking(one)), Step("c", taking(two)), Step(ORDER, fails)]
    kept = versions(steps, asked, Standing())
    assert [(name, state.solution) for name, state in kept] == [("", one), ("c", two)]
    assert [state.notes for _, state in kept] == [(), (undone(ORDER),)]
