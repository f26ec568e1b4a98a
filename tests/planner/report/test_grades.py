"""Selling prices give a margin by grade, and decide nothing."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import planner
from planner.plan import Plan
from planner.report.grades import grade_rows
from planner.report.outputs.sections import csv_tables
from planner.report.page import one_page
from planner.report.report import render
from planner.verify.plan import verify_plan

SMALL = json.loads((Path(__file__).parents[2] / "golden" / "small_spec.json").read_text())


def priced(price: dict | None, grade: str | None = "consumer") -> dict:
    spec = copy.deepcopy(SMALL)
    spec["workloads"][0] |= ({"selling_price": price} if price else {}) | ({"grade": grade} if grade else {})
    return spec


@pytest.fixture(scope="module")
def sold() -> Plan:
    return planner.solve(priced({"input": "1 USD/1M tokens", "output": "10 USD/1M tokens"}))


def test_revenue_is_that_of_prompts_and_answers(sold):
    row = sold["workloads"][0]
    # one year at the end of which all is paid: present value of the tokens
    paid = row["cost"] / row["cost_per_million_tokens"] * (10 + 1 * 1000 / 250)
    assert row["revenue"] == pytest.approx(paid, rel=1e-9)
    assert row["margin"] == pytest.approx(paid - row["cost"], rel=1e-9)
    (grade,) = grade_rows(sold)
    assert grade["grade"] == "consumer" and grade["margin_share"] == pytest.approx(row["margin"] / row["revenue"])
    assert grade["price_per_million_tokens"] == pytest.approx(14)
    assert "margin" in render(sold, "md") and "revenue" in csv_tables(sold)["workloads"]


def test_a_price_decides_nothing(sold):
    plain = planner.solve(priced(None, None))
    assert plain["fleet"] == sold["fleet"] and plain["totals"] == sold["totals"]
    assert "revenue" not in plain["workloads"][0] and grade_rows(plain) == []


@pytest.mark.parametrize("name", ["revenue", "margin"])
def test_verify_computes_it_again(sold, name):
    assert verify_plan(sold) == []
    broken = copy.deepcopy(dict(sold.document))
    broken["workloads"][0][name] *= 1.001
    assert any(name in str(finding) for finding in verify_plan(Plan(broken)))
    del broken["workloads"][0][name]
    assert verify_plan(Plan(broken))


def test_a_grade_without_prices_still_has_a_cost(sold):
    (grade,) = grade_rows(planner.solve(priced(None)))
    assert grade["margin_share"] is None and grade["cost_per_million_tokens"] > 0


@pytest.mark.parametrize(
    ("price", "words"),
    [({}, '"input", "output" or both'), ({"output": "3 USD"}, "1M tokens"), ({"output": "3 XYZ/1M tokens"}, "XYZ")],
)
def test_a_price_that_cannot_be_read_is_refused(price, words):
    with pytest.raises(planner.SpecError) as caught:
        planner.check_spec({**priced(None), "workloads": [{**priced(None)["workloads"][0], "selling_price": price}]})
    assert words in str(caught.value) and "selling_price" in str(caught.value)


def test_the_page_states_what_each_grade_costs_and_earns(sold):
    (grade,) = grade_rows(sold)
    told = [f"{grade['cost_per_million_tokens']:.4f}", "14.0000", f"{grade['margin_share']:.1%}"]
    lines = [line.split() for line in one_page(sold).splitlines()]
    assert ["consumer", *told] in lines


def test_grades_without_a_price_are_summed_up_where_they_hold_several_workloads():
    plan = planner.solve(priced(None))
    assert "Grade of tokens" not in one_page(plan)
    document = copy.deepcopy(plan.document)
    document["workloads"].append({**document["workloads"][0], "name": "second"})
    document["spec"]["workloads"].append({**document["spec"]["workloads"][0], "name": "second"})
    assert "Grade of tokens" in one_page(Plan(document))
