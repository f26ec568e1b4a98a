"""The page as a user meets it, run by Streamlit's own test driver without a browser."""

import json
import time
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest

from planner import check_spec, load_spec
from planner.dashboard import sources
from planner.dashboard.locale import languages

HOME = Path(__file__).resolve().parents[3]
TINY = (Path(__file__).parent / "tiny.json").read_bytes()
LONGEST_S = 60


def opened(**query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def uploaded(text: bytes) -> AppTest:
    page = opened()
    page.selectbox(key="source").set_value("upload").run()
    page.file_uploader(key="file").upload("spec.json", text, "application/json").run()
    return page


def solved(page: AppTest) -> AppTest:
    """The page after Solve."""
    return awaited(page.button(key="solve").click().run())


def awaited(page: AppTest) -> AppTest:
    """The page once the worker has ended."""
    end = time.monotonic() + LONGEST_S
    while page.session_state.job is not None:
        assert time.monotonic() < end, "the worker did not end"
        time.sleep(0.1)
        page.run()
    return page


def metrics(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def tables(page: AppTest) -> list:
    return [table.value for table in page.dataframe]


def test_the_page_opens_with_the_stored_plan_in_every_language():
    plan, shapes = sources.stored_plan(), set()
    for language in languages():
        page = opened(lang=language)
        assert not page.exception and not page.error
        assert page.header[0].value == plan["name"]
        values = [metric.value for metric in page.metric]
        assert f"{plan['totals']['chips']:,}" in values and f"{plan.gap:.3%}" in values
        assert len(page.get("vega_lite_chart")) == 2 + 2 * len({row["site"] for row in plan["schedule"]})
        assert len(page.get("download_button")) == 4
        shapes.add(tuple(table.shape for table in tables(page)))
    assert len(shapes) == 1  # two columns with one name would be one column


def test_the_headline_figures_are_those_of_the_stored_plan():
    plan, shown = sources.stored_plan(), metrics(opened())
    assert shown["Cost (USD)"] == f"{plan['totals']['cost'] / 1e6:.4g}M"
    assert shown["Chips"] == f"{plan['totals']['chips']:,}"
    assert shown["Peak power (MW)"] == f"{plan['totals']['peak_power_w'] / 1e6:.4g}"
    assert shown["Carbon (t CO₂)"] == f"{plan['totals']['carbon_kg'] / 1e3:,.0f}"
    assert shown["Gap"] == f"{100 * abs(plan['totals']['cost'] - plan['bound']) / plan['totals']['cost']:.3f}%"
    for workload in plan["workloads"]:
        assert shown[f"{workload['name']}, USD/M tokens"] == f"{workload['cost_per_million_tokens']:.4g}"


def test_the_tables_hold_every_row_of_the_plan():
    plan, page = sources.stored_plan(), opened()
    fleet, costs, workloads, slo, points, limits, assumptions, provenance, dropped = tables(page)
    assert list(fleet["Count"]) == [row["count"] for row in plan["fleet"]]
    assert sum(costs["Amount (USD)"]) == pytest.approx(plan["totals"]["cost"]) and sum(costs["Share"]) == pytest.approx(
        1
    )
    assert list(workloads["Workload"]) == [row["name"] for row in plan["workloads"]]
    assert len(slo) == 4
    assert set(points["Workload"]) == {row["name"] for row in plan["workloads"]} and set(points["Power cap"]) == {""}
    assert list(page.table[0].value["Site"]) == list(dict.fromkeys(row["site"] for row in plan["fleet"]))
    assert sorted(limits["Place in the spec"]) == sorted(row["path"] for row in plan["limits"])
    assert list(limits["Used share"]) == sorted(limits["Used share"], reverse=True)
    assert set(assumptions["Figure"]) == {row["path"] for row in plan["assumptions"]}
    assert len(provenance) == len(plan["provenance"]) and len(dropped) == sum(map(len, plan["dropped"].values()))


def test_an_edited_figure_changes_the_plan():
    page = solved(uploaded(TINY))
    assert not page.exception and not page.error
    before = metrics(page)
    page.text_input(key=next(item.key for item in page.text_input if item.key.endswith("requests_per_s"))).set_value(
        "60"
    )
    page = solved(page)
    after = metrics(page)
    assert not page.exception and not page.error
    assert int(after["Chips"]) > int(before["Chips"])
    assert after["Cost (USD)"] != before["Cost (USD)"]
    assert any("requests_per_s" in caption.value and "20 → 60" in caption.value for caption in page.caption)
    plan = page.session_state.shown.plan
    assert plan["spec"]["workloads"][0]["demand"] == {"requests_per_s": 60}
    files = {file.file.rsplit("_", 1)[-1]: file.data for file in page.session_state.shown.files}
    assert json.loads(files["plan.json"]) == plan.document
    assert str(plan["name"]) in files["plan.md"].decode()


def test_a_wrong_figure_is_named_with_its_remedy_and_the_plan_stays():
    page = opened()
    page.text_input(key="mixed_fleet/workloads[0].slo.ttft.p95").set_value("500 MB")
    page.text_input(key="mixed_fleet/sites[1].power").set_value("-3 MW")
    page = solved(page)
    assert [error.value for error in page.error] == ["The spec is not valid. Correct these places and solve again."]
    problems = dict(page.table[0].value.values.tolist())
    assert set(problems) == {"workloads[0].slo.ttft.p95", "sites[1].power"}
    assert "500 MB" in problems["workloads[0].slo.ttft.p95"] and '"500 ms"' in problems["workloads[0].slo.ttft.p95"]
    assert metrics(page)["Chips"] == f"{sources.stored_plan()['totals']['chips']:,}"


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
    page = uploaded(text)
    assert not page.exception
    assert len(page.error) == 1 and not page.metric
    problems = dict(page.table[0].value.values.tolist())
    assert word in problems[path], problems


def test_an_infeasible_spec_is_an_answer_with_a_repair_that_works():
    page = solved(uploaded(TINY.replace(b"1 MW", b"1 kW")))
    assert not page.exception and not page.metric
    assert [error.value for error in page.error] == ["Infeasible: no plan meets all limits at once."]
    conflict, repair = (table.value for table in page.table)
    assert list(conflict["Place in the spec"]) == list(repair["Place in the spec"]) == ["sites[0].power"]
    assert list(repair["From"]) == ["1 kW"]
    page = awaited(page.button(key="repair").click().run())
    assert not page.exception and not page.error and metrics(page)["Chips"] == "8"
    power = next(item for item in page.text_input if item.key.endswith("sites[0].power"))
    assert [power.value] == list(repair["To"])


def test_cancel_ends_the_solve_and_keeps_the_plan():
    page = opened()
    page.button(key="solve").click().run()
    job = page.session_state.job
    assert page.selectbox(key="source").disabled and page.button(key="solve").disabled
    page.button(key="cancel").click().run()
    assert page.session_state.job is None and not page.exception
    assert job._process.poll() is not None
    assert metrics(page)["Chips"] == f"{sources.stored_plan()['totals']['chips']:,}"
    assert not page.button(key="solve").disabled


def test_every_example_can_be_picked():
    page = opened()
    for name, path in sources.examples().items():
        page.selectbox(key="source").set_value(name).run()
        assert not page.exception and not page.error, name
        assert len(page.text_input) > 5
        assert check_spec(path)["sites"] == len(load_spec(path).sites)


def test_no_choice_leaves_the_page_empty():
    page = opened()
    page.selectbox(key="source").set_value("upload").run()
    assert not page.exception and len(page.info) == 1 and not page.metric


def test_going_back_to_a_question_shows_its_plan_again():
    page = solved(uploaded(TINY))
    page.selectbox(key="source").set_value(sources.MAIN).run()
    assert page.header[0].value == sources.stored_plan()["name"]
    page.selectbox(key="source").set_value("upload").run()
    page.file_uploader(key="file").upload("spec.json", TINY, "application/json").run()
    assert page.header[0].value == "A tiny question"
