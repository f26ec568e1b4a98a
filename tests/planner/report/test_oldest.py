"""The page names the oldest prices that carry a plan, and what its fleet costs at the highest known price."""

from __future__ import annotations

import pytest

import planner
from planner.messages import translated
from planner.plan import Plan
from planner.report.why.oldest import carrying, dearest, entries
from tests.planner.facts.base import CHAT, spec


def price(path, date, value, **more):
    return {"path": f"offers/{path}/price", "date": date, "value": value, "unit": "USD", **more}


def line(component, system, how, amount, site="us-virginia"):
    return {"component": component, "site": site, "system": system, "how": how, "amount": amount}


@pytest.fixture
def plan():
    """1,000 USD: servers bought at two dates, one rented in two regions, and a price behind 0.5 % of the cost."""
    return Plan({
        "totals": {"cost": 1000.0}, "spec": {"currency": "USD"},
        "cost_lines": [
            line("systems", "A", "buy", 300.0), line("maintenance", "A", "buy", 60.0), line("staff", "A", "buy", 40.0),
            line("rent", "B", "on_demand", 100.0), line("rent", "B", "on_demand", 200.0, "us-texas"), line("energy", "B", "on_demand", 45.0),
            line("systems", "C", "buy", 250.0), line("systems", "D", "buy", 5.0),
        ],
        "provenance": [
            price("A, buy", "2024-06", 10.0, low=8.0, high=15.0), price("C, buy", None, 10.0, high=99.0), price("D, buy", "2019", 10.0, high=99.0),
            price("B, on_demand, us-virginia, us-east-1", "2026-07-20", 1.0), price("B, on_demand, us-texas, us-south", "2025", 1.0, high=1.5),
        ],
    })  # fmt: skip


def test_the_oldest_prices_that_carry_the_cost_come_first(plan):
    """D carries too little; C has no date; staff and energy do not follow the price."""
    found = [(one.row["path"].split("/")[1], one.amount) for one in carrying(plan)]
    assert found == [
        ("A, buy", 360.0),
        ("B, on_demand, us-texas, us-south", 200.0),
        ("B, on_demand, us-virginia, us-east-1", 100.0),
    ]


def test_the_price_that_moves_most_is_told_at_its_high(plan):
    """A at 15 instead of 10: 360 x 0.5 = 180 more; B in Texas 100 more."""
    moved = dearest(carrying(plan))
    assert moved.row["path"] == "offers/A, buy/price" and moved.more_at_the_high() == pytest.approx(180.0)
    (first, price, share, told), (second, *_, dated) = entries(plan)
    assert (first, price, share) == ("A, buy", "10 USD", "36.0%") and second.startswith("B, on_demand, us-texas")
    assert "2024-06" in told and "15 USD" in told and "1,180 USD" in told
    assert "2025" in dated and "1,100 USD" in dated
    assert "2024-06" in translated(told, "zh") and translated(told, "zh") != told


def test_a_younger_price_is_told_where_its_high_costs_more(plan):
    plan.document["provenance"][-2]["high"] = 5.0
    (*_, last) = entries(plan)
    assert last[0].startswith("B, on_demand, us-virginia") and "oldest" not in last[-1] and "1,400 USD" in last[-1]


def test_nothing_is_said_of_prices_that_the_spec_states(plan):
    plan.document["provenance"] = []
    assert entries(plan) == []


def test_the_same_fleet_at_the_high_costs_what_the_line_says():
    """Only one way to serve: the plan solved again at the high price has the same fleet, and the cost that was told."""
    asked = spec(CHAT, offers=[{"system": "DGX H100", "how": "buy"}])
    plan = planner.solve(asked)
    moved = dearest(carrying(plan))
    dear = {moved.row["path"]: {"value": f"{moved.row['high']} USD", "note": "the highest known"}}
    again = planner.solve({**asked, "overrides": dear})
    counts = [[(row["system"], row["count"]) for row in one.document["fleet"]] for one in (plan, again)]
    assert counts[0] == counts[1]
    assert again.totals["cost"] == pytest.approx(plan.totals["cost"] + moved.more_at_the_high(), rel=1e-9)
