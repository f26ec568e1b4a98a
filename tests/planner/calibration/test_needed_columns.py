"""Columns without which a run cannot be predicted are named all at once, and what was assumed is said beside the run."""

import json

import pytest

from catalog.lookup import shipped_catalog
from planner.calibration.scores import validate

RESULT = {
    "backend": "openai-chat", "model_id": "Qwen/Qwen3-32B", "request_rate": "inf", "max_concurrency": 20, "completed": 400,
    "total_input_tokens": 320000, "total_output_tokens": 120000, "output_throughput": 849.9, "mean_ttft_ms": 121.5, "mean_tpot_ms": 24.1,
}  # fmt: skip


def validated(tmp_path, **cells):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**RESULT, **cells}))
    return validate(path, shipped_catalog())


@pytest.mark.parametrize(
    ("cells", "missing"), [({}, "no chip, n_chips"), ({"chip": "H100"}, "no n_chips"), ({"n_chips": 8}, "no chip")]
)
def test_all_that_is_missing_is_named_at_once(tmp_path, cells, missing):
    (reason,) = validated(tmp_path, **cells).reasons
    assert reason == missing


def test_a_degree_that_was_assumed_is_said(tmp_path):
    (run,) = validated(tmp_path, chip="H100", n_chips=8).runs
    assert "; assumed " in run.text() and "tp 8" in run.text().partition("; assumed ")[2]
    (run,) = validated(tmp_path, chip="H100", n_chips=8, tp=8).runs
    assert "tp 8" not in run.text()
