"""What keeping more scenarios costs with systems by the hour: against fleets of one more system at a time, and what no offer, ceiling or price may change."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import planner
from planner.plan import Plan
from planner.problem.scenarios import draw, with_robust
from planner.report.page import one_page
from planner.resolve.resolver import resolve_document
from planner.verify.check import read_through
from planner.verify.plan import verify_plan
from planner.verify.robust.check import outcome_in

RENT = 40.0  # of a system, an hour


def spec_of(tiny, **changes):
    """Some systems for one workload with an even demand, bought or on demand."""
    offers = [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX H100", "how": "on_demand", "price": f"{RENT} USD/h", "start_time": "0 s", "least_run": "0 s"}]  # fmt: skip
    found = tiny(**{"horizon": {"start": "2027-01-01", "years": 2}, "offers": offers, **changes})
    found["workloads"][0]["demand"]["requests_per_s"] = 9000
    return found


@pytest.fixture(scope="module")
def plan(tiny) -> Plan:
    return planner.solve(spec_of(tiny), threads=1)


def test_the_rent_is_that_of_the_fewest_systems_more(plan, tiny):
    """One more system at a time, until a scenario is kept, by the code of `verify`; an even demand needs the same in every hour."""
    spec, found = spec_of(tiny), plan["confidence"]["hired"]
    problem = with_robust(resolve_document(spec))
    scenarios = draw(problem, plan["confidence"]["scenarios"], plan["confidence"]["seed"])
    document = copy.deepcopy(plan.document)
    (row,) = document["fleet"]
    assert row["how"] == "buy"
    need = np.full(scenarios.count, np.inf)
    for more in range(12):
        kept = outcome_in(problem, document, scenarios, {}, read_through).kept
        need[kept] = np.minimum(need[kept], more)
        row["count"] += 1
    lacking = round(0.8 * scenarios.count) - int((need == 0).sum())
    calendar = problem.calendar
    rent = RENT / 3600.0 * float(calendar.discount @ calendar.seconds)
    fewest = np.sort(need[need > 0])[:lacking]
    assert np.isfinite(fewest).all() and found["used_in"] == pytest.approx(lacking / scenarios.count)
    assert found["cost"] == pytest.approx(fewest.sum() * rent / scenarios.count, rel=1e-6)
    assert [(each["how"], each["most"]) for each in found["systems"]] == [("on_demand", int(fewest.max()))]


def test_the_page_says_so_and_the_plan_holds(plan):
    assert verify_plan(plan) == []
    assert "If you adapt later: 80% cost" in one_page(plan) and "若以后再调整" in one_page(plan, language="zh")
    wrong = copy.deepcopy(plan.document)
    wrong["confidence"]["hired"]["systems"][0]["how"] = "buy"
    wrong["confidence"]["hired"]["used_in"] += 0.1
    paths = {issue.path for issue in verify_plan(Plan(wrong))}
    assert paths == {"confidence.hired.systems[0]", "confidence.hired.used_in"}


def test_without_an_offer_by_the_hour_nothing_is_said(tiny):
    buy = [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}]
    assert "hired" not in planner.solve(spec_of(tiny, offers=buy), threads=1)["confidence"]


def test_a_ceiling_on_the_budget_says_nothing(plan, tiny):
    ceiling = spec_of(tiny, limits={"budget": f"{2 * plan.value:.0f} USD"})
    assert "hired" not in planner.solve(ceiling, threads=1)["confidence"]


def test_starts_and_least_runs_by_hand():
    """2 systems from hour 1, 1 in hour 3, in a day of four hours: at 10 an hour, 3 a start, and 2 hours at least."""
    from planner.solving.adapt.hired import _paid, _Rent

    rent = _Rent(
        slot=np.full((1, 4), 10.0), start=np.full((1, 4), 3.0), least_slots=np.array([2]), left=np.full((1, 4), 5.0),
        offer=np.zeros(1, dtype=np.int64), before=np.array([3, 0, 1, 2]),
    )  # fmt: skip
    cost, held = _paid(rent, np.array([[0.0, 2.0, 0.0, 1.0]]))
    assert held.tolist() == [[1.0, 2.0, 2.0, 1.0]]
    assert cost == pytest.approx(6 * 10 + 1 * 3)  # one start: the system of hour 3 runs on, another starts in hour 1
