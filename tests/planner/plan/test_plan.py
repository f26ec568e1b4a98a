"""A plan gives its totals, value and tables by name; those of a plan without an answer raise."""

import copy

import pytest

from planner.plan import Plan


@pytest.fixture(scope="module")
def without_answer(small_plan) -> Plan:
    document = copy.deepcopy(small_plan.document)
    return Plan.of(
        {**document, "status": "infeasible", "totals": None, "objective": {**document["objective"], "value": None}}
    )


def test_totals_and_value_are_those_of_the_document(small_plan):
    assert small_plan.totals == small_plan.document["totals"] and small_plan.value == small_plan["objective"]["value"]
    assert small_plan.total("chips") == small_plan.document["totals"]["chips"] > 0


def test_a_plan_without_an_answer_has_neither_totals_nor_a_value(without_answer):
    for read in (lambda: without_answer.totals, lambda: without_answer.value):
        with pytest.raises(ValueError, match=r"no answer.*infeasible"):
            read()
    assert without_answer.total("cost") is None and not without_answer.has_answer


def test_a_table_that_a_plan_lacks_has_no_rows(small_plan):
    assert small_plan.table("fleet") == small_plan.document["fleet"] != []
    assert "owned" not in small_plan.document and list(small_plan.table("owned")) == []
