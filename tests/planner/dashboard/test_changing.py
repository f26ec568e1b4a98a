"""The page of changes: levers, active changes with what each does, and the plan that they are measured against."""

import json
import time
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import planner
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan as plan_page
from planner.dashboard.workers import bounds, whatif

HOME = Path(__file__).resolve().parents[3]
TINY = (Path(__file__).parent / "tiny.json").read_bytes()
RATE, POWER = "workloads[0].demand.requests_per_s", "sites[0].power"
LONGEST_S = 60


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Keep the work of each test in a folder of its own, and end the processes that it began."""
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))
    yield
    for kept in list(whatif._KEPT.values()):
        whatif.forget_kept(kept)


def opened_at(name: str, work: Work) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    page._page_hash = calc_hash(name)
    page.session_state.work = work
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def work_with(document: dict) -> Work:
    return Work(Scenario.of_upload(document))


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def answered(page: AppTest) -> AppTest:
    """The page once the process has answered all that it was asked."""
    end = time.monotonic() + LONGEST_S
    while not any(caption.value.startswith("Answered in") for caption in page.caption):
        assert time.monotonic() < end and not page.exception and not page.error
        time.sleep(0.1)
        page.run()
    return page


def test_a_slider_moves_the_plan_and_the_address():
    page = opened_at("whatif", work_with(json.loads(TINY)))
    end = time.monotonic() + LONGEST_S
    while not page.metric:
        assert time.monotonic() < end and not page.exception and not page.error
        time.sleep(0.1)
        page.run()
    before = metrics(page)
    slider = next(each for each in page.select_slider if "requests_per_s" in each.key)
    page.session_state[slider.key] = 0  # left by a run that was cut short: no move of the visitor
    page.run()
    assert "set" not in page.query_params and not page.session_state.work.scenario.edits
    slider = next(each for each in page.select_slider if each.key == slider.key)
    assert slider.value > 0
    slider.set_value(len(slider.options) - 1).run()
    while not any(metric.delta for metric in page.metric):
        assert time.monotonic() < end and not page.exception and not page.error
        time.sleep(0.1)
        page.run()
    assert page.query_params["set"] == "workloads[0].demand.requests_per_s=40"
    assert metrics(page) != before and len(page.get("vega_lite_chart")) == 2
    cost = next(metric for metric in page.metric if metric.label.startswith("Cost"))
    assert cost.delta.startswith("+")
    page.button(key="whole").click().run()
    assert page.session_state.work.job is not None
    page.button(key="cancel").click().run()
    for kept in list(whatif._KEPT.values()):
        whatif.forget_kept(kept)


def test_what_if_answers_after_its_process_has_ended():
    """The process ends some time after the last page was closed; whoever comes next is answered all the same."""
    for rate in (25, 35):
        work = work_with(json.loads(TINY))
        work.turn_to(work.scenario.with_edits({RATE: rate}))
        page, end = opened_at("whatif", work), time.monotonic() + LONGEST_S
        while not any(metric.delta for metric in page.metric):
            assert time.monotonic() < end and not page.exception and not page.error
            time.sleep(0.1)
            page.run()
        assert f"→ {rate}" in page.button(key=f"undo-{RATE}").label
        for kept in list(whatif._KEPT.values()):
            kept._worker.end(bounds.FORGOTTEN)
            while not kept.problems:
                time.sleep(0.01)
    for kept in list(whatif._KEPT.values()):
        whatif.forget_kept(kept)


def test_each_of_several_changes_states_what_it_does_alone_and_is_taken_back():
    work = work_with(json.loads(TINY))
    work.turn_to(work.scenario.with_edits({RATE: 60, POWER: "2 MW", "solver.gap": 0.02}))
    page, end = answered(opened_at("change", work)), time.monotonic() + LONGEST_S
    while not all("·" in page.button(key=f"undo-{path}").label for path in (RATE, POWER)):
        assert time.monotonic() < end and not page.exception
        time.sleep(0.1)
        page.run()
    assert " %" in page.button(key=f"undo-{RATE}").label.partition("·")[2]
    assert "no effect" in page.button(key=f"undo-{POWER}").label  # one MW is more than the plan draws
    page.button(key=f"undo-{RATE}").click().run()
    assert dict(work.scenario.edits) == {POWER: "2 MW", "solver.gap": 0.02}
    page.button(key="reset").click().run()
    assert not page.exception and not work.scenario.edits
    assert not [button for button in page.button if button.key.startswith("undo-")]


def test_a_change_is_measured_against_the_plan_that_was_shown():
    """The plan of 60 requests/s was shown last: 60 is no change of it, though it is one of the base."""
    work = work_with(json.loads(TINY))
    more = work.scenario.with_edits({RATE: 60})
    work.turn_to(more)
    plan = planner.solve(more.document())
    work.keep(more.document(), plan, ())
    page = answered(opened_at("change", work))
    assert metrics(page)["Chips"] == f"{plan.totals['chips']:,}"
    assert not any(metric.delta for metric in page.metric)
    work.turn_to(more.with_edits({RATE: 120}))
    page, end = page.run(), time.monotonic() + LONGEST_S
    while not any(metric.delta for metric in page.metric):
        assert time.monotonic() < end and not page.exception
        time.sleep(0.1)
        page.run()
    cost = next(metric for metric in page.metric if metric.label.startswith("Cost"))
    assert 30 < float(cost.delta.removeprefix("+").removesuffix(" %")) <= 100  # at most twice as dear
