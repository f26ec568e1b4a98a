"""Figures of the page in the language of a reader: no English scale or word in Chinese, and the same size as before."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard.figures import amount, count
from planner.report.locale import Words
from planner.report.locale.display import Display

ZH, EN = Words("zh"), Words("en")
SCALES = {"": 1.0, "万": 1e4, "亿": 1e8, "万亿": 1e12}


def size(text: str) -> float:
    """Read the number that a Chinese text begins with, by its scale."""
    found = re.match(r"(-?[\d,.]+)(?: (万亿|亿|万))?", text)
    assert found is not None
    return float(found[1].replace(",", "")) * SCALES[found[2] or ""]


@given(value=st.floats(1.0, 1e13), unit=st.sampled_from(["USD", "CNY", "chip", "system", "token", "request"]))
def test_a_chinese_reader_sees_no_english_scale_and_the_same_size(value, unit):
    text = amount(value, unit, ZH)
    assert not re.search(r"\d\s?[kMBT]\b|chips|systems|tokens|requests", text)
    assert size(text) == pytest.approx(value, rel=5.1e-4)


@given(value=st.floats(1.0, 1e13))
def test_a_plain_number_keeps_its_size(value):
    assert size(count(value, ZH)) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (51_500_000.0, "USD", "5,150 万 USD"),
        (18_700.0, "USD", "18,700 USD"),
        (1e-8, "USD/J", "0.036 USD/kWh"),
        (2.95 / 3600, "USD/s", "2.95 USD/小时"),
        (0.3e-6, "USD/token", "0.3 USD/百万 token"),
        (2.0, "year", "2 年"),
        (32_380.0, "W", "32.38 kW"),
    ],
)
def test_prices_and_quantities_by_hand(value, unit, said):
    assert amount(value, unit, ZH) == said


@pytest.mark.parametrize("unit", ["USD", "USD/J", "chip", "W", "USD/system"])
def test_english_stays_as_it_was(unit):
    assert amount(51_500_000.0, unit, EN) == amount(51_500_000.0, unit)


def test_the_currency_of_the_reader_counts():
    t = Words("zh", Display("CNY", (("USD", 1.0), ("CNY", 7.0))))
    assert amount(51_500_000.0, "USD", t) == "3.605 亿 CNY"
