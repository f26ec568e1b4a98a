"""Systems rented by the hour, from a spec to a checked plan, against counts and amounts that are derived by hand."""

from __future__ import annotations

import copy

import pytest

import planner
from planner import Plan, verify_plan
from planner.report.page import one_page

DAY = [0.1] * 18 + [3.7] * 6
RENT, HELD = 20.0, 12.0  # per hour: on demand, and reserved
HOURS = 8760


def spec(offers=(), **changes):
    """One system by night and four for six hours of the day, with offers on demand at 20 and reserved at 12 per hour."""
    free = dict.fromkeys(("staff_per_system", "software_per_chip", "software_per_system"), "0 USD/year")
    return {
        "name": "hours",
        "horizon": {"start": "2027-01-01", "years": 1, "discount_rate": 0},
        "workloads": [
            {
                "name": "chat",
                "kind": "serving",
                "architecture": "Llama-3.1-70B",
                "demand": {"requests_per_s": 60, "profile": DAY},
                "lengths": {"input": 500, "output": 100},
                "origins": [{"region": "us-virginia", "share": 1}],
                "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "100 ms"}},
                "precision": ["fp8"],
                "disaggregation": "never",
            }
        ],
        "sites": [
            {
                "region": "us-virginia",
                "systems": ["DGX H100"],
                "fabrics": ["scale-up"],
                "electricity_price": "0 USD/kWh",
            }
        ],
        "offers": [
            {"system": "DGX H100", "how": "on_demand", "price": f"{RENT} USD/h", **dict(offers)},
            {"system": "DGX H100", "how": "reserved", "price": f"{HELD} USD/h"},
        ],
        "economics": {"maintenance": 0, "spare_parts": 0, "staff_per_power": "0 USD/kW-year", **free},
        "solver": {"gap": 0.0001},
        "operation": {"relay_cost": None},  # amounts below are of hours alone
        **changes,
    }


def solved(asked):
    plan = planner.solve(asked)
    assert verify_plan(plan) == []
    return plan


def on_demand(plan):
    (row,) = [row for row in plan.document["fleet"] if row["how"] == "on_demand"]
    return row


@pytest.fixture(scope="module")
def day_and_night():
    return solved(spec())


def test_hours_of_the_day_are_paid_alone(day_and_night):
    plan = day_and_night
    assert plan.document["totals"]["cost"] == pytest.approx(HELD * HOURS + 3 * 6 * 365 * RENT)
    assert sorted(on_demand(plan)["running"]) == [0] * 18 + [3] * 6
    assert on_demand(plan)["count"] == 3


def test_the_page_says_how_many_run(day_and_night):
    assert "0 to 3 by the hour" in one_page(day_and_night, 100)


def test_a_start_is_paid_for_each_time():
    plan = solved(spec({"start_time": "30 min"}))
    assert plan.document["totals"]["cost"] == pytest.approx(HELD * HOURS + 3 * 365 * RENT * (6 + 0.5))


def test_a_least_run_is_paid_to_its_end():
    plan = solved(spec({"least_run": "8 h"}))
    assert plan.document["totals"]["cost"] == pytest.approx(HELD * HOURS + 3 * 365 * RENT * 8)
    assert sorted(on_demand(plan)["running"]) == [0] * 16 + [3] * 8


def test_a_long_start_turns_rent_into_a_reservation():
    plan = solved(spec({"start_time": "12 h"}))
    assert plan.document["totals"]["cost"] == pytest.approx(4 * HELD * HOURS)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda row: row["running"].__setitem__(row["running"].index(3), 2), "systems"),
        (lambda row: row["running"].__setitem__(0, 9), "running"),
        (lambda row: row["running"].pop(), "running"),
        (lambda row: row.pop("running"), "rent"),
        (lambda row: row.__setitem__("count", 7), "holds 7 systems, but at most 3 run"),
    ],
)
def test_changed_hours_are_found(day_and_night, change, finding):
    document = copy.deepcopy(day_and_night.document)
    change(next(row for row in document["fleet"] if "running" in row))
    assert any(finding in str(found) for found in verify_plan(Plan(document)))


def test_a_stop_before_the_least_run_is_found():
    plan = solved(spec({"least_run": "8 h"}))
    document = copy.deepcopy(plan.document)
    row = next(row for row in document["fleet"] if "running" in row)
    last = max(t for t in range(24) if row["running"][t] == 3 and row["running"][(t + 1) % 24] == 0)
    row["running"][last] = 0
    assert any("stops before" in str(found) for found in verify_plan(Plan(document)))


def test_terms_by_the_hour_belong_to_rent_on_demand():
    asked = spec()
    asked["offers"][1]["least_run"] = "2 h"
    with pytest.raises(planner.SpecError, match="on_demand"):
        planner.solve(asked)


def test_what_is_not_stated_is_an_assumption_with_its_source(day_and_night):
    booked = {row["path"]: row["value"] for row in day_and_night.document["assumptions"]}
    assert (booked["offers[0].start_time"], booked["offers[0].least_run"]) == ("0 s", "60 s")


@pytest.fixture(scope="module")
def of_two_sites():
    """Two sites, each the only one for a workload, wanted at different hours; no more than four systems are rented at a time."""
    asked = spec({"supply": 4, "start_time": "0 s", "least_run": "1 s"})
    asked["offers"] = asked["offers"][:1]
    chat, site = asked["workloads"][0], asked["sites"][0]
    night = {
        **copy.deepcopy(chat),
        "name": "night",
        "demand": {"requests_per_s": 60, "profile": [3.7] * 6 + [0.0] * 18},
        "residency": ["us-texas"],
        "origins": [{"region": "us-texas", "share": 1}],
    }
    chat.update(demand={"requests_per_s": 60, "profile": [0.0] * 18 + [3.7] * 6}, residency=["us-virginia"])
    asked["workloads"].append(night)
    asked["sites"].append({**copy.deepcopy(site), "region": "us-texas"})
    return solved(asked)


def test_a_supply_is_shared_by_sites_that_want_it_at_different_times(of_two_sites):
    document = of_two_sites.document
    rows = document["fleet"]
    assert sorted(row["count"] for row in rows) == [4, 4]
    assert document["totals"]["cost"] == pytest.approx(2 * 4 * 6 * 365 * RENT)
    (limit,) = [row for row in document["limits"] if row["path"] == "offers[0].supply"]
    assert (limit["value"], limit["limit"]) == (4, 4)


def test_more_at_a_time_than_the_supply_is_found(of_two_sites):
    document = copy.deepcopy(of_two_sites.document)
    for row in document["fleet"]:
        row["running"][row["running"].index(0)] = 4
    first, second = (row["running"] for row in document["fleet"])
    assert max(map(sum, zip(first, second, strict=True))) == 8
    assert any("offers[0].supply" in str(found) for found in verify_plan(Plan(document)))


def test_a_question_of_few_systems_is_not_answered_worse_than_by_one_offer_alone():
    document = {
        "name": "two servers",
        "workloads": [
            {
                "name": "chat",
                "kind": "serving",
                "architecture": "Qwen3-32B",
                "demand": {"requests_per_s": 50},
                "lengths": {"input": 1000, "output": 300},
                "origins": [{"region": "us-virginia", "share": 1}],
                "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "40 ms"}},
            }
        ],
        "sites": [{"region": "us-virginia", "systems": ["DGX H100", "DGX H200"]}],
        "solver": {"time_limit": "120 s"},
    }
    plan = planner.solve(document)
    alone = planner.solve({**document, "offers": [{"system": "DGX H200", "how": "on_demand"}]})
    assert plan.value <= alone.value * (1 + 1e-9)
    assert plan.gap < 0.15, "whole systems and replicas count in every slot"
