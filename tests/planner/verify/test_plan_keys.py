"""Keys that no row of a plan has are findings in a plan of this release, and are listed as unchecked in one of another."""

from __future__ import annotations

import copy

import pytest

from planner.plan import Plan
from planner.verify.plan import verified


@pytest.mark.parametrize("table", ["fleet", "workloads"])
def test_an_unknown_key_of_a_row_is_found(small_plan, table):
    document = copy.deepcopy(small_plan.document)
    document[table][0]["colour"] = "red"
    assert [(found.path, found.message) for found in verified(Plan(document)).findings] == [
        (f"{table}[].colour", "no row of a plan of this release has this key")
    ]
    document["versions"]["flopwatt"] = "9.9"
    later = verified(Plan(document))
    assert later.findings == [] and f"{table}[].colour" in [part.path for part in later.unchecked]
