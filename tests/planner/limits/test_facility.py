"""What halls and demands on the place limit: each in a plan, in an infeasibility that names it, and in its repair."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.plan import Plan
from planner.problem.facility import CANNOT_COOL, NOT_ASSURED, RACK_TOO_WEAK
from planner.report.outputs.sections import csv_tables
from planner.report.report import render
from planner.spec.document import edited
from planner.verify.plan import verify_plan

H100, GB200 = {"system": "DGX H100", "how": "buy"}, {"system": "GB200 NVL72", "how": "buy"}
RENT = {"system": "DGX H100", "how": "on_demand"}
API = {
    "name": "gateway", "region": "us-virginia", "output": "40 USD/1M tokens", "latency": {"ttft": {"p95": "500 ms"}, "tpot": {"p95": "30 ms"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def spec(tiny):
    """`spec({"sites[0].rack_positions": 2}, offers=[...])`: 400 requests/s to a 70B model, for which 15 or so DGX H100 are needed."""

    def make(edits=None, **changes):
        document = tiny(offers=copy.deepcopy([H100]), **changes)
        document["workloads"][0] |= {
            "architecture": "Llama 3.1 70B", "precision": ["fp8"], "demand": {"requests_per_s": 400}, "lengths": {"input": 1000, "output": 300},
        }  # fmt: skip
        document["sites"][0].pop("systems")
        return edited(document, tuple((edits or {}).items()))

    return make


@pytest.fixture(scope="module")
def solved(spec):
    """Plans by the edits that led to them, each checked."""
    known: dict[str, Plan] = {}

    def solve(edits=None, **changes):
        key = repr((edits, changes))
        if key not in known:
            known[key] = planner.solve(spec(edits, **changes))
            assert verify_plan(known[key]) == []
        return known[key]

    return solve


def systems(plan, how="buy"):
    return sum(row["count"] for row in plan["fleet"] if row["how"] == how)


def limit(plan, path):
    return next(row for row in plan["limits"] if row["path"] == path)


def conflict(plan):
    assert plan.status == "infeasible"
    return [row["path"] for row in plan["diagnosis"]["conflict"]], [row["words"] for row in plan["diagnosis"]["repair"]]


def test_racks_are_filled_by_room_and_by_power(solved):
    free = systems(solved())
    for power, share in (("45 kW", 4), ("25 kW", 2), ("12 kW", 1)):
        plan = solved({"sites[0].rack_positions": 40, "sites[0].rack_power": power})
        (row,) = plan["facility"]
        assert (row["systems"], row["racks_per_system"], row["racks"]) == (free, 1 / share, free / share)
        assert limit(plan, "sites[0].rack_positions")["value"] == free / share
        assert limit(plan, "sites[0].rack_power")["value"] == pytest.approx(share * 10_200)


def test_too_few_positions_leave_the_rest_to_the_provider(solved):
    plan = solved({"sites[0].rack_positions": 2, "offers": [H100, RENT]})
    assert systems(plan) == 8 and systems(plan, "on_demand") > 0
    row = limit(plan, "sites[0].rack_positions")
    assert row["slack"] == 0 and row["marginal_value_divisible"] < 0
    more = solved({"sites[0].rack_positions": 3, "offers": [H100, RENT]})
    assert more.objective["value"] < plan.objective["value"]
    text = render(plan, "table")
    assert "Racks of our own systems" in text and "One more of the rack positions in us-virginia is worth" in text
    assert csv_tables(plan)["facility"].splitlines()[0].startswith("site,system,systems,racks_per_system,racks")


def test_marginal_value_of_a_position_is_what_four_systems_save(solved):
    """Fleet free: systems come in fractions, so that a position more replaces four rented systems by bought ones.

    Whole systems leave a part of the twentieth idle, where fractions leave none. That part is bought, as rented systems pay no energy, and
    among twelve bought systems it saves more energy than among eight: half a per cent of the value, and less than the energy of one system.
    """
    plan = solved({"sites[0].rack_positions": 2, "offers": [H100, RENT]})
    row = limit(plan, "sites[0].rack_positions")
    more = solved({"sites[0].rack_positions": 3, "offers": [H100, RENT]})
    saved = plan.objective["value"] - more.objective["value"]
    energy_of_one = (more["costs"]["energy"] - plan["costs"]["energy"]) / 4
    assert systems(plan) + systems(plan, "on_demand") == systems(more) + systems(more, "on_demand") == 20
    assert -row["marginal_value_divisible"] == pytest.approx(saved, rel=1e-2)
    assert abs(-row["marginal_value_divisible"] - saved) < energy_of_one


def test_positions_that_bar_every_plan_are_named_and_repaired(solved):
    paths, repair = conflict(solved({"sites[0].rack_positions": 2}))
    assert paths == ["sites[0].rack_positions"]
    (words,) = repair
    enough = int(words.split(" to ")[1].split()[0])
    assert solved({"sites[0].rack_positions": enough}).has_answer
    assert not solved({"sites[0].rack_positions": enough - 1}).has_answer


def test_a_hall_without_liquid_cooling_is_not_offered_racks_that_need_it(solved):
    paths, repair = conflict(plan := solved({"sites[0].cooling": ["air"], "offers": [GB200]}))
    assert plan["dropped"]["(systems)"][CANNOT_COOL] == 1
    assert paths == ["sites[0].cooling"] and repair == ["add liquid to sites[0].cooling"]
    assert (
        plan["diagnosis"]["conflict"][0]["words"] == "us-virginia cools by air only, which GB200 NVL72 cannot do with"
    )
    assert plan["diagnosis"]["repair_checked"]


def test_a_rack_that_needs_more_power_than_the_site_gives_is_not_offered(solved):
    paths, repair = conflict(plan := solved({"sites[0].rack_power": "100 kW", "offers": [GB200]}))
    assert plan["dropped"]["(systems)"][RACK_TOO_WEAK] == 1
    assert paths == ["sites[0].rack_power"] and repair == ["set sites[0].rack_power to 120 kW instead of 100 kW"]


def test_a_weaker_rack_may_be_repaired_by_more_power_or_more_positions(solved):
    paths, _ = conflict(solved({"sites[0].rack_power": "12 kW", "sites[0].rack_positions": 5}))
    assert sorted(paths) == ["sites[0].rack_positions", "sites[0].rack_power"]


def test_what_is_rented_stands_in_no_hall_of_ours(solved):
    plan = solved(
        {"sites[0].rack_positions": 0, "sites[0].rack_power": "1 kW", "sites[0].cooling": ["liquid"], "offers": [RENT]}
    )
    assert systems(plan, "on_demand") > 0 and plan["facility"] == []


@pytest.mark.parametrize(("key", "demanded"), [("sole_tenant", True), ("audit", ["SOC 2"])])
def test_a_demand_on_the_place_is_met_by_the_site_for_what_is_bought_and_by_the_offer_for_what_is_rented(
    solved, key, demanded
):
    both = {"offers": [H100, RENT]}
    wanted = {f"workloads[0].{key}": demanded}
    paths, _ = conflict(plan := solved({**both, **wanted}))
    assert paths == [f"workloads[0].{key}"] and plan["dropped"]["chat"][NOT_ASSURED] >= 2
    ours = solved({**both, **wanted, f"sites[0].{key}": demanded})
    assert systems(ours) and not systems(ours, "on_demand")
    rented = solved({"offers": [H100, {**RENT, key: demanded}], **wanted})
    assert systems(rented, "on_demand") and not systems(rented)


def test_all_audit_classes_must_be_held_and_the_repair_takes_off_those_that_are_not(solved):
    paths, repair = conflict(solved({"workloads[0].audit": ["SOC 2", "C5"], "sites[0].audit": ["SOC 2", "ISO 27001"]}))
    assert paths == ["workloads[0].audit"] and repair == ["take C5 off workloads[0].audit"]


def test_an_api_serves_no_workload_that_demands_more_than_it_assures(solved):
    wanted = {"workloads[0].audit": ["SOC 2"], "offers": [H100]}
    paths, _ = conflict(solved(wanted, apis=[API]))
    assert paths == ["workloads[0].audit"]
    bought = solved(wanted, apis=[{**API, "audit": ["SOC 2"]}])
    assert [row["site"] for row in bought["routes"]] and {row["site"] for row in bought["routes"]} == {"gateway"}
