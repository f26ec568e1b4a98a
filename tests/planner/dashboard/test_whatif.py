"""Specs that stay solved for what-if questions: right answers to the right visitor, and no process too many."""

import io
import json
import os
import time
from pathlib import Path

import pytest

from planner.dashboard import editing, levers, sources
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.workers import bounds, whatif, whatif_worker
from planner.dashboard.workers.solving import Job
from planner.errors import SpecError
from planner.studies.whatif import WhatIf

TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
RATE = "workloads[0].demand.requests_per_s"
LONGEST_S = 60


@pytest.fixture(autouse=True)
def no_process_left():
    yield
    for kept in list(whatif._KEPT.values()):
        whatif.forget_kept(kept)


@pytest.fixture(scope="module")
def own():
    """The library's own answers."""
    return WhatIf(TINY)


def awaited(kept: whatif.Kept, *questions: whatif.Question) -> None:
    end = time.monotonic() + LONGEST_S
    while not all(question.is_answered for question in questions) or (kept.base is None and not kept.problems):
        kept.touch()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_ten_visitors_with_ten_budgets_get_their_own_answers_from_one_process(own):
    kept = whatif.kept(TINY)
    asked = {rate: whatif.kept(TINY).ask(f"visitor {rate}", {RATE: rate}) for rate in range(20, 60, 4)}
    assert kept.position(asked[56]) > kept.position(asked[24]) >= 0
    awaited(kept, *asked.values())
    for rate, question in asked.items():
        assert question.plan["spec"]["workloads"][0]["demand"] == {"requests_per_s": rate}
    assert len({whatif.kept(TINY).pid for _ in asked}) == len(bounds._UNDER_WAY) == 1
    assert kept.base.objective == own.base.objective
    assert asked[56].plan.objective["value"] == pytest.approx(own.plan({RATE: 56}).objective["value"], rel=2e-3)
    assert kept.ask("other", {RATE: 56}) is asked[56]  # known already


def test_a_later_question_replaces_one_that_waits_and_wrong_changes_are_told():
    kept = whatif.kept(TINY)
    first, second = kept.ask("a", {RATE: 30}), kept.ask("a", {RATE: 40})  # while the base is under way
    wrong, right = kept.ask("b", {"sites[0].power": "1 MB"}), kept.ask("c", {RATE: 21})
    awaited(kept, second, wrong, right)
    assert not first.is_answered and second.plan is not None
    assert [problem.path for problem in wrong.problems] == ["sites[0].power"] and right.plan is not None


def test_a_kept_spec_makes_room_for_a_solve_and_starts_again():
    first = whatif.kept(TINY)
    second = whatif.kept({**TINY, "name": "another"})
    with pytest.raises(SpecError, match="under way"):  # both are at work still
        Job(TINY)
    awaited(first)
    awaited(second)
    first.touch()
    job = Job(TINY)  # in place of the one that was looked at longest ago
    assert first.is_alive and not second.is_alive and len(bounds._UNDER_WAY) == 2
    job.cancel()
    question = second.ask("a", {RATE: 22})
    assert question.problems and whatif.kept(TINY) is first
    whatif.forget_kept(second)
    assert whatif.kept({**TINY, "name": "another"}).is_alive


def test_a_kept_spec_that_nobody_looks_at_is_ended(monkeypatch):
    monkeypatch.setattr(bounds, "KEPT_HEARTBEAT_S", 0.5)
    kept, end = whatif.kept(TINY), time.monotonic() + LONGEST_S
    while kept.is_alive or not kept.problems:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert kept.problems[0].message == bounds.FORGOTTEN
    with pytest.raises(ProcessLookupError):
        os.kill(kept.pid, 0)


@pytest.mark.parametrize("reason", sorted(bounds.MAY_RESTART))
def test_a_kept_spec_that_was_ended_is_begun_again_whoever_asks(reason):
    ended = whatif.kept(TINY)
    ended._worker.end(reason)
    while not ended.problems:  # its reader notes the reason
        time.sleep(0.01)
    again = whatif.kept(TINY)
    assert again is not ended and again.is_alive and not again.problems and whatif.kept(TINY) is again


def test_a_kept_spec_that_failed_by_itself_is_not_begun_again_for_every_look():
    wrong = whatif.kept({**TINY, "name": ""})
    while not wrong.problems or wrong.is_alive:
        time.sleep(0.01)
    assert whatif.kept({**TINY, "name": ""}) is wrong and not wrong.may_restart
    overdue = whatif.kept(TINY)
    overdue._worker.end(bounds.OVERDUE)
    while not overdue.problems:
        time.sleep(0.01)
    assert whatif.kept(TINY) is overdue


def test_a_question_that_runs_out_of_memory_is_answered_without_the_points_of_earlier_ones(monkeypatch):
    plan_of, asked, said = WhatIf.plan, [], []

    def plan(self, changes, **options):
        asked.append(dict(changes))
        if len(asked) == 2:  # the first is the base
            raise MemoryError
        assert len(asked) < 3 or not self._grids
        return plan_of(self, changes, **options)

    monkeypatch.setattr(WhatIf, "plan", plan)
    lines = [{"spec": TINY}, {"ask": 1, "changes": {RATE: 21}}]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(map(json.dumps, lines))))
    whatif_worker._answer(lambda **message: said.append(message))
    assert asked == [{}, {RATE: 21}, {RATE: 21}] and said[-1]["answer"] == 1
    assert said[-1]["plan"]["spec"]["workloads"][0]["demand"] == {"requests_per_s": 21}


def test_a_robust_spec_is_not_kept():
    with pytest.raises(SpecError, match="robust"):
        whatif.kept({**TINY, "robust": {"chance": 0.9}})


def test_the_sliders_of_the_main_example_are_worth_most_and_hold_their_base():
    document, plan = Scenario(sources.MAIN).document(), sources.stored_plan()
    problem = sources.resolved(document)
    fields = editing.main_figures(document, problem.offers, problem.spec.currency)
    found = levers.levers(document, fields, plan)
    assert len(found) == levers.MOST and any(".slo." in lever.path for lever in found)
    dearest = max(plan["workloads"], key=lambda workload: workload["cost"])["name"]
    assert document["workloads"].index(next(w for w in document["workloads"] if w["name"] == dearest)) == int(
        found[0].path.removeprefix("workloads[")[0]
    )
    for lever in found:
        assert lever.values[lever.place(lever.base)] == lever.base and len(set(lever.values)) == len(lever.values)
        for value in lever.values:
            sources.resolved(Scenario(sources.MAIN).with_edits({lever.path: value}).document())
    assert levers.levers(document, fields, None)  # before there is a plan
