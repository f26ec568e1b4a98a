"""Typical days of the catalog are listed by the local clock, and read by it in each calendar."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from catalog.lookup import Catalog
from planner.problem.calendar import Clock
from planner.resolve.resolver import resolve_document
from tests.plans.one_server import SYSTEM, question

PEAK = range(17, 20)  # local hours
ZONES = ["Asia/Singapore", "Asia/Kolkata", "America/New_York", "America/Los_Angeles", "Europe/London", "Australia/Sydney", "Australia/Lord_Howe"]  # fmt: skip
DAY = np.arange(24.0)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("start", [date(2027, 1, 1), date(2027, 7, 1)])
def test_a_profile_of_a_typical_day_is_the_fold_of_its_full_year(zone, start):
    """The catalog lists a local hour's mean by its UTC hour in standard time: both calendars read it by the local clock."""
    swing = np.sin(DAY / 24 * 2 * np.pi)
    year = Clock(date(2027, 1, 1), True).repeated(swing, zone)
    folded = Clock(start, False).fold(year, zone)
    # Lord Howe moves its clocks by half an hour, which the fold shares between two hours.
    assert Clock(start, False).repeated(swing, zone) == pytest.approx(folded, abs=0.02 if "Lord" in zone else 1e-9)


@pytest.mark.parametrize("zone", ["Asia/Singapore", "Asia/Kolkata"])
def test_a_profile_without_summer_time_is_read_by_utc_hour(zone):
    assert Clock(date(2027, 7, 1), False).repeated(DAY, zone).tolist() == DAY.tolist()
    assert Clock(date(2027, 7, 1), True).repeated(DAY, zone).tolist() == np.tile(DAY, 365).tolist()


def test_a_profile_comes_an_hour_earlier_in_summer():
    """18 h in New York is 23 h UTC in winter and 22 h in summer."""
    zone = "America/New_York"
    winter, summer = (
        Clock(start, False).repeated(DAY, zone).tolist() for start in (date(2027, 1, 1), date(2027, 7, 1))
    )
    assert (winter[23], summer[22]) == (23.0, 23.0)
    year = Clock(date(2027, 1, 1), True).repeated(DAY, zone).reshape(365, 24)
    assert (year[0, 23], year[181, 22], year[364, 23]) == (23.0, 23.0, 23.0)


@pytest.mark.parametrize(("region", "start"), [("sg", "2027-07-01"), ("us-california", "2027-01-01"), ("us-california", "2027-07-01")])  # fmt: skip
def test_the_catalogs_day_costs_an_evening_peak_what_the_full_year_does(region, start):
    """A region at UTC+8, and one whose clocks move: demand by local hour meets the market of the same local hours."""
    paid = []
    for calendar in ("representative-day", "full-year"):
        document = question(horizon={"start": start, "years": 1, "discount_rate": 0.08, "calendar": calendar})
        work = document["workloads"][0]
        work["demand"] = {"requests_per_s": 5, "profile": [7 if h in PEAK else 0.01 for h in range(24)]}
        work["origins"] = [{"region": region, "share": 1}]
        document["sites"] = [{"region": region, "systems": [SYSTEM], "delivery": "0 USD/kWh"}]
        problem = resolve_document({**document, "overrides": {}})
        (asked,) = problem.serving
        paid.append(float(np.mean(asked.requests_per_s[0] * problem.sites[0].price_per_j)))
    assert paid[0] == pytest.approx(paid[1], rel=1e-9)


def test_profiles_of_the_catalog_say_by_which_clock_they_are():
    listed = [
        region.get(name) for region in Catalog.load().records("regions") for name in ("price_profile", "carbon_profile")
    ]
    notes = [figure.note for figure in listed if figure is not None]
    assert len(notes) == 24
    assert all("mean of each local hour, by its UTC hour in standard time" in note for note in notes)
