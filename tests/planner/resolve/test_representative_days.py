"""The calendars "sampled-days", of days at even distances, and "representative-days", of the most typical days of each stretch."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from catalog.units import DAY_S, YEAR_S
from planner.errors import SpecError
from planner.problem.calendar import DAYS_PER_YEAR, build_calendar, sampled_days
from planner.resolve.representative_days import representative, stretches
from planner.resolve.resolver import resolve_document
from planner.spec.model import parse_spec
from planner.spec.series import with_series
from planner.verify.plan import verify_plan
from tests.conftest import few_of

START = date(2027, 1, 1)
HORIZON = {"start": START.isoformat(), "calendar": "sampled-days", "days": 4}


def prices(days, price) -> str:
    rows = ["timestamp_utc,price_usd_per_mwh"]
    rows += [
        f"{(START + timedelta(days=int(day))).isoformat()}T{hour:02d}:00Z,{price(day, hour)}"
        for day in days
        for hour in range(24)
    ]
    return "\n".join(rows)


@pytest.fixture
def asked(tiny, tmp_path):
    """A spec whose site has a price for each hour of the days given."""

    def spec(days, **changes):
        (tmp_path / "price.csv").write_text(prices(days, lambda day, hour: 40 + day / 10 + hour), encoding="utf-8")
        site = {"region": "us-virginia", "systems": ["DGX H100"], "hourly": "price.csv", "delivery": "0 USD/kWh"}
        return with_series(tiny(horizon=HORIZON, sites=[site], **changes), [tmp_path])

    return spec


@pytest.mark.parametrize("count", [1, 4, 7, 28, 365])
def test_each_day_is_stood_for_by_one_of_its_stretch(count):
    stands_for = sampled_days(count)
    kept = np.unique(stands_for)
    assert len(stands_for) == DAYS_PER_YEAR and len(kept) == count and (stands_for[kept] == kept).all()
    assert (np.diff(stands_for) >= 0).all() and np.ptp(np.bincount(stands_for)[kept]) <= 1


def test_slots_are_the_hours_of_these_days_and_stand_for_the_whole_time(asked):
    problem = resolve_document(asked(np.unique(sampled_days(4))))
    assert problem.calendar.slots == 96 and problem.calendar.seconds.sum() == pytest.approx(YEAR_S)
    assert problem.calendar.days == tuple(
        (START + timedelta(days=int(day))).isoformat() for day in np.unique(sampled_days(4))
    )
    per_mwh = problem.sites[0].price_per_j * 3.6e9
    assert per_mwh == pytest.approx([40 + day / 10 + hour for day in np.unique(sampled_days(4)) for hour in range(24)])


def test_starts_and_deadlines_between_stretches_add_no_slots(asked):
    edges = np.flatnonzero(np.diff(sampled_days(4))) + 1
    run = {
        "name": "run",
        "kind": "training",
        "architecture": "Llama-3.2-1B",
        "tokens": "20B",
        "start": f"{edges[0]} d",
        "deadline": f"{edges[2]} d",
    }
    spec = asked(np.unique(sampled_days(4)))
    problem = resolve_document({**spec, "workloads": [*spec["workloads"], run]})
    assert problem.calendar.windows == 3 and problem.calendar.slots == 96
    assert problem.calendar.within(edges[0] * 86400.0, edges[2] * 86400.0).sum() == 48


def test_it_is_the_whole_problem_unless_the_spec_says_more_of_the_year(asked):
    whole, more = (resolve_document(asked(days)) for days in (np.unique(sampled_days(4)), range(DAYS_PER_YEAR)))
    assert (whole.bound_of, more.bound_of) == ("full", "reduced")


def test_a_plan_holds_and_is_dispatched_only_where_there_is_more_to_dispatch(asked):
    plan = planner.solve(asked(np.unique(sampled_days(4))))
    assert not verify_plan(plan) and "dispatch" not in plan.document and len(plan["schedule"]) == 96
    longer = planner.solve(asked(range(DAYS_PER_YEAR)))
    assert not verify_plan(longer) and longer["dispatch"]["slots"] == 8760
    assert longer["totals"]["cost"] == pytest.approx(plan["totals"]["cost"])


def test_days_are_asked_for():
    with pytest.raises(SpecError, match=r'"days" .* belongs to the calendars "representative-days" and "sampled-days"'):
        parse_spec({"name": "x", "horizon": {"calendar": "sampled-days"}, "workloads": [], "sites": []})


# -- "representative-days" ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def year_of(tiny, tmp_path_factory):
    """The question of a full year whose horizon is cut at given days, for some years."""
    folder = tmp_path_factory.mktemp("hourly")
    every = prices(range(DAYS_PER_YEAR), lambda day, hour: 60 + 20 * np.sin(day / 9) + hour)
    (folder / "price.csv").write_text(every, encoding="utf-8")
    load = {"requests_per_s": 10, "week": [1, 1, 1, 1, 1, 0.7, 0.5]}
    chat = {**tiny()["workloads"][0], "demand": load}
    site = {"region": "us-virginia", "systems": ["DGX H100"], "hourly": "price.csv"}
    horizon = {"start": START.isoformat(), "calendar": "full-year"}
    problem = resolve_document(with_series(tiny(horizon=horizon, workloads=[chat], sites=[site]), [folder]))

    def cut(borders, years=1):
        edges_s = [day * DAY_S for day in borders if day < DAYS_PER_YEAR * years]
        return replace(
            problem,
            calendar=build_calendar(years, 0.08, edges_s, START, np.arange(DAYS_PER_YEAR)),
            economics=replace(problem.economics, years=years),
        )

    return cut


@settings(max_examples=few_of(12), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(1, 729), max_size=7, unique=True).map(sorted), st.integers(1, 6), st.sampled_from([1, 2]))
def test_typical_days_are_chosen_once_and_keep_the_totals_of_each_window(year_of, borders, count, years):
    whole = year_of(borders, years)
    problem = representative(whole, count)
    reduced, full = problem.calendar, whole.calendar
    days = len(reduced.days)
    assert days <= max(count, len(np.unique(stretches(full.edges_s, years)))) + 2  # the peaks of price and of demand
    if years == 1:
        assert reduced.slots == 24 * days  # each of the days lies in one window
    assert reduced.seconds.sum() == pytest.approx(YEAR_S * years)
    for series in (lambda p: p.sites[0].price_per_j, lambda p: p.serving[0].requests_per_s.sum(axis=0)):
        for window in range(full.windows):
            kept, wanted = (
                float((c.seconds * series(p)[c.hour])[c.window == window].sum())
                for p, c in ((problem, reduced), (whole, full))
            )
            # in several years a window may hold a part of a stretch, and only stretches keep their totals
            assert kept == pytest.approx(wanted, rel=1e-9 if years == 1 else 0.3)


def test_jobs_that_end_within_the_year_multiply_no_days(year_of):
    """Days were chosen anew in each of the windows before: four times as many slots."""
    without, with_four = (representative(year_of(cut), 8).calendar for cut in ((), (50, 120, 200, 290, 340)))
    assert with_four.slots == without.slots and with_four.windows == 6
