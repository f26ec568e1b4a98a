"""Specs that differ in numbers alone share their leads, and an answer is the same from one process, from several, and after a kill."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.spec.document import edited
from planner.studies.batch import answers
from planner.studies.batch_lines import Line, Settings
from planner.studies.batches.groups import LEAST, groups, in_turn, leads_of, shape_of
from planner.studies.engines.local import LocalEngine

PRICE = "offers[0].price"


@given(st.integers(LEAST, 500))
def test_leads_are_members_with_both_ends_and_few(count):
    leads = leads_of(range(count))
    assert leads[0] == 0 and leads == sorted(set(leads)) and 4 * len(leads) <= count
    assert len(leads) == 1 or leads[-1] == count - 1


def test_shapes_are_equal_for_other_numbers_and_names_alone(tiny):
    same = [((PRICE, "1 USD"),), (("workloads[0].demand.requests_per_s", 1),), (("name", "other"), ("id", 7))]
    other = [(("offers[0].system", "DGX H200"),), (("limits.budget", "1 USD"),), (("solver.replicas", "whole"),)]
    assert all(shape_of(edited(tiny(), edits)) == shape_of(tiny()) for edits in same)
    assert all(shape_of(edited(tiny(), edits)) != shape_of(tiny()) for edits in other)
    assert shape_of({**tiny(), 1: np.int64(3)}) != shape_of(tiny())  # of a caller in Python, that JSON has not
    few = [tiny()] * (LEAST - 1)
    assert groups(few) == [] and groups([*few, {}, tiny()]) == [[*range(LEAST - 1), LEAST]]
    assert [kept for _, kept in in_turn(few)] == [None] * len(few)


def test_answers_are_those_of_one_process_of_two_and_of_a_run_that_goes_on(tiny):
    lines = [Line(n, n, edited(tiny(), ((PRICE, f"{300 + 5 * n}000 USD"),))) for n in range(7)]
    lines.append(Line(7, 7, status="invalid", error="no spec"))

    def told(left, jobs):
        found = {}
        for each in answers(left, LocalEngine(jobs), Settings(), lines):
            record = json.loads(each.record)
            assert each.line.number not in found
            found[each.line.number] = record["status"], record.get("plan", {}).get("objective")
        return found

    whole = told(lines, 1)
    assert sorted(whole) == list(range(8)) and told(lines, 2) == whole
    left = lines[3:]  # the lead is answered already
    assert told(left, 1) == {line.number: whole[line.number] for line in left}
    for n in (0, 6):
        assert whole[n][1]["value"] == planner.solve(lines[n].document).value


def test_rows_of_the_library_are_those_of_plans_alone(tiny):
    prices = [f"{300 + 5 * n}000 USD" for n in range(LEAST)]
    rows = planner.sweep(tiny(), {PRICE: prices})
    assert [row[PRICE] for row in rows] == prices
    assert rows[-1]["value"] == planner.solve(edited(tiny(), ((PRICE, prices[-1]),))).value
