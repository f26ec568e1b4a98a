"""The first sentences of a page: value over the horizon, proof, what ended the search, what fewer parts cost."""

from __future__ import annotations

import copy

import pytest

from planner.messages import languages
from planner.plan import Plan
from planner.report.page import one_page
from planner.report.report import opening
from planner.report.why.verdict import opening_sentences

FEWER = {
    "within": 0.01, "deployments": 7, "kinds": 3, "sites": 2, "fewest": False, "ladder": [],
    "best": {"value": 993.0, "bound": 990.0, "gap": 0.003, "deployments": 16, "kinds": 3, "sites": 2},
}  # fmt: skip


@pytest.fixture
def changed(small_plan):
    """The small plan with another value, horizon, gap and end of its search."""

    def change(**sections) -> Plan:
        document = copy.deepcopy(small_plan.document)
        document["spec"]["horizon"] = {"years": 4}
        document["objective"] |= {"sense": "min", "value": 1000.0, "unit": "USD"}
        document["spec"].pop("objective", None)
        document.pop("simplicity", None)
        document.pop("confidence_gain", None)
        return Plan({**document, "status": "within_gap", "gap": 0.017, "bound_of": "full", **sections})

    return change


def test_the_value_its_time_and_the_proof(changed):
    assert opening_sentences(changed()) == [
        "Cost 1,000 USD over 4 years (present value), proven within 1.7% of the optimum"
    ]


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ("search", "the search ended first"),
        ("time", "time ran out first"),
        ("memory", "memory ran out first"),
        ("nodes", "the limit on nodes came first"),
    ],
)
def test_what_ended_the_search_short_of_the_asked_gap(changed, ended, words):
    (told,) = opening_sentences(changed(status="limit", solver={"asked_gap": 0.001, "ended_by": ended}))
    assert told.endswith(f", proven within 1.7% of the optimum; you asked for 0.1%, {words}")


def test_an_optimal_plan_and_one_without_a_bound(changed):
    assert opening_sentences(changed(status="optimal", gap=0.0))[0].endswith("(present value), proven optimal")
    assert opening_sentences(changed(gap=None))[0].endswith("(present value), no bound was proven")
    reduced = opening_sentences(changed(status="optimal", gap=0.0, bound_of="reduced"))
    assert reduced[0].endswith(", proven optimal on these typical days")


def test_fewer_parts_are_a_sentence_and_an_optimum_given_up_for_them_is_no_optimum(changed):
    plan = changed(simplicity=FEWER, status="optimal", gap=0.01)
    first, second = opening_sentences(plan)
    assert first.endswith(", proven within 1% of the optimum")
    assert second == "Simplified from 16 deployments to 7 for 0.705% more"
    assert f"{first}. {second}." in " ".join(one_page(plan).split())
    assert "16" in opening_sentences(plan, "zh")[1] and "4 年" in opening_sentences(plan, "zh")[0]


def test_carbon_and_throughput(changed):
    carbon = changed(objective={"sense": "min", "value": 2e6, "unit": "kg"})
    carbon.document["spec"]["objective"] = {"minimise": "carbon"}
    assert opening_sentences(carbon)[0].startswith("Carbon 2M kg over 4 years, ")
    most = changed(objective={"sense": "max", "value": 6.538, "unit": "x demand"})
    most.document["spec"]["objective"] = {"maximise": "throughput"}
    assert opening_sentences(most)[0] == "Throughput 6.538 x demand, proven within 1.7% of the optimum"


def test_a_step_that_costs_several_times_the_best_plan_is_stated_by_the_factor(changed):
    """993 USD for 16 deployments and 9,710 USD for 6: 9.78 times as much, 878 % more."""
    rung = {"deployments": 6, "value": 9710.0, "above": 9710.0 / 993.0 - 1.0, "estimated": True}
    plan = changed(simplicity={**FEWER, "ladder": [rung]})
    assert opening_sentences(plan)[1].endswith("; 6 for about 9.78 times as much")
    assert opening_sentences(plan, "zh")[1].endswith("6 个花费约达 9.78 倍")
    near = changed(simplicity={**FEWER, "ladder": [{**rung, "above": 1.9}]})
    assert opening_sentences(near)[1].endswith("; 6 for about 190% more")


@pytest.mark.parametrize("language", languages())
def test_a_plan_that_promises_nothing_has_no_sentence_of_it(changed, language):
    """A full stop alone stood there."""
    plan = changed()
    assert "adaptation" not in plan.document and "robust" not in plan.document["spec"]
    assert opening(plan, language).promise == ""
