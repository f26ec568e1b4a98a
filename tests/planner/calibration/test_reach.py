"""Check the ranges of what was fitted, and that the growth of errors outside them comes from rows left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalog.lookup import shipped_catalog
from models.statistics.reach import slope_of
from planner.calibration.anchors import anchor_cases
from planner.calibration.reach import distances, features_of, range_figures, ranges_of, slope_figures, slopes_by_label
from planner.calibration.serving_target import SERVING
from planner.problem.intervals import EVERY, FEATURES, Reach

CATALOG = shipped_catalog()
VALUES = CATALOG.constants("serving")
CASES = anchor_cases(CATALOG)[0]
KNOWN = features_of(CASES, VALUES)


def test_features_are_those_of_the_run():
    _, found = next((c, f) for c, f in zip(CASES, KNOWN, strict=True) if "96 H100, decode" in c.row.id)
    assert set(found) == set(FEATURES)
    assert (found["layers"], found["experts"], found["chips"], found["context"], found["bits"]) == (
        61,
        256,
        72,
        2001,
        8,
    )
    assert found["batch"] > 72 * 50


def test_ranges_are_those_of_a_family_over_rows_that_enter_a_fit():
    ranges = ranges_of(CASES, KNOWN)
    assert ranges["blackwell"]["bits"] == (4.0, 8.0) and ranges["blackwell"]["chips"] == (8.0, 48.0)
    assert ranges["hopper"]["chips"] == (8.0, 72.0), "the run on 144 chips is of grade C"
    assert ranges[EVERY]["chips"] == (8.0, 160.0)
    assert range_figures(ranges, "OWN")["hopper|chips"]["value"] == [8.0, 72.0]


def test_a_row_lies_as_far_outside_as_its_source_stretches_the_range():
    near = [replace(CASES[3], row=replace(CASES[3].row, text={**CASES[3].row.text, "id": f"lab{i}-x"})) for i in (1, 2)]
    same = [dict(KNOWN[3]), dict(KNOWN[3])]
    assert distances(near, same).tolist() == [0.0, 0.0]
    far = [same[0], {**same[1], "batch": 4.0 * same[1]["batch"], "context": 2.0 * same[1]["context"]}]
    assert distances(near, far)[1] == pytest.approx(np.hypot(np.log(4.0), np.log(2.0)))


def test_a_slope_is_what_errors_outside_say():
    rng = np.random.default_rng(3)
    far = np.repeat([0.0, 1.0], 400)
    errors = rng.laplace(0.0, np.where(far > 0, 0.2, 0.1))
    assert slope_of(errors, far, np.ones(800)) == pytest.approx(1.0, abs=0.3)
    assert slope_of(errors, np.zeros(800), np.ones(800)) == 0.0
    assert slope_of(rng.laplace(0.0, np.where(far > 0, 0.05, 0.1)), far, np.ones(800)) == 0.0, (
        "no interval narrows outside"
    )


def test_slopes_are_written_by_label_with_the_votes_behind_them():
    slopes = slopes_by_label(CASES, KNOWN, SERVING.predict(CASES, SERVING.observations(CASES))(VALUES))
    assert set(slopes) == {"tpot", "ttft", "throughput"} and slopes["tpot"] == (0.0, 0)
    slope, votes = slopes["throughput"]
    assert slope >= 0.0 and votes > 0
    assert f"{votes} groups" in slope_figures(slopes, "OWN")["throughput"]["note"]


def test_an_interval_grows_with_the_distance_outside_its_family():
    reach = Reach({"hopper": {"batch": (1.0, 512.0)}, EVERY: {"batch": (1.0, 4096.0)}}, {"tpot": 0.5})
    assert reach.power("tpot", "hopper", {"batch": 512.0}) == 1.0
    assert reach.power("tpot", "hopper", {"batch": 512.0 * np.e}) == pytest.approx(1.5)
    assert reach.power("ttft", "hopper", {"batch": 5e4}) == 1.0
    assert reach.outside("family of tomorrow", {"batch": 4096.0}) == {}, "without runs of its own, all families count"
