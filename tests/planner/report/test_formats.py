"""An unknown format is an error that names the formats, for plans and for studies."""

from __future__ import annotations

import argparse

import pytest

from planner.cli.studies import print_study
from planner.report.report import render
from planner.tables import FORMATS

WORDS = 'unknown format "pdf"; known formats: table, json, csv, md'


def test_a_plan_in_an_unknown_format_is_refused(small_plan):
    with pytest.raises(ValueError) as refused:
        render(small_plan, "pdf")
    assert str(refused.value) == WORDS
    assert len({render(small_plan, form) for form in FORMATS}) == len(FORMATS)


def test_a_study_in_an_unknown_format_is_refused():
    with pytest.raises(ValueError) as refused:
        print_study(argparse.Namespace(format="pdf", output=None), None)
    assert str(refused.value) == WORDS
