"""Amounts of studies: written by one rule, with every digit only where a program reads them."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import planner.studies
from planner.report.words import amount, signed, whole
from planner.studies.roi import Fleet, returns
from planner.studies.sweeps.study import Sweep
from planner.studies.sweeps.summary import Effect

FOLDER = Path(planner.studies.__file__).parent
LONG = re.compile(r"\d,\d{3},\d{3}|\de\+\d")
"""An amount of seven digits or more, or one with an exponent."""
OWN_FORMAT = re.compile(r":\+?,\.0f\}|:\+?,\.[4-9]g\}")
RATES = {"sensitivity_factors.py": 1, "variants/answer.py": 3}
"""Formats of their own: levels below 1,000 of a figure, and rates and times of `estimate`."""


def test_no_study_formats_amounts_by_a_rule_of_its_own():
    found = {
        str(path.relative_to(FOLDER)): len(OWN_FORMAT.findall(path.read_text("utf-8"))) for path in FOLDER.rglob("*.py")
    }
    assert {name: count for name, count in found.items() if count} == RATES


@given(value=st.floats(-1e15, 1e15))
def test_a_change_is_its_amount_with_a_sign(value):
    text = signed(value)
    assert text.lstrip("+") == amount(value) and text.startswith("+") == (value > 0)


@given(cost=st.floats(1e6, 1e12), gain=st.integers(1, 300))
def test_sentences_and_tables_of_a_return_hold_short_amounts_and_its_document_full_ones(cost, gain):
    found = returns(Fleet(cost, "CNY", 1000.0, None, "as stated"), [f"{gain}%"], team=f"{cost / 10!r} CNY/month")
    cells = [str(cell) for _, rows in found.sections for row in rows for cell in row.values()]
    assert any(whole(cost) in line for line in found.words)
    assert not [line for line in (*found.words, *cells) if LONG.search(line)]
    assert found.document["fleet"]["cost"] == cost


@given(values=st.lists(st.floats(1e6, 1e14), min_size=1, max_size=5))
def test_sentences_and_tables_of_a_sweep_hold_short_amounts_and_its_rows_full_ones(values):
    rows = [{"demand": at, "status": "optimal", "value": value} for at, value in enumerate(values)]
    found = Sweep(rows, [Effect("demand", tuple((at, value, 1) for at, value in enumerate(values)))], [], "CNY")
    cells = [str(cell) for _, table in found.sections for row in table for cell in row.values()]
    assert whole(min(values)) in found.words[1] and whole(max(values)) in found.words[1]
    assert not [line for line in (*found.words, *cells) if LONG.search(line)]
    assert [row["value"] for row in found.document["rows"]] == values
