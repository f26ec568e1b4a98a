"""Plans with a price of loads: two workloads whose loads take turns on the same servers, and the page, the books and the checks of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from planner.errors import SpecError
from planner.report.page import one_page
from planner.verify.plan import verify_plan
from tests.plans.one_server import question, solved

DAY, NIGHT = [1.9] * 12 + [0.1] * 12, [0.1] * 12 + [1.9] * 12


def taking_turns(**operation: Any) -> dict[str, Any]:
    """Two services of one kind, one by day and one by night, of which each fills three servers at its peak."""
    asked = question(solver={"gap": 1e-4})
    (first,) = asked["workloads"]
    first |= {"architecture": "Llama-3.1-70B", "demand": {"requests_per_s": 60, "profile": DAY}}
    second = {**copy.deepcopy(first), "name": "reports", "demand": {"requests_per_s": 60, "profile": NIGHT}}
    return {**asked, "workloads": [first, second], **({"operation": operation} if operation else {})}


def loads_a_day(plan: Any) -> float:
    """Add up the systems that load weights in a day."""
    held: dict[str, dict[int, list[int]]] = {}
    for row in plan["schedule"]:
        for name, workers in row["resident"].items():
            held.setdefault(name, {})[row["slot"]] = workers
    found = 0.0
    for row in plan["deployments"]:
        here, none = held[row["point"]], [0] * len(row["pools"])
        for i, pool in enumerate(row["pools"]):
            rises = (max(0, here.get(t, none)[i] - here.get((t - 1) % 24, none)[i]) for t in range(24))
            found += sum(rises) * pool["systems_per_worker"]
    return found


KEY = ("system", "offer", "how", "topology", "network_size")


def loads_of_days(plan: Any) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Count, by (first slot of a day, site, kind of systems), the systems that load weights in the day and those that are held in it.

    Read from the workers that the schedule keeps resident. Days are of 24 slots, and each repeats itself; systems that are paid for by the hour
    are left out, and systems differ in kind where their offers or networks do.
    """
    window = {row["slot"]: row["window"] for row in plan["schedule"]}
    assert len(window) % 24 == 0
    fleet = [((row["site"], *(row.get(key) for key in KEY)), row) for row in plan["fleet"]]
    by_hour = {kind for kind, row in fleet if "running" in row}
    points = {point["id"]: point for workload in plan["workloads"] for point in workload["points"]}
    residents: dict[str, dict[int, list[int]]] = {}
    for row in plan["schedule"]:
        for name, workers in row.get("resident", {}).items():
            residents.setdefault(name, {})[row["slot"]] = workers
    days: dict[tuple[Any, ...], tuple[float, float]] = {}
    for row in plan.document.get("deployments", ()):
        here, none = residents.get(row["point"], {}), [0] * len(row["pools"])
        for i, (pool, asked) in enumerate(zip(row["pools"], points[row["point"]]["pools"], strict=True)):
            kind = row["site"], *(asked.get(key) for key in KEY)
            for day in range(0, 0 if kind in by_hour else len(window), 24):
                rises = (here.get(day + h, none)[i] - here.get(day + (h - 1) % 24, none)[i] for h in range(24))
                held = sum(own["count"] for of, own in fleet if of == kind and own["window"] in (None, window[day]))
                before, _ = days.get((day, *kind), (0.0, held))
                days[day, *kind] = before + sum(max(0, rise) for rise in rises) * pool["systems_per_worker"], held
    return days


def assert_few_loads(plan: Any) -> None:
    """Where loads are counted, systems of a kind at a site load weights at most twice in each day."""
    many = {place: found for place, found in loads_of_days(plan).items() if found[0] > 2 * found[1] + 1e-6}
    assert not many


def systems(plan: Any) -> int:
    return sum(row["count"] for row in plan["fleet"])


def test_services_that_take_turns_share_servers_at_a_price():
    plan = solved(taking_turns())
    assert 0 < loads_a_day(plan) <= 2 * systems(plan) + 1e-6
    assert_few_loads(plan)
    with pytest.raises(AssertionError):
        assert_few_loads(planner.Plan({**plan.document, "fleet": [{**row, "count": 1e-3} for row in plan["fleet"]]}))
    (line,) = (row for row in plan["cost_lines"] if row["component"] == "relays")
    assert line["amount"] == pytest.approx(plan["costs"]["relays"]) and line["amount"] > 0
    days = 3 * 365
    pools = [pool for row in plan["deployments"] for pool in row["pools"]]
    counted = sum(pool["loads"] * pool["systems_per_worker"] for pool in pools) / days
    assert counted == pytest.approx(loads_a_day(plan))
    page = " ".join(one_page(plan).split())
    each = f"{counted / systems(plan):,.2g}"
    assert f"{counted:,.3g} systems a day load other weights, {each} times each at most" in page
    loads = {
        row["workload"]: sum(pool["loads"] * pool["systems_per_worker"] for pool in row["pools"])
        for row in plan["deployments"]
    }
    assert (
        f"times each at most: {max(loads, key=lambda name: loads[name])} at us-virginia" in page and "; 1 more" in page
    )


def test_loads_of_each_season_are_priced_and_limited():
    """On typical days of two seasons the limit holds for each day, and `verify` finds loads that the books leave out."""
    asked = taking_turns()
    asked["horizon"] |= {"calendar": "representative-days", "days": 2}
    plan = solved(asked)
    assert len(plan["schedule"]) == 48 and plan["costs"]["relays"] > 0
    assert_few_loads(plan)
    limited = copy.deepcopy(plan.document)
    limited["spec"]["operation"] = {"relays_per_day": 0.01}
    found = [finding for finding in verify_plan(planner.Plan(limited)) if "in a day" in finding.message]
    assert {finding.path for finding in found} == {"schedule slot 0", "schedule slot 24"}
    hidden = copy.deepcopy(plan.document)
    for row in hidden["deployments"]:
        for pool in row["pools"]:
            del pool["relay_cost"]
    assert any("relay_cost" in finding.path for finding in verify_plan(planner.Plan(hidden)))


def test_weights_have_a_path():
    """Llama-3.1-70B in FP8 is 70.6 GB; loads read it from storage at the rate of the site, 2 GB/s."""
    asked = taking_turns()
    asked["sites"][0]["storage_bandwidth"] = "2 GB/s"
    plan = solved(asked)
    for row in plan["deployments"]:
        path = row["weights_path"]
        assert (path["kind"], path["bytes_per_s"]) == ("storage", 2e9)
        size = path["used_bytes_per_s"] * 3 * 365 * 86400 / row["loads"]
        assert size == pytest.approx(70.6e9, rel=0.01) and row["load_s"] == pytest.approx(60 + size / 2e9, rel=0.01)
        assert path["share"] == pytest.approx(path["used_bytes_per_s"] / 2e9)


def test_without_relays_each_keeps_its_servers_all_day():
    shared, apart = solved(taking_turns()), solved(taking_turns(relays_per_day=0))
    assert loads_a_day(apart) == 0 and "relays" not in apart["costs"]
    assert "none loads other weights" in " ".join(one_page(apart).split())
    assert systems(apart) > systems(shared)


def test_a_load_dearer_than_a_server_is_not_made():
    plan = solved(taking_turns(relay_cost="100000 USD"))
    assert loads_a_day(plan) == 0


def test_one_service_loads_nothing_in_the_course_of_a_day():
    asked = taking_turns()
    plan = solved({**asked, "workloads": asked["workloads"][:1]})
    assert loads_a_day(plan) == 0 and "other weights" not in one_page(plan)


def test_free_loads_are_not_in_the_books():
    plan = solved(taking_turns(relay_cost=None, relays_per_day=None))
    assert "relays" not in plan["costs"]
    assert all("relay_cost" not in pool for row in plan["deployments"] for pool in row["pools"])


def test_a_changed_price_or_number_of_loads_is_found():
    document = planner.solve(taking_turns()).document
    changed = copy.deepcopy(document)
    changed["deployments"][0]["pools"][0]["relay_cost"] *= 1.01
    assert any("relay_cost" in found.path for found in verify_plan(planner.Plan(changed)))
    changed = copy.deepcopy(document)
    changed["deployments"][0]["pools"][0]["loads"] += 1
    assert any("loads" in found.path for found in verify_plan(planner.Plan(changed)))
    for key in ("bytes_per_s", "used_bytes_per_s", "share"):
        changed = copy.deepcopy(document)
        changed["deployments"][0]["weights_path"][key] *= 1.01
        assert any("weights_path" in found.path for found in verify_plan(planner.Plan(changed)))
    changed = copy.deepcopy(document)
    changed["spec"]["operation"] = {"relays_per_day": 0.01}
    assert any("in a day" in found.message for found in verify_plan(planner.Plan(changed)))


@pytest.mark.parametrize("operation", [None, {"relays_per_day": 2}])
def test_a_plan_that_hides_what_its_loads_cost_is_found(operation):
    """Without cost in its pools, books and totals the plan adds up; only the default price of loads tells."""
    document = copy.deepcopy(planner.solve(taking_turns(**operation or {})).document)
    for row in document["deployments"]:
        for pool in row["pools"]:
            del pool["relay_cost"]
    assert any("relay_cost" in found.path for found in verify_plan(planner.Plan(document)))
    hidden = document["costs"].pop("relays")
    document["totals"]["cost"] -= hidden
    document["cost_lines"] = [row for row in document["cost_lines"] if row["component"] != "relays"]
    assert any("relays" in str(found) for found in verify_plan(planner.Plan(document)))


def test_a_plan_of_a_release_without_the_price_counts_none():
    """It states another version and no cost of loads; one that states a cost is held to it."""
    document = copy.deepcopy(solved(taking_turns(relay_cost=None, relays_per_day=None)).document)
    document["versions"]["flopwatt"], document["spec"]["operation"] = "0.2.0", {}
    assert not any("relay" in str(found) for found in verify_plan(planner.Plan(document)))
    document["versions"]["flopwatt"] = planner.__version__
    assert any("relay" in str(found) for found in verify_plan(planner.Plan(document)))


def test_a_negative_number_is_refused():
    with pytest.raises(SpecError, match=r"operation\.relays_per_day"):
        planner.solve(taking_turns(relays_per_day=-1))
