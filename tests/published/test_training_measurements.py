"""Compare the models with the whole file of published training runs, if `--measurements DIR` gives it."""

from __future__ import annotations

import pytest

from catalog.lookup import Catalog
from planner.calibration.scores import validate


@pytest.fixture(scope="module")
def scored(measurements):
    return validate(measurements / "training.csv", Catalog.load()).as_json()


def test_every_row_is_predicted_or_has_a_reason(scored):
    assert scored["rows"] == scored["predicted"] + sum(scored["not_predictable"].values())
    assert scored["predicted"] >= 0.96 * scored["rows"]


def test_errors_stay_where_they_were_when_the_constants_were_fitted(scored):
    networks = scored["by"]["network"]
    assert networks["dense"]["step_time"]["median_ape"] <= 0.07
    assert networks["dense"]["step_time"]["within_20"] >= 0.92
    assert networks["moe"]["step_time"]["median_ape"] <= 0.12


def test_no_tier_of_the_interval_is_empty_or_certain(scored):
    assert 0.7 <= scored["metrics"]["step_time"]["coverage_80"] <= 0.95
