"""Systems that are rented already: kept to the end of the contract, given back after the notice, or kept longer, whichever costs least.

One GPU carries one whole replica, so that the systems of each window follow from the load, and all ways to give systems back can be listed.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from datetime import date
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from catalog.units import DAY_S, HOUR_S, YEAR_S
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.report.page import one_page
from planner.report.words import whole
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from tests.conftest import few_of

RATE = 0.08
CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 1.0},
    "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never",
}  # fmt: skip
GPU = "AWS p5.4xlarge"
RENTED = {
    "system": GPU,
    "region": "us-virginia",
    "count": 4,
    "price": "5 USD/h",
    "until": "2027-10-01",
    "notice": "59 d",
    "exit_fee": 0.25,
}
ON_DEMAND = {"system": GPU, "how": "on_demand", "price": "9 USD/h", "start_time": "0 s", "least_run": "0 s"}


def question(rented=None, requests_per_s=1.0, **changes):
    chat = copy.deepcopy(CHAT)
    chat["demand"]["requests_per_s"] = requests_per_s
    return {
        "name": "rented",
        "horizon": {"start": "2027-01-01", "discount_rate": RATE},
        "workloads": [chat],
        "sites": [{"region": "us-virginia"}],
        "rented": [RENTED | (rented or {})],
        "offers": [ON_DEMAND],
        "simplicity": {"within": 0},
        "solver": {"gap": 1e-7, "replicas": "whole"},
        **changes,
    }


def solved(*given, **changes):
    plan = planner.solve(question(*given, **changes))
    assert plan.has_answer and verify_plan(plan) == []
    return plan


def day(text):
    """Seconds from the start of the horizon to a day."""
    return (date.fromisoformat(text) - date(2027, 1, 1)).days * DAY_S


def test_what_no_load_needs_goes_back_after_the_notice():
    """By hand: 59 days of rent, then a fee of a quarter of the rent to October; rents are paid at the end of the year, fees on the day."""
    plan = solved()
    (row,) = plan["rented"]
    assert row["given_back"][0] | {"saves": None} == {"count": 3, "day": "2027-03-01", "saves": None}
    gone, end = day("2027-03-01"), day("2027-10-01")
    fee = 5 / HOUR_S * 0.25 * (end - gone) * (1 + RATE) ** (-gone / YEAR_S)
    rent = 5 / HOUR_S * (end - gone) / (1 + RATE)
    assert row["given_back"][0]["saves"] == pytest.approx(3 * (rent - fee))
    assert plan["costs"]["early exit"] == pytest.approx(3 * fee)
    assert plan["costs"]["rent"] == pytest.approx(5 / HOUR_S * (YEAR_S + 3 * gone) / (1 + RATE))
    assert set(plan["costs"]) - {"early exit", "rent"} == {key for key, paid in plan["costs"].items() if not paid}
    page = " ".join(one_page(plan).split())
    assert f"give back 3 of 4 from 2027-03-01: saves {whole(row['given_back'][0]['saves'])} USD" in page
    assert (
        "keep 1 of 4 beyond 2027-10-01, to the end of the horizon, 2028-01-01, for" in page and "rented already" in page
    )


def test_nothing_goes_back_where_the_fee_is_the_rest_of_the_rent():
    plan = solved({"exit_fee": 1.0})
    (row,) = plan["rented"]
    assert (row["kept"], row["given_back"]) == (3, [])
    assert {each["path"]: each["name"] for each in plan["limits"]}[
        "rented[0].count"
    ] == f"supply of {GPU} (rented already)"
    omitted = solved({"exit_fee": None})
    (said,) = [each["reason"] for each in omitted["assumptions"] if each["path"] == "rented[0].exit_fee"]
    assert omitted["rented"] == [row] and "not stated: leaving early costs all of the rent" in said


def test_a_contract_without_extension_is_replaced_at_its_end():
    plan = solved({"extendable": False})
    (row,) = plan["rented"]
    assert (row["kept"], row["extended"]) == (1, [])
    later = [held for held in plan["fleet"] if held["offer"] == "offers[0]"]
    assert later and all(held["window"] == 2 for held in later)
    cheap = solved({"extension_price": "9.5 USD/h"})
    assert cheap["rented"][0]["extended"] == [] and cheap.totals["cost"] == pytest.approx(plan.totals["cost"])
    dear = solved({"extension_price": "8 USD/h"})
    (more,) = dear["rented"][0]["extended"]
    assert more["costs"] == pytest.approx(8 / HOUR_S * (YEAR_S - day("2027-10-01")) / (1 + RATE))
    assert dear["costs"]["rent"] == pytest.approx(
        (5 / HOUR_S * (day("2027-10-01") + 3 * day("2027-03-01")) + 8 / HOUR_S * (YEAR_S - day("2027-10-01")))
        / (1 + RATE)
    )


def test_a_price_per_chip_counts_the_chips_of_a_system():
    rented = {"system": "AWS p5.48xlarge", "price": "5 USD/gpu/h", "count": 1}
    plan = solved(rented, offers=[])
    assert plan["costs"]["rent"] == pytest.approx(8 * 5 / HOUR_S * YEAR_S / (1 + RATE))


def test_a_contract_beyond_the_horizon_owes_its_fee_at_the_end():
    plan = solved({"until": "3 years", "count": 1, "notice": "5 years"}, offers=[])
    assert plan["rented"][0]["kept"] == 1
    assert plan["costs"]["early exit"] == pytest.approx(5 / HOUR_S * 0.25 * 2 * YEAR_S / (1 + RATE))
    assert "keep 1 of 1 to the end of the horizon, 2028-01-01; the contract runs until" in " ".join(
        one_page(plan).split()
    )


@pytest.mark.parametrize(
    ("rented", "changes", "place", "remedy"),
    [
        ({"until": "2026-12-01"}, {}, "rented[0].until", "over before the horizon"),
        ({"extendable": False, "extension_price": "4 USD/h"}, {}, "rented[0].extension_price", "remove it"),
        ({}, {"sites": [{"region": "us-virginia", "available_from": "2027-03-01"}]}, "rented[0].region", "available_from"),
        ({}, {"sites": [{"region": "us-virginia", "systems": ["DGX H100"]}]}, "rented[0].system", "add it there"),
        ({"region": "us-iowa"}, {}, "rented[0].region", "no site"),
        ({"price": "300000 USD"}, {}, "rented[0].price", "USD/h"),
        ({"system": "nothing such"}, {}, "rented[0].system", "nothing such"),
        (
            {"region": "cn-ulanqab"},
            {"sites": [{"region": "us-virginia"}, {"region": "cn-ulanqab", "electricity_price": "0.05 USD/kWh"}]},
            "rented[0].system",
            "export control",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_rented_so_is_refused_with_its_place(rented, changes, place, remedy):
    with pytest.raises(SpecError) as refused:
        planner.solve(question(rented, **changes))
    assert any(problem.path == place and remedy in problem.message for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("block", "place"),
    [
        ({"owned": [{"system": GPU, "region": "us-virginia", "count": 4, "age": "1 year", "price": "250000 USD"}]}, "owned[0].system"),
        (
            {"owned": [{"system": GPU, "region": "us-virginia", "count": 4, "age": "1 year", "lease_end": "2 years"}]},
            "owned[0].system",
        ),
        ({"offers": [{"system": GPU, "how": "buy", "price": "30000 USD"}]}, "offers[0].how"),
    ],
)  # fmt: skip
def test_an_instance_of_a_cloud_is_neither_bought_nor_owned(block, place):
    with pytest.raises(SpecError) as refused:
        planner.solve(question(**block))
    (problem,) = refused.value.problems
    assert (problem.path == place and "on_demand" in problem.message) or '"rented"' in problem.message


def test_verify_finds_what_is_wrong_with_rented_systems():
    plan = solved({"extendable": False})
    at = next(i for i, row in enumerate(plan["fleet"]) if row["offer"] == "rented[0]" and row["windows"] == [0, 0])
    for change in (
        lambda d: d["fleet"][at].update(count=d["fleet"][at]["count"] - 1),
        lambda d: d["fleet"][at].update(windows=[0, 2]),
        lambda d: d["rented"][0]["given_back"][0].update(saves=d["rented"][0]["given_back"][0]["saves"] * 1.01),
        lambda d: d["rented"][0].update(kept=d["rented"][0]["kept"] + 1),
        lambda d: d.pop("rented"),
    ):
        wrong = copy.deepcopy(plan)
        change(wrong.document)
        assert verify_plan(wrong) != []


@cache
def gpu_rate():
    """Requests per second of the best layout of one GPU."""
    found = find_candidates(resolve_document(question(requests_per_s=1e3)))
    return max(point.capacity for pool in found.pools for point in pool.points)


PHASES = ("2027-01-01", "2027-05-01", "2027-09-01")


def least_cost(problem, entry, needs, rent):
    """List all ways to give the systems of an entry back, one border of the calendar for each; the rest of the need is rented on demand."""
    calendar, rate = problem.calendar, problem.economics.discount_rate
    edges = [float(edge) for edge in calendar.edges_s]
    worth = [
        sum(float(s * d) for s, d, w in zip(calendar.seconds, calendar.discount, calendar.window) if w == v)
        for v in range(calendar.windows)
    ]
    need = [needs[max(p for p, start in enumerate(PHASES) if day(start) <= edge + 1)] for edge in edges[:-1]]
    until, notice = day(entry["until"]), entry["notice_days"] * DAY_S
    price, extension, fee = entry["rent"] / HOUR_S, entry["extension"], entry["exit_fee"]
    costs = {}
    for gone in edges[1:]:
        if (gone < min(until, notice) and gone < edges[-1]) or (gone > until and extension is None):
            continue
        due = sum(
            value * (price if edge < until else (extension or 0.0) / HOUR_S)
            for edge, value in zip(edges, worth)
            if edge < gone
        )
        costs[gone] = due + fee * max(until - gone, 0.0) * price * (1 + rate) ** (-gone / YEAR_S)
    best = math.inf
    for returns in itertools.combinations_with_replacement(sorted(costs), entry["count"]):
        total = sum(costs[gone] for gone in returns)
        for v, edge in enumerate(edges[:-1]):
            total += max(need[v] - sum(gone > edge for gone in returns), 0) * rent / HOUR_S * worth[v]
        best = min(best, total)
    return best


@given(
    needs=st.tuples(*[st.integers(1, 4)] * 3),
    count=st.integers(1, 4),
    rent=st.floats(2, 9),
    on_demand=st.floats(3, 12),
    extension=st.one_of(st.none(), st.floats(1, 12)),
    exit_fee=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    until=st.sampled_from(["2027-04-01", "2027-09-01", "2027-11-15", "2028-06-01"]),
    notice_days=st.sampled_from([1, 30, 120, 200]),
    rate=st.sampled_from([0.0, RATE]),
)
@settings(max_examples=few_of(18))
def test_no_other_way_to_give_back_costs_less(
    needs, count, rent, on_demand, extension, exit_fee, until, notice_days, rate
):
    at_once = gpu_rate()
    entry = {
        "count": count, "price": f"{rent} USD/h", "until": until, "notice": f"{notice_days} d", "exit_fee": exit_fee,
        "extendable": extension is not None, **({} if extension is None else {"extension_price": f"{extension} USD/h"}),
    }  # fmt: skip
    document = question(entry, (needs[0] - 0.5) * at_once)
    document["horizon"]["discount_rate"] = rate
    document["phases"] = [{"name": f"p{i}", "start": start} for i, start in enumerate(PHASES)]
    factors = {f"p{i}": (n - 0.5) / (needs[0] - 0.5) for i, n in enumerate(needs)}
    document["workloads"][0]["demand"]["factor_by_phase"] = factors
    document["offers"] = [ON_DEMAND | {"price": f"{on_demand} USD/h"}]
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    known = entry | {"rent": rent, "extension": extension, "notice_days": notice_days}
    expected = least_cost(resolve_document(document), known, needs, on_demand)
    assert plan.totals["cost"] == pytest.approx(expected, rel=1e-6)


def test_systems_too_small_for_the_weights_are_said_to_be_unable_to():
    big = question(offers=[])
    big["workloads"][0]["architecture"] = "Llama-3.1-405B"
    words = json.dumps(planner.solve(big).document["diagnosis"])
    assert "no system on offer can run" in words and "its weights alone take" in words


def test_systems_that_run_the_work_but_are_too_few_are_not_said_to_be_unable_to():
    """One GPU carries some 20 requests/s, so that four cannot carry 500; their memory is not what lacks."""
    plan = planner.solve(question(requests_per_s=500.0, offers=[], solver={"replicas": "divisible"}))
    words = json.dumps(plan.document["diagnosis"])
    assert plan.document["status"] == "infeasible"
    assert f"{GPU} can run chat (Meta-Llama-3.1-8B), but all of it that can be had is too little" in words
    assert "no system on offer can run" not in words
