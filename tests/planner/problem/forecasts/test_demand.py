"""Paths of demand drawn from a forecast: derived by hand, by their distribution, and as plans and scenarios count with them."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.pipeline import check_document
from planner.problem.forecasts.demand import (
    DemandDraws,
    LaunchDraws,
    demand_factor,
    draw_demand,
    typical_demand,
    years_from,
)
from planner.problem.scenarios import demand_at, draw, with_robust
from planner.resolve.resolver import resolve_document
from planner.spec.workloads import Demand

START = date(2027, 1, 1)
FORECAST = {
    "growth": {"low": 0.0, "typical": 0.5, "high": 1.0},
    "level": {"low": 0.8, "typical": 1.0, "high": 1.5},
    "launches": [
        {"name": "voice", "probability": 0.7, "factor": {"low": 1.2, "typical": 1.5, "high": 2.0}, "date": "6 months"},
        {"name": "bank", "probability": 0.2, "addition": {"typical": 30}, "date": "2028-07-01", "latest": "2028-12-01"},
    ],
}  # fmt: skip


def demand(forecast: object = FORECAST, **other: object) -> Demand:
    return Demand.model_validate({"requests_per_s": 100, "forecast": forecast, **other})


def test_a_path_by_hand():
    """Level 2, growth 50 %, a factor of 3 from year 1 on, and half of the stated demand more from year 2 on."""
    launches = (
        LaunchDraws("a", np.array([1.0]), np.array([3.0]), np.zeros(1)),
        LaunchDraws("b", np.array([2.0]), np.ones(1), np.array([0.5])),
        LaunchDraws("never", np.array([np.inf]), np.array([9.0]), np.array([9.0])),
    )
    draws = DemandDraws(np.array([0.5]), np.array([2.0]), launches)
    assert demand_factor([0.0, 0.99, 1.0, 2.0], draws).tolist() == [[2.0, 2.0, 9.0, 14.0]]
    assert demand_factor([0.5], draws, steps_per_year=np.inf)[0, 0] == pytest.approx(2.0 * 1.5**0.5)
    assert demand_factor([0.7], draws, steps_per_year=2)[0, 0] == pytest.approx(2.0 * 1.5**0.5)


def test_the_typical_path_has_the_launches_that_are_likelier_than_not():
    found = demand_factor([0.0, 0.4, 0.5, 1.0, 1.99], typical_demand(demand(), START))[0]
    assert found == pytest.approx([1.0, 1.0, 1.5, 2.25, 2.25])


def test_draws_have_the_stated_distribution():
    """Moments of triangular distributions, (a + b + c)/3, and frequencies of launches, within five standard errors of 20,000 draws."""
    count = 20_000
    draws = draw_demand(demand(), "chat", START, count, 3)
    for drawn, low, typical, high in ((draws.growth, 0.0, 0.5, 1.0), (draws.level, 0.8, 1.0, 1.5)):
        assert low <= drawn.min() and drawn.max() <= high
        assert abs(drawn.mean() - (low + typical + high) / 3) < 5 * (high - low) / np.sqrt(18 * count)
    for launch, probability in zip(draws.launches, (0.7, 0.2), strict=True):
        happened = np.isfinite(launch.years)
        assert abs(happened.mean() - probability) < 5 * np.sqrt(probability * (1 - probability) / count)
    bank = draws.launches[1]
    first, last = years_from(START, date(2028, 7, 1)), years_from(START, date(2028, 12, 1))
    assert np.all((bank.years[np.isfinite(bank.years)] >= first) & (bank.years[np.isfinite(bank.years)] <= last))
    assert bank.addition == pytest.approx(np.full(count, 0.3))  # 30 of 100 requests/s
    figures = np.corrcoef([draws.growth, draws.level, np.isfinite(bank.years)])
    assert np.abs(figures[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(count)


def test_draws_of_a_figure_do_not_depend_on_the_others():
    alone = draw_demand(demand({"growth": FORECAST["growth"]}), "chat", START, 50, 7)
    assert np.array_equal(alone.growth, draw_demand(demand(), "chat", START, 50, 7).growth)
    assert not np.array_equal(alone.growth, draw_demand(demand(), "other", START, 50, 7).growth)
    chosen = draw_demand(demand(), "chat", START, 50, 7).take([3, 5])
    assert np.array_equal(
        demand_factor([0.0, 2.0], chosen),
        demand_factor([0.0, 2.0], draw_demand(demand(), "chat", START, 50, 7))[[3, 5]],
    )


@given(
    st.floats(-0.5, 3),
    st.floats(0.1, 3),
    st.lists(st.floats(0, 9.5), min_size=1, max_size=8),
    st.floats(0.5, 3),
    st.floats(0, 5),
)
def test_without_spread_every_draw_is_the_typical_path(growth, level, dates, factor, when):
    launch = {"name": "a", "probability": 1.0, "factor": {"typical": factor}, "date": f"{when} years"}
    known = demand({"growth": {"typical": growth}, "level": {"typical": level}, "launches": [launch]})
    typical = demand_factor(dates, typical_demand(known, START))
    assert demand_factor(dates, draw_demand(known, "chat", START, 4, 1)) == pytest.approx(np.tile(typical, (4, 1)))


@given(st.floats(-0.5, 3), st.lists(st.floats(0, 9.5), min_size=1, max_size=8))
def test_steps_lie_on_the_smooth_path_at_whole_years_and_behind_it_between(growth, dates):
    draws = DemandDraws(np.array([growth]), np.ones(1))
    assert demand_factor(np.floor(dates), draws) == pytest.approx(demand_factor(np.floor(dates), draws, np.inf))
    ahead = demand_factor(dates, draws, np.inf) - demand_factor(dates, draws)
    assert (ahead * np.sign(growth) >= -1e-9 * (1 + abs(growth)) ** 10).all()


# -- in plans and scenarios -----------------------------------------------------------------------------------------


def problem_of(tiny, forecast=None, years=3, **other):
    document = tiny(horizon={"years": years, "start": "2027-01-01"})
    document["workloads"][0]["demand"] = {"requests_per_s": 100, **other}
    if forecast is not None:
        document["workloads"][0]["demand"]["forecast"] = forecast
    return resolve_document(document)


def test_a_plan_counts_with_the_typical_path(tiny):
    problem = problem_of(tiny, FORECAST)
    days = problem.calendar.edges_s / 86400
    assert days == pytest.approx([0, 182.5, 365, 730, 1095])  # the launch, and the steps of growth
    assert problem.serving[0].growth == pytest.approx([1.0, 1.5, 2.25, 3.375])
    booked = {each.path: each.reason for each in problem.assumptions}
    path = f"{problem.serving[0].path}.demand.forecast"
    assert "takes the place of `robust.demand`" in booked[path]
    assert "counts it" in booked[f"{path}.launches[0]"] and "leaves it out" in booked[f"{path}.launches[1]"]


def test_growth_without_spread_is_the_growth_per_year_of_old(tiny):
    new, old = problem_of(tiny, {"growth": {"typical": 0.4}}), problem_of(tiny, growth_per_year=0.4)
    assert np.array_equal(new.calendar.edges_s, old.calendar.edges_s)
    assert new.serving[0].growth == pytest.approx(old.serving[0].growth)


def test_scenarios_draw_the_forecast_in_place_of_the_demand_of_robust(tiny):
    plain = with_robust(problem_of(tiny))
    name = plain.serving[0].name
    assert draw(plain, 500, 1).demand[name].max() <= 1.15
    certain = with_robust(problem_of(tiny, {"growth": {"typical": 0.4}}))
    assert draw(certain, 50, 1).demand[name] == pytest.approx(np.ones(50))
    open_level = with_robust(problem_of(tiny, {"level": FORECAST["level"]}))
    paths = draw_demand(open_level.serving[0].spec.demand, name, START, 500, 1)
    assert draw(open_level, 500, 1).demand[name] == pytest.approx(paths.level)


def test_scenarios_count_the_largest_excess_over_the_planned_path(tiny):
    """A launch that the plan leaves out, in the last month of the horizon, doubles the demand where it happens."""
    launch = {"name": "late", "probability": 0.25, "factor": {"typical": 2.0}, "date": "35 months"}
    problem = with_robust(problem_of(tiny, {"launches": [launch]}))
    found = draw(problem, 4000, 1).demand[problem.serving[0].name]
    assert set(np.round(found, 9)) == {1.0, 2.0}
    assert abs((found > 1.5).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 4000)
    levels = [float(demand_at(problem, problem.serving[0], level)) for level in (0.5, 0.7, 0.8)]
    assert levels == pytest.approx([1.0, 1.0, 2.0])


def test_pools_by_length_are_refused_beside_a_forecast(tiny):
    document = tiny()
    document["workloads"][0] |= {"demand": {"requests_per_s": 9, "forecast": FORECAST}, "pools": "by length"}
    with pytest.raises(SpecError, match=r"demand\.forecast"):
        check_document(document)
