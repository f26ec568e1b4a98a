"""Test the probe: one file that runs alone, measures what it can, and says what it could not."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys

import pytest

from planner import probe


def test_the_file_runs_alone_without_the_package(root, tmp_path):
    shutil.copy(root / "planner" / "probe.py", tmp_path)
    command = [sys.executable, "-I", "probe.py", "--backend", "numpy", "--output", "out.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert found["schema"] == probe.SCHEMA and found["errors"] == []
    assert {row["kind"] for row in found["measurements"]} == {
        "launch", "copy", "read", "gather", "gemm", "prefill attention", "decode attention"
    }  # fmt: skip
    assert {row["format"] for row in found["measurements"] if row["kind"] == "gemm"} == {"fp32", "fp16"}
    assert all(row["seconds"] > 0 and row["samples"] > 2 for row in found["measurements"])
    assert {row["reason"] for row in found["skipped"]} >= {"numpy has no graphs"}  # named, not lost


def test_rates_follow_from_the_median():
    row = probe.product("w", "bf16", 2, 3, 5).row([4.0, 1.0, 2.0])
    assert row["seconds"] == 2.0
    assert row["flop_per_s"] == 2 * 2 * 3 * 5 / 2.0
    assert row["bytes_per_s"] == 2 * (2 * 5 + 3 * 5 + 2 * 3) / 2.0  # inputs, weights and outputs of two bytes


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_pytorch_it_says_what_to_install(tmp_path, capsys):
    with pytest.raises(SystemExit, match="install PyTorch for your accelerator, or try --backend numpy"):
        probe.main(["--output", str(tmp_path / "out.json")])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorch_measures_where_there_is_an_accelerator(tmp_path):
    try:
        backend = probe.TorchBackend()
    except SystemExit as none:
        pytest.skip(str(none))
    found = probe.probe(backend, probe.TINY, 60.0, lambda _: None)
    assert found["measurements"] and not [row for row in found["errors"] if row["kind"] == "gemm"]


class Broken(probe.NumpyBackend):
    """A backend whose gathers fail."""

    def time(self, work):
        if work.kind == "gather":
            raise RuntimeError("no room")
        return super().time(work)


def test_a_failure_is_told_and_loses_nothing_else():
    found = probe.probe(Broken(), probe.TINY, 60.0, lambda _: None)
    assert {row["kind"] for row in found["errors"]} == {"gather"}
    assert all(row["error"] == "RuntimeError: no room" for row in found["errors"])
    assert "decode attention" in {row["kind"] for row in found["measurements"]}


def test_what_the_time_does_not_allow_is_listed():
    found = probe.probe(probe.NumpyBackend(), probe.TINY, 1e-9, lambda _: None)
    asked = probe.works(probe.TINY, ["fp32", "fp16"], True)
    assert found["measurements"] == []
    assert [row["reason"] for row in found["skipped"] if row["kind"] == "gemm"] == ["time"] * sum(
        work.kind == "gemm" for work in asked
    )


def test_every_product_of_an_architecture_is_measured_with_few_and_many_rows():
    works = [work for work in probe.works(probe.STANDARD, ["bf16", "fp8"], False) if work.kind == "gemm"]
    for of in probe.STANDARD["products"]:
        for numbers in ("bf16", "fp8"):
            rows = {w.shape["m"] for w in works if (w.name, w.format) == (of["name"], numbers)}
            assert {1, 16, 8192} <= rows, (of, numbers)
    assert len({(w.format, w.name, *w.shape.values()) for w in works}) == len(works)  # none twice


@pytest.mark.parametrize(
    "shapes, words",
    [
        ([], "expected"),
        ({"products": []}, "expected"),
        ({"products": [{"n": 3, "k": 0}, {"n": "4", "k": 1}]}, r"products\[0\]\.k, products\[1\]\.n"),
        ({"products": [{"n": 1, "k": 1}], "attention": {"heads": 4, "kv_heads": 3, "head_dim": 8}}, "no multiple"),
        ({"products": [{"n": 1, "k": 1}], "attention": {"heads": 4}}, r"attention\.kv_heads, attention\.head_dim"),
    ],
)
def test_shapes_that_cannot_be_are_named(shapes, words):
    with pytest.raises(ValueError, match=words):
        probe.checked_shapes(shapes)


def test_errors_of_the_program(tmp_path, capsys):
    assert probe.main(["--backend", "numpy", "--output", str(tmp_path / "no" / "out.json")]) == 2
    assert probe.main(["--backend", "numpy", "--seconds", "0", "--output", str(tmp_path / "out.json")]) == 2
    told = capsys.readouterr().err
    assert "there is no folder" in told and "expected a positive number" in told
