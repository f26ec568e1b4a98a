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

PER_YEAR = 12 * YEAR_S / HOUR_S  # of a system at 12 USD/h


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


@pytest.mark.parametrize(
    ("terms", "words"),
    [({"exit_fee": 0.5}, "needs a"), ({"term": "3 years", "how": "on_demand"}, "belongs to"), ({"term": "3"}, "term")],
)
def test_terms_without_sense_are_refused(tiny, terms, words):
    with pytest.raises(SpecError, match=words):
        resolve_document(rented(tiny, 1, **terms))
