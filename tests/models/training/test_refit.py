"""The refit that stands behind the shipped constants: bounds, weights, and the form in which it is written."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from catalog.lookup import Catalog
from models.statistics.fitting import Linearised, Prior, refit
from models.training.priors import TRAINING_PRIORS


@pytest.fixture(scope="module")
def script(root):
    spec = importlib.util.spec_from_file_location("refit_script", root / "benchmarks" / "refit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_constant_at_its_bound_leaves_the_rest_to_the_others():
    # ln y = ln a + ln b with a at most 1: the data ask for a b = 4 and a = 2, so that b has to be 4 alone.
    def predict(c):
        return np.log(np.array([c["a"] * c["b"], c["a"]]))

    priors = {"a": Prior(1.0, 10.0, upper=1.0), "b": Prior(1.0, 10.0)}
    slope = np.array([[1.0, 1.0], [1.0, 0.0]])
    whole = Linearised(predict, np.log([4.0, 2.0]), np.ones(2), priors, {"a": 0.9, "b": 1.0}, slope)
    found = refit(whole, np.array([True, True]), rounds=8)
    assert found["a"] == pytest.approx(1.0)
    assert found["b"] == pytest.approx(4.0, rel=1e-2)


def test_a_constant_comes_away_from_its_bound():
    priors = {"a": Prior(1.0, 10.0, upper=1.0)}
    whole = Linearised(lambda c: np.log([c["a"]]), np.log([0.5]), np.ones(1), priors, {"a": 1.0}, np.ones((1, 1)))
    assert refit(whole, np.array([True]), rounds=8)["a"] == pytest.approx(0.5, rel=1e-2)


def test_written_records_replace_their_own_and_leave_the_others(script):
    text = script.DATA.read_text(encoding="utf-8")
    figures = {
        "value": {"value": 0.123, "unit": "1", "source": ["CAL-TRAINING"], "confidence": "B", "kind": "calibrated"}
    }
    found = json.loads(
        script.replaced(text, {"training.straggler_per_doubling": figures, "training.of_no_model": figures})
    )["constants"]
    before = {record["name"]: record for record in json.loads(text)["constants"]}
    after = {record["name"]: record for record in found}
    assert after["training.straggler_per_doubling"]["figures"]["value"]["value"] == 0.123
    assert list(after) == [*before, "training.of_no_model"]
    assert all(after[name] == record for name, record in before.items() if name != "training.straggler_per_doubling")


def test_every_fitted_constant_is_shipped_with_its_range_and_its_spread():
    catalog = Catalog.load()
    for name, prior in TRAINING_PRIORS.items():
        figure = catalog.get("constants", f"training.{name}").figure("value")
        assert figure.kind == "calibrated" and figure.low <= figure.value <= figure.high, name
        assert figure.value <= prior.upper and "predicted / measured" in figure.note, name
