"""The page of every block, by Streamlit's own test driver: each key has a widget, and what is typed is an edit or told at its field."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from planner.dashboard import sources
from planner.dashboard.editor import forms
from planner.dashboard.editor.nodes import FIELDS, spec_node
from planner.dashboard.editor.tables import Change
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan as plan_page
from planner.spec.schema import spec_schema
from tests.planner.dashboard.filled import filled, keys_of_schema

HOME = Path(__file__).resolve().parents[3]
YEAR = [date(2024, 1, 1) + timedelta(days=day) for day in range(366)]
TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
BLOCKS = [key for key, part in spec_node().parts.items() if part.kind not in FIELDS]
VARIANTS = 3  # kinds of workloads, the most shapes that a place has


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))


def opened(document: dict, block: str = "workloads", **query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=120)
    page._page_hash = calc_hash("tables")
    page.session_state.work = Work(Scenario.of_upload(document))
    page.session_state[plan_page.BEGUN] = True
    for key, value in {"spec": "blocks", "block": block, **query}.items():
        page.query_params[key] = value
    return page.run()


def field(page: AppTest, place: str, what: str = "form"):
    """The widget of a place."""
    kinds = (page.text_input, page.selectbox, page.checkbox, page.text_area, page.button, page.data_editor)
    return next(
        each
        for kind in kinds
        for each in kind
        if each.key.startswith(f"{what}-") and each.key.split("-", 2)[2] == place
    )


def keys(page: AppTest) -> set[tuple[str, ...]]:
    """The places of the schema that widgets of the page belong to: of fields, blocks and columns of tables."""
    found = set[tuple[str, ...]]()
    kinds = (page.text_input, page.selectbox, page.checkbox, page.text_area, page.button, page.data_editor)
    for each in (each for kind in kinds for each in kind):
        what, _, rest = str(each.key).partition("-")
        if what not in ("form", "add", "remove", "rows", "shape", "entry"):
            continue
        parts = tuple(rest.partition("-")[2].replace("[", ".[").replace("[0]", "[]").replace("USD", "{}").split("."))
        found |= {parts[:n] for n in range(1, len(parts) + 1)}
        if what == "rows":
            found |= {(*parts, "[]"), *((*parts, "[]", name) for name in each.value)}
    return found


def everything(block: str) -> set[tuple[str, ...]]:
    found = set()
    for variant in range(VARIANTS):
        page = opened(filled(spec_schema(), variant), block)
        assert not page.exception, page.exception
        found |= keys(page)
    return found


def expected(block: str) -> set[tuple[str, ...]]:
    """The paths of the schema in a block, but the marks of variants, which the choice of the shape writes."""
    return {
        path
        for path in keys_of_schema(spec_schema())
        if (path[0] == block or (block == "general" and path[0] not in BLOCKS)) and path != ("workloads", "[]", "kind")
    }


@pytest.mark.parametrize("block", ["general", *BLOCKS])
def test_every_key_of_the_schema_has_a_widget(block):
    missing = expected(block) - everything(block)
    assert not missing, sorted(missing)


@pytest.mark.parametrize("name", ["mixed_fleet", "owning"])
def test_an_example_that_is_looked_at_block_by_block_stays_as_it_is(name):
    page = opened(sources.example(name))
    for block in ("general", *sources.example(name)):
        if block in BLOCKS or block == "general":
            page.selectbox(key="blocks-block").set_value(block).run()
            assert not page.exception and not page.error
            assert page.session_state.work.scenario.edits == ()
            assert block == "general" or json.loads(page.text_area[-1].value) is not None


def test_what_is_typed_is_an_edit_and_the_pane_of_json_keeps_step():
    page = opened(TINY)
    field(page, "workloads[0].demand.requests_per_s").set_value("60").run()
    work = page.session_state.work
    assert not page.exception and dict(work.scenario.edits) == {"workloads[0].demand.requests_per_s": 60}
    pane = (
        field(page, "workloads[0]", "json") if False else next(a for a in page.text_area if a.key.startswith("json-"))
    )
    assert json.loads(pane.value)["demand"]["requests_per_s"] == 60
    stated = {**json.loads(pane.value), "redundancy": "N+1"}
    pane.set_value(json.dumps(stated)).run()
    assert work.scenario.document()["workloads"][0]["redundancy"] == "N+1"
    assert field(page, "workloads[0].redundancy").value == "N+1"
    field(page, "workloads[0].redundancy").set_value("").run()
    assert "redundancy" not in work.scenario.document()["workloads"][0]
    assert [page.button(key="undo").click().run() and work.scenario.document() for _ in range(3)][-1] == TINY
    assert not page.exception and page.button(key="undo").disabled


def test_a_wrong_unit_is_told_at_its_field_and_the_last_right_state_counts():
    page = opened(TINY, "sites")
    field(page, "sites[0].power").set_value("3 MB").run()
    field(page, "sites[0].pue").set_value("many").run()
    assert not page.exception and page.session_state.work.scenario.edits == ()
    told = [each.value for each in page.markdown if each.value.startswith(":red[")]
    assert len(told) == 2 and "2 to correct" in page.error[0].value
    assert "⚠ sites" in page.selectbox(key="blocks-block").options
    assert field(page, "sites[0].power").value == "3 MB"  # stays to be corrected
    field(page, "sites[0].power").set_value("3 MW").run()
    field(page, "sites[0].pue").set_value("1.2").run()
    assert not page.error and page.session_state.work.scenario.document()["sites"][0]["pue"] == 1.2


def test_blocks_entries_and_named_entries_come_and_go():
    page = opened(TINY, "sites")
    work = page.session_state.work
    field(page, "sites[0].electricity", "add").click().run()
    field(page, "sites[0].electricity.battery", "add").click().run()
    assert not page.exception and page.error  # its energy is missing
    assert any("battery" in str(each.key) for each in page.text_input)
    field(page, "sites[0].electricity", "remove").click().run()
    assert not page.error and work.scenario.document() == TINY
    next(each for each in page.button if each.key.startswith("copy-")).click().run()
    assert [site["region"] for site in page.session_state.draft.scenario.document()["sites"]] == ["us-virginia"] * 2
    next(each for each in page.button if each.key.startswith("remove-entry-")).click().run()
    page.selectbox(key="blocks-block").set_value("overrides").run()
    next(each for each in page.button if each.key.startswith("add-")).click().run()
    name = "chips/H100 SXM5 80GB/hbm_bytes_per_s"
    next(each for each in page.text_input if each.key.startswith("name-")).set_value(name).run()
    next(each for each in page.button if each.key.startswith("add-key-")).click().run()
    field(page, f"overrides.{name}.value").set_value("4 TB/s").run()
    field(page, f"overrides.{name}.note").set_value("measured").run()
    assert not page.exception and not page.error
    assert work.scenario.document()["overrides"] == {name: {"value": "4 TB/s", "note": "measured"}}


def test_a_table_of_a_block_adds_changes_and_removes_rows():
    page = opened(TINY)
    origins = field(page, "workloads[0].origins", "rows")
    before = TINY["workloads"][0]["origins"]
    assert origins.value.to_dict("records") == [{**before[0], "share": "1.0"}]
    assert page.session_state[f"{origins.key}-first"] == before
    node = spec_node().parts["workloads"].inner.variants[0].parts["origins"]
    row = {"region": "us-texas", "share": "0.5"}
    assert forms.changed_rows(node, before, Change({0: {"share": "0.5"}}, [row])) == [
        {**before[0], "share": 0.5},
        {"region": "us-texas", "share": 0.5},
    ]
    assert forms.changed_rows(node, before, Change(removed=[0])) == []
    assert forms.changed_rows(node, [{"region": "a", "share": 1, "extra": 2}], Change({0: {"share": None}})) == [
        {"region": "a", "extra": 2}
    ]


def test_a_spec_that_names_an_hourly_file_asks_for_it():
    document = {**TINY, "sites": [{**TINY["sites"][0], "hourly": "prices.csv"}]}
    page = opened(document, "sites")
    assert not page.exception and any("prices.csv" in each.value for each in page.markdown)
    hours = "\n".join(f"2024-01-{1 + h // 24:02d}T{h % 24:02d}:00Z,{40 + h % 24}" for h in range(7 * 24))
    page.file_uploader[1].set_value([("whatever.csv", b"nonsense", "text/csv")]).run()
    assert not page.exception and any("prices.csv" in each.value for each in page.markdown)
    page.file_uploader[1].set_value(
        [("mine.csv", f"timestamp_utc,price_usd_per_mwh\n{hours}\n".encode(), "text/csv")]
    ).run()
    assert not page.exception
    assert "prices.csv" in page.session_state.draft.scenario.document()["series"]


@pytest.mark.parametrize(
    "text", ["{", "[" * 500, '{"a": NaN}', '{"a": 1, "a": 2}', "5", '"x"', "9" * 5000, "\\ud800", '"\\ud800"']
)
def test_hostile_texts_in_the_pane_are_refused_in_words(text):
    page = opened(TINY)
    next(each for each in page.text_area if each.key.startswith("json-")).set_value(text).run()
    assert not page.exception
    assert [each for each in page.markdown if each.value.startswith(":red[")]
    assert page.session_state.work.scenario.document() == TINY


def test_a_draft_that_is_no_spec_at_all_is_shown_as_json():
    wrong = {
        **TINY,
        "sites": 5,
        "workloads": [{"kind": "singing"}, "x"],
        "horizon": [],
        "solver": {"gap": {"a": 1}},
        "extra": {"b": 2},
    }
    for block in ("sites", "workloads", "horizon", "solver", "extra", "general"):
        page = opened(wrong, block)
        assert not page.exception, (block, page.exception)
        assert page.error


def test_an_upload_without_its_hourly_file_waits_for_it_and_then_is_the_scenario_at_hand():
    page = opened(TINY)
    document = {**TINY, "name": "with hours", "sites": [{**TINY["sites"][0], "hourly": "prices.csv"}]}
    page.file_uploader[0].set_value([("spec.json", json.dumps(document).encode(), "")]).run()
    work = page.session_state.work
    assert not page.exception and work.scenario.document() == TINY and not work.problems
    assert any("prices.csv" in each.value for each in page.markdown) and page.error
    hours = "\n".join(f"2024-{d.month:02d}-{d.day:02d}T{h:02d}:00Z,{40 + h}" for d in YEAR for h in range(24))
    content = f"timestamp_utc,price_usd_per_mwh\n{hours}\n".encode()
    page.file_uploader[1].set_value([("mine.csv", content, "text/csv")]).run()
    assert not page.exception and not page.error
    assert work.scenario.document()["name"] == "with hours" and "prices.csv" in work.scenario.document()["series"]
