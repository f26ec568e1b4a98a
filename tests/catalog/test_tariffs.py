"""Tariffs by local time."""

import itertools

import pytest

from catalog import Catalog
from catalog.tariffs import hourly_values, tariff_bands

CATALOG = Catalog.load()
MONDAY, SUNDAY = 0, 6


def test_guangdong_has_the_multipliers_of_its_notice():
    """Peak 1.7, flat 1, valley 0.38; critical 1.25 times the peak, 11-12 and 15-17 h from July to September."""
    tariff = CATALOG.get("tariffs", "cn-guangdong")
    july, may = hourly_values(tariff, 7, MONDAY), hourly_values(tariff, 5, MONDAY)
    assert july[11] == july[15] == july[16] == pytest.approx(1.7 * 1.25)
    assert may[11] == may[15] == 1.7
    assert may[3] == july[3] == 0.38
    assert may[20] == 1.0


def test_a_complete_tariff_has_a_figure_at_every_hour_of_the_year():
    complete = [t for t in CATALOG.records("tariffs") if t.words("status") == "complete"]
    assert len(complete) >= 20
    for tariff in complete:
        for month in range(1, 13):
            for weekday in range(7):
                assert None not in hourly_values(tariff, month, weekday), (tariff.name, month, weekday)


def test_bands_of_a_tariff_do_not_overlap():
    for tariff in CATALOG.records("tariffs"):
        bands = tariff_bands(tariff)
        for month in range(1, 13):
            for weekday in range(7):
                spans = sorted((b.start_h, b.end_h) for b in bands if b.holds(month, weekday))
                assert all(0 <= a < b <= 24 for a, b in spans), tariff.name
                assert all(x[1] <= y[0] for x, y in itertools.pairwise(spans)), (tariff.name, month, weekday)


def test_only_a_complete_tariff_is_tied_to_a_region():
    for region in CATALOG.records("regions"):
        if region.words("tariff"):
            assert CATALOG.get("tariffs", region.words("tariff")).words("status") == "complete", region.name


def band_at(tariff, month, weekday, hour):
    return next(b for b in tariff_bands(tariff) if b.holds(month, weekday) and b.start_h <= hour < b.end_h)


def test_day_kinds_and_half_hours():
    """Megaflex has no peak on Sundays; an hour in which the band changes gets the mean."""
    eskom = CATALOG.get("tariffs", "za-johannesburg")
    assert band_at(eskom, 7, MONDAY, 7.0).name == "peak"
    assert all(b.name != "peak" for b in tariff_bands(eskom) if b.holds(7, SUNDAY))
    zhejiang = [t for t in CATALOG.records("tariffs") if any(b.start_h % 1 for b in tariff_bands(t))]
    assert zhejiang
    tariff = zhejiang[0]
    band = next(b for b in tariff_bands(tariff) if b.start_h % 1)
    before = band_at(tariff, band.months[0], MONDAY, band.start_h - 0.25)
    hour = int(band.start_h)
    expected = (before.figure.number + band.figure.number) / 2
    assert hourly_values(tariff, band.months[0], MONDAY)[hour] == pytest.approx(expected)


def test_a_window_without_a_price_has_no_value():
    tariff = CATALOG.get("tariffs", "us-california")
    assert tariff.words("status") == "windows"
    assert set(hourly_values(tariff, 7, MONDAY)) == {None}
    assert band_at(tariff, 7, MONDAY, 17.0).name == "peak"
