"""Rules of a plan with `adapt` against observed figures: which have fired, and what counts as held and as to obtain."""

from __future__ import annotations

import copy
from datetime import date

import pytest

import planner
from planner.plan import Plan
from planner.spec.economics import OwnedSystems
from planner.studies.against.assumption import RATE, THROUGHPUT, Assumption
from planner.studies.replan.answer import KEEP, OBTAIN, SELL, actions, held_from_now, replan
from planner.studies.replan.held import aged
from planner.studies.replan.triggers import FIRED, MISSED, OVER, UNKNOWN, WAITS, held_against, needs, words

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


def test_rules_fire_at_their_threshold_until_their_date_and_those_without_one_on_it(plan):
    """The rules on a need end on 12 February, the one without on 11 April; a day later they are missed, or over where the need is too small."""
    seen = [Assumption(RATE, "chat", 100.0, 115.0, "request/s")]
    days = (date(2027, 2, 12), date(2027, 2, 13), date(2027, 4, 11), date(2027, 4, 12))
    found = [held_against(plan, day, seen) for day in days]
    assert [[row["state"] for row in rows] for rows in found] == [
        [FIRED, WAITS, WAITS, UNKNOWN], [MISSED, OVER, WAITS, UNKNOWN], [MISSED, OVER, FIRED, UNKNOWN], [MISSED, OVER, MISSED, UNKNOWN],
    ]  # fmt: skip
    early = found[0]
    assert [row["by"] for row in early] == ["2027-02-12", "2027-02-12", "2027-04-11", "2027-02-12"]
    assert held_against(Plan({}), date(2027, 3, 1), seen) == []


def test_what_was_signed_is_held_and_rules_are_listed(plan, tmp_path):
    file = tmp_path / "observed.csv"
    file.write_text("date,workload,requests_per_s\n2027-07-01,chat,10800\n", encoding="utf-8")
    found = replan(plan, [file], tmp_path / "own")
    (held,) = found.holdings
    assert held.count == plan["adaptation"]["sign"][0]["count"]
    assert [row["state"] for row in found.document["triggers"]] == [MISSED, OVER, MISSED, UNKNOWN]
    told = " ".join(found.words)
    assert "0 of 4 rules of the plan have fired" in told and "reached only after their date: 2" in told
    table = next(rows for heading, rows in found.sections if heading == "Rules of the plan")
    assert table[0]["observed"] == "1.20" and table[3]["observed"] == ""


def test_what_a_plan_to_adapt_obtains_is_what_it_signs(plan):
    assert [(row["do"], row["count"]) for row in actions(plan)] == [(OBTAIN, plan["adaptation"]["sign"][0]["count"])]


def test_it_says_why_a_rule_and_the_new_plan_differ(plan):
    """Two rules of 3 systems on demand are reached; the new plan obtains 5, or the 6 of the rules."""
    rows = held_against(plan, date(2027, 4, 11), [Assumption(RATE, "chat", 100.0, 115.0, "request/s")])
    done = {"do": OBTAIN, "system": WAY["system"], "how": "on_demand", "site": WAY["site"]}
    fired, missed, differs = words(rows, [{**done, "count": 5}])
    assert "1 of 4" in fired and "after their date: 1" in missed
    assert "say 6 DGX H100 (on demand) in us-virginia" in differs and "obtains 5 now" in differs
    assert len(words(rows, [{**done, "count": 6}])) == 2


def owning(plan: Plan, signed: int, kept: int) -> Plan:
    """Return the plan with two entries of owned systems, of which the first stage keeps some; the plan as predicted sells all but three."""
    document = copy.deepcopy(plan.document)
    row = {"system": "DGX H100", "site": "us-virginia", "moved": {}, "idle": 0, "worth": 0.0, "proceeds": 0.0}
    document["owned"] = [{**row, "path": "owned[0]", "count": 2, "kept": 2, "sold": 0}, {**row, "path": "owned[1]", "count": 3, "kept": 1, "sold": 2}]  # fmt: skip
    document["adaptation"]["sign"][0] |= {"count": signed, "how": "buy"}
    document["adaptation"]["kept"] = [{**WAY, "how": "buy", "offer": "owned[0]", "count": 2}, {**WAY, "how": "buy", "offer": "owned[1]", "count": kept}]  # fmt: skip
    return Plan(document)


def test_entries_of_one_kind_are_one_row_and_the_first_stage_counts(plan):
    """Systems owned in two entries are kept in one row; of three in the second, the first stage keeps two although the plan as predicted keeps one."""
    found = [(row["do"], row["how"], row["count"]) for row in actions(owning(plan, 5, 2))]
    assert found == [(KEEP, "buy", 4), (SELL, "buy", 1), (OBTAIN, "buy", 5)]
    entries = [{"system": "DGX H100", "region": "us-virginia", "count": count, "age": "1 year"} for count in (2, 3)]
    older = aged(entries, owning(plan, 5, 2), 30 * DAY_S, [OwnedSystems.model_validate(each) for each in entries])
    assert [each["count"] for each in older] == [2, 2]
    (row,) = held_from_now([owning(plan, 1, 2), owning(plan, 5, 3)])
    assert (row["planned"], row["observed"]) == (5, 10)


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
