"""Systems that are owned already: kept, moved or sold by what each costs, with network and building at home paid for."""

from __future__ import annotations

import copy
import itertools
import json

import pytest

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.report import render
from planner.verify.plan import verify_plan

RATE, YEARS = 0.08, 3
CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-70B", "demand": {"requests_per_s": 120.0},
    "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"],
}  # fmt: skip
CURVE = [{"age": "2 years", "fraction": 0.5}, {"age": "5 years", "fraction": 0.2}, {"age": "9 years", "fraction": 0.0}]
OWNED = {"system": "DGX H100", "region": "us-virginia", "count": 40, "age": "3 years", "price": "300000 USD"}


def question(**changes):
    owned = {**OWNED, **changes.pop("owned", {})}
    return {
        "name": "owned",
        "horizon": {"years": YEARS, "discount_rate": RATE},
        "workloads": [copy.deepcopy(CHAT)],
        "sites": [{"region": "us-virginia"}, {"region": "us-texas"}],
        "owned": [owned],
        "offers": [{"system": "DGX B200", "how": "buy"}],
        "economics": {"residual": CURVE},
        "simplicity": {"within": 0},
        "solver": {"gap": 1e-4},
        **changes,
    }


def solved(**changes):
    plan = planner.solve(question(**changes))
    assert plan.has_answer  # and was verified
    return plan


def left_at(years):
    """Residual value of CURVE by hand."""
    points = [(0, 1.0), (2, 0.5), (5, 0.2), (9, 0.0)]
    for (a, f), (b, g) in itertools.pairwise(points):
        if years <= b:
            return f + (g - f) * (years - a) / (b - a)
    return 0.0


@pytest.mark.parametrize("age", [0.5, 1, 3, 5, 8, 12])
def test_what_is_kept_costs_what_it_would_sell_for_less_what_it_sells_for_later(age):
    plan = solved(owned={"age": f"{age} years"}, offers=[])
    (row,) = plan["owned"]
    kept = row["kept"]
    assert kept > 0 and row["moved"] == {} and row["sold" if left_at(age) else "idle"] == OWNED["count"] - kept
    worth = 300_000 * left_at(age)
    assert row["worth"] == pytest.approx(worth)
    expected = kept * (worth - 300_000 * left_at(age + YEARS) / (1 + RATE) ** YEARS)
    assert plan["costs"]["systems"] == pytest.approx(expected, abs=1e-6)
    assert plan["costs"]["fabric"] == plan["costs"]["facility"] == 0
    assert row["proceeds"] == pytest.approx((OWNED["count"] - kept) * worth)


def test_a_stated_resale_value_counts_in_place_of_the_curve():
    plan = solved(owned={"resale": "9000 USD", "book_value": "10000 USD"}, offers=[])
    (row,) = plan["owned"]
    assert row["worth"] == pytest.approx(9_000) and row["gain"] == pytest.approx(-1_000 * row["sold"])


def test_the_plan_is_no_dearer_than_with_either_alone():
    mixed = solved().objective["value"]
    alone, without = (
        solved(offers=[]).objective["value"],
        solved(owned={"count": 1, "price": "1 USD"}).objective["value"],
    )
    assert mixed <= min(alone, without) * (1 + 3e-4)


def test_old_systems_are_sold_where_new_ones_do_the_work_for_less():
    plan = solved(owned={"resale": "290000 USD"}, economics={"residual": [{"age": "1 year", "fraction": 0.9}]})
    (row,) = plan["owned"]
    assert row["kept"] < OWNED["count"] and row["sold"] > 0
    dear = solved(
        owned={"resale": "290000 USD", "age": "8 years"},
        offers=[{"system": "DGX B200", "how": "buy", "price": "250000 USD"}],
    )
    assert dear["owned"][0]["kept"] == 0 and dear["owned"][0]["sold"] == OWNED["count"]


def test_they_move_where_the_work_may_only_run_elsewhere():
    sites = [{"region": "us-virginia", "power": "1 W"}, {"region": "us-texas"}]
    plan = solved(sites=sites, owned={"move_cost": 0.05}, offers=[])
    (row,) = plan["owned"]
    (moved,) = row["moved"].items()
    assert row["kept"] == 0 and moved[0] == "us-texas"
    worth = 300_000 * (left_at(3) - left_at(6) / (1 + RATE) ** YEARS + 0.05)
    assert plan["costs"]["systems"] == pytest.approx(moved[1] * worth)
    assert plan["costs"]["facility"] > 0
    stuck = planner.solve(question(sites=sites, owned={"movable": False}, offers=[]))
    assert stuck.status == "infeasible"


def test_what_moves_runs_after_the_move_and_loses_worth_on_the_way():
    sites = [{"region": "us-virginia", "power": "1 W"}, {"region": "us-texas"}]
    rented = {"system": "DGX H100", "how": "on_demand"}
    plan = solved(sites=sites, owned={"move_time": "60 d"}, offers=[rented])
    (row,) = plan["owned"]
    (moved,) = row["moved"].values()
    kept = 300_000 * (left_at(3) - left_at(6) / (1 + RATE) ** YEARS + 0.03)
    assert plan["costs"]["systems"] == pytest.approx(moved * kept)
    here = next(row for row in plan["fleet"] if row["how"] == "buy")
    assert here["windows"] == [1, 1]
    assert {held["window"] for held in plan["fleet"] if held["how"] == "on_demand"} == {0}
    stuck = planner.solve(question(sites=sites, owned={"move_time": "60 d"}, offers=[]))
    assert stuck.status == "infeasible"


def test_what_is_leased_goes_back_and_brings_nothing():
    """Its rent is due anyway, so that it is used to the end of its lease; then what is rented takes its place."""
    rented = {"system": "DGX H200", "how": "on_demand"}
    plan = solved(owned={"lease_end": "1 year"}, offers=[rented])
    (row,) = plan["owned"]
    assert row["worth"] == row["proceeds"] == row["sold"] == 0 and row["kept"] > 0
    leased = next(held for held in plan["fleet"] if held["offer"] == "owned[0]")
    assert leased["windows"] == [0, 0]
    assert [held["window"] for held in plan["fleet"] if held["how"] == "on_demand"] == [1]
    assert plan["costs"]["systems"] == 0
    with pytest.raises(SpecError, match="cannot be sold"):
        planner.solve(question(owned={"lease_end": "1 year", "resale": "1000 USD"}))


def test_capital_counts_what_is_paid_and_not_what_is_there():
    plan = solved(offers=[], limits={"capital": "1 USD"})
    (row,) = (row for row in plan["limits"] if row["path"] == "limits.capital")
    assert row["value"] == 0


def test_verify_counts_the_table_again():
    plan = solved(offers=[])
    for name in ("kept", "sold", "proceeds", "worth"):
        wrong = json.loads(plan.to_json())
        wrong["owned"][0][name] += 1
        assert any(finding.path.startswith("owned") for finding in verify_plan(Plan(wrong))), name


def test_the_page_says_what_becomes_of_them():
    words = " ".join(render(solved(offers=[]), "table").split())
    assert "DGX H100 in us-virginia" in words and "sold" in words


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"region": "us-oregon"}, "region"),
        ({"topology": "torus"}, "topology"),
        ({"system": "DGX H1000"}, "system"),
        ({"count": 0}, "count"),
    ],
)
def test_wrong_entries_are_named(entry, place):
    with pytest.raises(SpecError, match=rf"owned\[0\]\.{place}"):
        planner.solve(question(owned=entry))
