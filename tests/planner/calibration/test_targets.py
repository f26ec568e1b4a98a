"""What training and serving measurements share: the kind of a file, source kinds, scales and offsets by metric, bands by label."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from catalog.lookup import Catalog
from models.statistics.fitting import Prior, fit
from models.statistics.intervals import TIERS, Band, Missed, bands_by_tier
from planner.calibration.fit import band_figures, catalog_bands, fit_own, read_measurements, shipped_priors
from planner.calibration.measurements import FILES, file_kind, read_rows
from planner.calibration.training_target import TRAINING
from planner.errors import SpecError

TRAINING_ROW = {
    "id": "r1", "source": "own cluster, June", "model": "Llama-3-8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336,
    "vocab": 128256, "seq_len": 8192, "chip": "H100", "n_chips": 64, "tp": 2, "pp": 1, "dp": 32, "micro_batch": 1,
    "global_batch_sequences": 256, "recompute": "none", "sharding": "zero1", "dtype": "bf16", "step_time_s": 5.0,
}  # fmt: skip

SOURCE = "our own cluster in the second hall, measured by night"


def write(path: Path, *rows: dict) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def header(path: Path, *columns: str) -> Path:
    path.write_text(",".join(columns) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", list(FILES))
def test_a_whole_header_and_a_small_one_tell_the_kind(tmp_path, kind):
    columns = FILES[kind]
    assert file_kind(header(tmp_path / "all.csv", *columns.text, *columns.numbers)) == kind
    assert file_kind(header(tmp_path / "few.csv", "chip", "n_chips", "model", columns.own[0])) == kind


def test_a_file_of_neither_kind_is_an_error_that_names_the_columns(tmp_path):
    with pytest.raises(SpecError, match=r"no column of training \(seq_len.*or of serving \(isl"):
        file_kind(header(tmp_path / "m.csv", "chip", "n_chips", "tokens_per_s_per_chip"))


def test_columns_of_one_kind_only_are_not_columns_of_the_other():
    for kind, columns in FILES.items():
        other = FILES["serving" if kind == "training" else "training"]
        assert not set(columns.own) & {*other.text, *other.numbers}
        assert set(columns.own) | set(columns.needed) <= {*columns.text, *columns.numbers}


@pytest.mark.parametrize(
    ("id", "kind"), [("lab-0001", "lab"), ("lab-june-7", "lab"), ("r7", SOURCE[:40]), ("", SOURCE[:40])]
)
def test_source_kind_of_a_serving_row(tmp_path, id, kind):
    row = {"id": id, "source": SOURCE, "chip": "H100", "n_chips": 1, "model": "x", "isl": 1, "engine": "vllm"}
    assert read_rows(write(tmp_path / "m.csv", row), "serving")[0].kind == kind


def test_source_kind_of_a_training_row_is_never_its_id(tmp_path):
    assert read_rows(write(tmp_path / "m.csv", {**TRAINING_ROW, "id": "own-1"}))[0].kind == "own cluster, June"


def test_a_metric_of_smaller_scale_has_more_say():
    """Two observations of one constant disagree by ln 4. Without priors and with soft l1, r/s^2/sqrt(1 + (r/s)^2) must balance."""
    measured, priors = np.log([1.0, 4.0]), {"a": Prior(2.0, 100.0)}
    predict = lambda values: np.full(2, np.log(values["a"]))
    scale = np.array([0.1, 0.4])
    found = fit(predict, measured, np.ones(2), priors, {"a": 2.0}, scale=scale, evaluations=50)
    pull = found.residuals / scale**2 / np.sqrt(1.0 + (found.residuals / scale) ** 2)
    assert abs(pull.sum()) < 0.01 * abs(pull[0])
    assert abs(found.residuals[0]) < 0.1 * abs(found.residuals[1])
    even = fit(predict, measured, np.ones(2), priors, {"a": 2.0}, evaluations=50)
    assert even.values["a"] == pytest.approx(2.0, rel=1e-3)


def test_each_offset_has_its_own_spread():
    """One observation each, r = 0.1 from the constant, which the prior holds: the wider offset takes more of it."""
    found = fit(
        lambda values: np.full(2, np.log(values["a"])), np.log([1.0, 1.0]) + 0.1, np.ones(2), {"a": Prior(1.0, 1e-4)}, {"a": 1.0},
        anchors=np.array([0, 1]), anchor_spread=np.array([0.05, 0.5]), evaluations=50,
    )  # fmt: skip
    assert 0.0 < found.offsets[0] < 0.03 and 0.09 < found.offsets[1] < 0.1


def test_bands_of_any_labels_are_read_as_they_were_written():
    rng = np.random.default_rng(1)
    bands = bands_by_tier(
        {
            (tier, label): Missed(rng.normal(0.0, spread, 50), ["a"] * 50)
            for tier in TIERS
            for label, spread in (("dense", 0.1), ("moe", 0.3))
        }
    )
    assert bands["known", "moe"].high > bands["known", "dense"].high
    figures = {
        f"constants/training_interval/{name}": {"value": f["value"], "note": "test"}
        for name, f in band_figures(bands, "T").items()
    }
    found = catalog_bands(Catalog.load().with_overrides(figures))
    for key, band in bands.items():
        assert (found[key].low, found[key].high) == pytest.approx((band.low, band.high), rel=1e-3, abs=1e-3)


def test_a_tier_with_few_residuals_takes_those_of_all_labels():
    many, one = Missed(np.linspace(-1.0, 1.0, 99), ["s"] * 99), Missed(np.array([5.0]), ["s"])
    bands = bands_by_tier({("known", "b"): one, **{(tier, "a"): many for tier in TIERS}})
    assert bands["known", "b"].high < 1.0 and isinstance(bands["new_chip", "b"], Band)


def test_own_rows_may_be_fitted_from_other_constants_than_the_shipped(tmp_path):
    """As the accuracy report does for a source that the constants have not seen."""
    catalog = Catalog.load()
    cases = read_measurements(write(tmp_path / "m.csv", TRAINING_ROW), catalog).cases
    slower = {**catalog.constants("training"), "efficiency_16bit": 0.5}
    priors = shipped_priors(catalog, TRAINING, slower)
    assert priors["efficiency_16bit"].centre == 0.5
    observations = TRAINING.observations(cases)
    before = float(TRAINING.predict(cases, observations)(slower)[0])
    found, keys = fit_own(cases, slower, priors)
    after = float(TRAINING.predict(cases, observations)({**slower, **found.values})[0] + found.offsets[0])
    truth = float(np.log(5.0))
    assert len(keys) == 1 and keys[0].endswith("|H100 SXM5 80GB|bf16")
    assert abs(after - truth) < 0.5 * abs(before - truth)
