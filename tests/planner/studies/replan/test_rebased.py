"""A spec from a later day on: figures by hand for every block that time touches, and no change of what time does not touch."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.solving.variants import resolved
from planner.spec.model import parse_spec
from planner.studies.replan.held import Holding, aged, as_delivered, owned_entries, planned_holdings, rented_entries
from planner.studies.replan.rebased import Observed, rebased

START, DAY = "2027-01-01", date(2027, 7, 1)  # 181 days
PHASED = {
    "horizon": {"start": START, "years": 3},
    "phases": [{"name": "one", "start": START}, {"name": "two", "start": "2027-05-01", "capital": "9M USD"}, {"name": "three", "start": "2 years"}],
}  # fmt: skip


def spec_of(tiny, **changes):
    spec = tiny(**{"horizon": {"start": START, "years": 3}, **changes})
    spec["workloads"][0]["demand"]["growth_per_year"] = 0.21
    return spec


def moved(spec, holdings=(), **known):
    """The spec from DAY on, of a plan that holds nothing unless `holdings` say so."""
    plan = Plan({"spec": spec, "owned": [], "rented": []}) if not isinstance(spec, Plan) else spec
    known.setdefault("day", DAY)
    found = rebased(plan.document["spec"], plan, resolved(plan.document["spec"]), holdings, Observed(**known)).document
    parse_spec(found)
    return found


def test_demand_grows_until_the_day_unless_it_was_observed(tiny):
    demand = moved(spec_of(tiny))["workloads"][0]["demand"]
    assert demand["requests_per_s"] == pytest.approx(30 * 1.21 ** (181 / 365), rel=1e-6)
    assert demand["growth_per_year"] == 0.21
    assert moved(spec_of(tiny), rates=["chat"])["workloads"][0]["demand"]["requests_per_s"] == 30


def test_the_horizon_ends_where_it_did_in_whole_years(tiny):
    assert moved(spec_of(tiny))["horizon"] == {"start": "2027-07-01", "years": 3}
    assert moved(spec_of(tiny), day=date(2028, 1, 1))["horizon"]["years"] == 2
    assert moved(spec_of(tiny), day=date(2029, 12, 1))["horizon"]["years"] == 1


@pytest.mark.parametrize("day", [date(2027, 1, 1), date(2026, 5, 1), date(2031, 1, 1)])
def test_a_day_outside_the_horizon_is_refused(tiny, day):
    with pytest.raises(SpecError, match="--date"):
        moved(spec_of(tiny), day=day)


def test_offers_keep_their_places_and_lose_what_is_ordered(tiny):
    spec = spec_of(
        tiny,
        offers=[
            {"system": "DGX H100", "how": "buy", "price": "300000 USD", "supply": 50, "price_change_per_year": -0.19, "least": 4},
            {"system": "DGX H200", "how": "buy", "available_from": "200 d", "price": "400000 USD"},
            {"system": "DGX B200", "how": "buy", "available_from": "2028-01-01", "price": "500000 USD"},
            {"system": "DGX A100 80GB", "how": "buy", "available_until": "2027-03-01", "price": "100000 USD"},
        ],
    )  # fmt: skip
    spec["sites"][0].pop("systems")
    offer = resolved(spec).offers[0]
    first, second, third, last = moved(spec, [Holding(offer, "us-virginia", "rail-only", 12, date(2027, 1, 1), 3e5)])[
        "offers"
    ]
    assert first["supply"] == 38 and "least" not in first
    assert float(first["price"].split()[0]) == pytest.approx(3e5 * 0.81 ** (181 / 365), rel=1e-6)
    assert second["available_from"] == "2027-07-20"
    assert third["available_from"] == "2028-01-01"
    assert last["supply"] == 0 and "available_until" not in last
    kept = moved(spec, prices={("DGX H100", "buy")})["offers"][0]
    assert kept["price"] == "300000 USD" and kept["supply"] == 50 and kept["least"] == 4


def test_phases_that_are_over_leave_their_figures_to_the_one_in_force(tiny):
    spec = spec_of(tiny, **PHASED)
    spec["workloads"][0]["demand"]["factor_by_phase"] = {"one": 0.5, "two": 2.0, "three": 4.0}
    spec["sites"][0]["power_by_phase"] = {"one": "1 MW", "three": "3 MW"}
    spec["offers"][0]["supply_by_phase"] = {"one": 5, "two": 7}
    offer = resolved(spec).offers[0]
    held = [Holding(offer, "us-virginia", "rail-only", 2, date(2027, 5, 1), 3e6, "two"), Holding(offer, "us-virginia", "rail-only", 1, date(2027, 1, 1), 3e6, "one")]  # fmt: skip
    found = moved(spec, held)
    assert [phase["name"] for phase in found["phases"]] == ["two", "three"]
    assert (
        found["phases"][0]["start"] == "2027-07-01" and found["phases"][1]["start"] == "2028-12-31"
    )  # years have 365 days
    assert float(found["phases"][0]["capital"].removesuffix("M USD")) == pytest.approx(3.0)
    assert found["workloads"][0]["demand"]["factor_by_phase"] == {"two": 2.0, "three": 4.0}
    assert found["sites"][0]["power_by_phase"] == {"two": "1 MW", "three": "3 MW"}
    assert found["offers"][0]["supply_by_phase"] == {"two": 5}


def test_an_observed_rate_is_that_of_the_phase_in_force(tiny):
    """Observed 4 times the 15 requests/s of the first phase: the rate on the day is 60, whatever factor holds from it on."""
    spec = spec_of(tiny, **PHASED)
    spec["workloads"][0]["demand"] |= {"factor_by_phase": {"one": 0.5, "two": 2.0}, "requests_per_s": 30 * 4}
    demand = moved(spec, rates=["chat"])["workloads"][0]["demand"]
    assert demand["requests_per_s"] * demand["factor_by_phase"]["two"] == pytest.approx(60.0)


def job(**changes):
    return {
        "name": "tune",
        "kind": "training",
        "architecture": "Llama-3.2-1B",
        "tokens": "100B",
        "deadline": "365 d",
        **changes,
    }


def test_of_a_job_the_rest_is_left(tiny):
    spec = spec_of(tiny)
    spec["workloads"] = [job(), *spec["workloads"]]
    spec["assumptions"] = {"workloads[1].demand": "a guess", "workloads[0].tokens": "another"}
    tune = moved(spec, done={"tune": 0.4})["workloads"][0]
    assert (tune["tokens"], tune["start"], tune["deadline"]) == ("60B", "0 s", f"{184 * 86400} s")
    planned = moved(spec)["workloads"][0]
    assert float(planned["tokens"].removesuffix("B")) == pytest.approx(100 * 184 / 365, rel=1e-6)
    gone = moved(spec, done={"tune": 1.0})
    assert [each["name"] for each in gone["workloads"]] == ["chat"]
    assert gone["assumptions"] == {"workloads[0].demand": "a guess"}


def test_a_job_past_its_deadline_needs_another(tiny):
    spec = spec_of(tiny)
    spec["workloads"].append(job(deadline="90 d"))
    with pytest.raises(SpecError, match=r"tune is 80% done .* --set workloads\[1\].deadline=TIME"):
        moved(spec, done={"tune": 0.8})
    assert len(moved(spec)["workloads"]) == 1  # as planned it is done
    assert (
        len(moved(spec, assignments=["workloads[1].deadline=60 d"])["workloads"]) == 1
    )  # which the same --set changes in vain
    assert (
        moved(spec, done={"tune": 0.8}, assignments=["workloads[1].deadline=60 d"])["workloads"][1]["tokens"] == "20B"
    )


def test_limits_leave_what_is_not_used(tiny):
    spec = spec_of(tiny, limits={"budget": "30M USD", "capital": "10M USD", "carbon": "3 kt"})
    offer = resolved(spec).offers[0]
    limits = moved(spec, [Holding(offer, "us-virginia", "rail-only", 10, date(2027, 1, 1), 310_000.0)])["limits"]
    assert float(limits["budget"].removesuffix("M USD")) == pytest.approx(30)  # the new horizon has three years again
    assert float(limits["carbon"].removesuffix(" kt")) == pytest.approx(3)
    assert float(limits["capital"].removesuffix("M USD")) == pytest.approx(10 - 3.1, rel=1e-6)
    later = moved(spec, day=date(2028, 1, 1))["limits"]
    assert float(later["budget"].removesuffix("M USD")) == pytest.approx(20, rel=1e-6)


def test_owned_systems_age_move_and_go(tiny):
    spec = spec_of(
        tiny,
        owned=[
            {"system": "DGX H100", "region": "us-virginia", "count": 9, "age": "1 year"},
            {"system": "DGX H100", "region": "us-virginia", "count": 4, "age": "1 year", "lease_end": "100 d"},
            {"system": "DGX H100", "region": "us-virginia", "count": 5, "age": "1 year", "lease_end": "300 d"},
        ],
    )  # fmt: skip
    row = {"path": "owned[0]", "site": "us-virginia", "kept": 4, "idle": 1, "moved": {"us-texas": 3}, "sold": 1}
    found = aged(spec["owned"], Plan({"owned": [row]}), 181 * 86400.0, parse_spec(spec).owned)
    older = f"{(365 + 181) * 86400} s"
    assert [(e["region"], e["count"], e["age"], e.get("lease_end")) for e in found] == [
        ("us-virginia", 5, older, None), ("us-texas", 3, older, None), ("us-virginia", 5, older, f"{119 * 86400} s"),
    ]  # fmt: skip


def test_rented_systems_run_to_their_term(tiny):
    spec = spec_of(
        tiny,
        rented=[
            {"system": "DGX H100", "region": "us-virginia", "count": 9, "price": "20 USD/h", "until": "2028-01-01"},
            {"system": "DGX H100", "region": "us-virginia", "count": 6, "price": "20 USD/h", "until": "2027-06-01", "extension_price": "15 USD/h"},
        ],
    )  # fmt: skip
    rows = [
        {
            "path": "rented[0]",
            "given_back": [{"count": 2, "day": "2027-05-01"}, {"count": 3, "day": "2027-09-01"}],
            "extended": [],
        },
        {"path": "rented[1]", "given_back": [], "extended": [{"count": 4, "day": "2028-06-01"}]},
    ]
    found = moved(Plan({"spec": spec, "rented": rows, "owned": []}))["rented"]
    assert [(e["count"], e["until"], e["price"]) for e in found] == [
        (7, "2028-01-01", "20 USD/h"),
        (4, "2028-06-01", "15 USD/h"),
    ]


def test_what_was_bought_and_reserved_is_held(tiny):
    spec = spec_of(tiny, offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX H100", "how": "reserved", "price": "20 USD/h", "term": "1 year", "exit_fee": 0.5}])  # fmt: skip
    problem = resolved(spec)
    rows = [
        {
            "site": "us-virginia",
            "system": "DGX H100",
            "how": how,
            "count": count,
            "offer": f"offers[{i}]",
            "topology": topology,
            "window": None,
        }
        for i, (how, count, topology) in enumerate([("buy", 7, "rail-only"), ("reserved", 3, "provider")])
    ]
    holdings = planned_holdings(Plan({"fleet": rows}), problem, DAY)
    assert owned_entries(holdings, DAY, "USD") == [
        {
            "system": "DGX H100",
            "region": "us-virginia",
            "count": 7,
            "age": "181 d",
            "price": "310000 USD",
            "topology": "rail-only",
        }
    ]
    assert rented_entries(holdings, DAY, "USD") == [
        {
            "system": "DGX H100",
            "region": "us-virginia",
            "count": 3,
            "price": "20 USD/h",
            "until": "2028-01-01",
            "exit_fee": 0.5,
        }
    ]
    renewed = rented_entries(holdings, date(2028, 3, 1), "USD")
    assert renewed[0]["until"] == "2028-12-31"  # a second year


@given(planned=st.lists(st.integers(1, 20), min_size=1, max_size=4), delivered=st.integers(0, 60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_deliveries_are_counted_once(tiny, planned, delivered):
    problem = resolved(tiny())
    offer = problem.offers[0]
    holdings = [Holding(offer, "us-virginia", "rail-only", n, date(2027, 1 + i, 1), 3e5) for i, n in enumerate(planned)]
    found = as_delivered(holdings, {("us-virginia", "DGX H100", "buy"): delivered}, problem, DAY)
    assert sum(each.count for each in found) == delivered
    assert sum(each.late for each in found) == max(sum(planned) - delivered, 0)
    assert as_delivered(holdings, {}, problem, DAY) == holdings


def test_deliveries_that_no_offer_has_are_refused(tiny):
    with pytest.raises(SpecError, match="no offer of DGX B200"):
        as_delivered([], {("us-virginia", "DGX B200", "buy"): 2}, resolved(tiny()), DAY)
    (found,) = as_delivered([], {("us-virginia", "DGX H100", "buy"): 2}, resolved(tiny()), DAY)
    assert (found.count, found.price, found.came) == (2, 310_000.0, DAY)


def test_a_rebased_plan_is_a_spec_that_solves(tiny):
    spec = spec_of(tiny)
    plan = planner.solve(spec)
    problem = resolved(plan.document["spec"])
    found = rebased(plan.document["spec"], plan, problem, planned_holdings(plan, problem, DAY), Observed(DAY)).document
    again = planner.solve(found)
    assert again.has_answer
    assert found["owned"][0]["count"] == sum(row["count"] for row in plan.fleet)


def test_a_price_observed_in_a_phase_is_the_price_of_that_phase(tiny):
    """300,000 before the phases, 200,000 in the one in force: observed as planned, two thirds of the first price, which the edit multiplies all prices by."""
    spec = spec_of(tiny, **PHASED)
    spec["offers"][0] |= {"price": "200000 USD", "price_by_phase": {"two": "133333.333333 USD"}}
    offer = moved(spec, prices={("DGX H100", "buy")})["offers"][0]
    assert float(offer["price_by_phase"]["two"].split()[0]) == pytest.approx(200_000, rel=1e-6)


def test_reserved_systems_without_a_term_are_no_commitment(tiny):
    spec = spec_of(tiny, offers=[{"system": "DGX H100", "how": "reserved", "price": "20 USD/h", "supply": 50}])
    problem = resolved(spec)
    row = {
        "site": "us-virginia",
        "system": "DGX H100",
        "how": "reserved",
        "count": 40,
        "offer": "offers[0]",
        "topology": "provider",
        "window": None,
    }
    by_the_month = replace(problem, offers=(replace(problem.offers[0], term_s=0.0),))
    held = planned_holdings(Plan({"fleet": [row]}), by_the_month, DAY)
    assert held == [] and moved(spec, held)["offers"][0]["supply"] == 50


def test_a_forecast_is_refused_unless_the_demand_is_stated_anew(tiny):
    spec = spec_of(tiny)
    spec["workloads"][0]["demand"].pop("growth_per_year")
    spec["workloads"][0]["demand"]["forecast"] = {"growth": {"low": 0.1, "typical": 0.2, "high": 0.4}}
    with pytest.raises(SpecError, match=r"--set workloads\[0\].demand.forecast=null"):
        moved(spec)
    assert (
        moved(spec, assignments=["workloads[0].demand.forecast=null"])["workloads"][0]["demand"].get("forecast") is None
    )
