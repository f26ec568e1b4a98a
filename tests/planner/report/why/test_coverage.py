"""What a report says of the points that a bound covers and of the candidates left out without proof; what `verify` adds up again."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.plan import Plan
from planner.report.page import one_page
from planner.report.report import render
from planner.report.why import coverage
from planner.verify.plan import verified

ROW = {
    "points": 1412, "left_out": 12345,
    "reasons": [{"reason": "beyond points_per_system", "count": 12000}, {"reason": "misses power", "count": 345}],
}  # fmt: skip


@pytest.fixture(scope="module")
def document(small_plan):
    return json.loads(small_plan.to_json())


def test_the_words_count_points_and_rules(document):
    plan = Plan({**document, "coverage": ROW})
    assert coverage.short_words(plan).startswith("The bound covers the 1,412 points considered, not 12,345 left out")
    assert coverage.words(plan).endswith("12,000 (beyond points_per_system), 345 (misses power).")
    assert "1,412" in one_page(plan, language="zh") and "12,345" in render(plan, "md", "zh")


def test_nothing_is_said_without_a_bound_and_all_is_covered_where_no_rule_left_any_out(document):
    for changed in ({"bound": None, "coverage": ROW}, {"coverage": None}):
        assert (
            coverage.words(Plan({**document, **changed})) == coverage.short_words(Plan({**document, **changed})) == ""
        )
    complete = Plan({**document, "coverage": {"points": 3, "left_out": 0, "reasons": []}})
    assert coverage.short_words(complete) == "" and "nothing else was left out" in coverage.words(complete)


def test_a_plan_states_its_coverage_on_the_page_and_in_full(small_plan, document):
    row = document["coverage"]
    assert row["points"] > 0 and row["left_out"] == sum(each["count"] for each in row["reasons"]) > 0
    assert f"not {row['left_out']:,} left out" in one_page(small_plan)
    assert "rules that prove nothing" in render(small_plan, "table") and "rules that prove nothing" in render(
        small_plan, "md"
    )


@pytest.mark.parametrize("place", [("left_out",), ("reasons", 0, "count")])
def test_verify_adds_the_counts_up(document, place):
    changed = copy.deepcopy(document)
    node = changed["coverage"]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] += 1
    found = verified(Plan(changed))
    assert any(finding.path.startswith("coverage") for finding in found.findings)
    assert "coverage" in [part.path for part in found.unchecked] and planner.verify_plan(Plan(document)) == []
