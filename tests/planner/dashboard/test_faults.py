"""Faults that visitors met and that a browser adds nothing to, each once, by Streamlit's own test driver."""

import json
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import planner
from planner.dashboard import own_figures, running, sources
from planner.dashboard.baseline import carried_over
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan as plan_page
from planner.dashboard.workers import whatif
from planner.errors import SpecError
from planner.estimate.profile.profile import profile
from planner.plan import Plan
from planner.studies.whatif import WhatIf

HOME = Path(__file__).resolve().parents[3]
TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
LONGEST_S = 60


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))
    yield
    for kept in list(whatif._KEPT.values()):
        whatif.forget_kept(kept)


@pytest.fixture(scope="module")
def tiny_plan():
    return planner.solve(TINY)


def page_of(work: Work, name: str = "") -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    page._page_hash = calc_hash(name)
    page.session_state.work = work
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def work_with(document: dict, plan: Plan | None = None, findings: tuple[str, ...] = ()) -> Work:
    work = Work(Scenario.of_upload(document))
    if plan is not None:
        work.keep(document, plan, findings)
    return work


def test_a_plan_that_fails_its_verification_is_told_in_red_alone(tiny_plan):
    page = page_of(work_with(TINY, tiny_plan, ("totals.cost: is 1, not 2",)))
    assert not page.exception and not page.success and len(page.error) == 1
    assert "totals.cost" in page.error[0].value
    assert any(caption.value.startswith("What it claims: ") for caption in page.caption)
    page = page_of(work_with(TINY, tiny_plan))
    assert page.metric and not page.error and not any("claims" in caption.value for caption in page.caption)


@pytest.mark.parametrize("name", ["reasons", "hours"])
def test_a_page_without_a_plan_solves_in_place_and_says_so_once_that_has_ended(name, tiny_plan):
    page = page_of(work_with(TINY), name)
    assert not page.exception and len(page.info) == 1
    page.button(key="solve-here").click().run()
    assert page.session_state.work.job is not None and page.button(key="solve-here").disabled
    page.button(key="cancel").click().run()
    ended = {**tiny_plan.document, "status": "infeasible", "bound": None, "gap": None}
    ended |= {"objective": {**tiny_plan.objective, "value": None}, "totals": None}
    page = page_of(work_with(TINY, Plan(ended)), name)
    assert not page.exception and "Infeasible" in page.info[0].value
    assert not [button for button in page.button if button.key == "solve-here"]


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ({"text": 5, "figures": {"value": 0.8}}, "text"),
        ({"figures": {"value": {"value": 0.8, "low": [0.1], "high": [1], "unit": "W"}}}, "value/low"),
        ({"figures": {"value": [0.8]}}, "value/value"),
        ({"figures": {"value": {"value": {"a": 1}}}}, "value/value"),
    ],
)
def test_records_whose_parts_have_a_wrong_shape_are_refused_in_words(record, place):
    overlay = {"defaults": [{"name": "memory_utilisation", **record}], "sources": {"a": 5}}
    with pytest.raises(SpecError) as refused:
        own_figures.overlay_edits(TINY, [("own.json", json.dumps(overlay).encode())])
    assert f"own.json: defaults/memory_utilisation/{place}" in {problem.path for problem in refused.value.problems}
    assert all("expected" in problem.message for problem in refused.value.problems)


@pytest.mark.parametrize("name", ["..", "", "x\0.json", "a" * 300 + ".json", "../../../evil.json", "\ud800.json"])
def test_uploads_of_odd_names_are_taken_under_plain_ones(name):
    overlay = {"defaults": [{"name": "memory_utilisation", "figures": {"value": 0.8}}]}
    edits = own_figures.overlay_edits(TINY, [(name, json.dumps(overlay).encode())])
    (entry,) = edits["overrides"].values()
    scenario, idle = own_figures.taken(Scenario.of_upload(TINY), edits)
    assert not idle and scenario.document()["overrides"]
    assert entry["note"].isprintable() and len(entry["note"]) < 100 and ".." not in entry["note"]
    case = {"workload": TINY["workloads"][0], "system": "DGX H100", "chips": 8}
    assert running.read_case(name, json.dumps(case).encode()).name.isprintable()


@pytest.mark.parametrize("block", [{"layout": {"tq": 2}}, {"pools": {"prefill": {"layout": {"tq": 2}}}}])
def test_a_case_with_an_unknown_size_of_a_layout_is_refused_in_words(block):
    dropped = ("demand", "origins", "disaggregation")
    inner = {key: value for key, value in TINY["workloads"][0].items() if key not in dropped}
    case = {"workload": inner, "system": "DGX H100", "chips": 16, **block}
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    page._page_hash = calc_hash("running")
    page.session_state.work = work_with(TINY)
    page.session_state.own_cases = [running.read_case("own.json", json.dumps(case).encode())]
    page.run()
    assert not page.exception
    assert "unknown size" in (page.warning or page.error)[0].value


def test_a_workload_opens_on_as_many_systems_as_it_fits():
    large = {**TINY["workloads"][0], "architecture": "DeepSeek-V3"}
    document = {**TINY, "workloads": [large]}
    catalog = running.catalog_for(document)
    (case,) = (each.case for each in running.choices(document, None, catalog) if each.origin == running.WORKLOAD)
    assert profile(case, catalog)["at"] is None  # 671 GB of weights in 640 GB
    page = page_of(work_with(document), "running")
    assert not page.exception and not page.warning and not page.error
    assert next(box for box in page.number_input if box.key.startswith("chips-")).value > case["chips"]
    sizes = [(each["system"], each["chips"]) for each in running.larger(case, document, catalog)]
    assert sizes[:3] == [("DGX H100", 8), ("DGX H100", 16), ("DGX H100", 32)]


def test_a_change_is_carried_over_to_the_plan_that_is_shown(tiny_plan):
    kept = WhatIf(TINY)
    before, after = kept.base, kept.plan({"workloads[0].demand.requests_per_s": 60})
    same = carried_over(tiny_plan, before, before)
    for key in ("cost", "chips", "peak_power_w", "carbon_kg"):
        assert same.totals[key] == pytest.approx(tiny_plan.totals[key])
    price = tiny_plan.workloads[0]["cost_per_million_tokens"]
    assert same.workloads[0]["cost_per_million_tokens"] == pytest.approx(price)
    more = carried_over(tiny_plan, before, after)
    for key in ("cost", "peak_power_w", "carbon_kg"):
        assert more.totals[key] / tiny_plan.totals[key] == pytest.approx(after.totals[key] / before.totals[key])
    assert isinstance(more.totals["chips"], int) and before.totals == kept.base.totals


def test_every_active_change_is_listed_whether_it_is_a_slider_or_not():
    work = Work(Scenario(sources.MAIN).with_edits({"sites[0].power": "5 MW", "solver.gap": 0.2}))
    page = page_of(work, "whatif")
    assert not page.exception
    told = {button.key: button.label for button in page.button if button.key.startswith("undo-")}
    assert told.keys() == {"undo-sites[0].power", "undo-solver.gap"}
    assert "5 MW" in told["undo-sites[0].power"] and "0.2" in told["undo-solver.gap"]
    page.button(key="undo-solver.gap").click().run()
    assert not page.exception and dict(page.session_state.work.scenario.edits) == {"sites[0].power": "5 MW"}
