"""What owning costs beside price, residual value and maintenance: parts, people, licences, and a building of one's own."""

from __future__ import annotations

import copy

import pytest

import planner
from catalog.units import WEEK_S
from planner.errors import SpecError
from planner.plan import Plan
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

SYSTEM = "DGX H100"
STATED = {
    "spare_parts": 0.05,
    "staff_per_power": "500 USD/kW-year",
    "staff_per_system": "2000 USD/year",
    "software_per_chip": "1000 USD/year",
    "software_per_system": "3000 USD/year",
    "facility_premium": 0.2,
}
COMPONENTS = ("spare parts", "staff", "software")


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


def assumption(plan, path):
    return next(row for row in plan["assumptions"] if row["path"] == path)


def worth(years, rate=0.08):
    return sum((1 + rate) ** -(k + 1) for k in range(years))


@pytest.fixture(scope="module")
def stated(tiny):
    return solved(tiny(economics=STATED, horizon={"years": 2}))


def test_each_component_is_its_figure_times_what_is_held(stated):
    (row,) = stated["fleet"]
    n, lines = row["count"], stated["costs"]
    nameplate_kw = 10.2  # one system without a network
    assert row["topology"] == "scale-up"
    assert lines["staff"] == pytest.approx(n * (500 * nameplate_kw + 2000) * worth(2))
    assert lines["software"] == pytest.approx(n * (8 * 1000 + 3000) * worth(2))
    assert lines["spare parts"] == pytest.approx(n * 0.05 * 310_000 * (1 - 0.425 * 1.08**-2))
    assert sum(lines.values()) == pytest.approx(stated["totals"]["cost"])


def test_each_figure_is_an_assumption_with_its_share(tiny, stated):
    of = {"spare parts": ["spare_parts"], "staff": ["staff_per_power", "staff_per_system"]}
    for plan in (stated, solved(tiny())):
        for component, keys in of.items():
            for key in keys:
                share = plan["costs"][component] / plan["totals"]["cost"]
                assert assumption(plan, f"economics.{key}")["share"] == pytest.approx(share)
        facility = plan["costs"]["facility"] / plan["totals"]["cost"]
        assert assumption(plan, "economics.facility_premium")["share"] == pytest.approx(facility)
    assert assumption(stated, "economics.staff_per_system")["reason"] == "stated in the spec"
    cited = {row["path"] for row in plan["provenance"]}
    names = ("spare_parts", "staff_per_power", "staff_per_system", "software_per_chip", "facility_ai_premium")
    assert cited >= {f"defaults/{name}/value" for name in names}


def test_licences_cost_nothing_unless_they_are_stated(tiny):
    plan = solved(tiny())
    assert "software" not in plan["costs"]
    assert assumption(plan, "economics.software_per_chip")["value"].startswith("0")


def test_a_rented_hall_has_its_own_staff(tiny):
    """Only the people who run the systems are left."""
    (site,) = tiny()["sites"]
    economics = {"staff_per_power": "500 USD/kW-year", "staff_per_system": "2000 USD/year"}
    plan = solved(tiny(sites=[{**site, "colocation": "200 USD/kW-month"}], economics=economics))
    assert plan["costs"]["staff"] == pytest.approx(plan["fleet"][0]["count"] * 2000 / 1.08)


def test_a_building_for_ai_costs_more(tiny):
    plain, dense = (solved(tiny(economics={"facility_premium": p}))["costs"]["facility"] for p in (0, 0.2))
    assert dense == pytest.approx(1.2 * plain)


def test_what_is_rented_pays_its_licences_alone(tiny):
    plan = solved(tiny(offers=[{"system": SYSTEM, "how": "reserved"}], economics=STATED))
    assert set(COMPONENTS) & set(plan["costs"]) == {"software"}
    n = plan["fleet"][0]["count"]
    assert plan["costs"]["software"] == pytest.approx(n * (8 * 1000 + 3000) / 1.08)


def test_spare_parts_are_bought_from_the_capital(tiny):
    document = tiny(economics={"spare_parts": 0.1}, limits={"capital": "10M USD"})
    plan = solved(document)
    (limit,) = (row for row in plan["limits"] if row["path"] == "limits.capital")
    assert limit["value"] == pytest.approx(1.1 * sum(row["count"] * 310_000 for row in plan["fleet"]))


def test_a_phase_pays_for_them_as_they_fall_due(tiny):
    phases = [{"name": "first", "start": "0 d", "budget": "90M USD"}, {"name": "second", "start": "1 years"}]
    free = dict.fromkeys(STATED, 0) | {key: "0 USD/year" for key in STATED if key.startswith("software")}
    free |= {"staff_per_power": "0 USD/kW-year", "staff_per_system": "0 USD/year", "facility_premium": 0.2}
    paid = {}
    for name, economics in (("stated", STATED), ("free", free)):
        plan = solved(tiny(economics=economics, horizon={"years": 2}, phases=phases))
        paid[name] = [row["paid"] for row in plan["phases"]]
        (row,) = plan["fleet"]
    yearly = row["count"] * (500 * 10.2 + 2000 + 8 * 1000 + 3000)
    first, second = (one - other for one, other in zip(paid["stated"], paid["free"], strict=True))
    assert first == pytest.approx(yearly + row["count"] * 0.05 * 310_000)
    assert second == pytest.approx(yearly)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_wrong_charge_is_found(stated, component):
    document = copy.deepcopy(dict(stated.document))
    row = next(row for row in document["cost_lines"] if row["component"] == component)
    extra = 0.001 * row["amount"]
    row["amount"] += extra
    document["costs"][component] += extra
    document["totals"]["cost"] += extra
    assert any("cost_lines" in str(finding) for finding in verify_plan(Plan(document)))


# -- a building that is not there yet --------------------------------------------------------------------------------


def test_a_new_building_holds_nothing_before_its_lead_time(tiny):
    (site,) = tiny()["sites"]
    new = {**site, "building": "new"}
    problem = resolve_document(tiny(sites=[new], horizon={"years": 2}))
    assert problem.sites[0].from_s == pytest.approx(47 * WEEK_S)
    assert {a.path: a.value for a in problem.assumptions}["sites[0].building"] == "47 weeks"
    stated = tiny(sites=[new], horizon={"years": 2}, economics={"facility_lead_time": "20 weeks"})
    assert resolve_document(stated).sites[0].from_s == pytest.approx(20 * WEEK_S)
    later = tiny(sites=[{**new, "available_from": "60 weeks"}], horizon={"years": 2})
    assert resolve_document(later).sites[0].from_s == pytest.approx(60 * WEEK_S)


def test_demand_from_the_first_day_names_the_building_that_is_not_there(tiny):
    (site,) = tiny()["sites"]
    found = planner.solve(tiny(sites=[{**site, "building": "new"}], horizon={"years": 2}))
    assert found.status == "infeasible"
    (limit,), (repair,) = found["diagnosis"]["conflict"], found["diagnosis"]["repair"]
    assert (limit["path"], repair["path"], repair["to"]) == ("sites[0].building", "sites[0].building", "standing")
    assert "329 d" in limit["words"] and found["diagnosis"]["repair_checked"]


def test_work_waits_for_the_building(tiny):
    (site,) = tiny()["sites"]
    document = tiny(sites=[{**site, "building": "new"}], horizon={"years": 2})
    document["phases"] = [{"name": "before", "start": "0 d"}, {"name": "after", "start": "47 weeks"}]
    document["workloads"] = [w for w in document["workloads"] if w["kind"] == "serving"]
    for workload in document["workloads"]:
        workload["demand"]["factor_by_phase"] = {"before": 0, "after": 1}
    plan = solved(document)
    assert [row["chips"] > 0 for row in plan["phases"]] == [False, True]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"economics": {"spare_parts": -0.1}}, "economics.spare_parts"),
        ({"economics": {"staff_per_power": "500 USD/year"}}, "economics.staff_per_power"),
        ({"economics": {"software_per_chip": 5}}, "economics.software_per_chip"),
        ({"sites": [{"region": "us-virginia", "building": "new", "colocation": "200 USD/kW-month"}]}, "sites[0].building"),
        ({"sites": [{"region": "us-virginia", "building": "old"}]}, "sites[0].building"),
    ],
)  # fmt: skip
def test_figures_without_sense_are_refused_with_their_place(tiny, changes, path):
    with pytest.raises(SpecError) as error:
        resolve_document(tiny(**changes))
    assert path in {problem.path for problem in error.value.problems}
