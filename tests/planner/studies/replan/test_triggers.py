"""Rules of a plan with `adapt` against observed figures: which have fired, and what counts as held and as to obtain."""

from __future__ import annotations

import copy
from datetime import date

import pytest

import planner
from planner.plan import Plan
from planner.studies.against.assumption import RATE, THROUGHPUT, Assumption
from planner.studies.replan.answer import OBTAIN, actions, replan
from planner.studies.replan.triggers import FIRED, UNKNOWN, WAITS, held_against, needs

DAY_S = 86400.0
WAY = {
    "site": "us-virginia",
    "system": "DGX H100",
    "how": "on_demand",
    "offer": "offers[1]",
    "topology": "scale-up",
    "network_size": None,
}


def rule(above, workload="chat", day=42):
    return {
        **WAY,
        "decided_s": day * DAY_S,
        "workload": workload,
        "above": above,
        "count": 3.0,
        "share": 0.2,
        "agrees": 1.0,
    }


def test_the_need_is_demand_over_the_slowest_throughput():
    seen = [
        Assumption(RATE, "chat", 100.0, 120.0, "request/s"),
        Assumption(THROUGHPUT, "chat, DGX H100", 50.0, 40.0, "token/s"),
        Assumption(THROUGHPUT, "chat, DGX B200", 50.0, 45.0, "token/s"),
        Assumption(RATE, "code", 10.0, 5.0, "request/s"),
    ]
    assert needs(seen) == pytest.approx({"chat": 1.5, "code": 0.5})


@pytest.fixture(scope="module")
def plan(tiny) -> Plan:
    """A plan of bought systems with a section `adaptation` written by hand, which signs two systems more than the plan as predicted has."""
    spec = tiny(horizon={"start": "2027-01-01", "years": 2}, offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX H100", "how": "on_demand", "price": "98 USD/h"}])  # fmt: skip
    spec["workloads"][0]["demand"]["requests_per_s"] = 9000
    document = copy.deepcopy(planner.solve(spec).document)
    (row,) = document["fleet"]
    signed = {**{key: row[key] for key in WAY}, "count": row["count"] + 2, "from_s": 0.0}
    document["adaptation"] = {
        "sign": [signed],
        "triggers": [rule(1.15), rule(1.4), rule(0.0, None, 100), rule(2.0, "code")],
    }
    return Plan(document)


def test_rules_fire_at_their_threshold_and_those_without_one_on_their_date(plan):
    seen = [Assumption(RATE, "chat", 100.0, 115.0, "request/s")]
    early, late = (held_against(plan, day, seen) for day in (date(2027, 3, 1), date(2027, 5, 1)))
    assert [row["state"] for row in early] == [FIRED, WAITS, WAITS, UNKNOWN]
    assert [row["state"] for row in late] == [FIRED, WAITS, FIRED, UNKNOWN]
    assert [row["by"] for row in early] == ["2027-02-12", "2027-02-12", "2027-04-11", "2027-02-12"]
    assert held_against(Plan({}), date(2027, 3, 1), seen) == []


def test_what_was_signed_is_held_and_rules_are_listed(plan, tmp_path):
    file = tmp_path / "observed.csv"
    file.write_text("date,workload,requests_per_s\n2027-07-01,chat,10800\n", encoding="utf-8")
    found = replan(plan, [file], tmp_path / "own")
    (held,) = found.holdings
    assert held.count == plan["adaptation"]["sign"][0]["count"]
    assert [row["state"] for row in found.document["triggers"]] == [FIRED, WAITS, FIRED, UNKNOWN]
    assert any("2 of 4 rules of the plan have fired" in words for words in found.words)
    table = next(rows for heading, rows in found.sections if heading == "Rules of the plan")
    assert table[0]["observed"] == "1.20" and table[3]["observed"] == ""


def test_what_a_plan_to_adapt_obtains_is_what_it_signs(plan):
    assert [(row["do"], row["count"]) for row in actions(plan)] == [(OBTAIN, plan["adaptation"]["sign"][0]["count"])]


def test_dates_of_decision_that_have_passed_are_dropped(plan):
    from planner.solving.variants import resolved
    from planner.studies.replan.rebased import Observed, rebased

    dates = [{"at": "6 weeks"}, {"at": "2027-10-01", "knows": ["performance", "demand"]}]
    spec = {**plan["spec"], "adapt": {"promise": 0.8, "dates": dates}}
    problem = resolved(spec)
    document = rebased(spec, plan, problem, [], Observed(date(2027, 7, 1), rates=["chat"])).document
    assert document["adapt"]["dates"] == [{"at": "2027-10-01", "knows": ["performance", "demand"]}]
    document = rebased(spec, plan, problem, [], Observed(date(2027, 11, 1), rates=["chat"])).document
    assert document["adapt"] == {"promise": 0.8}
