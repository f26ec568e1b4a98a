"""`validate` and `calibrate` on a serving file: metrics and units, rows in and out of the score, own rows that tighten the answer."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from catalog.lookup import Catalog
from planner.calibration.scores import validate
from planner.cli.main import main

BASE = {
    "id": "r1", "source": "own cluster, June", "model": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16", "chip": "H100", "n_chips": 1,
    "tp": 1, "pp": 1, "ep": 1, "dp": 1, "engine": "vllm", "engine_version": "0.10.0", "mode": "aggregated", "isl": 1024, "osl": 256,
    "concurrency": 16, "ttft_ms": 120.0, "tpot_ms": 9.0, "output_tokens_per_s_total": 1500.0,
}  # fmt: skip
FIGURES = {"ttft": ("ttft_ms", 1e3), "tpot": ("tpot_ms", 1e3), "throughput": ("output_tokens_per_s_total", 1.0)}


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load()


def write(path: Path, *rows: dict) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def synthetic(path: Path, catalog: Catalog, factors: dict[str, float], loads=(1, 4, 16, 64), **changes) -> Path:
    """Runs whose figures are `factors` times what the shipped constants say."""
    rows = [{**BASE, "id": f"r{load}", "concurrency": load, **changes} for load in loads]
    guess = {(s.id, s.metric): s.predicted for s in validate(write(path, *rows), catalog).scores}
    for row in rows:
        row |= {column: factors[metric] * unit * guess[row["id"], metric] for metric, (column, unit) in FIGURES.items()}
    return write(path, *rows)


def worst(found, metric: str) -> float:
    return max(abs(s.ratio - 1.0) for s in found.scores if s.metric == metric)


def test_each_figure_of_a_row_is_scored_in_its_unit(tmp_path, catalog):
    found = validate(
        write(tmp_path / "m.csv", BASE, {**BASE, "id": "r2", "chip": "Abacus 9"}, {**BASE, "id": "r3", "ttft_ms": ""}),
        catalog,
    )
    document = found.as_json()
    assert (document["rows"], document["predicted"]) == (3, 2) and sum(document["not_predictable"].values()) == 1
    assert {name: values["n"] for name, values in document["metrics"].items()} == {
        "tpot": 2,
        "ttft": 1,
        "throughput": 2,
    }
    measured = {s.metric: s.measured for s in found.scores if s.id == "r1"}
    assert measured == pytest.approx({"ttft": 0.120, "tpot": 0.009, "throughput": 1500.0})
    for s in found.scores:
        assert s.low < s.predicted < s.high and s.tier == "new_source" and s.in_score
        assert 0.2 < s.ratio < 5.0


def test_a_row_out_of_the_score_is_predicted_and_summed_up_apart(tmp_path, catalog):
    found = validate(write(tmp_path / "m.csv", BASE, {**BASE, "id": "r2", "grade": "C", "tpot_ms": 90.0}), catalog)
    document = found.as_json()
    assert document["predicted"] == 2
    assert document["metrics"]["tpot"]["n"] == 1
    assert document["metrics"] == document["by"]["in score"]["yes"]
    assert document["by"]["in score"]["no"]["tpot"]["n"] == 1
    assert document["by"]["chip"]["H100 SXM5 80GB"]["tpot"]["n"] == 1
    assert [row["note"].endswith("not in the score") for row in found.score_rows() if row["metric"] == "tpot"] == [
        False,
        True,
    ]


def test_a_handful_of_own_rows_tightens_the_answer(tmp_path, catalog, capsys):
    factors = {"tpot": 1.4, "ttft": 1.8, "throughput": 0.7}
    path = synthetic(tmp_path / "m.csv", catalog, factors)
    before = validate(path, catalog)
    assert main(["calibrate", str(path), "--output", str(tmp_path / "own"), "-q"]) == 0
    after = validate(path, Catalog.load([tmp_path / "own"]))
    for metric, factor in factors.items():
        assert worst(before, metric) == pytest.approx(abs(1.0 / factor - 1.0), rel=1e-3)
        assert worst(after, metric) < 0.35 * worst(before, metric)
    width = [{(s.id, s.metric): s.high / s.low for s in found.scores} for found in (before, after)]
    assert all(width[1][key] <= width[0][key] for key in width[0])
    assert {s.tier for s in after.scores} == {"known"}
    printed = capsys.readouterr().out
    assert "points on H100 SXM5 80GB with weights in bf16 and engine vllm" in printed and "serving." not in printed
    overlay = json.loads((tmp_path / "own/serving.json").read_text(encoding="utf-8"))
    figures = [record["figures"]["value"] for record in overlay["constants"] if record["name"].startswith("serving.")]
    assert figures and all(f["kind"] == "calibrated" and f["low"] <= f["value"] <= f["high"] for f in figures)


def test_own_rows_tell_of_runs_that_were_not_measured(tmp_path, catalog):
    """Calibrated at few clients, asked at many: the offset of the environment carries over."""
    factors = {"tpot": 1.4, "ttft": 1.8, "throughput": 0.7}
    main(
        [
            "calibrate",
            str(synthetic(tmp_path / "m.csv", catalog, factors, (1, 4, 16))),
            "--output",
            str(tmp_path / "own"),
            "-q",
        ]
    )
    other = synthetic(tmp_path / "other.csv", catalog, factors, (32,), isl=2048)
    before, after = validate(other, catalog), validate(other, Catalog.load([tmp_path / "own"]))
    for metric in factors:
        assert worst(after, metric) < 0.5 * worst(before, metric)


def test_an_offset_is_of_its_engine_and_metric(tmp_path, catalog):
    path = write(tmp_path / "m.csv", {**BASE, "ttft_ms": "", "output_tokens_per_s_total": ""})
    main(["calibrate", str(path), "--output", str(tmp_path / "own"), "-q"])
    overlay = json.loads((tmp_path / "own/serving.json").read_text(encoding="utf-8"))
    anchors = next(record["figures"] for record in overlay["constants"] if record["name"] == "serving_anchor")
    assert list(anchors) == ["vllm|H100 SXM5 80GB|bf16|tpot"]


def test_rows_of_low_grade_never_enter_a_calibration(tmp_path, catalog):
    path = write(tmp_path / "m.csv", {**BASE, "grade": "D"})
    assert main(["calibrate", str(path), "--output", str(tmp_path / "own"), "-q"]) == 3


def test_leaving_sources_out_predicts_each_row_without_its_source(tmp_path, catalog):
    factors = {"tpot": 1.0, "ttft": 1.0, "throughput": 1.0}
    with open(synthetic(tmp_path / "m.csv", catalog, factors), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    slow = [
        {**row, "id": f"slow-{i}", "source": "another cluster", "tpot_ms": 2.0 * float(row["tpot_ms"])}
        for i, row in enumerate(rows)
    ]
    found = {(s.id, s.metric): s for s in validate(write(tmp_path / "m.csv", *rows, *slow), catalog, "source").scores}
    # Without its own source a slow row is predicted from the quick ones, and the other way round.
    assert np.log(found["slow-0", "tpot"].predicted / found["r1", "tpot"].predicted) < 0.0
    assert {s.tier for s in found.values()} == {"new_source"}


def test_the_command_writes_one_row_per_id_and_metric(tmp_path, capsys):
    path = write(tmp_path / "m.csv", BASE, {**BASE, "id": "r2", "concurrency": 4})
    assert main(["validate", str(path), "--rows", str(tmp_path / "rows.csv"), "--format", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["metrics"]) == set(FIGURES)
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "metric", "measured", "predicted", "low", "high", "note"]
    assert {(row["id"], row["metric"]) for row in rows} == {
        (id, metric) for id in ("r1", "r2") for metric in FIGURES
    } and len(rows) == 6
