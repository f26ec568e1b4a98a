"""Check that published rates of whole systems are observations of the serving model like rows, each with one vote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalog.lookup import Catalog, shipped_catalog
from planner.calibration.anchors import anchor_cases, is_anchor, with_anchors
from planner.calibration.fit import (
    LEAVE_OUT_OF_TIER,
    Measurements,
    enters_fit,
    fit_problem,
    leave_out_by_group,
    with_slopes,
)
from planner.calibration.levels import missed_by_tier
from planner.calibration.serving_target import SERVING
from planner.calibration.training_target import TRAINING
from planner.resolve.stack.anchors import anchor_prediction, best_case

CATALOG = shipped_catalog()
CASES, LEFT_OUT = anchor_cases(CATALOG)
VALUES = CATALOG.constants("serving")


def test_each_anchor_is_a_case_or_left_out_with_a_reason():
    names = {anchor.name for anchor in CATALOG.records("anchors")}
    used = {case.row.id.partition("-")[2] for case in CASES}
    assert used | {name for name, _ in LEFT_OUT} == names and not used & {name for name, _ in LEFT_OUT}
    assert all(reason for _, reason in LEFT_OUT)
    assert {name for name, _ in LEFT_OUT} == {
        a.name for a in CATALOG.records("anchors") if anchor_prediction(CATALOG, a) is None
    }


def test_an_anchor_enters_a_fit_by_its_grade():
    grades = {case.row.grade: False for case in CASES}
    for observation in SERVING.observations(CASES):
        grades[CASES[observation.case].row.grade] |= observation.fits
    assert grades == {grade: grade in ("A", "B") for grade in grades} and set(grades) >= {"A", "B", "C"}


def test_its_prediction_as_a_row_is_that_of_the_plan():
    observations = SERVING.observations(CASES)
    rows = np.exp(SERVING.predict(CASES, observations)(VALUES))
    found = {a.name: anchor_prediction(CATALOG, a) for a in CATALOG.records("anchors")}
    for observation, rate in zip(observations, rows, strict=True):
        case = CASES[observation.case]
        assert rate / case.chips == pytest.approx(found[case.row.id.partition("-")[2]].rate)


def test_an_anchor_weighs_as_a_group_of_mean_size_and_has_one_vote():
    plain = [replace_kind(CASES[0], f"lab-{i}") for i in range(6)]
    fit = fit_problem([*plain, CASES[0]], VALUES)
    votes = {case.vote for case in [*plain, CASES[0]]}
    assert len(votes) == 2, "rows of one group share a vote, and the anchor has one of its own"
    assert fit.weights[-1] ** 2 / fit.weights[0] ** 2 == pytest.approx(7 / 2)
    assert fit.weights[0] == fit.weights[1]
    assert len({case.vote for case in CASES}) == len(CASES)


def replace_kind(case, name):
    """Return a common row of the same run."""
    from planner.calibration.serving_cases import MeasuredServing

    row = replace(case.row, text={**case.row.text, "id": name})
    return MeasuredServing(row, case.case, case.architecture, case.chip, case.chips, case.measured, case.inferred)


def test_anchors_left_out_are_scored():
    some = [case for case in CASES if case.row.grade in ("A", "B")][:6]
    whole = with_slopes(
        replace(fit_problem(some, VALUES), priors={"memory_efficiency": SERVING.priors["memory_efficiency"]})
    )
    left_out = {by: leave_out_by_group(some, by, whole)[0] for by in LEAVE_OUT_OF_TIER.values()}
    assert all(np.all(np.isfinite(found)) for found in left_out.values())
    missed = missed_by_tier(some, left_out)["new_source", "throughput"]
    assert len(missed) == len(some) == len(set(missed.votes)) and np.all(enters_fit(some))


def test_anchors_join_the_rows_of_serving_alone():
    serving = with_anchors(Measurements(SERVING, (), 0, ()), CATALOG)
    assert len(serving.cases) == len(CASES) and serving.rows == len(CASES) + len(LEFT_OUT)
    assert all(is_anchor(row) for row, _ in serving.refused)
    assert with_anchors(Measurements(TRAINING, (), 0, ()), CATALOG).cases == ()


def test_an_anchor_without_room_in_memory_has_no_prediction(tmp_path):
    entry = """{"anchors": [{"name": "DeepSeek-R1 on one chip", "text": {"chip": "H100 SXM5 80GB", "architecture": "DeepSeek-R1",
      "phase": "decode", "precision": "fp8", "grade": "A"}, "figures": {"rate": {"value": 100, "unit": "tokens/s", "note": "own"},
      "chips": {"value": 1, "unit": "chips", "note": "own"}, "input_tokens": {"value": 1000, "unit": "tokens", "note": "own"}}}]}"""
    (tmp_path / "own.json").write_text(entry, encoding="utf-8")
    catalog = Catalog.load([tmp_path])
    anchor = catalog.get("anchors", "DeepSeek-R1 on one chip")
    assert best_case(catalog, anchor, VALUES) is None and anchor_prediction(catalog, anchor) is None
    assert ("DeepSeek-R1 on one chip", "one request does not fit in memory") in anchor_cases(catalog)[1]
