"""A notebook shows a plan in a few lines, and has its tables as typed rows and as data frames."""

import sys
from types import SimpleNamespace

import pytest

from planner.plan import TABLES, Plan
from planner.plan.notebook import MOST_ROWS

NAMED = {*TABLES, "deployments", "notes", "costs"}


@pytest.fixture
def no_frames(monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)


def test_every_table_of_the_page_is_a_property_and_a_plan_without_it_has_no_rows(small_plan):
    for name in NAMED:
        assert getattr(small_plan, name) == small_plan.document.get(name, [])
    bare = Plan.of({key: value for key, value in small_plan.document.items() if key not in ("deployments", "notes")})
    assert bare.deployments == bare.notes == []


def test_a_notebook_gets_the_headline_and_the_fleet_in_a_few_hundred_characters(small_plan):
    shown = small_plan._repr_html_()
    assert len(shown) < 2000 and small_plan["name"] in shown and small_plan.status in shown
    for row in small_plan.fleet:
        assert f"<td>{row['system']}</td>" in shown
    assert (
        repr(small_plan).startswith(f"<Plan {small_plan['name']}: {small_plan.status}") and len(repr(small_plan)) < 200
    )


def test_long_names_and_long_fleets_stay_short_and_markup_stays_text(small_plan):
    fleet = [{**small_plan.fleet[0], "system": "<b>" + "x" * 5000}] * 500
    plan = Plan.of({**small_plan.document, "name": "<script>" + "n" * 90_000, "fleet": fleet})
    shown = plan._repr_html_()
    assert len(shown) < 5000 and "<script>" not in shown and "<b>x" not in shown
    assert f"and {500 - MOST_ROWS} more" in shown and len(repr(plan)) < 200


def test_a_plan_without_an_answer_is_shown_too(small_plan):
    objective = {**small_plan.document["objective"], "value": None}
    plan = Plan.of({**small_plan.document, "status": "infeasible", "objective": objective, "gap": None, "fleet": []})
    assert repr(plan) == f"<Plan {plan['name']}: infeasible>" and "infeasible" in plan._repr_html_()


def test_a_table_is_a_frame_of_pandas_with_a_column_per_key(small_plan):
    pytest.importorskip("pandas", reason="pandas is not installed")
    for name in ("fleet", "cost_lines", "schedule", "provenance"):
        frame = small_plan.to_frame(name)
        assert len(frame) == len(small_plan.table(name))
        assert list(frame.columns) == list(dict.fromkeys(key for row in small_plan.table(name) for key in row))
    costs = small_plan.to_frame("costs", "pandas")
    assert dict(zip(costs["component"], costs["amount"], strict=True)) == small_plan.costs


def test_polars_makes_the_frame_where_pandas_is_not_installed(small_plan, no_frames, monkeypatch):
    polars = SimpleNamespace(DataFrame=lambda columns, strict: columns)
    monkeypatch.setitem(sys.modules, "polars", polars)
    assert small_plan.to_frame("fleet")["count"] == [row["count"] for row in small_plan.fleet]


@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_without_a_library_of_frames_the_error_names_the_remedy(small_plan, no_frames, library):
    with pytest.raises(ImportError, match=r"pip install .*plan\.table"):
        small_plan.to_frame("fleet", library)


@pytest.mark.parametrize("name", ["flet", "spec", "totals", ""])
def test_a_name_that_is_no_table_is_refused_with_the_tables(small_plan, name):
    with pytest.raises(ValueError, match=r"its tables: .*fleet"):
        small_plan.to_frame(name)


def test_another_library_of_frames_is_refused(small_plan):
    with pytest.raises(ValueError, match="pandas, polars"):
        small_plan.to_frame("fleet", "excel")
