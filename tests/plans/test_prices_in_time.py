"""What changes with time: prices of purchases, and the hours of a typical day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from planner.problem.calendar import Clock
from planner.resolve.resolver import resolve_document
from planner.spec.series import at_instants
from tests.plans.one_server import NOTHING_ELSE, SYSTEM, cost_of, question, solved

FALLING = {"system": SYSTEM, "how": "buy", "price": "300000 USD", "price_change_per_year": -0.3}
SEVEN_YEARS = {"start": "2027-01-01", "years": 7, "discount_rate": 0.08}


def test_a_falling_price_counts_when_a_system_is_replaced_without_phases():
    """A life of 5 years in 7: the second costs 0.7^5 of the first, and sells for 0.6 of that after two years."""
    plan = solved(question(horizon=SEVEN_YEARS, offers=[FALLING]))
    second = 300_000 * 0.7**5 * (1.08**-5 - 0.6 * 1.08**-7)
    assert cost_of(plan) == pytest.approx(300_000 + second, rel=1e-6)
    assert cost_of(plan) == pytest.approx(316_664, abs=1)


def test_the_network_and_spare_parts_of_a_falling_price():
    """Spare parts go with the price of their system; maintenance stays that of the price on delivery."""
    economics = {**NOTHING_ELSE, "spare_parts": 0.1, "maintenance": 0.05}
    plan = solved(question(horizon=SEVEN_YEARS, offers=[FALLING], economics=economics))
    assert plan["costs"]["spare parts"] == pytest.approx(0.1 * plan["costs"]["systems"])
    pw = sum(1.08 ** -(k + 1) for k in range(7))
    assert plan["costs"]["maintenance"] == pytest.approx(0.05 * 300_000 * pw)


PEAK = range(17, 20)  # local hours
TARIFF = {
    "name": "evening", "text": {"region": "Virginia", "currency": "USD", "status": "complete", "bands": [
        [list(range(1, 13)), "all", begin, end, label, figure]
        for begin, end, label, figure in ((0, 17, "v", "price_v"), (17, 20, "p", "price_p"), (20, 24, "v", "price_v"))
    ]},
    "figures": {"price_v": {"value": 0.05, "unit": "USD/kWh", "note": "test"}, "price_p": {"value": 0.5, "unit": "USD/kWh", "note": "test"}},
}  # fmt: skip


def evening(calendar, start="2027-01-01"):
    """Ask for demand in the three local hours in which electricity costs ten times as much."""
    document = question(horizon={"start": start, "years": 1, "discount_rate": 0.08, "calendar": calendar})
    document["workloads"][0]["demand"] = {"requests_per_s": 5, "profile": [7 if h in PEAK else 0.01 for h in range(24)]}
    site = document["sites"][0]
    del site["electricity_price"]
    site["tariff"] = "evening"
    document["catalog"] = {"tariffs": [TARIFF]}
    return document


@pytest.mark.parametrize("start", ["2027-01-01", "2027-07-01"])
def test_a_typical_day_pays_what_the_full_year_pays(start):
    """Demand and tariff follow the same clock through summer time, so that both calendars cost the same."""
    day, year = (
        solved(evening(calendar, start))["costs"]["energy"] for calendar in ("representative-day", "full-year")
    )
    assert day == pytest.approx(year, rel=1e-6)


def test_prices_of_a_typical_day_fold_by_local_hour():
    """Every local hour has its own price; none is a mean of two."""
    prices = resolve_document(evening("representative-day")).sites[0].price_per_j
    assert sorted(set(np.round(prices * 3.6e6, 9))) == [0.05, 0.5]
    assert np.count_nonzero(prices * 3.6e6 > 0.4) == len(PEAK)


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Sydney", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_a_fold_keeps_what_does_not_change(zone):
    clock = Clock(date(2027, 1, 1), False)
    assert clock.fold(np.full(len(clock.instants()), 3.0), zone) == pytest.approx(np.full(24, 3.0))


def hours_of(year):
    """List the hours of a year and, as values, their weekdays."""
    first = datetime(year, 1, 1, tzinfo=UTC)
    hours = [first + timedelta(hours=h) for h in range((datetime(year + 1, 1, 1, tzinfo=UTC) - first).days * 24)]
    return hours, [float(hour.weekday() * 24 + hour.hour) for hour in hours]


@pytest.mark.parametrize("given", [2019, 2020, 2023, 2024, 2027, 2031])
@pytest.mark.parametrize("start", [date(2027, 1, 1), date(2028, 1, 1), date(2027, 6, 15)])
def test_a_series_of_another_year_keeps_its_weekdays(given, start):
    hours, weekday_hour = hours_of(given)
    instants = Clock(start, True).instants()
    read = at_instants(f"{given}-01-01T00", weekday_hour, instants, False)
    assert read.tolist() == [float(moment.weekday() * 24 + moment.hour) for moment in instants]
    day_of_year = at_instants(f"{given}-01-01T00", [float(h.timetuple().tm_yday) for h in hours], instants, False)
    apart = np.abs(day_of_year - np.array([float(moment.timetuple().tm_yday) for moment in instants]))
    assert np.minimum(apart, 365 - apart).max() <= 6  # the season stays


def test_a_series_of_the_same_year_is_read_as_it_is():
    hours, _ = hours_of(2027)
    read = at_instants(
        "2027-01-01T00", [float(i) for i in range(len(hours))], Clock(date(2027, 1, 1), True).instants(), False
    )
    assert read.tolist() == [float(i) for i in range(8760)]


def test_a_plan_says_that_a_series_is_of_another_year():
    _, weekday_hour = hours_of(2023)
    document = question(horizon={"start": "2027-01-01", "years": 1, "discount_rate": 0.08})
    site = document["sites"][0]
    del site["electricity_price"]
    site["hourly"] = "prices.csv"
    for year, said in ((2023, True), (2027, False)):
        series = {"start": f"{year}-01-01T00", "sha256": "0" * 64, "columns": {"price_usd_per_mwh": weekday_hour}}
        problem = resolve_document({**document, "series": {"prices.csv": series}})
        assert any(note.message.code == "series.another_year" for note in problem.notes) == said
