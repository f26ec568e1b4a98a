"""Reading measurements, the stated inferences, scores, and a user's calibration, on small made files."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from catalog.lookup import Catalog
from models.training.step import TrainingConstants
from planner.calibration.measurements import Unpredictable, fold_of, read_rows
from planner.calibration.scores import validate
from planner.calibration.training_cases import measured_training
from planner.cli.main import main
from planner.errors import SpecError

BASE = {
    "id": "r1", "source": "own cluster, June", "model": "Llama-3-8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336,
    "vocab": 128256, "seq_len": 8192, "chip": "H100", "n_chips": 64, "tp": 2, "pp": 1, "dp": 32, "micro_batch": 1,
    "global_batch_sequences": 256, "recompute": "none", "sharding": "zero1", "dtype": "bf16", "step_time_s": 5.0, "framework": "megatron",
    "release_date": "2025-06",
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load()


def write(path: Path, *rows: dict) -> Path:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def case_of(tmp_path, catalog, **changes):
    row = read_rows(write(tmp_path / "m.csv", {**BASE, **changes}))[0]
    return measured_training(row, catalog, TrainingConstants.from_values(catalog.constants("training")))


def test_every_unreadable_cell_is_named_at_once(tmp_path):
    path = write(
        tmp_path / "m.csv", {**BASE, "n_chips": "many", "seq_len": "-3"}, {**BASE, "id": "r2", "step_time_s": "nan"}
    )
    with pytest.raises(SpecError) as caught:
        read_rows(path)
    assert [problem.path.split(", ")[1] for problem in caught.value.problems] == ["n_chips", "seq_len", "step_time_s"]


@pytest.mark.parametrize("cell", ["1e100", "1e19", "-1", "nan", "inf", "many"])
def test_a_number_beyond_any_count_is_named(tmp_path, cell):
    with pytest.raises(SpecError, match=r"line 2, tp: expected a number from 0 to 1e\+18") as caught:
        read_rows(write(tmp_path / "m.csv", {**BASE, "tp": cell}))
    assert cell in str(caught.value)


def test_a_missing_column_and_a_repeated_id_are_errors(tmp_path):
    without = {name: value for name, value in BASE.items() if name != "n_chips"}
    with pytest.raises(SpecError, match='no column "n_chips"'):
        read_rows(write(tmp_path / "m.csv", without))
    with pytest.raises(SpecError, match="twice"):
        read_rows(write(tmp_path / "m.csv", BASE, BASE))


def test_folds_are_those_of_the_definition():
    text = b"fold|kind|shape|chip"
    assert fold_of("kind", "shape", "chip") == int(hashlib.sha256(text).hexdigest(), 16) % 5


def test_empty_cells_are_inferred_and_listed(tmp_path, catalog):
    case = case_of(tmp_path, catalog, dp="", micro_batch="", sharding="", recompute="", sequence_parallel="")
    assert case.case.layout["dp"] == 32 and case.case.layout["micro_batch"] == 1
    assert case.case.layout["zero"] == 1 and case.case.layout["sequence_parallel"] == 1
    assert {"dp from the chips", "micro-batch 1", "sharding zero1", "sequence parallelism on"} <= set(case.inferred)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"chip": "Abacus 9"}, "chip not in the catalog"), ({"n_chips": ""}, "no n_chips"), ({"dtype": "posit"}, "unknown dtype"),
    ({"layers": "", "model": "nobody knows"}, "no shape"), ({"tp": 7, "dp": ""}, "does not divide"), ({"chip": "A100", "dtype": "fp8"}, "no published fp8"),
])  # fmt: skip
def test_rows_that_cannot_be_asked_have_a_reason(tmp_path, catalog, changes, reason):
    with pytest.raises(Unpredictable, match=reason):
        case_of(tmp_path, catalog, **changes)


def test_cores_that_a_layout_counts_share_their_chip(tmp_path, catalog):
    whole, cores = (case_of(tmp_path, catalog, chip="Trainium1", n_chips=32, tp=1, dp=dp) for dp in (32, 64))
    assert cores.case.chip.hbm_bytes == whole.case.chip.hbm_bytes / 2
    assert cores.chips == whole.chips == 32


def test_the_shape_comes_from_the_row_before_the_catalog(tmp_path, catalog):
    known = case_of(
        tmp_path, catalog, model="Qwen3-30B-A3B", layers="", hidden="", heads="", kv_heads="", ffn="", vocab=""
    )
    assert known.case.arch.head_dim == 128 and known.case.arch.experts == 128
    own = case_of(tmp_path, catalog, model="my own", hidden=5120, heads=40, kv_heads=8)
    assert (own.case.arch.hidden, own.architecture) == (5120, "my own")


def test_experts_of_an_unstated_layout_spread_over_a_scale_up_domain(tmp_path, catalog):
    shape = {
        "model": "Qwen3-30B-A3B",
        "layers": "",
        "hidden": "",
        "heads": "",
        "kv_heads": "",
        "ffn": "",
        "vocab": "",
        "sharding": "",
    }
    unstated = {**shape, "tp": "", "pp": "", "dp": "", "cp": "", "ep": "", "framework": "megatron", "chips_per_node": 8}
    assert case_of(tmp_path, catalog, **unstated).case.layout["ep"] == 8
    assert case_of(tmp_path, catalog, **{**unstated, "sharding": "zero3"}).case.layout["ep"] == 1
    assert case_of(tmp_path, catalog, **{**unstated, "tp": 1}).case.layout["ep"] == 1


@pytest.mark.parametrize(("model", "sharding", "graphs"), [
    ("Qwen3-30B-A3B", "zero1", "full"), ("Qwen3-30B-A3B", "zero3", "partial"), ("Qwen3-Next-80B-A3B", "zero1", "partial"),
])  # fmt: skip
def test_whole_iterations_are_recorded_where_buffers_stay(tmp_path, catalog, model, sharding, graphs):
    shape = {
        "layers": "",
        "hidden": "",
        "heads": "",
        "kv_heads": "",
        "ffn": "",
        "vocab": "",
        "tp": 1,
        "ep": 8,
        "dp": 64,
    }
    tuned = {
        "chip": "GB200",
        "dtype": "mxfp8",
        "framework": "nvidia-tuned",
        "release_date": "2026-08",
        "sharding": sharding,
    }
    assert case_of(tmp_path, catalog, model=model, **shape, **tuned).case.recipe.cuda_graphs == graphs


def test_scores_of_a_file(tmp_path, catalog):
    path = write(
        tmp_path / "m.csv",
        BASE,
        {**BASE, "id": "r2", "step_time_s": "", "model_tflops_per_chip": 400},
        {**BASE, "id": "r3", "chip": "Abacus 9"},
    )
    found = validate(path, catalog)
    document = found.as_json()
    assert (document["rows"], document["predicted"], document["not_predictable"]) == (
        3,
        2,
        {"chip not in the catalog": 1},
    )
    assert set(document["metrics"]) == {"step_time", "tflops"}
    by_id = {score.id: score for score in found.scores}
    step, rate = by_id["r1"], by_id["r2"]
    assert step.low < step.predicted < step.high and step.tier == "new_source"
    # The same run seen twice: work = rate x time, with work of three forward passes.
    from models.transformer.attention import forward_flops_per_token

    arch = case_of(tmp_path, catalog).case.arch
    work = 3 * float(forward_flops_per_token(arch, 8192)) * 256 * 8192 / 64 / 1e12
    assert rate.predicted * step.predicted == pytest.approx(work, rel=1e-9)
    error = abs(step.predicted / 5.0 - 1)
    assert document["metrics"]["step_time"]["median_ape"] == pytest.approx(error, abs=1e-6)


def synthetic(path: Path, catalog: Catalog, factor: float, count: int = 6) -> Path:
    """Runs that take `factor` times what the shipped constants say."""
    rows = [
        {**BASE, "id": f"r{i}", "tp": tp, "dp": 64 // tp, "global_batch_sequences": 64 * (i + 1)}
        for i, tp in zip(range(count), (1, 2, 4, 8, 2, 4))
    ]
    guess = {s.id: s.predicted for s in validate(write(path, *rows), catalog).scores}
    return write(path, *({**row, "step_time_s": factor * guess[row["id"]]} for row in rows))


def test_a_handful_of_own_rows_tightens_the_answer(tmp_path, catalog, capsys):
    path = synthetic(tmp_path / "m.csv", catalog, 1.3)
    before = validate(path, catalog)
    assert main(["calibrate", str(path), "--output", str(tmp_path / "own"), "-q"]) == 0
    after = validate(path, Catalog.load([tmp_path / "own"]))
    worst_before, worst_after = (max(abs(s.ratio - 1) for s in found.scores) for found in (before, after))
    assert worst_before > 0.2 and worst_after < 0.06
    assert after.scores[0].tier == "known"
    assert after.scores[0].high / after.scores[0].low <= before.scores[0].high / before.scores[0].low
    printed = capsys.readouterr().out
    assert "points on H100 SXM5 80GB with arithmetic in bf16" in printed and "training." not in printed
    overlay = json.loads((tmp_path / "own/training.json").read_text(encoding="utf-8"))
    figures = [record["figures"]["value"] for record in overlay["constants"] if record["name"].startswith("training.")]
    assert figures and all(
        f["kind"] == "calibrated" and f["low"] <= f["value"] <= f["high"] and "spread" in f["note"] for f in figures
    )


def test_rows_of_low_grade_never_enter_a_calibration(tmp_path, catalog):
    path = write(tmp_path / "m.csv", {**BASE, "grade": "C"})
    assert main(["calibrate", str(path), "--output", str(tmp_path / "own"), "-q"]) == 3


def test_the_command_writes_rows_and_every_format(tmp_path, catalog, capsys):
    path = write(tmp_path / "m.csv", BASE)
    for form in ("table", "json", "csv", "md"):
        assert main(["validate", str(path), "--rows", str(tmp_path / "rows.csv"), "--format", form]) == 0
        assert "step_time" in capsys.readouterr().out
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == ["id", "metric", "measured", "predicted", "low", "high", "note"]
    assert float(row["low"]) < float(row["predicted"]) < float(row["high"])
    assert main(["validate", str(tmp_path / "none.csv")]) == 2


def test_leaving_groups_out_predicts_each_row_without_its_group(tmp_path, catalog):
    path = synthetic(tmp_path / "m.csv", catalog, 1.0, count=4)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    slow = [
        {**row, "id": f"s{i}", "source": "another cluster", "step_time_s": 1.5 * float(row["step_time_s"])}
        for i, row in enumerate(rows)
    ]
    write(path, *rows, *slow)
    found = {s.id: s for s in validate(path, catalog, "source").scores}
    # Without its own source a slow row is predicted from the quick ones, and the other way round.
    assert np.log(found["s0"].predicted / found["r0"].predicted) < 0
    assert {s.tier for s in found.values()} == {"new_source"}
