"""Compare the shipped constants with published serving runs: cited figures in serving_runs.csv, one row per run.

The rows were drawn from each source by a hash of their number, without regard to how well they are predicted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from catalog.lookup import Catalog
from planner.calibration.measurements import read_rows
from planner.calibration.scores import validate
from planner.calibration.serving_cases import in_score

TABLE = Path(__file__).parent / "serving_runs.csv"


@pytest.fixture(scope="module")
def scored():
    return validate(TABLE, Catalog.load())


def median_error(scored, metric):
    return float(np.median([abs(s.ratio - 1.0) for s in scored.scores if s.metric == metric]))


def test_every_row_of_the_table_is_predicted(scored):
    assert scored.rows >= 60 and all(in_score(row) for row in read_rows(TABLE, "serving"))
    assert scored.predicted == scored.rows and not scored.reasons


@pytest.mark.parametrize(("metric", "bound"), [("tpot", 0.20), ("ttft", 0.45), ("throughput", 0.16)])
def test_median_error_by_metric(scored, metric, bound):
    assert median_error(scored, metric) <= bound


@pytest.mark.parametrize(("metric", "bound"), [("tpot", 0.10), ("ttft", 0.20), ("throughput", 0.10)])
def test_no_metric_is_off_to_one_side(scored, metric, bound):
    assert abs(np.median([s.ratio - 1.0 for s in scored.scores if s.metric == metric])) <= bound


def test_intervals_hold_most_figures_and_are_not_endless(scored):
    assert 0.70 <= np.mean([s.low <= s.measured <= s.high for s in scored.scores]) <= 0.97
    for metric, widest in (("tpot", 3.5), ("ttft", 12.0), ("throughput", 2.5)):
        assert np.median([s.high / s.low for s in scored.scores if s.metric == metric]) < widest


def test_a_wrong_constant_is_noticed(scored):
    """Half the memory efficiency must show in what is read from memory most: the time per output token."""
    catalog = Catalog.load()
    start = catalog.get("constants", "serving.memory_efficiency").value("value")
    worse = catalog.with_overrides(
        {"constants/serving.memory_efficiency/value": {"value": 0.5 * start, "note": "deliberately wrong"}}
    )
    assert median_error(validate(TABLE, worse), "tpot") > median_error(scored, "tpot") + 0.05
