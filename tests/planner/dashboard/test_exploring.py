"""Studies in processes of their own: findings as they come, one at a time, and none that nobody looks at; and their pages."""

import json
import os
import time
from pathlib import Path

import pytest

import planner
from planner.dashboard import exploring
from planner.dashboard.state.digest import digest
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.workers import bounds, studying
from planner.errors import SpecError
from planner.messages import Said, languages, named
from planner.plan import Plan
from planner.report.charts import bars, frontier, tornado
from planner.report.locale import Words
from planner.studies.alternatives import alternatives
from planner.studies.frontier import frontier as solve_frontier
from planner.studies.sensitivity import sensitivity
from planner.verify.plan import verify_plan

TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
BOTH = {**TINY, "offers": [{"system": "DGX H100", "how": "buy"}, {"system": "AWS p5.48xlarge", "how": "on_demand"}]}
LONGEST_S = 60
RATE = "workloads[0].demand.requests_per_s"


@pytest.fixture(autouse=True)
def no_process_left():
    yield
    for study in list(studying._STUDIES.values()):
        study.cancel()
    studying._STUDIES.clear()


def awaited(*studies: studying.Study) -> None:
    end = time.monotonic() + LONGEST_S
    while not all(study.has_ended for study in studies):
        for study in studies:
            study.touch()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_studies_wait_for_each_other_and_are_shared():
    asked = {"against": "latency", "points": 3, "span": None}
    study = studying.begin("me", studying.FRONTIER, TINY, asked)
    assert studying.begin("another", studying.FRONTIER, TINY, asked) is study
    later = studying.begin("me", studying.SHARING, TINY, {})
    assert study.is_running and later.before() == 1 and not later.is_running  # one at a time
    assert set(studying.under_way("me")) == {study, later} and studying.under_way("another") == []
    study.cancel()
    end = time.monotonic() + LONGEST_S
    while not later.is_running:
        assert time.monotonic() < end
        later.touch()
    later.cancel()


def test_problems_and_robust_specs_are_told():
    study = studying.begin("me", studying.LADDER, TINY, {"levers": ["no colon"]})
    awaited(study)
    assert [problem.path for problem in study.problems] == ["--lever"] and study.found is None
    with pytest.raises(SpecError, match="robust"):
        studying.begin("me", studying.SHARING, {**TINY, "robust": {"chance": 0.9}}, {})


def test_a_study_that_nobody_looks_at_is_ended_and_a_later_one_replaces_one_that_waits(monkeypatch):
    monkeypatch.setattr(bounds, "KEPT_HEARTBEAT_S", 0.5)
    running = studying.begin("me", studying.SENSITIVITY, TINY, {})
    first = studying.begin("me", studying.SHARING, TINY, {})
    second = studying.begin("me", studying.SHARING, {**TINY, "name": "other"}, {})
    assert first.has_ended and second.before() == 1
    end = time.monotonic() + LONGEST_S
    while not running.has_ended:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert running.problems[0].message == bounds.FORGOTTEN
    with pytest.raises(ProcessLookupError):
        os.kill(running.pid, 0)
    studying._advance()
    assert second.has_ended and not studying._QUEUE


def test_an_overdue_study_keeps_what_it_found(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_STUDY_S", 0.2)
    study = studying.begin("me", studying.SHARING, TINY, {})
    awaited(study)
    assert [problem.message for problem in study.problems] == [bounds.STUDY_OVERDUE]


def values(spec: dict, layer: int | None = None) -> list[dict]:
    """The rows of a chart, or of one of its layers."""
    data = (spec if layer is None else spec["layer"][layer])["data"]
    return spec["datasets"][data["name"]]


# -- tables and charts -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    """Documents of studies of a small spec."""
    return {
        "frontier": solve_frontier(BOTH, "carbon", 3),
        "sensitivity": sensitivity(BOTH),
        "alternatives": alternatives(BOTH),
    }


@pytest.mark.parametrize("language", languages())
def test_tables_and_charts_hold_all_that_was_found(found, language):
    t = Words(language)
    points = found["frontier"].document
    names = exploring.point_names(points, t)
    assert len(exploring.frontier_table(points, t)) == len(names) == len(points["points"])
    spec = frontier.frontier_chart(points, t, next(iter(names))).to_dict()
    assert [row["bound"] <= row["cost"] for row in values(spec)] == [True] * len(names)
    assert spec["params"][0]["name"] == frontier.PICKED
    moved = found["sensitivity"].document
    assert len(exploring.tornado_table(moved, t)) == len(moved["factors"])
    drawn = values(tornado.tornado_chart(moved, t).to_dict(), 0)
    widest = moved["factors"][0]
    ends = sorted(row["to"] for row in drawn if row["name"] == t.phrase(widest["name"]))
    assert max(0, ends[-1]) - min(0, ends[0]) == pytest.approx(widest["share"])
    others = found["alternatives"].document
    rows = [exploring.alternatives_of(others, simpler) for simpler in (False, True)]
    assert sum(map(len, rows)) == len(others["alternatives"])
    table = exploring.alternative_table(rows[0], "USD", t)
    assert [row[t("column.worse")] for row in table] == [row["share"] for row in rows[0]]
    chart = bars.bar_chart(exploring.worse_by(rows[0], t), "x", "y", bars.SHARE, t).to_dict()
    assert "description" in chart
    if language != "en":
        said = {row["name"] for row in (*moved["factors"], *others["alternatives"])}
        said |= {row["asked"] for row in (*points["points"], *points["left_out"])}
        said |= {row["reason"] for row in points["left_out"]}
        levels = [row[side] for row in moved["factors"] for side in ("low", "high")]
        said |= {named("outcome", level["status"]) for level in levels if level["value"] is None}
        assert not {text for text in said if not isinstance(text, Said)}


def test_points_of_a_frontier_open_as_scenarios_of_the_same_spec(found):
    scenario = Scenario.of_upload(BOTH)
    for point in found["frontier"].points:
        reached, same = exploring.opened(scenario, point.plan)
        assert digest(reached.document()) == digest(point.plan["spec"]) and same is point.plan and reached.edits
        assert verify_plan(point.plan) == []


def test_what_may_be_asked_of_a_spec():
    assert exploring.frontiers(TINY) == ["carbon", "latency", "throughput", "horizon", "utilisation"]
    levers = exploring.proposed_levers({**TINY, "offers": [{"price": "1 USD/h"}]}, Words())
    assert [lever.partition(":")[0] for lever in levers] == ["cheaper systems", "looser latency", "more power"]


def test_an_alternative_opens_under_a_name_of_its_own():
    plan = planner.solve(TINY)
    scenario, named = exploring.opened(Scenario.of_upload(TINY), plan, "Tiny: rented only")
    assert scenario.edits == (("name", "Tiny: rented only"),)
    assert named["name"] == named["spec"]["name"] == "Tiny: rented only" and verify_plan(named) == []
    other = Plan({**plan.document, "spec": {**plan["spec"], "horizon": {"years": 2}, "sites": []}})
    assert digest(exploring.opened(Scenario.of_upload(TINY), other)[0].document()) == digest(other["spec"])


def test_the_table_of_a_ladder_states_what_its_price_is_of():
    """A rung at 0.5 USD for a million tokens, twice as cheap as the one before."""
    rung = {
        "lever": "cheaper",
        "cost_per_million_tokens": 0.5,
        "factor": 2.0,
        "from_today": 2.0,
        "to_target": None,
        "gap": 0.0,
    }
    (row,) = exploring.ladder_table({"rungs": [rung], "currency": "USD"}, Words())
    assert row["Levelised USD/M tokens"] == 0.5
