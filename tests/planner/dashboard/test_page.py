"""The page as a user meets it, run by Streamlit's own test driver without a browser."""

import copy
import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import planner
from planner.dashboard import cataloguing, sources
from planner.dashboard import page as dashboard_page
from planner.dashboard.parts import evidence, reasons
from planner.dashboard.parts.pages import BEFORE, FURTHER, PAGES, address_of
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.state.session import opened as open_work
from planner.dashboard.views import catalog, explore
from planner.dashboard.views import plan as plan_page
from planner.dashboard.workers import studying, whatif
from planner.errors import Issue, SpecError
from planner.facts import Fact, rows
from planner.messages import Message, languages
from planner.report.locale import Words

HOME = Path(__file__).resolve().parents[3]
TINY = (Path(__file__).parent / "tiny.json").read_bytes()
LONGEST_S = 60
NOTHING = {
    "fleet": [],
    "schedule": [],
    "routes": [],
    "workloads": [],
    "deployments": [],
    "runner_up": [],
}  # tables of a plan


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Keep the work of each test in a folder of its own."""
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))


@pytest.fixture(autouse=True)
def no_kept_spec(monkeypatch):
    """Keep no spec solved: what that answers is tested in `test_whatif` and `test_changing`."""

    def refused(_):
        raise SpecError([Issue("server", "busy")])

    monkeypatch.setattr(whatif, "kept", refused)


@pytest.fixture(scope="module")
def tiny_plan():
    return planner.solve(json.loads(TINY))


def opened(work: Work | None = None, **query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    for key, value in query.items():
        page.query_params[key] = value
    if work is not None:
        page.session_state.work = work
    page.session_state[plan_page.BEGUN] = True  # no browser waits for its main figures
    return page.run()


def opened_at(name: str, work: Work) -> AppTest:
    """Another page than the first; Streamlit's driver can turn to pages of files only."""
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    page._page_hash = calc_hash(name)
    page.session_state.work = work
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def uploaded(*files: tuple[str, bytes]) -> AppTest:
    page = opened()
    page.file_uploader[0].set_value([(name, text, "") for name, text in files]).run()
    return page


def work_with(document: dict, plan=None) -> Work:
    """The work of a visitor who uploaded a spec, and its plan if there is one."""
    work = Work(Scenario.of_upload(document))
    if plan is not None:
        work.keep(document, plan, ())
    return work


def choose(page: AppTest, name: str) -> AppTest:
    return page.selectbox[0].set_value(name).run()


def field(page: AppTest, path: str):
    return next(item for item in page.text_input if item.key.endswith(f"/{path}"))


def changing(page: AppTest) -> AppTest:
    """The page of changes of the same visitor."""
    return opened_at("change", page.session_state.work)


def solved(page: AppTest) -> AppTest:
    """The first page after Solve on the page of changes."""
    page.button(key="solve").click().run()
    return awaited(opened(page.session_state.work))


def awaited(page: AppTest) -> AppTest:
    """The page once the worker has ended."""
    end = time.monotonic() + LONGEST_S
    while page.session_state.work.job is not None:
        assert time.monotonic() < end, "the worker did not end"
        time.sleep(0.1)
        page.run()
    return page


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def tables(page: AppTest) -> list:
    return [table.value for table in page.dataframe]


def plan_of(page: AppTest):
    return page.session_state.work.shown().plan


def test_the_page_opens_with_the_stored_plan_in_every_language():
    plan, shapes = sources.stored_plan(), set()
    for language in languages():
        page = opened(lang=language)
        assert not page.exception and not page.error
        assert f"{plan['totals']['chips']:,}" in [metric.value for metric in page.metric]
        assert any(f"{plan.gap:.3%}" in caption.value for caption in page.caption)
        shapes.add(tuple(table.shape for table in tables(page)))
    assert len(shapes) == 1  # two columns with one name would be one column


def test_the_first_look_sends_the_main_figures_before_the_rest(monkeypatch):
    """A browser draws nothing while it loads what draws charts: it has some time for the figures, once."""
    from planner.dashboard.views import plan_sections

    calls, figures, rest = [], plan_page.draw_figures, plan_sections.draw_decision
    monkeypatch.setattr(plan_page, "draw_figures", lambda *given: calls.append("figures") or figures(*given))
    monkeypatch.setattr(plan_page.time, "sleep", lambda seconds: calls.append(seconds))
    monkeypatch.setattr(
        plan_sections, "draw_decision", lambda *given, **named: (calls.append("rest"), rest(*given, **named))
    )
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S).run()
    assert not page.exception and page.dataframe and page.text_input
    assert [call for call in calls if call in ("figures", "rest", plan_page.HEAD_START_S)] == [
        "figures",
        plan_page.HEAD_START_S,
        "rest",
    ]
    calls.clear()
    page.run()
    assert plan_page.HEAD_START_S not in calls and "rest" in calls


def test_a_study_is_drawn_and_one_of_its_points_opens_as_a_scenario(tiny_plan):
    """The frontier runs in its process; a point that is chosen shows its plan, and the plan opens, verified."""
    work = work_with(json.loads(TINY), tiny_plan)
    page = opened_at("explore", work)
    page.selectbox(key="frontier-against").set_value("latency").run()
    page.slider(key="frontier-points").set_value(3).run()
    page.button(key="start-frontier").click().run()
    study, end = next(iter(studying._STUDIES.values())), time.monotonic() + LONGEST_S
    while not study.has_ended:
        assert time.monotonic() < end
        study.touch()
        time.sleep(0.05)
    page.run()
    assert not page.exception and not page.error and len(page.get("vega_lite_chart")) == 1
    key = min(study.keys, key=float)
    page.selectbox(key="frontier-point").set_value(key).run()
    assert f"{study.plan(key)['totals']['chips']:,}" in metrics(page).values()
    assert len(page.get("vega_lite_chart")) == 2  # its fleet beside that of the scenario
    page.button(key="turn").click().run()
    assert page.session_state.work.scenario.edits
    plan = plan_of(awaited(page))
    assert plan.objective["value"] == study.plan(key).objective["value"]
    assert not page.session_state.work.problems and not page.session_state.work.shown().findings


@pytest.mark.parametrize("language", languages())
def test_the_chance_to_hold_is_that_of_the_plan(language, monkeypatch):
    monkeypatch.setattr(reasons, "FIRST", explore.HOLD)
    plan = sources.stored_plan()
    work = Work(Scenario(sources.MAIN))
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    page.query_params["lang"] = language
    page._page_hash = calc_hash("reasons")
    page.session_state.work = work
    page.run()
    assert not page.exception and f"{plan['confidence']['kept']:.0%}" in metrics(page).values()


def test_charts_hold_their_data_however_often_they_are_drawn():
    page = opened_at("operations", Work(Scenario(sources.MAIN)))
    first = [chart.proto.SerializeToString() for chart in page.get("vega_lite_chart")]
    again = [chart.proto.SerializeToString() for chart in page.run().get("vega_lite_chart")]
    assert list(map(len, first)) == list(map(len, again)) and min(map(len, first)) > 1000


def test_a_language_of_the_address_stays_when_the_address_loses_it():
    page = opened(lang="zh")
    page.query_params.clear()
    assert "每年成本（USD）" in metrics(page.run()) and page.query_params["lang"] == "zh"


def test_the_headline_figures_are_those_of_the_stored_plan():
    plan, shown = sources.stored_plan(), metrics(opened())
    assert shown["Cost over 4 y (USD)"] == f"{plan['totals']['cost'] / 1e6:.4g}M"
    assert shown["Cost a year (USD)"] == f"{plan['totals']['cost'] / 4e6:.4g}M"
    assert shown["All promises kept"] == f"{plan['confidence']['kept']:.0%}"
    assert shown["Chips"] == f"{plan['totals']['chips']:,}"
    assert shown["Peak power"] == f"{plan['totals']['peak_power_w'] / 1e6:.4g} MW"
    assert shown["Carbon (CO₂)"] == f"{plan['totals']['carbon_kg'] / 1e6:.4g} kt"
    captions = "\n".join(caption.value for caption in opened().caption)
    assert f"{100 * abs(plan['totals']['cost'] - plan['bound']) / plan['totals']['cost']:.3f}%" in captions
    for workload in plan["workloads"]:
        assert f"{workload['name']} {workload['cost_per_million_tokens']:.4g}" in captions


def test_the_tables_hold_every_row_of_the_plan():
    plan, work = sources.stored_plan(), Work(Scenario(sources.MAIN))
    fleet, costs = tables(opened(work))
    assert list(fleet["Count"]) == [row["count"] for row in plan["fleet"]]
    assert sum(costs["Amount (USD)"]) == pytest.approx(plan["totals"]["cost"])
    assert sum(costs["Share"]) == pytest.approx(1)
    page = opened_at("operations", work)
    networks, points, *_ = tables(page)
    assert list(networks["Site"]) == [row["site"] for row in plan["fabrics"]]
    assert set(points["Workload"]) == {row["name"] for row in plan["workloads"]} and set(points["Power cap"]) == {""}
    workloads, slo, *_ = tables(page.button_group(key="tab").set_value("workloads").run())
    assert list(workloads["Workload"]) == [row["name"] for row in plan["workloads"]]
    assert all(workloads["Architecture"]) and len(slo) == 4
    page = opened_at("reasons", work)
    (limits,) = (table for table in tables(page) if "Used share" in table)
    assert sorted(limits["Place in the spec"]) == sorted(row["path"] for row in plan["limits"])
    assert list(limits["Used share"]) == sorted(limits["Used share"], reverse=True)
    assert any(len(table) == sum(map(len, plan["dropped"].values())) for table in tables(page))
    places = [list(table.value["Site"]) for table in page.table if "Site" in table.value]
    assert places == [list(dict.fromkeys(row["site"] for row in plan["fleet"]))]
    *_, assumptions, provenance = tables(opened_at("evidence", work))
    assert set(assumptions["Figure"]) == {row["path"] for row in plan["assumptions"]}
    assert len(provenance) == len(plan["provenance"])


def test_an_edit_and_its_plan_outlive_a_switch_and_a_reload(tiny_plan):
    page = opened(work_with(json.loads(TINY), tiny_plan))
    before, change = metrics(page), changing(page)
    field(change, "workloads[0].demand.requests_per_s").set_value("60")
    page = solved(change)
    after = metrics(page)
    assert not page.exception and not page.error
    assert int(after["Chips"]) > int(before["Chips"]) and next(iter(after.values())) != next(iter(before.values()))
    assert any("requests_per_s" in caption.value and "20 → 60" in caption.value for caption in page.caption)
    assert plan_of(page)["spec"]["workloads"][0]["demand"] == {"requests_per_s": 60}
    files = {file.file.rsplit("_", 1)[-1]: file.data for file in page.session_state.work.shown().files}
    assert json.loads(files["plan.json"]) == plan_of(page).document

    own = page.selectbox[0].value
    choose(page, sources.MAIN)
    assert metrics(page)["Chips"] == f"{sources.stored_plan()['totals']['chips']:,}"
    assert metrics(choose(page, own)) == after

    reloaded = opened(**dict(page.query_params))
    assert metrics(reloaded) == after and not reloaded.error
    assert field(changing(reloaded), "workloads[0].demand.requests_per_s").value == "60"
    assert reloaded.query_params["id"] == page.query_params["id"]


def test_an_address_opens_base_and_edits():
    page = opened(base="quality", set="sites[0].power=3 MW")
    assert not page.exception and not page.error
    assert field(changing(page), "sites[0].power").value == "3 MW"
    assert page.query_params["set"] == "sites[0].power=3 MW"


@pytest.mark.parametrize(
    "query", [{"base": "nothing"}, {"base": "quality", "set": "sites[7].power=3 MW"}, {"base": "upload"}]
)
def test_a_wrong_address_is_told(query):
    page = opened(**query)
    assert not page.exception and len(page.error) == 1


def test_a_dead_link_says_so_on_every_page_and_shows_no_plan():
    query = {"base": ["upload"], "id": ["doesnotexist12345678"]}
    for name in {**PAGES, **FURTHER, **BEFORE}:
        page = opened_at(address_of(name), open_work(query))
        assert not page.exception and [title.value for title in page.header] == ["This address leads to nothing here"]
        assert "not kept on this server" in page.error[0].value and len(page.error) == 1
        assert not page.metric and not page.dataframe and not page.get("vega_lite_chart") and not page.text_input
    page = opened(base="upload", id="doesnotexist12345678")
    assert page.query_params == {"base": "upload", "id": "doesnotexist12345678"} and not page.metric  # untouched
    assert page.selectbox[0].value is None
    choose(page, "quality")
    assert not page.error and page.query_params["base"] == "quality" and page.text_input


def test_a_link_of_a_scenario_without_a_plan_opens_its_figures_alone(tiny_plan):
    page = opened(work_with(json.loads(TINY), tiny_plan))
    choose(page, "quality")
    page.session_state.work.save_as("not for others")
    own = page.session_state.work.by_base
    choose(page, next(origin for origin, scenario in own.items() if scenario.upload))
    page.session_state.work.turn_to(page.session_state.work.scenario.with_edits({"sites[0].power": "3 MW"}))
    page.run().button(key="share-link").click().run()
    link = parse_qs(urlparse(page.code[0].value).query)
    assert link["base"] == ["upload"] and link["id"] != [page.query_params["id"]]
    guest = opened(**link)
    assert not guest.metric and not guest.session_state.work.saved
    assert guest.session_state.work.scenario == page.session_state.work.scenario
    assert [guest.query_params["id"]] == link["id"]  # nothing was changed yet


def test_back_turns_to_the_scenario_of_the_address(monkeypatch):
    page = opened(base="mixed_fleet")
    before = dict(page.query_params)
    choose(page, "quality")
    assert page.query_params["base"] == "quality"
    for key, value in before.items():
        page.query_params[key] = value
    page.run()  # no step in the history, such as an answer to a widget that was sent before the address had changed
    assert page.query_params["base"] == "quality"
    monkeypatch.setattr(dashboard_page, "_has_come_back", lambda: True)
    for key, value in before.items():
        page.query_params[key] = value
    page.run()
    assert dict(page.query_params) == before and page.session_state.work.scenario == Scenario("mixed_fleet")
    assert metrics(page)["Chips"] == f"{sources.stored_plan()['totals']['chips']:,}"


def test_a_wrong_figure_is_named_at_its_field_and_the_plan_stays():
    page = changing(opened())
    field(page, "workloads[0].slo.ttft.p95").set_value("500 MB")
    field(page, "sites[1].power").set_value("-3 MW")
    page = page.button(key="solve").click().run()
    assert [error.value for error in page.error] == ["Not taken over: correct these places, then try again."]
    problems = dict(page.table[0].value.values.tolist())
    assert set(problems) == {"workloads[0].slo.ttft.p95", "sites[1].power"}
    assert "500 MB" in problems["workloads[0].slo.ttft.p95"] and '"500 ms"' in problems["workloads[0].slo.ttft.p95"]
    at_fields = [text.value for text in page.markdown if text.value.startswith(":red[")]
    assert len(at_fields) == 2
    assert field(page, "sites[1].power").value == "-3 MW" and page.session_state.work.job is None
    assert metrics(opened(page.session_state.work))["Chips"] == f"{sources.stored_plan()['totals']['chips']:,}"


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        (b"{", "(file)", "not valid JSON"),
        (b"\xff\xfe", "(file)", "UTF-8"),
        (b"[]", "(file)", "object"),
        (TINY.replace(b'"name": "A tiny question",', b""), "name", "missing"),
        (TINY.replace(b"1 MW", b"1 MB"), "sites[0].power", "20 MW"),
        (TINY.replace(b'"sites"', b'"places"'), "places", "unknown"),
        (TINY.replace(b"DGX H100", b"DGX H10"), "offers[0].system", "DGX H100"),
    ],
)
def test_a_bad_upload_shows_a_table_of_places_and_remedies(text, path, word):
    page = uploaded(("spec.json", text))
    assert not page.exception
    assert len(page.error) == 1
    problems = dict(page.table[0].value.values.tolist())
    assert word in problems[path], problems


def test_our_own_plan_is_taken_and_verified(tiny_plan):
    page = awaited(uploaded(("plan.json", tiny_plan.to_json().encode())))
    assert not page.exception and not page.error
    assert metrics(page)["Chips"] == f"{tiny_plan['totals']['chips']:,}"
    assert plan_of(page).document == tiny_plan.document


def test_a_forged_plan_is_told(tiny_plan):
    document = json.loads(tiny_plan.to_json())
    document["totals"]["cost"] *= 0.5
    page = awaited(uploaded(("plan.json", json.dumps(document).encode())))
    assert not page.exception and any("fails its own verification" in error.value for error in page.error)


def test_a_spec_comes_with_its_hourly_prices():
    spec = json.loads(TINY)
    spec["sites"][0]["hourly"] = "prices.csv"
    start = datetime(2024, 1, 1)
    hours = "\n".join(f"{start + timedelta(hours=h):%Y-%m-%dT%H},{30 + h % 24}" for h in range(24 * 366))
    files = ("spec.json", json.dumps(spec).encode()), ("prices.csv", f"utc,price_usd_per_mwh\n{hours}\n".encode())
    page = uploaded(*files)
    assert not page.error, page.table[0].value.values.tolist()
    document = page.session_state.work.scenario.document()
    assert document["series"]["prices.csv"]["columns"]["price_usd_per_mwh"][:2] == [30.0, 31.0]
    page = uploaded(("spec.json", TINY), ("prices.csv", files[1][1]))
    assert "no site names it" in dict(page.table[0].value.values.tolist())["prices.csv"]


def test_two_uploads_of_one_name_are_told():
    files = ("prices.csv", b"utc,price_usd_per_mwh\n2024-01-01T00,30\n"), ("prices.csv", b"utc,price_usd_per_mwh\n")
    page = uploaded(("spec.json", TINY), *files)
    assert not page.exception and "rename one" in dict(page.table[0].value.values.tolist())["prices.csv"]


def test_an_infeasible_spec_is_an_answer_with_a_repair_that_works():
    page = solved(opened_at("change", work_with(json.loads(TINY.replace(b"1 MW", b"1 kW")))))
    assert not page.exception and not page.metric
    assert [error.value for error in page.error] == ["Infeasible: no plan meets all limits at once."]
    conflict, reach, repair = (table.value for table in page.table)
    assert list(conflict["Place in the spec"]) == list(repair["Place in the spec"]) == ["sites[0].power"]
    assert list(repair["From"]) == ["1 kW"] and next(iter(reach["Workload"])) == "all workloads"
    page = awaited(page.button(key="repair").click().run())
    assert not page.exception and not page.error and metrics(page)["Chips"] == "8"
    assert [field(changing(page), "sites[0].power").value] == list(repair["To"])


def test_cancel_ends_the_solve_and_keeps_the_plan():
    change = opened_at("change", Work(Scenario(sources.MAIN)))
    change.button(key="solve").click().run()
    page = opened(change.session_state.work)
    job = page.session_state.work.job
    assert page.selectbox[0].disabled and changing(page).button(key="solve").disabled
    page.button(key="cancel").click().run()
    assert page.session_state.work.job is None and not page.exception
    assert job._process.poll() is not None
    assert metrics(page)["Chips"] == f"{sources.stored_plan()['totals']['chips']:,}"
    assert not changing(page).button(key="solve").disabled


@pytest.mark.parametrize("name", sources.examples())
def test_every_example_opens_with_its_plan(name):
    page = opened(base=name)
    assert not page.exception and not page.error
    plan = sources.plan_of_example(name)
    assert (plan is not None) == bool(page.metric)
    if plan is not None:
        assert metrics(page)["Chips"] == f"{plan['totals']['chips']:,}"


def test_a_plan_that_serves_nothing_is_no_success(tiny_plan):
    document = copy.deepcopy(dict(tiny_plan.document))
    document["objective"] = {"sense": "max", "value": 0.0, "unit": "factor"}
    document |= {**NOTHING, "status": "optimal", "bound": 0.0, "gap": 0.0}
    page = opened(work_with(json.loads(TINY), planner.plan.Plan(document)))
    assert not page.exception and not page.success and not page.metric and not page.get("vega_lite_chart")
    assert len(page.error) == 1 and "serves nothing" in page.error[0].value


def test_out_of_time_without_a_plan_says_what_to_do(tiny_plan):
    document = {**tiny_plan.document, **NOTHING, "status": "limit", "bound": None, "gap": None}
    document["objective"] = {**tiny_plan.objective, "value": None}
    page = opened(work_with(json.loads(TINY), planner.plan.Plan(document)))
    assert not page.exception and "Out of time" in page.warning[0].value
    assert any("solver.time_limit" in text.value for text in page.markdown)
    page = page.button(key="more-time").click().run()
    assert page.session_state.work.scenario.document()["solver"] == {"time_limit": "2 min"}
    assert page.session_state.work.job is not None
    page.button(key="cancel").click().run()


def test_notes_say_in_every_language_how_the_spec_was_understood(tiny_plan):
    odd = Fact("sites[0].power", Message.of("dashboard.kept_aged", minutes=7), "a *published* figure")
    echo = Fact("offers[0]", Message.of("list.more", count=3))
    document = {**tiny_plan.document, "notes": rows([odd, echo])}
    for language in languages():
        page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
        page.query_params["lang"] = language
        page._page_hash = calc_hash("evidence")
        page.session_state.work = work_with(json.loads(TINY), planner.plan.Plan(document))
        page.run()
        assert not page.exception
        assert Words(language)("heading.understood") in [title.value for title in page.subheader]
        text = "\n".join(markdown.value for markdown in page.markdown)
        assert odd.message.text(language) in text and echo.message.text(language) in text


def test_phases_are_called_by_their_names_and_the_first_with_a_load_is_shown(tiny_plan):
    document = copy.deepcopy(dict(tiny_plan.document))
    document["schedule"] = [
        {**row, "window": phase, "slot": row["slot"] + 24 * phase}
        | ({"power_w": 0.0, "own_power_w": 0.0, "energy_j": 0.0} if phase == 0 else {})
        for phase in range(2)
        for row in tiny_plan["schedule"]
    ]
    named = [("pilot", "2027-01-01"), ("full", "2028-01-01")]
    document["phases"] = [
        {"name": name, "start": start, "windows": [i], "capital": 1.0, "cost": 2.0, "chips": 8}
        | {"end": start, "paid": None, "residual": 0.0, "tokens": {}, "cost_per_million_tokens": None, "pools": []}
        for i, (name, start) in enumerate(named)
    ]
    page = opened_at("operations", work_with(json.loads(TINY), planner.plan.Plan(document)))
    assert not page.exception
    choice = page.segmented_control(key="phase")
    assert choice.value == 1
    assert list(choice.options) == ["pilot: 365 days", "full: 365 days"]
    assert len(page.get("vega_lite_chart")) == 3  # the fleet, load and price at its site


def test_saved_scenarios_are_compared_in_words_and_figures(tiny_plan):
    document = json.loads(TINY)
    work = work_with(document, tiny_plan)
    dearer = work.scenario.with_edits({"offers[0].price": "400000 USD"})
    work.keep(dearer.document(), planner.solve(dearer.document()), ())
    page = opened_at("compare", work)
    assert not page.exception and len(page.info) == 1
    page.text_input(key=f"name-{work.scenario.key}").set_value("usual")
    page.button(key="save-scenario").click().run()
    work.turn_to(dearer)
    page.run()
    page.text_input(key=f"name-{work.scenario.key}").set_value("dearer")
    page.button(key="save-scenario").click().run()
    assert not page.exception and [scenario.name for scenario in work.saved] == ["usual", "dearer"]
    first, second = tiny_plan["totals"]["cost"], work.shown_of(dearer).plan["totals"]["cost"]
    said = "\n".join(text.value for text in page.markdown)
    assert f"dearer comes to {(second - first) / 1e3:.4g}k USD more than usual ({second / first - 1:.2%}" in said
    assert "systems (capital) +" in said and "same chips" in said
    asked, figures = tables(page)
    assert asked.values.tolist() == [["offers[0].price", "(not there)", "400000 USD"]]
    assert list(figures.columns[1:]) == ["usual", "dearer"] and "Cost (USD)" in list(figures["Figure"])
    assert len(page.get("vega_lite_chart")) == 2
    again = opened_at("compare", open_work({"id": [work.id]}))
    assert [scenario.name for scenario in again.session_state.work.saved] == ["usual", "dearer"]
    page.button(key="remove-usual").click().run()
    assert [scenario.name for scenario in work.saved] == ["dearer"]


def test_hours_and_places_follow_the_hour(tiny_plan):
    page = opened_at("hours", work_with(json.loads(TINY), tiny_plan))
    assert not page.exception and not page.info and len(page.get("vega_lite_chart")) >= 3
    rows = {row["hour_utc"]: row for row in tiny_plan["schedule"]}
    for hour in (3, 18):
        page.slider(key="hours-hour").set_value(hour).run()
        assert tables(page)[0]["kW"].tolist() == [round(rows[hour]["power_w"] / 1e3, 3)]
    assert len(opened_at("hours", work_with(json.loads(TINY))).info) == 1  # without a plan


def typed(page: AppTest, table: str, **state) -> AppTest:
    """The page of tables after a change in one of them."""
    key = next(editor.key for editor in page.data_editor if editor.key.startswith(f"table-{table}-"))
    page.session_state[key] = {"edited_rows": {}, "added_rows": [], "deleted_rows": [], **state}
    return page.run()


def test_a_change_in_a_table_is_an_edit_of_the_scenario_or_told_at_its_cell():
    page = opened_at("tables", work_with(json.loads(TINY)))
    assert not page.exception and not page.error
    assert page.data_editor[0].value["architecture"].tolist() == ["Llama-3.3-70B-Instruct"]
    page = typed(page, "serving", edited_rows={0: {"demand.requests_per_s": "60"}})
    work = page.session_state.work
    assert not page.exception and dict(work.scenario.edits) == {"workloads[0].demand.requests_per_s": 60}
    assert page.query_params["set"] == "workloads[0].demand.requests_per_s=60"
    page = typed(page, "sites", edited_rows={0: {"power": "3 MB"}}, added_rows=[{"region": "us-texas"}, {}])
    assert not page.exception and len(page.error) == 1 and "2 to correct" in page.error[0].value
    told = [text.value for text in page.markdown if text.value.startswith(":red[")]
    assert len(told) == 2 and "Row 1 (us-virginia) · Power at most" in told[0] and "Row 3 · Region" in told[1]
    assert len(work.scenario.edits) == 1 and page.button(key="solve-tables").disabled
    page = typed(page, "sites", edited_rows={0: {"power": "3 MW"}}, added_rows=[{"region": "us-texas"}])
    assert not page.exception and not page.error
    assert work.scenario.document()["sites"] == [{"region": "us-virginia", "power": "3 MW"}, {"region": "us-texas"}]
    assert open_work({**work.scenario.address(), "id": [work.id]}).scenario == work.scenario  # kept
    work.turn_to(Scenario(sources.MAIN))  # elsewhere
    assert len(page.run().data_editor[0].value) == 2 and not page.error


def test_a_row_that_is_being_added_leaves_its_editor_where_it_is():
    """Another editor would lose what is being typed, whether the row is right yet or not, and whatever is wrong in the others."""
    page = opened_at("tables", work_with(json.loads(TINY)))

    def keys() -> list[str]:
        return [editor.key for editor in page.data_editor]

    before = keys()
    for row in ({}, {"power": "3 MW"}, {"power": "3 MW", "region": "us-texas"}):
        page = typed(page, "sites", added_rows=[row])
        assert not page.exception and keys() == before and bool(page.error) == (len(row) < 2)
    page = typed(page, "serving", edited_rows={0: {"slo.ttft.p95": "3 MB"}})
    assert page.error and keys() == before
    page = typed(page, "serving")
    assert not page.error and keys() == before
    assert page.session_state.work.scenario.document()["sites"][1] == {"power": "3 MW", "region": "us-texas"}


def test_a_currency_and_units_are_chosen_and_stand_in_the_address():
    plan, page = sources.stored_plan(), opened(currency="CNY")
    rate = sources.rates(plan["spec"])["CNY"].per_usd
    assert not page.exception and metrics(page)["Cost over 4 y (CNY)"] == f"{plan['totals']['cost'] * rate / 1e9:.4g}B"
    assert any(f"{rate:g} CNY per USD" in caption.value for caption in page.caption)
    next(box for box in page.selectbox if box.key.startswith("units-power")).set_value("kW").run()
    assert metrics(page)["Peak power"] == f"{plan['totals']['peak_power_w'] / 1e3:,.0f} kW"
    assert page.query_params["power"] == "kW" and page.query_params["currency"] == "CNY"
    next(box for box in page.selectbox if box.key.startswith("units-currency")).set_value("").run()
    assert "Cost over 4 y (USD)" in metrics(page) and "currency" not in page.query_params


def test_a_point_of_the_plan_is_looked_at_and_changed(tiny_plan):
    page = opened_at("running", work_with(json.loads(TINY), tiny_plan))
    assert not page.exception and not page.error and not page.warning
    assert page.selectbox[-4].value.startswith("point/chat · us-virginia")
    assert len(page.get("vega_lite_chart")) == 5
    before = metrics(page)
    prompt = next(box for box in page.number_input if box.key.startswith("prompt-"))
    page = prompt.set_value(4000).run()
    assert not page.exception and (metrics(page) != before or page.warning)
    page.selectbox[-4].set_value("case/gpt3_a100").run()
    assert not page.exception and "Time of a step" in metrics(page) and len(page.get("vega_lite_chart")) == 4


def test_a_site_is_shown_alone():
    plan, page = sources.stored_plan(), opened_at("operations", Work(Scenario(sources.MAIN)))
    charts = len(page.get("vega_lite_chart"))
    assert charts == 1 + 2 * len({row["site"] for row in plan["schedule"]})
    site = plan["fleet"][0]["site"]
    page = page.button_group(key="site-None").set_value(site).run()
    assert not page.exception and len(page.info) == 1 and site in page.info[0].value
    fleet, *_, points, _ = tables(page)
    assert list(fleet["Count"]) == [row["count"] for row in plan["fleet"] if row["site"] == site]
    assert {row["site"] for row in plan["fleet"]} >= {site} == set(points["Site"])
    page = page.button_group(key=f"site-{site}").set_value(None).run()
    assert not page.info and len(page.get("vega_lite_chart")) == charts


@pytest.mark.parametrize("language", languages())
def test_the_catalog_is_searched_and_its_accuracy_drawn(language, monkeypatch):
    def drawn(part: str) -> AppTest:
        monkeypatch.setattr(evidence, "FIRST", part)
        page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
        page.query_params["lang"] = language
        page._page_hash = calc_hash("evidence")
        page.session_state.work = Work(Scenario(sources.MAIN))
        page.run()
        assert not page.exception and not page.error
        return page

    page = drawn(catalog.FIGURES)
    every, worth = tables(page)
    assert len(every) == len(cataloguing.every_figure()) and len(worth) == len(sources.stored_plan()["assumptions"])
    page.text_input(key="catalog-search").set_value("h100 hbm_bytes_per_s").run()
    assert 0 < len(tables(page)[0]) < 20
    page = drawn(catalog.ACCURACY)
    assert len(page.get("vega_lite_chart")) == 1 and len(tables(page)[0]) > 3


def test_own_figures_go_into_the_scenario_and_out_again(monkeypatch):
    monkeypatch.setattr(evidence, "FIRST", catalog.OWN)
    page = opened_at("evidence", work_with(json.loads(TINY)))
    own = {"defaults": [{"name": "memory_utilisation", "figures": {"value": 0.8}}]}
    page.file_uploader[-1].set_value([("own.json", json.dumps(own).encode(), "")]).run()
    assert not page.exception and not page.error
    scenario = page.session_state.work.scenario
    assert scenario.document()["overrides"] == {
        "defaults/memory_utilisation/value": {"value": 0.8, "note": "own figure (own.json)"}
    }
    assert len(tables(page)[0]) == 1
    page.button(key="own-remove").click().run()
    assert not page.session_state.work.scenario.edits
    page.file_uploader[-1].set_value([("own.json", b'{"offers": [{"name": "x", "figures": {}}]}', "")]).run()
    assert page.error and not page.session_state.work.scenario.edits


def test_own_measurements_are_fitted_and_used_in_the_scenario(monkeypatch):
    """The fit itself is tested with the calibration; here it is one constant."""
    monkeypatch.setattr(evidence, "FIRST", catalog.CALIBRATION)
    found = {
        "changes": [{"figure": "serving.x", "before": 1.0, "after": 1.2, "low": 1.1, "high": 1.3}],
        "overlays": {"own.json": {"defaults": [{"name": "memory_utilisation", "figures": {"value": 0.8}}]}},
    }
    page = opened_at("evidence", work_with(json.loads(TINY)))
    monkeypatch.setattr(studying.Study, "start", lambda study: setattr(study, "has_ended", True))
    page.file_uploader[-1].set_value([("runs.csv", b"chip,n_chips\n", "text/csv")]).run()
    page.button(key="start-calibrate").click().run()
    study = next(study for study in studying._STUDIES.values() if study.kind == studying.CALIBRATE)
    study.found = found
    page.run()
    assert not page.exception and list(tables(page)[0]["After"]) == [1.2]
    page.button(key="calibration-use").click().run()
    assert page.session_state.work.scenario.document()["overrides"]["defaults/memory_utilisation/value"]["value"] == 0.8


def test_what_was_refused_on_a_page_is_not_told_on_the_next():
    page = opened()
    page.session_state.work.problems = (Issue("sites[0].power", "is missing; add it"),)
    assert [error.value for error in page.run().error] and page.session_state.page == ""
    page.session_state.page = "hours"  # as if another page had been open before
    assert not page.run().error and not page.session_state.work.problems
