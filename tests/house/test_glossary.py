"""Check that docs/glossary.md is in order and points at files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| term ")
]


def test_terms_are_alphabetical_and_unique():
    terms = [row[0].casefold() for row in ROWS]
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_term_has_a_definition_a_unit_and_a_file(row):
    _, meaning, unit, where = row
    assert meaning.endswith(".") and unit
    assert (ROOT / re.fullmatch(r"`([\w/]+\.py)`", where)[1]).is_file()
