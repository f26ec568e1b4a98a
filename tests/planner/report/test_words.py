"""No sentence or column of a printed plan says what is false: prices, worths, dates, earnings."""

from __future__ import annotations

import copy
import re

import pytest

import planner
from planner.dashboard.figures import of_limit, worth
from planner.plan import Plan
from planner.report.fleet import fleet_row
from planner.report.limits import limit_row
from planner.report.marginal_values import valued_limits
from planner.report.page import one_page
from planner.report.report import render
from planner.report.words import whole

SHARE = {
    "name": "largest share of chat in one zone", "path": "workloads[0].spread.largest_share", "unit": "1", "value": 0.4, "limit": 0.4, "slack": 0.0,
    "marginal_value": -2e6, "marginal_value_divisible": -3e6, "marginal_unit": "USD/1", "note": "",
}  # fmt: skip


def block(page: str, heading: str) -> str:
    return page[page.index(f"\n{heading}") :].partition("\n\n")[0]


@pytest.fixture(scope="module")
def windowed(tiny):
    document = tiny()
    job = {"kind": "training", "architecture": "Llama-3.2-1B", "tokens": "20B", "start": "59 d", "deadline": "120 d"}
    document["workloads"] = [{"name": "tune", **job}]
    document["offers"] = [{"system": "DGX H100", "how": "on_demand", "price": "25 USD/h"}]
    return planner.solve(document)


def test_the_price_of_tokens_times_their_number_is_the_cost_or_the_column_says_levelised(tiny):
    """Tokens of later years count for less in a levelised cost: 4 years at 8 % make it dearer than cost over tokens."""
    plan = planner.solve(tiny(horizon={"years": 4, "discount_rate": 0.08}))
    (row,) = plan["workloads"]
    assert row["cost_per_million_tokens"] > 1.05 * row["cost"] / row["tokens"] * 1e6
    assert "USD" in block(one_page(plan), "Levelised cost per 1M tokens").splitlines()[1]
    assert "levelised USD per million" in render(plan, "table")


def test_more_of_a_share_is_worth_so_much_per_percentage_point(small_plan):
    plan = Plan({**small_plan.document, "limits": [SHARE]})
    (valued,) = valued_limits(plan)
    assert valued.words == "One percentage point more of the largest share of chat in one zone"
    assert valued.gain == pytest.approx(30_000.0)
    row = limit_row(SHARE)
    assert (row["used"], row["worth_fleet_free"]) == ("40.0%", "-30,000 USD per percentage point")
    assert worth(-3e6, SHARE) == "-30,000 USD/percentage point" and of_limit(0.4, SHARE) == "40.0%"
    assert "1M 1" not in render(plan, "table") + one_page(plan)


@pytest.mark.parametrize(("unit", "per"), [("site", "site"), ("kind", "kind"), ("line", "line"), ("rack", "rack")])
def test_more_of_a_count_is_worth_so_much_for_each(unit, per):
    row = {**SHARE, "unit": unit, "marginal_unit": f"USD/{unit}", "limit": 2.0, "value": 2.0}
    assert limit_row(row)["worth_fleet_held"] == f"-2M USD per {per}"


def test_windows_of_a_spec_without_phases_are_dates(windowed):
    """59 and 120 days after 2027-01-01 are 2027-03-01 and 2027-05-01."""
    page = one_page(windowed)
    assert "2027-03-01 to 2027-05-01: us-virginia" in page and "phase" not in page
    assert {fleet_row(windowed, row)["when"] for row in windowed["fleet"]} == {"2027-03-01 to 2027-05-01"}
    assert "on on demand" not in page and "on on-demand DGX H100" in page


def test_a_window_at_an_end_of_the_horizon_has_one_date(windowed):
    rows = [{**windowed["fleet"][0], "window": phase} for phase in (0, 2)]
    assert [fleet_row(windowed, row)["when"] for row in rows] == ["until 2027-03-01", "from 2027-05-01"]


def test_what_is_sold_is_shown_with_its_margin_the_largest_loss_first(small_plan):
    document = copy.deepcopy(dict(small_plan.document))
    chat = document["workloads"][0]
    rows = [("gains", 3.0), ("loses", 0.5), ("free", None)]
    document["workloads"] += [
        {**chat, "name": name, **({} if times is None else {"revenue": times * chat["cost"], "margin": (times - 1) * chat["cost"]})}
        for name, times in rows
    ]  # fmt: skip
    lines = block(one_page(Plan(document)), "What it earns").strip().split("\n")
    cells = [re.split(r" {2,}", line.strip()) for line in lines[1:]]
    assert [row[0] for row in cells] == ["loses", "gains"]
    assert cells[0][3:] == [whole(-0.5 * chat["cost"]), "-100.0%", "a loss"] and cells[1][4:] == [
        "66.7%",
        "a profit",
    ]
    assert "What it earns" not in one_page(small_plan)


def test_status_words_and_gap_agree(small_plan):
    """Every page states the gap; what was asked for stands on the page of a plan that missed it, and on no other."""
    for gap, status in ((0.004, "within_gap"), (0.2, "limit")):
        document = {**small_plan.document, "status": status, "gap": gap}
        document.pop("simplicity", None)
        document["solver"] = {
            **document["solver"],
            "asked_gap": 0.01,
            "ended_by": "time" if status == "limit" else "gap",
        }
        page = " ".join(one_page(Plan(document)).split())
        assert f"within {100 * gap:g}% of the optimum" in page
        assert ("you asked for 1%" in page) == (status == "limit")
