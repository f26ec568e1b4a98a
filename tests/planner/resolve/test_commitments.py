"""A rent under a commitment: what is left of its term is owed where the horizon ends before."""

from __future__ import annotations

import copy

import pytest

import planner
from catalog.units import HOUR_S, YEAR_S
from planner.errors import SpecError
from planner.plan import Plan
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

SITE = [{"region": "us-virginia", "systems": ["DGX H200"]}]
PER_YEAR = 12 * YEAR_S / HOUR_S  # a system at 12 USD/h


def rented(tiny, years, **terms):
    offer = {"system": "DGX H100", "how": "reserved", "price": "12 USD/h", **terms}
    return tiny(offers=[offer], horizon={"years": years})


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


@pytest.mark.parametrize(
    ("years", "share", "left"), [(1, None, 2), (2, None, 1), (3, None, 0), (5, None, 0), (1, 0.25, 0.5)]
)
def test_the_rest_of_the_term_is_owed_at_the_end(tiny, years, share, left):
    terms = {"term": "3 years"} | ({} if share is None else {"exit_fee": share})
    plan = solved(rented(tiny, years, **terms))
    n = plan["fleet"][0]["count"]
    assert plan["costs"].get("early exit", 0.0) == pytest.approx(n * left * PER_YEAR * 1.08**-years)
    assert plan["costs"]["rent"] == pytest.approx(n * PER_YEAR * sum(1.08**-k for k in range(1, years + 1)))


def test_both_terms_are_assumptions(tiny):
    plan = solved(rented(tiny, 1, term="2 years"))
    rows = {row["path"]: row for row in plan["assumptions"]}
    assert rows["offers[0].term"]["reason"] == "stated in the spec"
    share = plan["costs"]["early exit"] / plan["totals"]["cost"]
    assert rows["offers[0].exit_fee"]["share"] == pytest.approx(share)
    assert "defaults/exit_fee/value" in {row["path"] for row in plan["provenance"]}


def test_a_free_exit_costs_nothing(tiny):
    free, none = (solved(rented(tiny, 1, **terms)) for terms in ({"term": "3 years", "exit_fee": 0}, {}))
    assert free.objective["value"] == pytest.approx(none.objective["value"], rel=1e-12)


def test_a_long_commitment_loses_to_a_purchase_that_can_be_sold(tiny):
    offers = [
        {"system": "DGX H100", "how": "reserved", "price": "12 USD/h", "term": "3 years"},
        {"system": "DGX H100", "how": "buy", "price": "310000 USD"},
    ]
    how = {
        years: {row["how"] for row in solved(tiny(offers=offers, horizon={"years": years}))["fleet"]}
        for years in (1, 3)
    }
    assert how[1] == {"buy"}
    del offers[0]["term"]
    assert {row["how"] for row in solved(tiny(offers=offers, horizon={"years": 1}))["fleet"]} == {"reserved"}


def test_of_phases_the_last_pays(tiny):
    """Systems of each phase are committed from their delivery on."""
    document = rented(tiny, 2, term="3 years")
    document["phases"] = [
        {"name": "first", "start": "0 d", "budget": "90M USD"},
        {"name": "second", "start": "1 years"},
    ]
    document["workloads"][0]["demand"]["factor_by_phase"] = {"second": 300}
    plan = solved(document)
    counts = {row["obtained"]: row["count"] for row in plan["fleet"]}
    assert counts["first"] > 0 and counts["second"] > 0
    owed = (counts["first"] * 1 + counts["second"] * 2) * PER_YEAR
    assert plan["costs"]["early exit"] == pytest.approx(owed * 1.08**-2)
    first, second = (row["paid"] for row in plan["phases"])
    other = plan["costs"].get("weights", 0) + plan["costs"].get("egress", 0)
    assert second == pytest.approx((counts["first"] + counts["second"]) * PER_YEAR + owed, abs=2 * other + 1)
    assert first == pytest.approx(counts["first"] * PER_YEAR, abs=2 * other + 1)
    assert sum(row["cost"] for row in plan["phases"]) == pytest.approx(plan["totals"]["cost"])


def test_a_wrong_fee_is_found(tiny):
    document = copy.deepcopy(dict(solved(rented(tiny, 1, term="3 years")).document))
    row = next(row for row in document["cost_lines"] if row["component"] == "early exit")
    extra = 0.001 * row["amount"]
    row["amount"] += extra
    document["costs"]["early exit"] += extra
    document["totals"]["cost"] += extra
    assert any("cost_lines" in str(finding) for finding in verify_plan(Plan(document)))


def test_the_catalogs_price_for_three_years_holds_for_three_years(tiny):
    """Who leaves after one year owes the rest; a price of one's own has no term unless one is stated."""
    offer = {"system": "DGX H200", "how": "reserved"}
    years = {y: solved(tiny(offers=[offer], horizon={"years": y}, sites=SITE)) for y in (1, 3)}
    rent, owed = (years[1]["costs"][name] for name in ("rent", "early exit"))
    assert owed == pytest.approx(2 * rent) and "early exit" not in years[3]["costs"]
    assert "offers[0].term" in {row["path"] for row in years[1]["assumptions"]}
    own = solved(tiny(offers=[{**offer, "price": "12.8 USD/h"}], horizon={"years": 1}, sites=SITE))
    assert "early exit" not in own["costs"]


@pytest.mark.parametrize(("price", "taken"), [("10 USD/h", 12), ("18 USD/h", 0)])
def test_a_least_count_is_taken_in_full_or_not_at_all(tiny, price, taken):
    """Of a cheap offer more systems are held than the load needs; a dearer one is left for single systems."""
    offers = [
        {"system": "DGX H100", "how": "reserved", "price": price, "least": 12},
        {"system": "DGX H100", "how": "on_demand", "price": "20 USD/h"},
    ]
    workloads = tiny()["workloads"]
    workloads[0]["demand"] = {"requests_per_s": 11000}
    plan = solved(tiny(offers=offers, workloads=workloads))
    count = {row["offer"]: row["count"] for row in plan["fleet"]}
    assert count.get("offers[0]", 0) == taken, count
    document = copy.deepcopy(dict(plan.document))
    document["spec"]["offers"][0]["least"] = 13
    assert any("offers[0]" in str(finding) for finding in verify_plan(Plan(document))) == (taken > 0)


def test_a_least_count_beyond_the_power_of_a_site_is_in_conflict(tiny):
    site = {"region": "us-virginia", "systems": ["DGX H100"], "power": "20 kW"}
    offer = {"system": "DGX H100", "how": "buy", "least": 12}
    plan = planner.solve(tiny(offers=[offer], sites=[site]))
    assert plan.status == "infeasible"
    assert "offers[0].least" in {limit["path"] for limit in plan["diagnosis"]["conflict"]}


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"exit_fee": 0.5}, "needs a"),
        ({"term": "3 years", "how": "on_demand"}, "belongs to"),
        ({"term": "3"}, "term"),
        ({"least": 5, "supply": 3}, "lower it"),
    ],
)
def test_terms_without_sense_are_refused(tiny, terms, words):
    with pytest.raises(SpecError, match=words):
        resolve_document(rented(tiny, 1, **terms))
