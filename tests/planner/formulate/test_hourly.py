"""Coefficients of systems that are paid for by the hour, derived by hand without solving."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.formulate.functionals import functionals_of
from planner.formulate.hourly import hourly_arrays, least_costs
from planner.money.terms import COST
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

SYSTEM = "DGX H100"


def asked(tiny, *regions):
    """Systems on demand at 36 USD/h, 30 minutes to start and 3 h at least, and reserved ones at 10 USD/h."""
    terms = {"start_time": "30 min", "least_run": "3 h"}
    document = tiny(horizon={"years": 1, "discount_rate": 0})
    document["sites"] = [{"region": region, "systems": [SYSTEM]} for region in regions]
    document["offers"] = [
        {"system": SYSTEM, "how": "on_demand", "price": "36 USD/h", **terms},
        {"system": SYSTEM, "how": "reserved", "price": "10 USD/h"},
    ]
    return document


@pytest.fixture(scope="module")
def formed(tiny):
    problem = resolve(parse_spec(asked(tiny, "us-virginia")))
    return problem, formulate(problem, find_candidates(problem))


def test_an_hour_and_a_start_of_a_system(formed):
    """36 USD/h in each of 24 slots, which come round 365 times a year; half an hour more for each start."""
    problem, form = formed
    data, calendar = form.data, problem.calendar
    assert calendar.slots == 24
    on_demand = [form.fleet_options[k].offer.how for k, _ in form.holdings].index("on_demand")
    assert data.hourly.holding.tolist() == [u == on_demand for u in range(2)]
    assert data.hourly.cost[COST][on_demand] == pytest.approx(np.full(24, 36.0 * 365))
    assert data.hourly.start_cost[COST][on_demand] == pytest.approx(np.full(24, 18.0 * 365))
    assert data.hourly.least_slots[on_demand] == 3
    assert data.holding_cost[COST][on_demand] == 0.0
    assert data.holding_cost[COST][1 - on_demand] == pytest.approx(10.0 * 8760)
    assert data.order is not None


def test_nothing_is_counted_by_the_hour_without_an_offer_of_that_kind(formed):
    problem, form = formed
    reserved = [(k, term) for k, term in form.holdings if form.fleet_options[k].offer.how == "reserved"]
    assert hourly_arrays(problem, form.fleet_options, reserved, functionals_of(problem, ())) == {}


def test_what_a_system_costs_at_least(formed):
    """One hour of each day on demand, or a year that is reserved."""
    _, form = formed
    least = least_costs(form.data)[COST]
    assert sorted(least) == pytest.approx([36.0 * 365, 10.0 * 8760])


def test_systems_that_stand_ready_for_a_failure_are_held(tiny):
    document = asked(tiny, "us-virginia", "us-texas")
    document["workloads"][0]["spread"] = {"survive": 1}
    problem = resolve(parse_spec(document))
    data = formulate(problem, find_candidates(problem)).data
    assert data.hourly is None
    assert sorted(data.holding_cost[COST]) == pytest.approx([10.0 * 8760] * 2 + [36.0 * 8760] * 2)
