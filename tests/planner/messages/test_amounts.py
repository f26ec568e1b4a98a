"""Amounts as people write them: from a million on with four digits and the scale, in each language."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.units import parse_money
from planner.messages import LANGUAGES, Said, in_full, of_row, say, shortened, translated
from planner.plan import Plan
from planner.report.outputs.sections import csv_tables
from planner.report.page import one_page
from planner.report.report import render
from planner.report.words import amount, whole, with_unit
from tests.examples.test_loads_of_stored_plans import stored

SCALES = {
    "": 1, "M": 10**6, "B": 10**9, "T": 10**12, "万": 10**4, "亿": 10**8, "万亿": 10**12,
}  # fmt: skip
LANGUAGE = pytest.mark.parametrize("language", LANGUAGES)
AMOUNTS = st.floats(-1e17, 1e17) | st.integers(3, 16).flatmap(
    lambda power: st.floats(0.99 * 10**power, 1.01 * 10**power)
)


def read(text: str) -> Fraction:
    """Read an amount back exactly."""
    digits = text.rstrip("MBT 万亿")
    return Fraction(digits.replace(",", "")) * SCALES[text.removeprefix(digits).strip()]


@LANGUAGE
@given(value=AMOUNTS)
def test_a_shortened_amount_differs_by_a_twentieth_of_a_per_cent_at_most(language, value):
    read_back = read(shortened(value, language))
    most = Fraction(1, 2) if abs(value) < 999_999 else abs(Fraction(value)) / 2000
    assert abs(read_back - Fraction(value)) <= most


@LANGUAGE
@given(values=st.tuples(AMOUNTS, AMOUNTS))
def test_the_larger_amount_is_never_written_as_the_smaller_one(language, values):
    low, high = sorted(values)
    assert read(shortened(low, language)) <= read(shortened(high, language))
    assert read(shortened(-low, language)) == -read(shortened(low, language))


@given(value=st.floats(1e6, 9e14))
def test_a_spec_reads_a_shortened_amount_back(value):
    amount_of_spec, currency = parse_money(f"{shortened(value)} CNY")
    assert amount_of_spec == pytest.approx(float(read(shortened(value))), rel=1e-12) and currency == "CNY"


@given(value=AMOUNTS)
def test_an_amount_is_short_in_every_language_and_full_for_other_programs(value):
    text = with_unit(value, "CNY")
    assert translated(text, "zh").removesuffix(" CNY") == translated(amount(value), "zh")
    if abs(value) >= 1000:
        assert in_full(whole(value)) == f"{value:,.0f}" and in_full(text) == f"{value:,.0f} CNY"
    if 1e6 <= abs(value) < 1e15:
        assert all(sum(map(str.isdigit, translated(whole(value), language))) <= 4 for language in LANGUAGES)


@pytest.mark.parametrize(
    ("value", "en", "zh"),
    [
        (999_999.4, "999,999", "999,999"),
        (1e6, "1M", "100 万"),
        (237_232_541, "237.2M", "2.372 亿"),
        (99_996_000.0, "100M", "1 亿"),
        (999_960_000.0, "1B", "10 亿"),
        (146_032_477_790.0, "146B", "1,460 亿"),
        (5.11e13, "51.1T", "51.1 万亿"),
        (-2.5e6, "-2.5M", "-250 万"),
    ],
)
def test_amounts_as_they_are_read(value, en, zh):
    text = whole(value)
    assert (translated(text, "en"), translated(text, "zh")) == (en, zh)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_amount_has_no_scale(value):
    assert shortened(value) == f"{value}" and amount(value) == f"{value}"


def test_a_stored_sentence_keeps_the_amount_to_the_unit():
    text = say("amount.in_unit", amount=whole(87_282_844.0), unit="CNY")
    assert isinstance(text, Said)
    message = of_row(json.loads(json.dumps(text.message.row())))
    assert message is not None and message.text("zh") == "8,728 万 CNY" and in_full(message.text()) == "87,282,844 CNY"


def national() -> Plan:
    """The stored national plan with a thousand times its cost: 136 billion CNY."""
    document = json.loads(stored("national_stack").to_json())
    document["objective"]["value"] *= 1000
    document["bound"] *= 1000
    document["totals"]["cost"] *= 1000
    document["costs"] = {name: 1000 * part for name, part in document["costs"].items()}
    for workload in document["workloads"]:
        workload["cost"] *= 1000
    return Plan(document)


def test_pages_are_short_and_files_of_other_programs_are_full():
    plan = national()
    total = plan.totals["cost"]
    assert 1.3e11 < total < 1.4e11
    pages = {language: (one_page(plan, language=language), render(plan, "md", language)) for language in LANGUAGES}
    for language, texts in pages.items():
        for text in texts:
            assert shortened(total, language) in text and f"{total:,.0f}" not in text
    costs = csv_tables(plan)["costs"]
    assert all(f",{part!r}" in costs for part in plan.document["costs"].values())
    assert f"{total!r}" in render(plan, "json")
    loose = csv_tables(plan)["phases"]
    assert f"{plan.document['phases'][0]['capital']!r}" in loose
