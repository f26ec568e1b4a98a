"""Figures behind a plan by age; the cost at their low and high against the question solved again there."""

from __future__ import annotations

import json

import pytest

import planner
from planner.cli.main import main
from planner.cli.options import demo_document
from planner.exit_codes import INVALID
from planner.report.why.stale import as_rows, stale

BOUGHT = "offers/DGX H100, buy/price"


def spec():
    return {
        **demo_document(),
        "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
        "offers": [{"system": "DGX H100", "how": "buy"}],
        "solver": {"gap": 1e-9},
    }


@pytest.fixture(scope="module")
def plan():
    return planner.solve(spec())


@pytest.fixture(scope="module")
def figures(plan):
    return {each.row["path"]: each for each in stale(plan)}


@pytest.mark.parametrize(("bound", "price"), [("at_low", "300k USD"), ("at_high", "350k USD")])
def test_the_same_fleet_at_another_price_costs_what_the_solver_says(figures, bound, price):
    solved = planner.solve({**spec(), "offers": [{"system": "DGX H100", "how": "buy", "price": price}]})
    assert getattr(figures[BOUGHT], bound) == pytest.approx(solved.totals["cost"], rel=1e-9)


def test_electricity_is_split_between_energy_and_delivery(plan, monkeypatch):
    monkeypatch.setattr("planner.report.why.stale.CARRIES", 0.0)
    figures = {each.row["path"]: each for each in stale(plan)}
    energy = sum(line["amount"] for line in plan.document["cost_lines"] if line["component"] == "energy")
    behind = [each for path, each in figures.items() if "price_profile" in path or "electricity_delivery" in path]
    assert len(behind) == 2 and sum(each.amount for each in behind) == pytest.approx(energy)
    assert all(each.alone for each in behind)


def test_the_oldest_stand_first_and_figures_without_a_date_before_them(plan, figures):
    rows = as_rows(list(figures.values()), plan, "2027-12-01")
    ages = [row["age_months"] for row in rows]
    undated = [age for age in ages if age == ""]
    dated = [age for age in ages if age != ""]
    assert ages == [*undated, *dated] and dated == sorted(dated, reverse=True)
    assert all("months old" in row["note"] for row in rows if row["age_months"] != "" and row["age_months"] > 18)
    staff = [row for row in rows if row["figure"].startswith("defaults/staff")]
    assert len(staff) == 2 and all("together" in row["note"] and row["at_high_USD"] == "" for row in staff)


def test_the_command_lists_them_and_refuses_a_day_that_is_none(plan, tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan.document))
    assert main(["stale", str(path), "--date", "2026-11-27", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["figure"] for row in rows} >= {BOUGHT, "defaults/maintenance_fraction"}
    assert main(["stale", str(path), "--date", "yesterday"]) == INVALID
    assert "expected a date" in capsys.readouterr().err
    assert planner.stale(path)[0].row["path"] == rows[0]["figure"] + "/value"


def test_a_price_of_the_spec_is_listed_without_a_date():
    """All that is bought moves with the one price stated: systems, maintenance and spare parts."""
    plan = planner.solve({**spec(), "offers": [{"system": "DGX H100", "how": "buy", "price": "300k USD"}]})
    found = {each.row["path"]: each for each in stale(plan)}
    own = found["offers[0].price"]
    moved = sum(plan.costs[name] for name in ("systems", "maintenance", "spare parts"))
    assert own.amount == pytest.approx(moved) and own.share == pytest.approx(moved / plan.totals["cost"])
    (row,) = [row for row in as_rows(list(found.values()), plan, "2026-12-01") if row["figure"] == "offers[0].price"]
    assert (row["value"], row["date"], row["age_months"]) == ("300k USD", "", "") and "no date" in row["note"]
    assert BOUGHT not in found
