"""Measurements of one's own that are uploaded: every file counts, whatever its name."""

import json
import math
from pathlib import Path

import pytest

from planner.dashboard.workers.study_worker import _calibrate, file_name

SPEC = json.loads((Path(__file__).parent / "tiny.json").read_text())


def benchmark(clients: int, tokens_per_s: float, tpot_ms: float) -> str:
    """Write the result of a serving benchmark in a closed loop: clients x 1000 / TPOT is about the rate of tokens."""
    requests, prompt, answer = 256, 400, 250
    result = {
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B",
        "chip": "H100 SXM5 80GB",
        "n_chips": 1,
        "tp": 1,
        "weight_dtype": "bf16",
        "num_prompts": requests,
        "completed": requests,
        "max_concurrency": clients,
        "total_input_tokens": requests * prompt,
        "total_output_tokens": requests * answer,
        "request_throughput": tokens_per_s / answer,
        "output_throughput": tokens_per_s,
        "mean_tpot_ms": tpot_ms,
    }
    return json.dumps(result)


def fitted(files: list[list[str]]) -> list[dict]:
    """Fit to files by name and text, as the page asks for it."""
    sent = {}
    findings = type("Findings", (), {"send": staticmethod(sent.update)})()
    _calibrate({"spec": SPEC, "options": {"files": files, "cells": {}}}, findings)
    return sorted(sent["found"]["changes"], key=lambda row: row["figure"])


def test_two_files_of_one_name_count_as_two_of_different_names_do():
    few, many = benchmark(16, 1800.0, 8.5), benchmark(96, 7200.0, 12.5)
    both = fitted([["run.json", few], ["other.json", many]])
    same = fitted([["run.json", few], ["run.json", many]])
    assert [row["figure"] for row in same] == [row["figure"] for row in both]
    for row, other in zip(same, both, strict=True):
        assert math.isclose(row["after"], other["after"], rel_tol=1e-9)
    alone = {row["figure"]: row["after"] for row in fitted([["run.json", many]])}
    assert any(not math.isclose(alone[row["figure"]], row["after"], rel_tol=1e-3) for row in same)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("run.json", "run (2).json"),
        ("..", "file"),
        ("", "file"),
        ("../../evil.json", "evil.json"),
        ("x\x00.json", "x.json"),
        ("a" * 300 + ".json", "a" * 50 + ".json"),
    ],
)
def test_an_upload_is_written_under_a_name_of_its_own(name, kept):
    assert file_name(name, {"run.json"}) == kept
    assert file_name("run.json", {"run.json", "run (2).json"}) == "run (3).json"
