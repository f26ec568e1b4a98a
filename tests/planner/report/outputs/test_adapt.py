"""The fan of needs on the page, in tables and as a chart, from a section written by hand."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from planner.dashboard import sources
from planner.plan import Plan
from planner.report.outputs import adapt
from planner.report.outputs.sections import sections_of
from planner.report.page import one_page
from planner.report.phases import window_dates

DAY_S = 86400.0
WAY = {
    "site": "here",
    "system": "DGX H100",
    "how": "on_demand",
    "offer": "offers[1]",
    "topology": "scale-up",
    "network_size": None,
}


def adapting(plan: Plan) -> Plan:
    """Return a plan with a section `adaptation`."""
    document = copy.deepcopy(dict(plan.document))
    document["adaptation"] = {
        "promise": 0.8, "risk": "expected", "dates": [], "sign": [{**WAY, "how": "buy", "count": 11, "from_s": 0.0}], "open": [],
        "needs": [
            {"from_s": 0.0, "low": 40.0, "typical": 61.0, "high": 93.0, "signed": 88.0},
            {"from_s": 42 * DAY_S, "low": 50.0, "typical": 72.0, "high": 1240.0, "signed": 88.0},
        ],
        "triggers": [{**WAY, "decided_s": 42 * DAY_S, "workload": "chat", "above": 1.18, "count": 3.0, "share": 0.25, "agrees": 0.97}],
        "leaves": 15, "slots": 10, "tree_cost": 1.0, "tree_kept": 0.8, "unserved_factor": 3.0,
        "fresh": {"scenarios": 1000, "seed": 1, "kept": 0.88, "cost": 3e6, "cost_error": 1.0, "p10": 2e6, "p90": 4e6}, "fixed": None,
        "values": dict.fromkeys(("adapting", "stochastic", "perfect", "performance", "demand")), "gap": None, "other_cost": 0.0, "plain_cost": 2e6,
    }  # fmt: skip
    return Plan(document)


@pytest.fixture
def adapted() -> Plan:
    """A stored plan with a section `adaptation`."""
    return adapting(sources.stored_plan())


def test_the_page_tells_what_to_sign_from_the_plan_as_predicted(adapted):
    page = one_page(adapted)
    assert page.index("Sign today") < page.index("Plan as predicted, not to be signed")
    assert "What to buy or rent" not in page
    assert "What to buy or rent" in one_page(sources.stored_plan())
    headings = [each.heading for each in sections_of(adapted)]
    assert "Plan as predicted, not to be signed" in headings and "What to obtain" not in headings


def test_systems_that_go_back_are_kept_open(adapted):
    document = copy.deepcopy(adapted.document)
    row = {**WAY, "how": "reserved", "decided_s": 42 * DAY_S, "share": 0.3, "mean": 2.0, "high": 4.0}
    document["adaptation"]["open"] = [{**row, "returns": True}, {**row, "returns": False}]
    table = next(each for each in sections_of(Plan(document)) if each.heading == "Keep open")
    assert [each["how"] for each in table.rows] == ["give back", "reserved"]


def test_the_page_says_what_is_kept_open_and_until_when(adapted):
    document = copy.deepcopy(adapted.document)
    row = {**WAY, "share": 0.3, "mean": 2.0, "high": 4.0}
    document["adaptation"]["open"] = [{**row, "decided_s": None}]
    assert "Options to keep open: 1, to be used at any time" in one_page(Plan(document))
    document["adaptation"]["open"] += [{**row, "decided_s": 365 * DAY_S}, {**row, "decided_s": 42 * DAY_S}]
    page = one_page(Plan(document))
    first = (window_dates(adapted)[0] + timedelta(days=42)).isoformat()
    assert f"Options to keep open: 3, the first to be decided by {first}" in page
    assert len(page.splitlines()) <= 58
    assert "Options to keep open" not in one_page(adapted)


def test_the_page_shows_needs_and_rules(adapted):
    page = one_page(adapted)
    assert "Chips needed, and signed" in page and "1,240" in page
    assert "chat needs 1.18 times the predicted systems or more: 3 DGX H100" in page
    assert "所需芯片与已签芯片" in one_page(adapted, language="zh")
    assert adapt.blocks(sources.stored_plan()) == []


def test_every_output_has_the_table_of_needs(adapted):
    table = next(each for each in sections_of(adapted) if each.heading == "Chips needed, and signed")
    assert [row["signed or there already"] for row in table.rows] == ["88", "88"]
    assert [row["typical"] for row in table.rows] == ["61", "72"]
    assert "one of ten" in table.remark
    assert next(each for each in sections_of(adapted, "zh") if each.heading == "所需芯片与已签芯片").rows


def test_a_drawn_range_is_in_proportion():
    """31 chips fill 32 columns: one column is one chip."""
    assert adapt.drawn({"from_s": 0, "low": 3, "typical": 5, "high": 31, "signed": 5}, 31) == "···──ø" + "─" * 26
    assert adapt.drawn({"from_s": 0, "low": 0, "typical": 0, "high": 0, "signed": 0}, 0) == "ø"


def test_the_fan_chart_ends_with_the_horizon(adapted):
    pytest.importorskip("altair")
    from planner.report.charts.needs import fan_chart, need_rows
    from planner.report.locale import Words

    rows = need_rows(adapted)
    assert [row["high"] for row in rows] == [93.0, 1240.0, 1240.0]
    assert rows[-1]["date"] == window_dates(adapted)[-1].isoformat()
    chart = fan_chart(adapted, Words("zh"))
    assert chart is not None and "1,240" in chart.to_dict()["description"]
    assert fan_chart(sources.stored_plan(), Words()) is None


def test_a_worth_within_the_gap_of_the_programs_says_so(adapted):
    document = copy.deepcopy(adapted.document)
    document["adaptation"] |= {"tree_cost": 3e6}
    document["adaptation"]["values"] |= {"perfect": 2e5, "performance": -1e4, "demand": 0.0}
    table = next(each for each in sections_of(Plan(document)) if each.heading == "What adapting and knowing are worth")
    told = {row["what"]: row["amount"] for row in table.rows}
    assert told["worth of knowing everything now"] == "200,000"
    assert told["worth of knowing performance now"].startswith("-10,000, not distinguishable from 0")
    assert told["worth of knowing demand now"].startswith("0, not distinguishable from 0")


def test_a_range_stands_on_one_line_of_the_page(adapted):
    lines = one_page(adapted).split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("Chips needed, and signed"))
    assert all(len(line) <= 100 for line in lines)
    assert all(line[:4].isdigit() for line in lines[first + 1 : first + 3])


def test_the_worth_of_knowing_prices_and_deliveries_is_told_where_they_are_uncertain(adapted):
    document = copy.deepcopy(adapted.document)
    for more in ({}, {"prices": 41_000.0, "deliveries": 52_000.0}):
        document["adaptation"]["values"] |= more
        table = next(
            each for each in sections_of(Plan(document)) if each.heading == "What adapting and knowing are worth"
        )
        told = {row["what"]: row["amount"] for row in table.rows}
        named = ("worth of knowing prices now", "worth of knowing deliveries now")
        assert [told[name] for name in named if name in told] == (["41,000", "52,000"] if more else [])
