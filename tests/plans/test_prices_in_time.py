"""What changes with time: prices of purchases, and the hours of a typical day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from planner.errors import SpecError
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


NEW_YEAR, CHRISTMAS = date(2027, 1, 1), date(2027, 12, 24)  # both Fridays: the nearest Sundays are two days later
IN_2027 = {"start": "2027-01-01", "years": 1, "discount_rate": 0.08, "calendar": "full-year"}


def priced_by_weekday(holidays, year=2023, zone="us-virginia"):
    """Resolve prices of a file that costs 10 (Monday) to 70 USD/MWh (Sunday) by UTC weekday, at the hours of a year."""
    hours, _ = hours_of(year)
    document = question(horizon={**IN_2027, "holidays": holidays})
    site = document["sites"][0]
    del site["electricity_price"]
    site["hourly"], site["delivery"] = "prices.csv", "0 USD/kWh"
    values = [10.0 * (hour.weekday() + 1) for hour in hours]
    series = {"start": f"{year}-01-01T00", "sha256": "0" * 64, "columns": {"price_usd_per_mwh": values}}
    return resolve_document({**document, "series": {"prices.csv": series}})


def test_a_holiday_is_read_as_the_nearest_sunday_of_another_year():
    """The local days of the two holidays, 5 hours behind UTC, cost what Sunday costs; all other hours stay."""
    plain, free = priced_by_weekday([]), priced_by_weekday(["2027-01-01", "2027-12-24"])
    before, after = plain.sites[0].price_per_j * 3.6e9, free.sites[0].price_per_j * 3.6e9
    moved = np.flatnonzero(np.abs(before - after) > 1e-6)
    days = [int((day - date(2027, 1, 1)).days) * 24 + 5 for day in (NEW_YEAR, CHRISTMAS)]
    assert moved.tolist() == [hour for first in days for hour in range(first, first + 24)]
    assert after[days[1] : days[1] + 24] == pytest.approx([70.0] * 19 + [10.0] * 5)
    codes = {note.message.code: note.message.text() for note in free.notes}
    assert "2 holidays as the nearest Sunday" in codes["series.another_year_with_holidays"]
    assert {row.path: row.value for row in free.assumptions}["horizon.holidays"] == "2027-01-01, 2027-12-24"
    assert any(note.message.code == "series.another_year" for note in plain.notes)


def test_a_file_of_the_same_year_has_its_holidays():
    plain, free = (priced_by_weekday(days, year=2027) for days in ([], ["2027-01-01"]))
    assert free.sites[0].price_per_j.tolist() == plain.sites[0].price_per_j.tolist()


def test_demand_of_a_holiday_is_that_of_sunday():
    week = [1, 1, 1, 1, 1, 1, 0.25]
    found = {}
    for days in ((), ("2027-01-06",)):
        document = question(horizon={**IN_2027, "holidays": list(days)})
        document["workloads"][0]["demand"] = {"requests_per_s": 5, "week": week}
        demand = resolve_document(document).serving[0].requests_per_s[0]
        found[days] = np.asarray(demand) / np.max(demand)
    first = 5 * 24 + 5  # Wednesday the 6th begins at 5:00 UTC in Virginia
    changed = np.flatnonzero(np.abs(found[()] - found[("2027-01-06",)]) > 1e-9)
    assert changed.tolist() == list(range(first, first + 24))
    assert found[("2027-01-06",)][changed] == pytest.approx([0.25] * 24)


def test_a_tariff_bills_a_holiday_as_sunday():
    """A tariff that costs 0.05 on weekdays and 0.5 USD/kWh on Sundays."""
    bands = [
        [list(range(1, 13)), kind, 0, 24, label, f"price_{label}"]
        for kind, label in (("weekday", "v"), ("weekend", "p"))
    ]
    tariff = {**TARIFF, "text": {**TARIFF["text"], "bands": bands}}
    dear = {}
    for days in ((), ("2027-01-06", "2027-01-09")):  # Wednesday, and a Saturday, which costs the same already
        document = question(horizon={**IN_2027, "holidays": list(days)})
        site = document["sites"][0]
        del site["electricity_price"]
        site["tariff"], document["catalog"] = "evening", {"tariffs": [tariff]}
        dear[days] = np.count_nonzero(resolve_document(document).sites[0].price_per_j * 3.6e6 > 0.4)
    assert list(np.diff(list(dear.values()))) == [24]


@pytest.mark.parametrize(("start", "calendar", "day", "known"), [
    ("2027-07-01", "full-year", "2027-06-30", False), ("2027-07-01", "full-year", "2028-06-29", True),
    ("2027-07-01", "representative-day", "2027-05-01", True), ("2027-07-01", "representative-day", "2028-01-01", False),
])  # fmt: skip
def test_holidays_lie_in_the_year_that_repeats(start, calendar, day, known):
    document = question(horizon={"start": start, "years": 1, "calendar": calendar, "holidays": [day]})
    if known:
        resolve_document(document)
    else:
        with pytest.raises(SpecError, match=f"no {day}; state holidays from"):
            resolve_document(document)
